"""The writer: one thread owns the only connection that writes. It takes what is queued, a round at a time, commits it
together, and tells the loop once per commit.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from .checkpoint import Checkpointer
from .commit import NOTE_SECONDS, GroupCommit, Job
from .database import FAILURES, NO_FTS, Synchronous, close, explain, open_for_writing, prepare, prepare_search
from .errors import LogClosed, LogError
from .lock import FileLock
from .rows import last_position
from .slices import sweep
from .waiting import Waiting

logger = logging.getLogger(__name__)

SWITCH = 0.0005
"""Seconds after which the writer, back from SQLite, is given the interpreter that a busy loop holds. A commit goes to
SQLite a dozen times: with Python's usual 5 ms a small one would take as long as a large one."""


class Opened:
    """What the loop learns when the file is open."""

    def __init__(self, position: int, notices: list[str], *, indexed: bool) -> None:
        self.position = position
        self.notices = notices
        self.indexed = indexed


class Writer:
    """Hand jobs over by `put`; `committed` is called in the loop with the jobs of each commit, failed ones included."""

    def __init__(
        self,
        path: Path,
        committed: Callable[[Sequence[Job]], None],
        now: Callable[[], str],
        *,
        synchronous: Synchronous,
        max_bytes: int | None,
        full_text: bool,
    ) -> None:
        self._path = path
        self._committed = committed
        self._now = now
        self._synchronous: Synchronous = synchronous
        self._max_bytes = max_bytes
        self._full_text = full_text
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._waiting = Waiting()
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[Opened] = self._loop.create_future()
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="pilothouse-log-writer", daemon=True)

    async def start(self) -> Opened:
        """Raises LogLocked, LogUnusable, LogFull."""
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH))
        self._thread.start()
        try:
            return await self._opened
        except asyncio.CancelledError:
            self._queue.put(None)  # or the thread would keep the file, and its lock, for nobody
            raise

    def put(self, job: Job) -> None:
        """Raises LogClosed when the thread has ended."""
        if self._stopped.done():
            raise LogClosed
        self._queue.put(job)

    @property
    def queued(self) -> int:
        return self._queue.qsize() + len(self._waiting)

    async def stop(self) -> None:
        """Commit what was put before, close the file, let the lock go."""
        self._queue.put(None)
        await asyncio.shield(self._stopped)

    def _abandon(self) -> None:
        """The thread has ended, whatever ended it: nobody waits for it, and nobody hands anything over any more."""
        if not self._stopped.done():
            self._stopped.set_result(None)
        jobs = self._waiting.clear()
        while not self._queue.empty():
            job = self._queue.get_nowait()
            if job is not None:
                jobs.append(job)
        for job in jobs:
            job.error = LogClosed()
        self._committed(jobs)

    # -- in the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        lock = FileLock(self._path)
        db: sqlite3.Connection | None = None
        try:
            prepare(self._path)
            notice = lock.acquire()
            db = open_for_writing(self._path, synchronous=self._synchronous, max_bytes=self._max_bytes)
            work, opened = self._begin(db, [notice] if notice else [])
        except BaseException as exc:
            if db is not None:
                close(db, self._path)
            lock.release()  # before it is told: whoever is told may try again at once
            self._tell(_fail, self._opened, explain(self._path, exc) if isinstance(exc, FAILURES) else exc)
            return
        self._tell(_finish, self._opened, opened)
        try:
            checkpoints = Checkpointer(db, self._path)
            try:
                self._work(work, checkpoints)
            finally:
                checkpoints.close()
            work.settle()
        finally:
            close(db, self._path)
            lock.release()
            self._tell(self._abandon)

    def _begin(self, db: sqlite3.Connection, notices: list[str]) -> tuple[GroupCommit, Opened]:
        indexed = prepare_search(db, wanted=self._full_text)
        sweep(db)
        position = last_position(db)
        work = GroupCommit(db, self._path, self._now, indexed=indexed, position=position)
        return work, Opened(position, notices if indexed else [*notices, NO_FTS], indexed=indexed)

    def _work(self, work: GroupCommit, checkpoints: Checkpointer) -> None:
        while True:
            jobs = self._take(work)
            if jobs:
                try:
                    work.commit(jobs)
                except Exception as exc:  # a defect here must not leave appenders waiting for ever
                    logger.exception("a commit failed in an unforeseen way")
                    for job in jobs:
                        job.error = LogError(f"not written, for a defect in the log: {exc!r}")
                self._tell(self._committed, jobs)
            checkpoints.wrote(work.written + work.staged)
            work.written = work.staged = 0
            if self._stopping and not self._waiting:
                return

    def _take(self, work: GroupCommit) -> list[Job]:
        """The jobs of the next commit. What is large is staged by the slice, between the commits of others.

        With nothing to do: purge, wait, and after a while settle.
        """
        self._hear(wait=False)
        if not self._waiting and not self._stopping:
            if work.purgeable:
                work.purge()
            elif not self._hear(wait=True, patience=NOTE_SECONDS if work.unnoted else None):
                work.settle()
        large = self._waiting.next_large()
        if large is not None:
            work.stage(large)
            self._hear(wait=False)
        return self._waiting.round()

    def _hear(self, *, wait: bool, patience: float | None = None) -> bool:
        """Take over what was handed over; False when there was nothing."""
        heard = False
        while not self._stopping and (not self._queue.empty() or (wait and not heard)):
            try:
                job = self._queue.get(timeout=patience)
            except Empty:
                break
            heard = True
            if job is None:
                self._stopping = True
            else:
                job.weigh()
                self._waiting.add(job)
        return heard

    def _tell(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            logger.debug("the loop is gone; nobody is left to tell")


def _finish(future: asyncio.Future[object], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[object], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
