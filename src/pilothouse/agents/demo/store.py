"""Sessions and what was said in them.

With a directory every session is also a file of JSON lines there, and a restarted agent can load it.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ...acp import SessionInfo
from ...acp.model import encode
from ..sessions import Transcript, moment

SESSION_ID = re.compile(r"demo-\d+-[0-9a-f]{8}")


class Cancellable(Protocol):
    """A prompt under way."""

    def cancel(self) -> None: ...


class Settings(msgspec.Struct):
    """What a session remembers besides its history."""

    cwd: str
    mode: str = "code"
    model: str = "scripted-small"
    thoughts: bool = True
    title: str | None = None
    used: int = 0


class History(Transcript):
    """The updates of one session; `path` is where they are appended to."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self.path = path

    def write(self, line: dict[str, Any]) -> None:
        """Append a line to the file, if there is one."""
        if self.path is not None:
            self.path.touch(mode=0o600)
            with self.path.open("ab") as file:
                file.write(encode(line) + b"\n")

    def store(self, update: bytes) -> None:
        self.write({"update": msgspec.Raw(update)})


class Session:
    """One conversation. `turns` are its prompts under way: the first one runs, the others wait for `lock`."""

    def __init__(self, session_id: str, settings: Settings, history: History) -> None:
        self.id = session_id
        self.settings = settings
        self.history = history
        self.is_open = True
        self.updated_at = time.time()
        self.lock = asyncio.Lock()
        self.turns: list[Cancellable] = []
        # An "always" lives as long as the process: a restart must not raise what the agent may do.
        self.always: set[str] = set()
        # Ids continue above everything the history can contain, also after a restart.
        self._base = len(history.updates)
        self._counts: Counter[str] = Counter()

    @property
    def cwd(self) -> Path:
        return Path(self.settings.cwd)

    @property
    def info(self) -> SessionInfo:
        """What a list tells of it."""
        settings = self.settings
        return SessionInfo(
            session_id=self.id, cwd=settings.cwd, title=settings.title, updated_at=moment(self.updated_at)
        )

    def next_id(self, kind: str) -> str:
        """An id that no other thing of this kind has had in this session."""
        self._counts[kind] += 1
        return f"{kind}-{self._base + self._counts[kind]}"

    def save(self) -> None:
        self.history.write({"settings": self.settings})

    def cancel(self) -> None:
        for turn in tuple(self.turns):
            turn.cancel()


class Store:
    """All sessions this agent knows; with `home` also those of agents before it."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home
        self._sessions: dict[str, Session] = {}
        self._counter = 0
        self._run = uuid.uuid4().hex[:8]  # ids of two runs in one directory must not clash
        if home is not None:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, settings: Settings, updates: Sequence[bytes] = ()) -> Session:
        self._counter += 1
        session_id = f"demo-{self._counter}-{self._run}"
        history = History(self._path(session_id))
        for update in updates:
            history.append(update)
        session = self._sessions[session_id] = Session(session_id, settings, history)
        session.save()
        return session

    def find(self, session_id: str) -> Session | None:
        return self._sessions.get(session_id) or self._read(session_id)

    def fork(self, session: Session, cwd: str) -> Session:
        settings = msgspec.structs.replace(session.settings, cwd=cwd)
        session.history.settle()
        return self.create(settings, session.history.updates)

    def delete(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.is_open = False
            session.history.path = None  # what its last turn still says must not bring the file back
        path = self._path(session_id)
        if path is not None:
            path.unlink(missing_ok=True)

    def infos(self) -> list[SessionInfo]:
        if self._home is not None:
            for path in self._home.glob("demo-*.jsonl"):
                self.find(path.stem)
        return [session.info for session in sorted(self._sessions.values(), key=lambda one: (-one.updated_at, one.id))]

    def _path(self, session_id: str) -> Path | None:
        # The id may come from a client, so it must not be able to name anything else.
        if self._home is None or not SESSION_ID.fullmatch(session_id):
            return None
        return self._home / f"{session_id}.jsonl"

    def _read(self, session_id: str) -> Session | None:
        path = self._path(session_id)
        if path is None or not path.is_file():
            return None
        settings: Settings | None = None
        history = History(path)
        data = path.read_bytes()
        for line in data.splitlines():
            with suppress(msgspec.DecodeError):  # the last line of a killed agent may be cut off
                entry = msgspec.json.decode(line, type=Entry)
                settings = entry.settings or settings
                if update := bytes(entry.update):
                    history.updates.append(update)
        if not data.endswith(b"\n"):
            with path.open("ab") as file:
                file.write(b"\n")
        if settings is None:
            return None
        session = self._sessions[session_id] = Session(session_id, settings, history)
        session.is_open = False
        session.updated_at = path.stat().st_mtime
        return session


class Entry(msgspec.Struct):
    """One line of a session's file."""

    update: msgspec.Raw = msgspec.Raw()
    settings: Settings | None = None
