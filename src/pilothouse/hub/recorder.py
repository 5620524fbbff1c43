"""The pen of a session: translated events on their way into the log, in order, many to a commit.

What is recorded in one turn of the loop goes into one batch. Batches are handed over without waiting, a bounded number
at a time, so that an agent that talks fast is written fast and one that talks faster than the disk is slowed down.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from ..log.base import EventLog
from ..log.records import Change
from ..model.events import Event, SessionStatusChangedEvent, utc_now
from ..model.session import Session

__all__ = ["Recorder"]

BATCH = 2_000
"""Events after which a batch is handed over at once."""
UNDER_WAY = 4
"""Batches that may be on their way to the disk before the agent has to wait."""


class Recorder:
    """Appends a session's events and folds them, in the same order."""

    def __init__(self, log: EventLog, session: Session, seq: int, failed: Callable[[BaseException], None]) -> None:
        self._log = log
        self.session = session
        self._session_id = session.id
        self._expected = seq
        self._failed = failed
        self._batch: list[Event] = []
        self._also: list[Change] = []
        self._scheduled = False
        self._under_way: deque[asyncio.Future[int]] = deque()
        self._now: str | None = None

    @property
    def seq(self) -> int:
        """The number of the last event, once everything recorded is committed."""
        return self._expected + len(self._batch)

    def now(self) -> str:
        """The time, looked up once for all that happens in one turn of the loop."""
        if self._now is None:
            self._now = utc_now()
            self._schedule()
        return self._now

    def record(self, events: Sequence[Event], *, also: Sequence[Change] = ()) -> None:
        """Take events; they are committed soon and in order, `also` with them."""
        self._batch += events
        self._also += also
        for event in events:
            if type(event) is SessionStatusChangedEvent:
                self._also.append(self._log.sessions.updating(self._session_id, status=event.to))
        if len(self._batch) >= BATCH:
            self._flush()
        else:
            self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled, self._now = False, None
        batch, self._batch = self._batch, []
        also, self._also = self._also, []
        if not batch and not also:
            return
        future = self._log.append_nowait(self._session_id, self._expected, batch, also=also)
        self._expected += len(batch)
        self._under_way.append(future)
        future.add_done_callback(partial(self._committed, batch))

    def _committed(self, batch: list[Event], future: asyncio.Future[int]) -> None:
        """What the session is, is what has been committed; a snapshot never shows more."""
        self._under_way.remove(future)
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._failed(error)
            return
        for event in batch:
            self.session.apply(event)

    @property
    def is_behind(self) -> bool:
        """Whether whoever records should `catch_up` first."""
        return len(self._under_way) > UNDER_WAY

    async def catch_up(self) -> None:
        """Wait until there is room for more."""
        while self.is_behind:
            await asyncio.wait((self._under_way[0],))

    async def commit(self) -> int:
        """Wait until everything recorded so far is committed; the last seq. Raises what the log raises."""
        self._flush()
        seq = self._expected
        while self._under_way:
            await asyncio.shield(self._under_way[-1])
        return seq
