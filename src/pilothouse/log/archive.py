"""A log that somebody else may be writing, open for reading only: it neither takes the hub's lock nor waits for it.

Reads see what was committed when they began. A log that is not there yet is an empty one. The rule a change must not
break: nothing is written from here, not even to bring an old file up to date.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ..model.events import Event, decode_event, utc_now
from . import rows, tables
from .database import check_header, identify, migrations
from .entries import Entry
from .errors import LogReadOnly, LogUnusable, UnknownSession
from .follow import BATCH_BYTES, BATCH_COUNT
from .lock import FileLock
from .reader import Readers, problems
from .records import Change, Record, SessionFilter, SessionPage
from .stores import Approvals, Rules, Sessions

__all__ = ["LogArchive", "lock_holder"]

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
        page, _ = await self._readers.run(lambda db: rows.read_session(db, session_id, after, limit, max_bytes))
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
