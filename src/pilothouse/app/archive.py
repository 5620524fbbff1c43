"""The log as it is stored, for those who only read: they neither take the hub's lock nor wait for it.

Reads see what was committed when they began. A home without a database is an empty archive.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ..log import rows, tables
from ..log.database import check_header
from ..log.entries import Entry
from ..log.errors import LogReadOnly, LogUnusable, UnknownSession
from ..log.follow import BATCH_BYTES, BATCH_COUNT
from ..log.lock import FileLock
from ..log.reader import Readers, problems
from ..log.records import Change, Record, SessionFilter, SessionPage, SessionRecord
from ..log.stores import Approvals, Rules, Sessions
from ..model.events import Event, decode_event, utc_now
from ..model.session import Session

__all__ = ["Ambiguous", "Archive", "lock_holder"]

R = TypeVar("R", bound=Record)


class Ambiguous(Exception):
    """The beginning of an id that several sessions share."""


class Archive:
    """Sessions, approvals and events of a log that somebody else may be writing. Open it by `async with`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now: Callable[[], str] = utc_now
        self.sessions = Sessions(self)
        self.approvals = Approvals(self)
        self.rules = Rules(self)
        self._readers: Readers | None = None

    async def __aenter__(self) -> Self:
        """Raises LogUnusable for a file that is no database of ours, or of a later version."""
        try:
            with self.path.open("rb") as file:
                header = file.read(100)
        except FileNotFoundError:
            return self
        except OSError as exc:
            raise LogUnusable(self.path, exc.strerror or str(exc)) from exc
        check_header(self.path, header)
        if header:
            self._readers = Readers(self.path)
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

    # -- sessions --

    async def match(self, beginning: str) -> SessionRecord:
        """The session whose id begins so, with or without `ses_`. Raises UnknownSession, Ambiguous."""
        found = []
        cursor: str | None = None
        while True:
            page = await self.list_sessions(SessionFilter(archived=None, before=cursor, limit=500))
            for record in page.sessions:
                if beginning and record.id in (beginning, f"ses_{beginning}"):
                    return record
                if beginning and record.id.startswith((beginning, f"ses_{beginning}")):
                    found.append(record)
            cursor = page.next
            if cursor is None:
                break
        if not found:
            raise UnknownSession(beginning)
        if len(found) > 1:
            some = ", ".join(record.id for record in found[:4]) + (", …" if len(found) > 4 else "")
            raise Ambiguous(f"{len(found)} sessions begin with {beginning!r}: {some}")
        return found[0]

    async def entries(self, session_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """All entries beyond a seq. Raises UnknownSession."""
        readers = self._readers
        if readers is None:
            raise UnknownSession(session_id)
        while True:
            cursor = after
            page, _ = await readers.run(
                lambda db, cursor=cursor: rows.read_session(db, session_id, cursor, BATCH_COUNT, BATCH_BYTES)  # type: ignore[misc]
            )
            if not page:
                return
            for entry in page:
                yield entry
            after = page[-1].seq

    async def events(self, session_id: str, after: int = 0) -> AsyncIterator[Event]:
        """All events beyond a seq, each with its source. Raises UnknownSession."""
        async for entry in self.entries(session_id, after):
            event = decode_event(entry.data)
            event.source = entry.source
            yield event

    async def fold(self, session_id: str) -> Session:
        """The session as its events tell it. Raises UnknownSession."""
        session = Session(id=session_id)
        async for entry in self.entries(session_id):
            session.apply(decode_event(entry.data))
        return session

    # -- health --

    async def problems(self) -> list[str]:
        """What is wrong with the stored data."""
        return [] if self._readers is None else await self._readers.run(problems)


def lock_holder(database: Path) -> int | None:
    """The process that has the log open: its id, 0 when that cannot be told, None when nobody has it open."""
    path = FileLock(database).path
    try:
        import fcntl

        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
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
