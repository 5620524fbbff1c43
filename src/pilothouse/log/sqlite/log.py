"""The log in a SQLite file: WAL, one writer thread with group commit, readers aside, live followers from memory.

This is the loop's side: it numbers and encodes batches, hands them to the writer, and after each commit gives them
to the tails and answers whoever appended. Nothing here waits for the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

from ...model.events import Event, utc_now
from ..contract import EventLog
from ..entries import Entry, cut, number
from ..errors import LogClosed, LogError
from ..follow import BATCH_BYTES, BATCH_COUNT, TAIL_BYTES, Pages, Tail
from ..records import Change, DeleteSession, Record, SearchHit, SessionFilter, SessionPage
from ..search import texts_of
from . import tables
from .commit import Job
from .database import Synchronous
from .reader import Readers, problems, search
from .writer import Writer

R = TypeVar("R", bound=Record)


class SQLiteLog(EventLog):
    """An EventLog in one file.

    `synchronous`: "NORMAL" survives the death of the process, and of the system without damage, though the last
    moments before a power cut may be lost; "FULL" also keeps those, at the price of a disk flush per commit.
    `max_bytes` bounds the file. `full_text=False` goes without the index. `tail_bytes` is what is kept in memory of
    each active session, for its live followers; without it they read the file.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        synchronous: Synchronous = "NORMAL",
        max_bytes: int | None = None,
        full_text: bool = True,
        tail_bytes: int = TAIL_BYTES,
        now: Callable[[], str] = utc_now,
    ) -> None:
        super().__init__(now=now, tail_bytes=tail_bytes)
        self.path = Path(path)
        self._synchronous: Synchronous = synchronous
        self._max_bytes = max_bytes
        self._full_text = full_text
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._pages = Pages(self._read)
        self._closing: asyncio.Task[None] | None = None
        self._indexed = False
        self._position = 0
        self._commits = 0
        self._events = 0

    async def open(self) -> Self:
        if self._writer is not None or self._closing is not None:
            raise LogError("the log was opened before; make a new one to open the file again")
        writer = Writer(
            self.path,
            self._committed,
            self.now,
            synchronous=self._synchronous,
            max_bytes=self._max_bytes,
            full_text=self._full_text,
        )
        opened = await writer.start()
        self._writer, self._readers = writer, Readers(self.path)
        self._indexed = opened.indexed
        self._position = opened.position
        self.notices += opened.notices
        self._tails.start(opened.position)
        return self

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._shut())
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        """Refuse new work, commit the old, end the followers; readers close first so that the writer's is the last."""
        writer, self._writer = self._writer, None
        readers = self._readers
        try:
            if readers is not None:
                await readers.close()
            if writer is not None:
                await writer.stop()
        finally:
            self._tails.close()

    # -- writing --------------------------------------------------------------------------------------------------

    def append_nowait(
        self, session_id: str, expected: int, events: Sequence[Event], *, also: Sequence[Change] = ()
    ) -> asyncio.Future[int]:
        writer = self._open_writer()
        entries = number(session_id, expected, events, self._position)
        self._position += len(entries)
        texts = [(entries[index], text) for index, text in texts_of(events)]
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        writer.put(Job(future, also, session_id, expected, entries, texts))
        return future

    async def apply(self, *changes: Change) -> list[Any]:
        writer = self._open_writer()
        if not changes:
            return []
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        writer.put(Job(future, changes))
        return await future

    def _committed(self, jobs: Sequence[Job]) -> None:
        """One commit is durable: first the tails, then the answers. Runs in the loop, once per commit."""
        self._commits += 1
        awake: set[Tail] = set()
        for job in jobs:
            if job.error is not None:
                if not job.future.done():
                    job.future.set_exception(job.error)
                continue
            if job.entries:
                self._events += len(job.entries)
                self._position = max(self._position, job.entries[-1].position)
                awake.add(self._tails.committed(job.entries[0].session_id, job.entries, job.weights))
            for change in job.changes:
                if isinstance(change, DeleteSession):
                    self._tails.forget(change.session_id)
                    self._pages.forget(change.session_id)
            if not job.future.done():
                job.future.set_result(job.result)
        for tail in awake:
            tail.wake()
        if awake:
            self._tails.all.wake()

    # -- reading --------------------------------------------------------------------------------------------------

    async def read(
        self, session_id: str, after: int = 0, limit: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES
    ) -> list[Entry]:
        self._open_writer()
        near = self._tails.near(session_id, after, limit, max_bytes)
        if near:
            return cut(near, limit, max_bytes)
        return (await self._read(session_id, after, limit, max_bytes))[0]

    async def read_all(self, after: int = 0, limit: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES) -> list[Entry]:
        return await self._open_readers().run(lambda db: tables.read_all(db, after, limit, max_bytes))

    async def last_seq(self, session_id: str) -> int:
        readers = self._open_readers()
        known = self._tails.last(session_id)
        return known if known >= 0 else (await readers.run(lambda db: tables.head(db, session_id)))[1]

    async def last_position(self) -> int:
        return await self._open_readers().run(tables.last_position)

    async def find(self, kind: type[R], where: Mapping[str, Any]) -> list[R]:
        return await self._open_readers().run(lambda db: tables.find(db, kind, where))

    async def list_sessions(self, chosen: SessionFilter) -> SessionPage:
        return await self._open_readers().run(lambda db: tables.list_sessions(db, chosen))

    async def search(self, query: str, limit: int = 20, *, session_id: str | None = None) -> list[SearchHit]:
        return await self._open_readers().run(lambda db: search(db, query, limit, session_id, indexed=self._indexed))

    async def integrity_check(self) -> list[str]:
        return await self._open_readers().run(problems)

    def statistics(self) -> dict[str, int]:
        return {
            "commits": self._commits,
            "events": self._events,
            "queued": self._writer.queued if self._writer else 0,
            "followers": self._tails.followers,
            "tail_bytes": self._tails.used,
        }

    async def _fetch(self, session_id: str, cursor: int, count: int, size: int) -> tuple[list[Entry], int]:
        self._open_readers()
        return await self._pages.fetch(session_id, cursor, count, size)

    async def _read(self, session_id: str, cursor: int, count: int, size: int) -> tuple[list[Entry], int]:
        return await self._open_readers().run(lambda db: tables.read_session(db, session_id, cursor, count, size))

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise LogClosed
        return self._writer

    def _open_readers(self) -> Readers:
        if self._readers is None or self._writer is None:
            raise LogClosed
        return self._readers
