"""Opening the file: its lock, its checks, its migrations, and the meaning of SQLite's errors.

One hub may open a log: the lock is on a file beside it, and the system releases it when the process exits for any
reason. Nothing is changed before the file is known to be ours, of a known version, and free. Migrations are
append-only: a file in `sql/` is never edited once released.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sqlite3
import struct
import time
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from ..errors import LogCorrupt, LogError, LogForeign, LogFull, LogLocked, LogReadOnly, LogTooNew, LogUnusable

try:
    import fcntl

    LOCKS = True
except ImportError:  # Windows
    LOCKS = False

NO_LOCK = "this platform has no file locks (fcntl): nothing keeps a second hub from the same log; run only one"

PF_EXITING = 0x4
"""The flag of Linux for a process on its way out."""
LINGER = 2.0
STEP = 0.01
"""Seconds in which the lock of a process that is gone is waited for, and between two tries: a child that it was just
starting holds the lock until it is a program of its own."""


class FileLock:
    """The lock of one log. The file stays when the lock goes; removing it would let two processes lock two files."""

    def __init__(self, log_path: Path) -> None:
        self._log_path = log_path
        self.path = log_path.with_name(log_path.name + ".lock")
        self._fd: int | None = None

    def acquire(self) -> str | None:
        """Take it or raise LogLocked. Returns a notice where it cannot be taken at all."""
        if not LOCKS:
            return NO_LOCK
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError as exc:
            raise LogReadOnly(self.path, exc.strerror or str(exc)) from exc
        except OSError as exc:
            kind = LogReadOnly if exc.errno == errno.EROFS else LogUnusable
            raise kind(self.path, exc.strerror or str(exc)) from exc
        try:
            self._lock(fd)
        except LogLocked:
            os.close(fd)
            raise
        except OSError as exc:
            os.close(fd)
            advice = "put the log on a local disk"
            raise LogUnusable(self.path, f"the file system has no locks: {exc.strerror}", advice) from exc
        self._fd = fd
        self._write(f"{os.getpid()}\n".encode())
        return None

    def _lock(self, fd: int) -> None:
        """Raises LogLocked when somebody who runs has it, OSError where there are no locks."""
        deadline = time.monotonic() + LINGER
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = os.pread(fd, 32, 0).strip()
                holder = int(text) if text.isdigit() else None
                if _runs(holder) or time.monotonic() > deadline:
                    raise LogLocked(self._log_path, holder) from None
                time.sleep(STEP)
            else:
                return

    def release(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _write(self, text: bytes) -> None:
        """The holder's pid, for whoever is refused. A full disk must not matter: the lock is held without it."""
        assert self._fd is not None
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, text, 0)
        except OSError:
            pass


def _runs(pid: int | None) -> bool:
    """Whether the process is there; one that does not say who it is gets the time to do so."""
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return not _is_exiting(pid)


def _is_exiting(pid: int) -> bool:
    """Whether the process is just being taken down, where the system tells; its locks go on the way."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
        fields = data[data.rindex(b")") + 2 :].split()  # the name before it may hold anything
        return fields[0] in (b"Z", b"X") or bool(int(fields[6]) & PF_EXITING)
    except (OSError, ValueError, IndexError):
        return False


logger = logging.getLogger(__name__)

APPLICATION_ID = 0x504C5448
"""Marks the file as ours in its header, "PLTH"."""

BUSY_TIMEOUT = 5.0
"""Seconds to wait for another program, such as a backup, that holds the file."""

JOURNAL_LIMIT = 128 << 20
"""The write-ahead log may keep this much room between two uses; more than `writer` lets it grow."""

OLDEST_SQLITE = (3, 35, 0)
NEARLY_FULL = 1 << 20
MARGIN = 64 << 10

FOREIGN = "this is the database of another program"
NO_FTS = "this SQLite has no FTS5: the search reads every text instead of an index"

Synchronous = Literal["NORMAL", "FULL"]

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite fails with; the second when not even its message about a damaged file can be read."""


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
        raise LogForeign(path, FOREIGN)
    known = len(migrations())
    if version > known:
        raise LogTooNew(path, f"it has schema version {version}, this Pilothouse knows up to {known}")


