"""Group commit: jobs of many sessions, one transaction. Runs in the writer's thread, on the only write connection.

A job that may not be done (a conflict, a lost race) fails alone; what befalls the transaction itself (no room, a
damaged file) is met by trying each job by itself, so that none fails for its neighbour. What is known of sessions
here (`_heads`) changes only with a commit.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..entries import ENTRY_OVERHEAD, SLICE_BYTES, Entry, Slice, drop_beyond, is_large, slices, weights_of, write_slice
from ..errors import LogConflict, LogError, UnknownSession
from ..records import Change, DeleteSession
from . import tables
from .database import FAILURES, explain
from .tables import is_one_row, write_rows

PURGE_ROWS = 100
PURGE_SLICES = 8
"""Rows of a deleted session that are purged at a time: short enough to hold nobody up."""

UNPURGED = """
SELECT number FROM sessions AS s WHERE deleted IS NOT NULL AND (
    EXISTS (SELECT 1 FROM batches WHERE session = s.number)
    OR EXISTS (SELECT 1 FROM blobs WHERE session = s.number)
    OR EXISTS (SELECT 1 FROM slices WHERE session = s.number)
    OR EXISTS (SELECT 1 FROM texts WHERE session = s.number)
)
"""
"""Sessions that were deleted without their rows: the log was closed, or killed, before it came to that."""

NOTE_SECONDS = 1.0
"""How often a busy session's row is told of its events: another page to write, which would double a small commit."""


class Job:
    """A batch for one session, changes to records, or both: done together or not at all.

    What is large in it is staged first (`is_staged`); `order` is its place among all that was handed over.
    """

    __slots__ = (
        *("changes", "entries", "error", "expected", "future", "result", "session_id", "texts"),
        *("is_large", "is_staged", "order", "size", "slices", "weights"),
    )

    def __init__(
        self,
        future: asyncio.Future[Any],
        changes: Sequence[Change] = (),
        session_id: str | None = None,
        expected: int = 0,
        entries: list[Entry] | None = None,
        texts: Sequence[tuple[Entry, str]] = (),
    ) -> None:
        self.future = future
        self.changes = changes
        self.session_id = session_id
        self.expected = expected
        self.entries = entries or []
        self.texts = texts
        self.result: Any = None
        self.error: Exception | None = None
        self.order = 0
        self.size = 0
        self.weights: list[int] = []
        self.is_large = self.is_staged = False
        self.slices: Iterator[Slice] | None = None

    def weigh(self) -> None:
        """Find out how much there is to write. Done in the writer's thread: it takes a look at every entry."""
        self.weights = weights_of(self.entries)
        self.size = sum(self.weights) - ENTRY_OVERHEAD * len(self.entries)
        self.is_large = self.size > SLICE_BYTES and any(map(is_large, self.entries))


class Head:
    """Where a session stands; `noted` is when its row was last told, by the monotonic clock."""

    __slots__ = ("last", "noted", "number")

    def __init__(self, number: int, last: int, noted: float = 0.0) -> None:
        self.number = number
        self.last = last
        self.noted = noted


