"""The order of work: one lane per session.

Updates of a session are handled one at a time in the order they were received. What must not overtake them (the
answer to a prompt, a permission request about a tool call just announced) queues in the same lane. Lanes of
different sessions do not wait for each other, and a lane exists only while it has work.

Two things must never wait behind a handler, or both sides would wait for ever: the answer to a call that this very
handler made, and requests of the peer that arrive meanwhile. `nested` counts such calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

__all__ = ["Backlog", "Lane", "handling"]

Handler = Callable[..., Awaitable[Any]]


class Call(NamedTuple):
    """A notification to be handled: `await fn(**kwargs)`."""

    lane: Lane
    fn: Handler
    kwargs: dict[str, Any]
    weight: int


handling: ContextVar[Call | None] = ContextVar("pilothouse_acp_handling", default=None)
"""The notification whose handler runs in this context, if any."""


class Backlog:
    """Counts what is received and not yet handled, in bytes; the reader stops above `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.nested = 0
        self._room: asyncio.Future[None] | None = None

    @property
    def full(self) -> bool:
        return self.size > self.limit and not self.nested

    def shrink(self, weight: int) -> None:
        self.size -= weight
        if self._room is not None and self.size * 2 <= self.limit:
            self.release()

    def release(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    async def wait_room(self) -> None:
        while self.full:
            self._room = asyncio.get_running_loop().create_future()
            await self._room


class Lane:
    """The queue of one session and the task that works it off."""

    __slots__ = ("_backlog", "_current", "_failed", "_items", "_on_empty", "key", "nested", "task")

    def __init__(
        self,
        key: str,
        backlog: Backlog,
        failed: Callable[[Handler, Exception], None],
        on_empty: Callable[[Lane], None],
    ) -> None:
        self.key = key
        self.nested = 0
        self.task: asyncio.Task[None] | None = None
        self._items: deque[Call | Callable[[], Any]] = deque()
        self._backlog = backlog
        self._current: Call | None = None
        self._failed = failed
        self._on_empty = on_empty

    @property
    def busy(self) -> bool:
        """Whether something is being handled that later arrivals have to wait for."""
        return self.task is not None and not self.nested

    def call(self, fn: Handler, kwargs: dict[str, Any], weight: int) -> None:
        """Handle a notification when its turn comes."""
        self._backlog.size += weight
        self._items.append(Call(self, fn, kwargs, weight))
        if self.task is None:
            self._start()

    def then(self, action: Callable[[], Any]) -> None:
        """Do something as soon as everything before it has been handled."""
        self._items.append(action)
        if self.task is None:
            self._start()

    def is_inside(self, call: Call | None) -> bool:
        """Whether `call` is what this lane is handling right now."""
        return call is not None and call is self._current

    def _start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self._run(), name=f"acp lane {self.key}")

    async def _run(self) -> None:
        items = self._items
        backlog = self._backlog
        try:
            while items:
                item = items.popleft()
                if not isinstance(item, Call):
                    if item():
                        # A request has been started: it takes its first step before anything after it is handled.
                        await asyncio.sleep(0)
                    continue
                self._current = item
                handling.set(item)
                try:
                    await item.fn(**item.kwargs)
                except Exception as exc:
                    self._failed(item.fn, exc)
                self._current = None
                backlog.size -= item.weight
                if backlog._room is not None:
                    backlog.shrink(0)
        finally:
            self._current = None
            self.task = None
            self._on_empty(self)
