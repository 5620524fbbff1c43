"""The writer: one thread owns the only connection that writes, and commits the queued jobs in rounds.

Each session's jobs stay in order, and the sessions take turns: a session that floods, or has something large to write,
delays no other, because a round takes little of each. Changes to records alone wait for every job before them, since
they may be about it.

The write-ahead log is folded into the file in the background, so that no append waits for that flush to disk. A
checkpoint in the background never blocks the writer, but under steady writing it never completes, and the write-ahead
log only grows; when it has grown large, the writer does the small rest itself, which lets SQLite restart it.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue

from ..entries import sweep
from ..errors import LogClosed, LogError
from .commit import NOTE_SECONDS, GroupCommit, Job
from .database import (
    FAILURES,
    NO_FTS,
    FileLock,
    Synchronous,
    close,
    connect,
    explain,
    open_for_writing,
    prepare,
    prepare_search,
)
from .tables import last_position

logger = logging.getLogger(__name__)

CHECKPOINT_PAGES = 2_000
"""Pages written between two checkpoints, about 8 MB."""

LONG_PAGES = 25_000
"""A write-ahead log of this many pages, about 100 MB, is begun anew."""

PAGE_BYTES = 4096
PAGES_PER_COMMIT = 4


class Checkpointer:
    """Used by the writer's thread only; works in one of its own."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="pilothouse-log-checkpoint")
        self._aside: sqlite3.Connection | None = None
        self._running: Future[int] | None = None
        self._pages = 0
        self._ending = False

    def wrote(self, size: int) -> None:
        """A commit of about so many bytes was made."""
        self._pages += PAGES_PER_COMMIT + size // PAGE_BYTES
        if self._running is None:
            if self._pages >= CHECKPOINT_PAGES:
                self._start()
        elif self._running.done():
            length, self._running = self._running.result(), None
            if length <= LONG_PAGES:
                self._ending = False
            elif not self._ending:
                self._ending = True
                self._start()  # once more, so that only a little is left
            else:
                self._ending = False
                _fold(self._db)

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        if self._aside is not None:
            self._aside.close()

    def _start(self) -> None:
        self._pages = 0
        self._running = self._pool.submit(self._work)

    def _work(self) -> int:
        if self._aside is None:
            self._aside = connect(self._path)
        return _fold(self._aside)


def _fold(db: sqlite3.Connection) -> int:
    """Copy what can be copied without waiting for anyone; returns how many pages the write-ahead log has."""
    try:
        _, pages, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except FAILURES as exc:  # no room: appends will say so, and closing or opening tries again
        logger.warning("a checkpoint of the log failed: %s", exc)
        return 0
    return int(pages)


ROUND_EVENTS = 20_000
ROUND_JOBS = 1_000
ROUND_BYTES = 1 << 20
"""What one transaction takes at most, so that the first in it does not wait long for the last. One job of any size is
always taken."""
SESSION_BYTES = 256 << 10
"""What one session may have written in a round, except by a single job."""


class Waiting:
    def __init__(self) -> None:
        self._queues: dict[str | None, deque[Job]] = {}
        self._turns: deque[str | None] = deque()
        self._count = 0
        self._given = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: Job) -> None:
        job.order = self._given
        self._given += 1
        self._count += 1
        queue = self._queues.get(job.session_id)
        if queue is None:
            queue = self._queues[job.session_id] = deque()
            self._turns.append(job.session_id)
        queue.append(job)

    def next_large(self) -> Job | None:
        """The first job that has slices to write before it can be committed, of the session whose turn it is."""
        for key in self._turns:
            job = self._queues[key][0]
            if job.is_large and not job.is_staged:
                return job
        return None

    def round(self) -> list[Job]:
        """The jobs of the next commit; none when all that waits is to be staged first."""
        taken: list[Job] = []
        room = ROUND_BYTES
        events = 0
        for _ in range(len(self._turns)):
            key = self._turns[0]
            more = self._take(key, room, ROUND_JOBS - len(taken), ROUND_EVENTS - events, first=not taken)
            taken += more
            room -= sum(job.size for job in more)
            events += sum(len(job.entries) for job in more)
            self._turns.popleft()
            if self._queues[key]:
                self._turns.append(key)
            else:
                del self._queues[key]
            if room <= 0 or len(taken) >= ROUND_JOBS or events >= ROUND_EVENTS:
                break
        self._count -= len(taken)
        return taken

    def _take(self, key: str | None, room: int, jobs: int, events: int, *, first: bool) -> list[Job]:
        queue = self._queues[key]
        taken: list[Job] = []
        size = 0
        while queue and len(taken) < jobs:
            job = queue[0]
            if (job.is_large and not job.is_staged) or (job.session_id is None and not self._is_oldest(job)):
                break
            alone = not taken and (first or job.size <= SESSION_BYTES)
            size += job.size
            events -= len(job.entries)
            if not alone and (size > min(room, SESSION_BYTES) or events < 0):
                break
            taken.append(queue.popleft())
        return taken

    def _is_oldest(self, job: Job) -> bool:
        return all(job is queue[0] or job.order < queue[0].order for queue in self._queues.values() if queue)

    def clear(self) -> list[Job]:
        """All that waits; it waits no more."""
        jobs = sorted((job for queue in self._queues.values() for job in queue), key=lambda job: job.order)
        self._queues.clear()
        self._turns.clear()
        self._count = 0
        return jobs


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