class GroupCommit:
    def __init__(
        self, db: sqlite3.Connection, path: Path, now: Callable[[], str], *, indexed: bool, position: int = 0
    ) -> None:
        self._db = db
        self._position = position
        self._path = path
        self._now = now
        self._indexed = indexed
        self._heads: dict[str, Head | None] = {}
        self._staged: dict[str, Head | None] = {}
        self._advanced: set[str] = set()
        self._pending: list[Entry] = []
        self._pending_number = self._pending_size = 0
        self._ready: set[tuple[int, int]] = set()
        self.written = self.staged = 0  # bytes of the last commit, and of slices since the writer last asked; about
        self.unnoted: set[str] = set()  # sessions whose row does not yet tell of their newest events
        self.purgeable: deque[int] = deque(number for (number,) in db.execute(UNPURGED))

    def commit(self, jobs: Sequence[Job]) -> None:
        """Do the jobs. Each has its `result` or `error` afterwards."""
        self._commit([job for job in jobs if not (job.is_staged and job.error is not None)])
        for job in jobs:
            if job.error is not None and job.slices is not None:
                self._unstage(job)

    def _commit(self, jobs: Sequence[Job]) -> None:
        try:
            self._together(jobs)
        except FAILURES as exc:
            if len(jobs) > 1:
                for job in jobs:
                    self._commit([job])
            else:
                jobs[0].error = explain(self._path, exc)

    def stage(self, job: Job) -> None:
        """Write the next slice of a job; `is_staged` when that was the last, or when no more can be written.

        Then the job is to be committed: a refusal is its `error` already, or shows there.
        """
        assert job.session_id is not None
        try:
            number, last = self._standing(job.session_id)
            if job.slices is None:
                job.slices = slices(job.entries) if last == job.expected else iter(())
            piece = next(job.slices, None)
            if piece is None:
                job.is_staged = True
                return
            self._db.execute("BEGIN IMMEDIATE")
            write_slice(self._db, number, piece)
            self._db.execute("COMMIT")
            self.staged += len(piece.body)
        except FAILURES as exc:
            self._rollback()
            job.error, job.is_staged = explain(self._path, exc), True
        except UnknownSession:
            job.is_staged = True  # deleted meanwhile: the commit says so

    def _standing(self, session_id: str) -> tuple[int, int]:
        head = self._heads.get(session_id)
        return (head.number, head.last) if head is not None else tables.head(self._db, session_id)

    def _unstage(self, job: Job) -> None:
        """The job was refused; what was written ahead of it goes. What cannot go now, goes before it could matter."""
        job.slices = None
        try:
            assert job.session_id is not None
            drop_beyond(self._db, *self._standing(job.session_id))
        except (*FAILURES, UnknownSession):
            self._rollback()

    def purge(self) -> None:
        """Take away some rows of a deleted session; the last call for a session takes it off the list."""
        number = self.purgeable[0]
        self.written = PURGE_ROWS * 4096
        try:
            self._db.execute("BEGIN IMMEDIATE")
            gone = self._purge_texts(number)
            for table, count in (("batches", PURGE_ROWS), ("blobs", PURGE_SLICES), ("slices", PURGE_SLICES)):
                sql = f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE session = ? LIMIT ?)"  # noqa: S608
                gone += self._db.execute(sql, (number, count)).rowcount
            self._db.execute("COMMIT")
        except FAILURES:
            self._rollback()
            gone = 0  # tried again when the log is next opened
        if not gone:
            self.purgeable.popleft()

    def settle(self) -> None:
        """Tell the rows of all sessions where they stand; for when there is nothing else to do."""
        if not self.unnoted:
            return
        self._staged = {}
        self.written = 4096 * len(self.unnoted)
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._note(self.unnoted, 0)
            self._db.execute("COMMIT")
        except FAILURES:
            self._rollback()  # the events themselves say it too
        self.unnoted.clear()

    # -- one transaction ------------------------------------------------------------------------------------------

    def _together(self, jobs: Sequence[Job]) -> None:
        self.written = 0
        self._staged = {}
        self._advanced = set()
        self._pending, self._pending_size = [], 0
        self._ready = set()
        deleted: list[int] = []
        try:
            for job in jobs:
                job.error = None
                if job.changes:
                    deleted += self._with_changes(job)
                else:
                    self._alone(job)
            noted = self._finish()
        except BaseException:
            self._rollback()
            raise
        self._heads.update(self._staged)
        self.unnoted |= self._advanced
        self.unnoted -= noted
        self.purgeable += deleted

    def _finish(self) -> set[str]:
        """Write what is pending and commit. Returns the sessions whose rows were told.

        One row and nothing else, as when a single agent streams, is one statement: a transaction by itself.
        """
        if (
            self._db.in_transaction
            or self._due(self._advanced)
            or not is_one_row(len(self._pending), self._pending_size)
        ):
            self._begin()
        self._write()
        noted = self._note(self._advanced) if self._db.in_transaction else set()
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        return noted

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")

    def _rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _alone(self, job: Job) -> None:
        try:
            self._append(job)
        except UnicodeDecodeError:  # damage, not a refusal
            raise
        except (LogError, ValueError) as exc:
            job.error = exc

    def _with_changes(self, job: Job) -> list[int]:
        """A savepoint of its own: what the job began is undone when one of its changes is refused."""
        self._begin()
        self._write()
        staged = dict(self._staged)
        deleted: list[int] = []
        self._db.execute("SAVEPOINT job")
        try:
            results = []
            for change in job.changes:
                if isinstance(change, DeleteSession):
                    deleted.append(self._head(change.session_id).number)
                results.append(tables.make(self._db, change))
                if isinstance(change, DeleteSession):
                    self._staged[change.session_id] = None
            job.result = results
            if job.session_id is not None:
                self._append(job)
                self._write()
        except (sqlite3.OperationalError, UnicodeDecodeError):
            raise
        except Exception as exc:
            if type(exc) is sqlite3.DatabaseError:  # damage, not a refusal
                raise
            self._db.execute("ROLLBACK TO job")
            self._staged = staged
            self._pending, self._pending_size = [], 0
            deleted = []
            job.error = LogError(f"refused: {exc}") if isinstance(exc, sqlite3.Error) else exc
        self._db.execute("RELEASE job")
        return deleted

    def _append(self, job: Job) -> None:
        assert job.session_id is not None
        head = self._head(job.session_id)
        if head.last != job.expected:
            raise LogConflict(job.session_id, job.expected, head.last)
        job.result = job.expected + len(job.entries)
        if not job.entries:
            return
        self._place(job.entries)
        if job.is_staged:
            self._ready |= {(head.number, entry.seq) for entry in job.entries if is_large(entry)}
        follows = self._pending and self._pending[-1].position + 1 == job.entries[0].position
        if self._pending and not (follows and self._pending_number == head.number):
            self._begin()
            self._write()
        self._pending += job.entries
        self._pending_size += job.size
        self._pending_number = head.number
        self._staged[job.session_id] = Head(head.number, job.result, head.noted)
        self._advanced.add(job.session_id)
        if job.texts:
            self._begin()
            self._index(head.number, job.texts)

    def _place(self, entries: list[Entry]) -> None:
        """Positions go up from commit to commit; entries that others have overtaken get new ones."""
        shift = self._position + 1 - entries[0].position
        if shift > 0:
            for entry in entries:
                msgspec.structs.force_setattr(entry, "position", entry.position + shift)
        self._position = entries[-1].position

    def _head(self, session_id: str) -> Head:
        head = self._staged[session_id] if session_id in self._staged else self._heads.get(session_id)
        if head is None:
            if session_id in self._staged:
                raise UnknownSession(session_id)
            head = self._staged[session_id] = Head(*tables.head(self._db, session_id))
        return head

    def _write(self) -> None:
        if self._pending:
            entries, size = self._pending, self._pending_size
            self._pending, self._pending_size = [], 0
            self.written += write_rows(self._db, self._pending_number, entries, size, self._ready)

    def _note(self, sessions: Iterable[str], wait: float = NOTE_SECONDS) -> set[str]:
        """Tell the rows of sessions where they stand, unless they were told just now. Returns those told."""
        due = self._due(sessions, wait)
        for head in due.values():
            sql = "UPDATE sessions SET last_seq = ?, updated = ? WHERE number = ?"
            self._db.execute(sql, (head.last, self._now(), head.number))
            head.noted = time.monotonic()
        return set(due)

    def _due(self, sessions: Iterable[str], wait: float = NOTE_SECONDS) -> dict[str, Head]:
        latest = time.monotonic() - wait
        heads = ((session_id, self._staged.get(session_id) or self._heads.get(session_id)) for session_id in sessions)
        return {session_id: head for session_id, head in heads if head is not None and head.noted <= latest}

    # -- search ---------------------------------------------------------------------------------------------------

    def _index(self, number: int, texts: Sequence[tuple[Entry, str]]) -> None:
        for entry, text in texts:
            self._db.execute(
                "INSERT INTO texts (position, session, seq, type, text) VALUES (?, ?, ?, ?, ?)",
                (entry.position, number, entry.seq, entry.type, text),
            )
            if self._indexed:
                self._db.execute("INSERT INTO search (rowid, text) VALUES (?, ?)", (entry.position, text))

    def _purge_texts(self, number: int) -> int:
        sql = "SELECT position, text FROM texts WHERE session = ? LIMIT ?"
        found = self._db.execute(sql, (number, PURGE_ROWS)).fetchall()
        for position, text in found:
            if self._indexed:
                sql = "INSERT INTO search (search, rowid, text) VALUES ('delete', ?, ?)"
                self._db.execute(sql, (position, text))
            self._db.execute("DELETE FROM texts WHERE position = ?", (position,))
        return len(found)
