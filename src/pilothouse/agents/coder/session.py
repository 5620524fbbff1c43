"""The sessions of the agent: one conversation, its journal on disk, and the list of all of them.

A journal is two files: `ID.jsonl`, to which each update is appended in its wire form, and `ID.json`, the session's
settings and the model's memory, which is replaced as a whole. Both are readable by the user only. A line that a killed
process left unfinished is skipped. Another process may use the same session: only one runs a turn in it at a time, and
the other's lines are read before anything is written over them.

"Always" answers live as long as the process: a restart must not raise what the agent may do.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from ...acp import ContentBlock, McpServer, SessionInfo
from ..sessions import Transcript, endings, moment
from .workspace import Workspace

try:
    import fcntl
except ImportError:  # not on Windows, where nothing keeps two processes apart
    fcntl = None  # type: ignore[assignment]


REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class Journal(Transcript):
    """The updates of one session. Without a `path` (that of its settings) nothing is kept on disk."""

    def __init__(self, path: Path | None, updates: Sequence[bytes] = ()) -> None:
        super().__init__(updates)
        self.path = path
        self.problem: str | None = None
        """Why it was not kept on disk, if it was not; whoever has told the user sets it to None."""
        self._stamp = self._look()

    @classmethod
    def read(cls, path: Path) -> Journal:
        """The journal that a process before this one wrote. A file that cannot be read is an empty journal."""
        journal = cls(path)
        with journal._watched(), suppress(FileNotFoundError):
            data = _lines(path).read_bytes()
            journal.updates = [line for line in data.splitlines() if _is_update(line)]
            if data and not data.endswith(b"\n"):
                journal._write(b"")  # what follows begins a line of its own
        return journal

    def keep(self, settings: bytes) -> None:
        """Replace the settings: whoever reads them sees the old ones or the new ones, whole."""
        if self.path is None:
            return
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with self._watched(), os.fdopen(os.open(draft, REPLACE, 0o600), "wb") as file:
            file.write(settings)
            file.flush()
            os.fsync(file.fileno())
            draft.replace(self.path)
            self._stamp = self._look()

    @property
    def is_behind(self) -> bool:
        """Whether another process has written to the session, or deleted it."""
        # a directory that is gone is a trouble of the disk, and no reason to forget what was said
        is_known = self._stamp is not None and self.path is not None and self.path.parent.is_dir()
        return is_known and self._look() != self._stamp

    def catch_up(self) -> None:
        """Read what another process wrote."""
        if self.path is not None:
            self._stamp = self._look()
            self.updates = Journal.read(self.path).updates

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Have the session for this process alone. Raises BlockingIOError while another one has it."""
        if self.path is None or fcntl is None:
            yield
            return
        descriptor = -1
        try:
            with self._watched():
                descriptor = os.open(_lines(self.path), APPEND, 0o600)
            if descriptor >= 0:
                _lock(descriptor)
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def save_all(self) -> None:
        """Write every update, for a journal that begins with those of another."""
        if self.updates:
            self._write(b"\n".join(self.updates))

    def delete(self) -> None:
        """Remove the files. What is still said must not bring them back."""
        path, self.path = self.path, None
        if path is not None:
            path.unlink(missing_ok=True)
            _lines(path).unlink(missing_ok=True)

    def store(self, update: bytes) -> None:
        self._write(update)

    def _write(self, line: bytes) -> None:
        if self.path is not None:
            with self._watched(), os.fdopen(os.open(_lines(self.path), APPEND, 0o600), "ab") as file:
                file.write(line + b"\n")

    def _look(self) -> tuple[int, int] | None:
        """What tells one version of the settings from another; None where there are none."""
        try:
            found = self.path.stat() if self.path is not None else None
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns) if found is not None else None

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """A disk that is full ends no turn; it is told of."""
        try:
            yield
        except OSError as exc:
            self.problem = f"This session could not be read or kept on disk: {exc}"


def _lines(path: Path) -> Path:
    return path.with_suffix(".jsonl")


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return  # a file system without locks


class _Line(msgspec.Struct):
    """All that must be in a line of ours."""

    session_update: str = msgspec.field(name="sessionUpdate")


def _is_update(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError:
        return False
    return True


Moment = Annotated[float, msgspec.Meta(ge=0, le=4e9)]
"""Seconds since 1970; a damaged file must not bring a list down."""


class Settings(msgspec.Struct, kw_only=True):
    """What is kept of a session besides what was said in it."""

    cwd: str
    directories: tuple[str, ...] = ()
    mode: str = "code"
    model: str | None = None
    thinking: str = "default"
    title: str | None = None
    used: int = 0
    updated_at: Moment = 0.0
    messages: msgspec.Raw = msgspec.Raw(b"[]")
    """The conversation as the model has it."""


class Prompt:
    """A prompt under way, from the moment it came: the task that answers it."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.is_ending = False
        self._task = asyncio.current_task()

    def cancel(self) -> None:
        """End it at whatever it is waiting for. Only once: what follows is its clean-up."""
        if not self.is_cancelled and not self.is_ending and self._task is not None:
            self.is_cancelled = True
            self._task.cancel()


class Connected(Protocol):
    """MCP servers that run: their tools, and why others do not."""

    @property
    def toolsets(self) -> Sequence[Any]: ...

    @property
    def problems(self) -> Sequence[str]: ...

    async def close(self) -> None: ...


class Session:
    """`prompts` are those under way: the first one runs, the others wait for `lock`."""

    def __init__(self, session_id: str, settings: Settings, journal: Journal) -> None:
        self.id = session_id
        self.settings = settings
        self.journal = journal
        self.is_open = True
        self.lock = asyncio.Lock()
        self.prompts: list[Prompt] = []
        self.unheard: list[Sequence[ContentBlock]] = []
        """What the user said, until it is in the model's memory: several prompts where one was cancelled at once."""
        self.rules: dict[tuple[str, ...], bool] = {}
        """Answers with "always", by what they cover."""
        self.servers: Sequence[McpServer] = ()
        self.connected: Connected | None = None
        """The MCP servers, once a turn has started them."""
        self.being_written: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.settings.cwd, self.settings.directories)

    def take_up(self, cwd: str, directories: tuple[str, ...], servers: Sequence[McpServer] | None) -> None:
        """Open it again, for a client that may see other directories and lend other servers."""
        self.settings.cwd = cwd
        self.settings.directories = directories
        self.servers = tuple(servers or ())
        self.is_open = True
        self.save()

    def save(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self.settings, name, value)
        self.settings.updated_at = time.time()
        self.journal.keep(msgspec.json.encode(self.settings))

    def cancel(self) -> None:
        for prompt in tuple(self.prompts):
            prompt.cancel()

    async def disconnect(self) -> None:
        connected, self.connected = self.connected, None
        if connected is not None:
            await connected.close()


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