def identify(path: Path, db: sqlite3.Connection) -> int:
    """The version of an open file, as its write-ahead log has it; 0 for an empty one. Raises LogForeign, LogTooNew."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    check_identity(path, application, version)
    if application == 0 and db.execute("SELECT 1 FROM sqlite_schema").fetchone():
        raise LogForeign(path, FOREIGN)
    return int(version)


def connect(path: Path, *, synchronous: Synchronous = "NORMAL") -> sqlite3.Connection:
    """A connection that may write. Raises LogUnusable, and what SQLite raises."""
    return _connect(str(path), path, [f"PRAGMA synchronous = {synchronous}"])


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, neither while it is open nor by being closed.

    Whoever closes the last connection to a file folds its write-ahead log into it, which needs room and rights; so a
    file with such a log is opened read-only. Where this user can write nothing, and so nobody of ours is writing, not
    even the side files are made.
    """
    if _wal_size(path):
        return _connect(f"{path.absolute().as_uri()}?mode=ro", path, ["PRAGMA query_only = ON"])
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return _connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", path, ["PRAGMA query_only = ON"])
    return _connect(str(path), path, ["PRAGMA query_only = ON"])


def _connect(name: str, path: Path, pragmas: list[str]) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        advice = f"run a Python that has SQLite {needed} or newer"
        raise LogUnusable(path, f"this Python has SQLite {sqlite3.sqlite_version}", advice)
    db = sqlite3.connect(
        name,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        uri=name.startswith("file:"),
    )
    try:
        for pragma in ("PRAGMA foreign_keys = ON", *pragmas):
            db.execute(pragma)
    except BaseException:
        db.close()
        raise
    return db


def has_room(path: Path) -> bool:
    """Whether the write-ahead log could be folded into the file now; half done, it would take the last room."""
    try:
        return shutil.disk_usage(path.parent).free >= _wal_size(path) + MARGIN
    except OSError:
        return True


def close(db: sqlite3.Connection, path: Path) -> None:
    """Close a connection that wrote. The write-ahead log stays for the next time when there is no room to fold it."""
    beside = None
    try:
        if not has_room(path):
            beside = connect_for_reading(path)
            beside.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # only who has read counts as a connection
        db.close()
    except FAILURES:
        logger.warning("the log's file could not be closed in order; it is recovered when next opened", exc_info=True)
    finally:
        if beside is not None:
            beside.close()


def _wal_size(path: Path) -> int:
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return 0


def open_for_writing(path: Path, *, synchronous: Synchronous, max_bytes: int | None) -> sqlite3.Connection:
    """The one connection that writes, with the schema brought up to date.

    The caller holds the lock and called `prepare`. Raises LogError.
    """
    db: sqlite3.Connection | None = None
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)  # SQLite gives its side files the same mode
        db = connect(path, synchronous=synchronous)
        version = identify(path, db)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")  # the writer does it, see `Checkpointer`
        db.execute(f"PRAGMA journal_size_limit = {JOURNAL_LIMIT}")
        if max_bytes is not None:
            (page,) = db.execute("PRAGMA page_size").fetchone()
            db.execute(f"PRAGMA max_page_count = {max(1, max_bytes // page)}")
        migrate(db, version)
    except BaseException as exc:
        if db is not None:
            db.close()
        if isinstance(exc, FAILURES):
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


def explain(path: Path, exc: sqlite3.Error | UnicodeDecodeError) -> LogError:
    """What an error of SQLite means to the user of the log."""
    if isinstance(exc, UnicodeDecodeError):
        return LogCorrupt(path, "the database is damaged (there is text in it that is none)")
    code = (getattr(exc, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _nearly_full(path)):
        return LogFull(path)
    damaged = type(exc) is sqlite3.DatabaseError or "Could not decode" in str(exc)  # ours, and Python's: without code
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or (not code and damaged):
        return LogCorrupt(path, f"the database is damaged ({exc})")
    if code == sqlite3.SQLITE_READONLY:
        return LogReadOnly(path, f"the database can't be written ({exc})")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LogLocked(path, None)
    advice = (
        "see whether the disk is in order and has room, also for this user" if code == sqlite3.SQLITE_IOERR else None
    )
    return LogUnusable(path, f"SQLite says: {exc}", advice)


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
