"""Opening the file: what it must be like, how it is brought up to date, and what SQLite's errors mean.

Nothing is changed before the file is known to be ours, of a version we know, and free. Migrations are append-only:
a file in `sql/` is never edited once released.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import struct
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from .errors import LogCorrupt, LogError, LogForeign, LogFull, LogLocked, LogReadOnly, LogTooNew, LogUnusable

APPLICATION_ID = 0x504C5448
"""Marks the file as ours in its header, "PLTH"."""

BUSY_TIMEOUT = 5.0
"""Seconds to wait for another program, such as a backup, that holds the file."""

JOURNAL_LIMIT = 128 << 20
"""The write-ahead log may keep this much room between two uses; more than log/checkpoint.py lets it grow."""

OLDEST_SQLITE = (3, 35, 0)
NEARLY_FULL = 1 << 20

NO_FTS = "this SQLite has no FTS5: the search reads every text instead of an index"

Synchronous = Literal["NORMAL", "FULL"]


@cache
def migrations() -> tuple[str, ...]:
    """The scripts in order; number n brings a file from version n - 1 to n."""
    files = [file for file in resources.files(__package__).joinpath("sql").iterdir() if file.name.endswith(".sql")]
    return tuple(file.read_text("utf-8") for file in sorted(files, key=lambda file: file.name))


def prepare(path: Path) -> None:
    """Make the directory, look at the file without touching it, and see to its mode.

    Raises LogReadOnly, LogCorrupt, LogForeign, LogTooNew, LogUnusable.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_dir():
            raise LogUnusable(path, "is a directory", "give the path of a file")
        if path.exists():
            with path.open("rb") as file:
                check_header(path, file.read(100))
            if not os.access(path, os.W_OK):
                raise LogReadOnly(path, "the file can't be written")
        if not os.access(path.parent, os.W_OK):
            raise LogReadOnly(path, "its directory can't be written")
    except OSError as exc:
        raise _from_os(path, exc) from exc


def check_header(path: Path, header: bytes) -> None:
    """A new file is empty; an old one begins like a SQLite database of ours."""
    if not header:
        return
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise LogCorrupt(path, "this is not a SQLite database, or its header is damaged")
    (version,) = struct.unpack_from(">i", header, 60)
    (application,) = struct.unpack_from(">I", header, 68)
    check_identity(path, application, version)


def check_identity(path: Path, application: int, version: int) -> None:
    if application not in (0, APPLICATION_ID) or (application == 0 and version != 0):
        raise LogForeign(path, "this is the database of another program")
    known = len(migrations())
    if version > known:
        raise LogTooNew(path, f"it has schema version {version}, this Pilothouse knows up to {known}")


def connect(path: Path, *, synchronous: Synchronous = "NORMAL", query_only: bool = False) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        advice = f"run a Python that has SQLite {needed} or newer"
        raise LogUnusable(path, f"this Python has SQLite {sqlite3.sqlite_version}", advice)
    db = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    if query_only:
        db.execute("PRAGMA query_only = ON")
    return db


def open_for_writing(path: Path, *, synchronous: Synchronous, max_bytes: int | None) -> sqlite3.Connection:
    """The one connection that writes, with the schema brought up to date.

    The caller holds the lock and called `prepare`. Raises LogError.
    """
    db: sqlite3.Connection | None = None
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)  # SQLite gives its side files the same mode
        db = connect(path, synchronous=synchronous)
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        check_identity(path, application, version)
        if application == 0 and db.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise LogForeign(path, "this is the database of another program")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")  # log/checkpoint.py sees to it
        db.execute(f"PRAGMA journal_size_limit = {JOURNAL_LIMIT}")
        if max_bytes is not None:
            (page,) = db.execute("PRAGMA page_size").fetchone()
            db.execute(f"PRAGMA max_page_count = {max(1, max_bytes // page)}")
        migrate(db, version)
    except BaseException as exc:
        if db is not None:
            db.close()
        if isinstance(exc, sqlite3.Error):
            raise explain(path, exc) from exc
        if isinstance(exc, OSError):
            raise _from_os(path, exc) from exc
        raise
    return db


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Run what is missing, each script in a transaction of its own; find out now whether the file can be written."""
    db.execute("BEGIN IMMEDIATE")
    db.execute("ROLLBACK")
    scripts = migrations()
    for number, script in enumerate(scripts[version:], version + 1):
        try:
            db.executescript(
                f"BEGIN IMMEDIATE;\n{script}\nPRAGMA application_id = {APPLICATION_ID};"
                f"\nPRAGMA user_version = {number};\nCOMMIT;"
            )
        except sqlite3.Error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    if version < len(scripts):
        # The header tells the version to whoever looks without opening: it must not wait in the write-ahead log.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def has_fts(db: sqlite3.Connection) -> bool:
    try:
        db.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(text)")
        db.execute("DROP TABLE temp.probe")
    except sqlite3.OperationalError:
        return False
    return True


def prepare_search(db: sqlite3.Connection, *, wanted: bool) -> bool:
    """See to the full text index: make it, or fill it anew after a time without FTS5. Whether there is one."""
    usable = wanted and has_fts(db)
    exists = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'search'").fetchone() is not None
    stale = db.execute("SELECT 1 FROM counters WHERE name = 'search_stale'").fetchone() is not None
    if not usable:
        db.execute("INSERT OR IGNORE INTO counters (name, value) VALUES ('search_stale', 1)")
    elif stale or not exists:
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5(text, content='texts', content_rowid='position')"
        )
        db.execute("INSERT INTO search (search) VALUES ('rebuild')")
        db.execute("DELETE FROM counters WHERE name = 'search_stale'")
        db.execute("COMMIT")
    return usable


def explain(path: Path, exc: sqlite3.Error) -> LogError:
    """What an error of SQLite means to the user of the log."""
    code = (getattr(exc, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _nearly_full(path)):
        return LogFull(path)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LogCorrupt(path, f"the database is damaged ({exc})")
    if code == sqlite3.SQLITE_READONLY:
        return LogReadOnly(path, f"the database can't be written ({exc})")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LogLocked(path, None)
    return LogUnusable(path, f"SQLite says: {exc}")


def _nearly_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < NEARLY_FULL
    except OSError:
        return False


def _from_os(path: Path, exc: OSError) -> LogError:
    if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return LogReadOnly(path, exc.strerror or str(exc))
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return LogFull(path)
    return LogUnusable(path, exc.strerror or str(exc))
