"""Folding the write-ahead log into the file, aside from the writer: nobody's append waits for that flush to disk.

A checkpoint aside never blocks the writer, but while there is writing it never quite ends either, and then the
write-ahead log only grows. So when it has grown large the writer does the small rest itself, which lets SQLite
begin it anew.
"""

from __future__ import annotations

import logging
import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from .database import FAILURES, connect

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
