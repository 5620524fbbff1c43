"""Requests that are sent twice, because an answer was lost, and must act once: known by an id that the caller chose.

Kept in memory, the last so many; what must be known after a restart too (a prompt, a decision) is known by the log. A
request that failed did nothing, so it is forgotten and may be tried again. Of a request only its hash is kept: it may
hold a picture.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

import msgspec

from ..errors import HttpError

KEPT = 4096

T = TypeVar("T")


class Repeats:
    """What was asked under an id, and its answer, or the task that is making it."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._asked: OrderedDict[Hashable, tuple[bytes, asyncio.Task[Any]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._asked)

    async def once(self, key: Hashable, request: Any, act: Callable[[], Awaitable[T]], *, field: str) -> T:
        """The answer of `act`, which is called only if nothing was asked under this key before.

        It goes on when who asked is gone. Raises what `act` raises, HttpError 409 for another request, which names
        the `field` that the id stood in.
        """
        known, asked = self._asked.get(key), _fingerprint(request)
        if known is None:
            known = self._asked[key] = (asked, asyncio.ensure_future(_run(act)))
            known[1].add_done_callback(lambda task: self._done(key, task))
            self._forget_oldest()
        elif known[0] != asked:
            raise id_reused(field)
        answer: T = await asyncio.shield(known[1])
        return answer

    def _done(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._asked.pop(key, None)

    def _forget_oldest(self) -> None:
        while len(self._asked) > self._kept:
            oldest = next(iter(self._asked))
            if not self._asked[oldest][1].done():
                return
            del self._asked[oldest]


def id_reused(field: str) -> HttpError:
    message = f"this `{field}` was given to another request before; choose a new one"
    return HttpError(409, "id_reused", message, field=field)


def _fingerprint(request: Any) -> bytes:
    return hashlib.sha256(msgspec.json.encode(request, order="deterministic")).digest()


async def _run(act: Callable[[], Awaitable[T]]) -> T:
    return await act()
