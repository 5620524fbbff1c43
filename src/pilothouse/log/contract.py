"""The contract of a log: append a batch, read from a cursor, follow; and the records kept beside events.

Append and commit first, wake followers second: what a consumer sees is durable. There is one writer per session,
held to it by `expected`, the last seq it knows; that is all a distributed implementation needs as well. Nothing here
knows how entries are stored.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from ..model.events import Event, utc_now
from .entries import Entry
from .follow import BATCH_BYTES, BATCH_COUNT, TAIL_BYTES, Follower, Tails
from .records import Change, Record, SearchHit, SessionFilter, SessionPage
from .stores import Approvals, Devices, Rules, Sessions, Settings, Turns

R = TypeVar("R", bound=Record)


class EventLog(ABC):
    """A durable, ordered log of events by session. Open it by `async with`; it belongs to the loop it is opened in.

    `notices` are things its user should be told: what this machine cannot do.
    """

    def __init__(self, *, now: Callable[[], str] = utc_now, tail_bytes: int = TAIL_BYTES) -> None:
        self.now = now
        self.notices: list[str] = []
        self.sessions = Sessions(self)
        self.approvals = Approvals(self)
        self.rules = Rules(self)
        self.devices = Devices(self)
        self.turns = Turns(self)
        self.settings = Settings(self)
        self._tails = Tails(tail_bytes)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- for implementations --------------------------------------------------------------------------------------

    @abstractmethod
    async def open(self) -> Self:
        """Make it ready. Raises LogLocked, LogUnusable, LogFull."""

    @abstractmethod
    async def close(self) -> None:
        """Commit what was handed over, then end every follower with LogClosed. Closing twice is fine."""

    @abstractmethod
    def append_nowait(
        self, session_id: str, expected: int, events: Sequence[Event], *, also: Sequence[Change] = ()
    ) -> asyncio.Future[int]:
        """As `append`, but the batch is only handed over; the future is done when it is committed or refused.

        Several batches may be under way; when one fails, those of that session behind it fail with LogConflict.
        Whoever appends without waiting bounds for himself how much.
        """

    @abstractmethod
    async def read(
        self, session_id: str, after: int = 0, limit: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES
    ) -> list[Entry]:
        """Entries beyond a seq, in order: at most `limit`, and no further one once there are so many bytes.

        Empty at the end. Raises UnknownSession.
        """

    @abstractmethod
    async def read_all(self, after: int = 0, limit: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES) -> list[Entry]:
        """Entries of all sessions beyond a position, in order."""

    @abstractmethod
    async def last_seq(self, session_id: str) -> int:
        """The seq of the newest event, 0 when there is none. Raises UnknownSession."""

    @abstractmethod
    async def last_position(self) -> int:
        """The position of the newest event of all; the cursor of whoever wants only what comes."""

    @abstractmethod
    async def apply(self, *changes: Change) -> list[Any]:
        """Make changes to records in one transaction, all or none. Returns their results."""

    @abstractmethod
    async def find(self, kind: type[R], where: Mapping[str, Any]) -> list[R]:
        """The records whose fields equal these (None: empty), oldest first."""

    @abstractmethod
    async def list_sessions(self, chosen: SessionFilter) -> SessionPage:
        """One page of sessions that are not deleted, the one last active first."""

    @abstractmethod
    async def search(self, query: str, limit: int = 20, *, session_id: str | None = None) -> list[SearchHit]:
        """Messages and tool calls that have every term of the query, newest first. Any text is a query."""

    @abstractmethod
    async def integrity_check(self) -> list[str]:
        """What is wrong with the stored data; empty when nothing is."""

    @abstractmethod
    def statistics(self) -> dict[str, int]:
        """Counts since it was opened: commits, events, batches under way, followers, bytes in tails."""

    # -- the same for all -----------------------------------------------------------------------------------------

    async def append(
        self, session_id: str, expected: int, events: Sequence[Event], *, also: Sequence[Change] = ()
    ) -> int:
        """Append events, numbered from `expected` + 1, and make the changes in `also`: all or nothing.

        Returns the last seq.

        Events get their `seq`. Returns after the commit. A caller cancelled while waiting may still have appended.
        Raises LogConflict when `expected` is not the last seq, UnknownSession, LogFull, LogClosed, and what the
        changes raise; then nothing was written.
        """
        return await self.append_nowait(session_id, expected, events, also=also)

    def follow(self, session_id: str, after: int = 0) -> Follower:
        """Batches of entries beyond a seq: history, then live."""
        fetch = partial(self._fetch, session_id)
        return self._tails.follower(self._tails.of(session_id), fetch, after, "seq")

    def follow_all(self, after: int = 0) -> Follower:
        """Batches of entries of all sessions beyond a position: history, then live."""
        return self._tails.follower(self._tails.all, self._fetch_all, after, "position")

    async def wait_beyond(self, session_id: str, seq: int) -> int:
        """Wait until the session has an event beyond `seq`; returns its last seq. Raises UnknownSession, LogClosed."""
        tail = self._tails.of(session_id)
        if tail.last <= seq:
            tail.learn(await self.last_seq(session_id))
        while tail.last <= seq:
            if tail.ended is not None:
                raise tail.ended()
            await tail.wait()
        return tail.last

    async def _fetch(self, session_id: str, cursor: int, count: int, size: int) -> tuple[list[Entry], int]:
        """Entries beyond a seq from storage, and the session's last seq."""
        entries = await self.read(session_id, cursor, count, max_bytes=size)
        return entries, entries[-1].seq if entries else await self.last_seq(session_id)

    async def _fetch_all(self, cursor: int, count: int, size: int) -> tuple[list[Entry], int]:
        entries = await self.read_all(cursor, count, max_bytes=size)
        return entries, entries[-1].position if entries else await self.last_position()
