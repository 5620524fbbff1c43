"""The sessions of OpenCode: in a SQLite database, and those from before it in JSON files.

The database has the older sessions too once it has taken them over, while their files stay where they are; a session
that is in both is the database's. Sessions of sub-agents belong to the one that started them and are not listed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...model.discovery import DiscoveredSession, DiscoveredStatus
from ...plain_files import Unreadable, opened
from .databases import MessageReader, Unready, is_begun
from .opencode_files import Files, FilesOf, is_id
from .opencode_parts import Conversation
from .opencode_rows import Rows, RowsOf
from .store import Problem, Reader, Scan, Store

CATALOGUE = 64 * 2**20
"""Bytes of the list of models beyond which it is not read."""


class OpenCodeStore(Store):
    """`data` is OpenCode's directory for data: `opencode` in `XDG_DATA_HOME`, or in `.local/share`."""

    agent = "opencode"

    def __init__(self, data: Path | None = None, environ: Mapping[str, str] = os.environ) -> None:
        home = Path(environ.get("HOME") or Path.home())
        known, cache = environ.get("XDG_DATA_HOME"), environ.get("XDG_CACHE_HOME")
        self._data = data or (Path(known) if known else home / ".local" / "share") / "opencode"
        self._catalogue = Catalogue((Path(cache) if cache else home / ".cache") / "opencode" / "models.json")
        self._named = environ.get("OPENCODE_DB") if data is None else None
        self._files = Files(self.agent, self._data / "storage")
        self._rows: dict[Path, Rows] = {}
        self._lock = threading.Lock()

    @property
    def places(self) -> Sequence[Path]:
        """The databases and their logs, and not the directory they are in: it has a copy of every workspace too."""
        logs = [path.with_name(f"{path.name}-wal") for path in self._paths()]
        return [*self._paths(), *logs, self._files.root / "session"]

    def scan(self) -> Scan:
        with self._lock:
            sessions: dict[str, DiscoveredSession] = {}
            problems: list[Problem] = []
            for rows in self._databases():
                try:
                    found = rows.sessions()
                except Unreadable as exc:
                    if isinstance(exc, Unready) and not is_begun(rows.path):
                        continue
                    problems.append(Problem(path=str(rows.path), message=str(exc)))
                    found = rows.last
                problems += rows.problems
                for session in found:
                    sessions.setdefault(session.id, session)
            older, troubles = self._files.sessions()
            for session in older:
                sessions.setdefault(session.id, session)
        latest = sorted(sessions.values(), key=lambda session: session.last_activity, reverse=True)
        return Scan(sessions=latest, problems=[*problems, *troubles])

    def reader(self, session_id: str) -> Reader | None:
        if not is_id(session_id):
            return None
        rows = self._rows_with(session_id)
        if rows is not None:
            return OpenCodeReader(RowsOf(rows.path, session_id), self._catalogue)
        if self._files.has(session_id):
            return OpenCodeReader(FilesOf(self._files.root, session_id), self._catalogue)
        return None

    def touched(self, path: Path) -> str | None:
        """The database is one for all sessions, so its change does not say whose it is; the older files do."""
        try:
            kind, *rest = path.relative_to(self._files.root).parts
        except ValueError:
            return None
        if kind == "session" and len(rest) == 2 and path.suffix == ".json":
            return path.stem if is_id(path.stem) else None
        return rest[0] if kind == "message" and rest and is_id(rest[0]) else None

    def files(self, session_id: str) -> Sequence[Path]:
        rows = self._rows_with(session_id) if is_id(session_id) else None
        if rows is not None:
            return [rows.path, *(rows.path.with_name(f"{rows.path.name}-{kind}") for kind in ("wal", "shm"))]
        if not self._files.has(session_id):
            return []
        return [*(self._files.root / "session").glob(f"*/{session_id}.json"), self._files.root / "message" / session_id]

    def _rows_with(self, session_id: str) -> Rows | None:
        with self._lock:
            return next((rows for rows in self._databases() if rows.has(session_id)), None)

    def _databases(self) -> list[Rows]:
        """The databases that are there."""
        found = [path for path in self._paths() if path.exists()]
        self._rows = {path: self._rows.get(path) or Rows(self.agent, path) for path in found}
        return [*self._rows.values()]

    def _paths(self) -> list[Path]:
        """Where databases are: versions that are no releases have one of their own."""
        if self._named:
            return [self._data / self._named]
        return [self._data / "opencode.db", *sorted(self._data.glob("opencode-*.db"))]


class OpenCodeReader(MessageReader):
    """One session, from whichever storage has it."""

    def __init__(self, source: RowsOf | FilesOf, catalogue: Catalogue) -> None:
        super().__init__(source.path)
        self._source = source
        self._conversation = Conversation(catalogue.window)

    @property
    def _status(self) -> DiscoveredStatus | None:
        return self._conversation.status

    def _look(self) -> bool:
        try:
            found, more = self._source.news()
        finally:
            for words in self._source.problems:
                self._tell(words)
            self._source.problems.clear()
        for message in found:
            self._take(message.id, partial(self._conversation.take, *message))
        return more


class _Limit(Struct):
    context: Any = 0


class _Model(Struct):
    limit: _Limit = msgspec.field(default_factory=_Limit)


class _Provider(Struct):
    models: dict[str, _Model] = {}


class Catalogue:
    """How much each model can be sent, from the list of models that OpenCode keeps."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._providers: dict[str, _Provider] | None = None

    def window(self, model: str) -> int:
        """The size of a model's context; 0 when it is not known."""
        if self._providers is None:
            self._providers = self._read()
        provider, _, name = model.partition("/")
        known = self._providers.get(provider)
        found = known.models.get(name) if known is not None else None
        size = found.limit.context if found is not None else 0
        return size if isinstance(size, int) and size > 0 else 0

    def _read(self) -> dict[str, _Provider]:
        try:
            with opened(self._path) as file:
                return msgspec.json.decode(file.read(CATALOGUE), type=dict[str, _Provider])
        except (Unreadable, msgspec.DecodeError, RecursionError):
            return {}
