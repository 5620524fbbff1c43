"""The readers: a few threads, each with its own connection that can't write, for whoever is not served from a tail.

Reads are snapshots of the write-ahead log: they neither wait for the writer nor hold it up.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .database import FAILURES, connect_for_reading, explain
from .errors import LogClosed
from .records import SearchHit
from .search import like_pattern, match_expression, needs_substrings, snippet, terms_of

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
