"""Stored sessions for commands that only read, and the running hub of a home, if there is one.

The lock shows whether a hub runs; its address file shows how to reach it. A hub needs a moment between the two, and
callers wait for it.
"""

from __future__ import annotations

import asyncio

from ..config import Config
from ..log.errors import LogLocked, UnknownSession
from ..log.records import SessionFilter, SessionRecord
from ..log.sqlite.reader import LogArchive, lock_holder
from ..model.events import decode_event
from ..model.session import Session
from ..remote.errors import NoHub
from ..remote.hub import RemoteHub, reach

PAGE = 500


class Ambiguous(Exception):
    """The beginning of an id that several sessions share."""


class Archive(LogArchive):
    """A log that somebody else may be writing. Open it by `async with`."""

    async def match(self, beginning: str) -> SessionRecord:
        """The session whose id begins so, with or without `ses_`. Raises UnknownSession, Ambiguous."""
        found = []
        cursor: str | None = None
        while True:
            page = await self.list_sessions(SessionFilter(archived=None, before=cursor, limit=PAGE))
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

    async def fold(self, session_id: str) -> Session:
        """The session as its events tell it. Raises UnknownSession."""
        session = Session(id=session_id)
        async for entry in self.entries(session_id):
            session.apply(decode_event(entry.data))
        return session


def open_archive(config: Config) -> Archive:
    """The stored sessions, to be opened by `async with`; also while a hub has them open."""
    return Archive(config.database)


PATIENCE = 5.0
"""Seconds that a hub has from taking the lock until it answers; recovery after a crash is part of that."""
STEP = 0.03


async def find_hub(config: Config, *, patience: float = PATIENCE) -> RemoteHub | None:
    """The hub that runs on this home; None when none does. Raises LogLocked for one that does not answer."""
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        holder = lock_holder(config.database)
        try:
            # where there are no locks, only an answer tells
            return await reach(config.home)
        except NoHub:
            if holder is None:
                return None
        if asyncio.get_running_loop().time() > deadline:
            raise LogLocked(config.database, holder or None)
        await asyncio.sleep(STEP)
