"""SQLite databases of other programs, read and never written to: neither the file nor anything beside it.

To read a database in WAL mode, SQLite creates the log and its index where they are missing, and leaves them there. So
it only opens a live one, which has both. A database without a log is not in use; it is read as an immutable file, and
the result counts only if that was true. One with a log but without its index was left by a crash, and is read from a
copy.

A record that keeps a session message by message is read by `MessageReading`: one message of an unknown format costs
nothing but itself, and each problem is reported once.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from ...model.discovery import DiscoveredStatus
from ...plain_files import Stamp, Unreadable, opened, stamp_of
from .store import Problem, Reader, Step, Update

PATIENCE = 1.0
"""Seconds to wait for whoever writes."""
COPIED = 1024 * 2**20
"""Bytes up to which a database is copied to be read."""
TRIES = 3
HEAD = 100
INDEX = 96
"""Bytes of a database, and of the index of its log, that change with every change, and with no look at it."""
MAGIC = b"SQLite format 3\0"

BEGUN = 60.0
"""Seconds after which a program has made the tables of a new database."""

T = TypeVar("T")


class Unready(Unreadable):
    """A database has not what it should have; while it is being made that is no wonder."""


def is_begun(path: Path) -> bool:
    """Whether a database that is not ready yet should be."""
    try:
        return time.time() - path.stat().st_mtime > BEGUN
    except OSError:
        return False


class State(NamedTuple):
    """What tells that a database has changed.

    A log is written over, and clocks tick slowly; but the heads of the file and of the log's index count changes. And
    whoever reads by these alone does not open the log, which others would take for a change.
    """

    file: Stamp | None
    log: Stamp | None
    heads: tuple[bytes, bytes]


def state_of(path: Path) -> State:
    heads = _head(path, HEAD), _head(_beside(path, "shm"), INDEX)
    return State(_stamp(path), _stamp(_beside(path, "wal")), heads)


def look_up(path: Path, ask: Callable[[sqlite3.Connection], T]) -> T:
    """What `ask` finds in the database, which must not keep the connection. Raises Unreadable."""
    for _ in range(TRIES):
        before = state_of(path)
        with _connected(path) as (connection, is_still):
            found = ask(connection)
        if not is_still or state_of(path) == before:
            return found
    raise Unreadable("it changes while it is read")


class Columns:
    """The columns of a table, as far as it has them: other versions of a program have others."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self.table = table
        self._has = {row[1] for row in connection.execute(f'pragma table_info("{table}")')}
        if not self._has:
            raise Unready(f"it has no table {table!r}")

    def __contains__(self, name: str) -> bool:
        return name in self._has

    def require(self, *names: str) -> None:
        for name in names:
            if name not in self._has:
                raise Unreadable(f"its table {self.table!r} has no column {name!r}")

    def select(self, *names: str) -> str:
        """The list of a `select`; what the table does not have is null."""
        return ", ".join(f'"{name}"' if name in self._has else f'null as "{name}"' for name in names)


@contextmanager
def _connected(path: Path) -> Iterator[tuple[sqlite3.Connection, bool]]:
    """A connection, and whether it takes the file to stand still."""
    has_log = _has_log(path)
    log, index = _beside(path, "wal"), _beside(path, "shm")
    if not has_log or (log.exists() and index.exists()):
        with _opened(path, "mode=ro") as connection:
            yield connection, False
    elif not _size(log):
        with _opened(path, "mode=ro&immutable=1") as connection:
            yield connection, True
    else:
        with _copied(path, log) as copy, _opened(copy, "mode=ro") as connection:
            yield connection, False


def _has_log(path: Path) -> bool:
    """Whether changes to a database go to a log first. Raises Unreadable for what is no database."""
    with opened(path) as file:
        head = file.read(20)
    if not head:
        raise Unready("it is empty")
    if not head.startswith(MAGIC):
        raise Unreadable("it is no SQLite database")
    return head[18:20] == b"\2\2"


@contextmanager
def _opened(path: Path, options: str) -> Iterator[sqlite3.Connection]:
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, timeout=PATIENCE, isolation_level=None)
        ) as connection:
            connection.text_factory = _text
            connection.execute("pragma query_only = 1")
            connection.execute("begin")  # everything is read of the same moment
            yield connection
    except sqlite3.Error as exc:
        raise Unreadable(f"it cannot be read: {exc}") from None


@contextmanager
def _copied(path: Path, log: Path) -> Iterator[Path]:
    if _size(path) + _size(log) > COPIED:
        raise Unreadable("it was left in a crash and is too large to be copied")
    with tempfile.TemporaryDirectory(prefix="pilothouse-") as folder:
        try:
            for place in (path, log):
                shutil.copyfile(place, Path(folder) / place.name)
        except OSError as exc:
            raise Unreadable(f"it cannot be read: {exc.strerror or exc}") from None
        yield Path(folder) / path.name


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f"{path.name}-{kind}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _head(path: Path, size: int) -> bytes:
    try:
        with opened(path) as file:
            return file.read(size)
    except Unreadable:
        return b""


def _stamp(path: Path) -> Stamp | None:
    try:
        return stamp_of(path.stat())
    except (OSError, Unreadable):
        return None


class MessageReader(Reader):
    """One session's messages. `path` is what is named when one cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: set[str] = set()
        self._updates: list[Update] = []
        self._problems: list[Problem] = []

    @property
    @abstractmethod
    def _status(self) -> DiscoveredStatus | None:
        """What the messages so far say that the agent does."""

    @abstractmethod
    def _look(self) -> bool:
        """`_take` messages that are new; whether there may be more. Raises Unreadable."""

    def read(self) -> Step:
        self._updates, self._problems = [], []
        failed = False
        try:
            while self._look() and not self._updates:
                pass
        except Unreadable as exc:
            failed = True
            self._tell(str(exc))
        return Step(updates=self._updates, status=self._status, problems=self._problems, failed=failed)

    def _take(self, name: object, made: Callable[[], Iterable[Update]]) -> None:
        try:
            self._updates.extend(made())
        except Exception as exc:  # of a message that is not what it should be
            self._tell(f"the message {name} is not understood: {type(exc).__name__}: {exc}")

    def _tell(self, words: str) -> None:
        if words not in self._told:
            self._told.add(words)
            self._problems.append(Problem(path=str(self._path), message=words))

    def close(self) -> None:
        """Nothing is held open between looks."""
