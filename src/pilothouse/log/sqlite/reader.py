"""Reading the file: the hub's reader threads, and a log opened read-only beside a running hub.

Each reader has its own connection that cannot write. Reads are snapshots of the write-ahead log: they neither wait for
the writer nor delay it. A read-only log takes no lock, and a log that does not exist yet is an empty one. The rule a
change must not break: nothing is written from here, not even to migrate an old file.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ...model.events import Event, decode_event, utc_now
from ..entries import Entry
from ..errors import LogClosed, LogReadOnly, LogUnusable, UnknownSession
from ..follow import BATCH_BYTES, BATCH_COUNT
from ..records import Change, Record, SearchHit, SessionFilter, SessionPage
from ..search import like_pattern, match_expression, needs_substrings, snippet, terms_of
from ..stores import Approvals, Rules, Sessions
from . import tables
from .database import FAILURES, FileLock, check_header, connect_for_reading, explain, identify, migrations

T = TypeVar("T")
Db = sqlite3.Connection

READERS = 2
BREAK_STEPS = 100_000
"""Steps of SQLite between two looks whether a long read should break off: a few milliseconds."""


class Readers:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="pilothouse-log-reader")
        self._own = threading.local()
        self._connections: list[Db] = []
        self._closed = False

    async def run(self, work: Callable[[Db], T]) -> T:
        """Do the work in a reader's thread. Raises LogClosed, LogUnusable."""
        if self._closed:
            raise LogClosed
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._do, work)

    async def close(self) -> None:
        """Break off reads under way, then close the connections."""
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._shut)

    def _do(self, work: Callable[[Db], T]) -> T:
        try:
            db: Db | None = getattr(self._own, "db", None)
            if db is None:
                db = self._own.db = connect_for_reading(self._path)
                db.set_progress_handler(lambda: self._closed, BREAK_STEPS)
                self._connections.append(db)
            return work(db)
        except FAILURES as exc:
            if self._closed:
                raise LogClosed from exc
            raise explain(self._path, exc) from exc

    def _shut(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=False)
        for db in self._connections:
            db.close()


def search(db: Db, query: str, limit: int, session_id: str | None, *, indexed: bool) -> list[SearchHit]:
    """Texts that have all terms, newest first."""
    terms = terms_of(query)
    if not terms or limit <= 0:
        return []
    if indexed and not needs_substrings(terms):
        table, tests = "search JOIN texts AS t ON t.position = search.rowid", ["search MATCH ?"]
        given: list[object] = [match_expression(terms)]
    else:
        table, tests = "texts AS t", ["t.text LIKE ? ESCAPE '\\'"] * len(terms)
        given = [like_pattern(term) for term in terms]
    if session_id is not None:
        tests.append("s.id = ?")
        given.append(session_id)
    order = "search.rowid" if table.startswith("search") else "t.position"
    sql = (
        f"SELECT s.id, t.seq, t.position, t.type, t.text FROM {table} JOIN sessions AS s ON s.number = t.session "  # noqa: S608
        f"WHERE s.deleted IS NULL AND {' AND '.join(tests)} ORDER BY {order} DESC LIMIT ?"
    )
    rows = db.execute(sql, [*given, limit])
    return [SearchHit(found, seq, position, kind, snippet(text, terms)) for found, seq, position, kind, text in rows]


def problems(db: Db) -> list[str]:
    """What SQLite finds wrong, and sessions whose events are not 1, 2, 3 … up to their last seq."""
    found = [str(row[0]) for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
    found += [
        f"{row[0]} row {row[1]} names a missing row of {row[2]}" for row in db.execute("PRAGMA foreign_key_check")
    ]
    sql = (
        "SELECT s.id, s.last_seq, coalesce(sum(b.count), 0), coalesce(max(b.seq), 0) FROM sessions AS s "
        "LEFT JOIN batches AS b ON b.session = s.number WHERE s.deleted IS NULL GROUP BY s.number"
    )
    for session_id, last, count, newest in db.execute(sql):
        if count != newest or newest < last:
            found.append(f"session {session_id!r} was at seq {last} and has {count} events up to {newest}")
    return found


R = TypeVar("R", bound=Record)
HEADER = 100


class LogArchive:
    """Sessions, approvals, rules and events of a stored log. Open it by `async with`."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.now: Callable[[], str] = utc_now
        self.sessions = Sessions(self)
        self.approvals = Approvals(self)
        self.rules = Rules(self)
        self._readers: Readers | None = None

    async def __aenter__(self) -> Self:
        """Raises LogUnusable for a file that is no database of ours, or of another version."""
        try:
            with self.path.open("rb") as file:
                header = file.read(HEADER)
        except FileNotFoundError:
            return self
        except OSError as exc:
            raise LogUnusable(self.path, exc.strerror or str(exc)) from exc
        check_header(self.path, header)
        if not header:
            return self
        readers = Readers(self.path)
        try:
            version = await readers.run(lambda db: identify(self.path, db))
            if 0 < version < len(migrations()):
                advice = "start a hub on it once; that brings it up to date"
                raise LogUnusable(self.path, f"it has the older schema version {version}", advice)
        except BaseException:
            await readers.close()
            raise
        if version:
            self._readers = readers
        else:  # a hub is just making the file
            await readers.close()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._readers is not None:
            await self._readers.close()

    # -- what the stores ask of a log --

    async def apply(self, *changes: Change) -> list[Any]:
        raise LogReadOnly(self.path, "it is open for reading only", "run the command that changes it")

    async def find(self, kind: type[R], where: Mapping[str, Any]) -> list[R]:
        return [] if self._readers is None else await self._readers.run(lambda db: tables.find(db, kind, where))

    async def list_sessions(self, chosen: SessionFilter) -> SessionPage:
        if self._readers is None:
            return SessionPage([])
        return await self._readers.run(lambda db: tables.list_sessions(db, chosen))

    # -- events --

    async def read(
        self, session_id: str, after: int = 0, limit: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES
    ) -> list[Entry]:
        """Some entries beyond a seq; none when there are no more. Raises UnknownSession."""
        if self._readers is None:
            raise UnknownSession(session_id)
        page, _ = await self._readers.run(lambda db: tables.read_session(db, session_id, after, limit, max_bytes))
        return page

    async def entries(self, session_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """All entries beyond a seq. Raises UnknownSession."""
        while page := await self.read(session_id, after):
            for entry in page:
                yield entry
            after = page[-1].seq

    async def events(self, session_id: str, after: int = 0) -> AsyncIterator[Event]:
        """All events beyond a seq, each with its source. Raises UnknownSession."""
        async for entry in self.entries(session_id, after):
            event = decode_event(entry.data)
            event.source = entry.source
            yield event

    # -- health --

    async def problems(self) -> list[str]:
        """What is wrong with the stored data."""
        return [] if self._readers is None else await self._readers.run(problems)


def lock_holder(path: Path) -> int | None:
    """The process that has a log open: its id, 0 when that cannot be told, None when nobody has it open."""
    try:
        import fcntl  # not on Windows

        descriptor = os.open(FileLock(path).path, os.O_RDONLY | os.O_CLOEXEC)
    except (ImportError, OSError):
        return None
    try:
        # shared and dropped at once: it only finds out whether somebody holds the other kind
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).strip()
        return int(text) if text.isdigit() else 0
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None
