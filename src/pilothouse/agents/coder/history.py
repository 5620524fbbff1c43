"""All sessions of the agent, those of processes before this one included."""

from __future__ import annotations

import logging
import re
import uuid
from pathlib import Path
from typing import TypeVar

import msgspec

from ...acp import SessionInfo
from ..endings import endings
from ..sessions import moment
from .journal import Journal
from .session import Moment, Session, Settings

__all__ = ["History"]

SESSION_ID = re.compile(r"coder-[0-9a-f]{16}")
S = TypeVar("S", bound=msgspec.Struct)
logger = logging.getLogger(__name__)


class Card(msgspec.Struct, kw_only=True):
    """The part of a session's settings that a list tells; the rest of the file is not looked at."""

    cwd: str
    title: str | None = None
    updated_at: Moment = 0.0


class History:
    """Sessions by id; with `home`, a directory, they outlive the process."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home
        self._sessions: dict[str, Session] = {}
        self._unreadable: set[Path] = set()
        if home is not None:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, settings: Settings) -> Session:
        return self._add(settings, ())

    def fork(self, session: Session, cwd: str) -> Session:
        """A session that begins with all of another and goes on by itself."""
        session.journal.settle()
        settings = msgspec.structs.replace(session.settings, cwd=cwd)
        updates = session.journal.updates
        return self._add(settings, (*updates, *endings(updates)))

    def find(self, session_id: str) -> Session | None:
        session = self._sessions.get(session_id)
        if session is None:
            return self._read(session_id)
        return session if session.prompts or self.catch_up(session) else None

    def catch_up(self, session: Session) -> bool:
        """Take over what another process did in a session. Whether the session is still there."""
        path = session.journal.path
        if path is None or not session.journal.is_behind:
            return True
        settings = self._decoded(path, Settings)
        if settings is None:
            del self._sessions[session.id]
            return False
        # what this process's client asked for stays
        kept = {name: getattr(session.settings, name) for name in ("cwd", "directories", "mode", "model", "thinking")}
        session.settings = msgspec.structs.replace(settings, **kept)
        session.journal.catch_up()
        return True

    def delete(self, session_id: str) -> None:
        session = self.find(session_id)
        if session is not None:
            session.is_open = False
            session.journal.delete()
            del self._sessions[session_id]

    def infos(self) -> list[SessionInfo]:
        """What is told of every session in a list, the most recently used first. Nothing more of them is kept."""
        found = {session.id: _card(session.settings) for session in self._sessions.values()}
        if self._home is not None:
            for path in self._home.glob("coder-*.json"):
                if path.stem not in found and path == self._path(path.stem):
                    card = self._decoded(path, Card)
                    if card is not None:
                        found[path.stem] = card
        return [_info(*one) for one in sorted(found.items(), key=lambda one: (-one[1].updated_at, one[0]))]

    @property
    def known(self) -> list[Session]:
        """Those that this process has had to do with."""
        return list(self._sessions.values())

    def _add(self, settings: Settings, updates: tuple[bytes, ...]) -> Session:
        session_id = f"coder-{uuid.uuid4().hex[:16]}"
        journal = Journal(self._path(session_id), updates)
        journal.save_all()
        session = self._sessions[session_id] = Session(session_id, settings, journal)
        session.save()
        return session

    def _path(self, session_id: str) -> Path | None:
        # the id may come from a client, so it must not be able to name anything else
        if self._home is None or not SESSION_ID.fullmatch(session_id):
            return None
        return self._home / f"{session_id}.json"

    def _read(self, session_id: str) -> Session | None:
        path = self._path(session_id)
        settings = self._decoded(path, Settings) if path is not None else None
        if path is None or settings is None:
            return None
        session = self._sessions[session_id] = Session(session_id, settings, Journal.read(path))
        session.is_open = False
        return session

    def _decoded(self, path: Path, kind: type[S]) -> S | None:
        """None for a file that is not there, and for one that cannot be read, of which it is said once."""
        if path in self._unreadable:
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as exc:
            self._unreadable.add(path)
            logger.warning("the session in %s cannot be read: %s", path, exc)
            return None


def _card(settings: Settings) -> Card:
    return Card(cwd=settings.cwd, title=settings.title, updated_at=settings.updated_at)


def _info(session_id: str, card: Card) -> SessionInfo:
    return SessionInfo(session_id=session_id, cwd=card.cwd, title=card.title, updated_at=moment(card.updated_at))
