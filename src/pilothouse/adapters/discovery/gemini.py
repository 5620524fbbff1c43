"""The sessions of Gemini CLI: files of JSON lines in `tmp/PROJECT/chats`, and older ones that are a whole JSON object.

A file's name has only the beginning of the session's id, so which file is whose is known after a look into it. The
directory of a project is told by a file in its folder; for the oldest, the folder is named after a hash of it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...model.discovery import DiscoveredSession
from ..claude.reading import items, mapping, text
from .files import Glance, LineReader, LineStore, Translation, decoded
from .gemini_chats import Chat, is_prompt, message_text, messages_in, status_after
from .index import Entry
from .lines import LIMIT, Stamp, Unreadable, opened, stamp_of
from .store import Problem, Reader, Step
from .texts import iso, listed, moment

__all__ = ["GeminiStore"]

SMALL = 64 * 1024
"""Bytes of the small files beside sessions."""


class GeminiStore(LineStore):
    """`home` is the agent's directory: `.gemini` in `GEMINI_CLI_HOME`, or in the user's home."""

    agent = "gemini"
    depth = 2

    def __init__(self, home: Path | None = None, environ: Mapping[str, str] = os.environ) -> None:
        super().__init__()
        known = environ.get("GEMINI_CLI_HOME") or environ.get("HOME")
        self._home = home or Path(known or Path.home()) / ".gemini"

    @property
    def places(self) -> Sequence[Path]:
        return [self._home / "tmp"]

    @property
    def programs(self) -> Collection[str]:
        return ("gemini", "gemini-cli")

    def session_of(self, name: str) -> str | None:
        """The beginning of the name: it is the same when a session was taken over from the older format."""
        stem, _, kind = name.partition(".")
        return stem if stem.startswith("session-") and kind in ("json", "jsonl") else None

    def translation(self, session_id: str) -> Translation:
        return Chat()

    def files(self, session_id: str) -> Sequence[Path]:
        found = self._paths(session_id)
        if not found or not all(map(os.path.exists, found)):
            self.scan()
            found = self._paths(session_id)
        return [Path(path) for path in found]

    def touched(self, path: Path) -> str | None:
        """Known once the file was listed."""
        entry = self._index.entries.get(str(path))
        return entry.session.id if entry is not None and entry.session is not None else None

    def reader(self, session_id: str) -> Reader | None:
        paths = self.files(session_id)
        if not paths:
            return None
        return WholeReader(paths[0]) if paths[0].suffix == ".json" else LineReader(paths[0], Chat)

    def _paths(self, session_id: str) -> list[str]:
        index = dict(self._index.entries)
        of_it = [
            (entry.stamp.mtime_ns, path)
            for path, entry in index.items()
            if entry.session is not None and entry.session.id == session_id
        ]
        return [path for _, path in sorted(of_it, reverse=True)]

    def _looked_into(self, path: str, session_id: str, stamp: Stamp) -> Entry:
        known = self._index.entries.get(path)
        if not path.endswith(".json") or (known is not None and known.is_of(stamp)):
            return super()._looked_into(path, session_id, stamp)
        try:
            records = [_whole(Path(path))]
        except Unreadable as exc:
            return Entry(stamp, session_id, problem=str(exc), again=True)
        glance = Glance(path=Path(path), session_id=session_id, changed=stamp.mtime_ns / 1e9, head=records)
        return Entry(stamp, session_id, self.describe(glance))

    def describe(self, glance: Glance) -> DiscoveredSession | None:
        metas = [record for record in glance.records if "sessionId" in record]
        meta: dict[str, Any] = {}
        for record in glance.records:
            meta |= {key: value for key, value in mapping(record.get("$set")).items() if key != "messages"}
        first = metas[0] if metas else {}
        session_id = text(first.get("sessionId"))
        messages = [message for record in glance.records for message in messages_in(record)]
        prompts = [message for message in messages if is_prompt(message)]
        answers = [message for message in messages if message.get("type") == "gemini"]
        if not session_id or first.get("kind") == "subagent" or not (prompts or answers):
            return None
        said = [words for message in answers if (words := message_text(message).strip())]
        status = None
        for record in glance.records:
            status = status_after(record, status)
        changed = iso(glance.changed)
        return listed(
            self.agent,
            session_id,
            self._project(glance.path.parent.parent, text(first.get("projectHash"))),
            created_at=moment(first.get("startTime")) or changed,
            last_activity=moment(meta.get("lastUpdated")) or moment(first.get("lastUpdated")) or changed,
            name=text(meta.get("summary"))
            or text(first.get("summary"))
            or (message_text(prompts[0]) if prompts else ""),
            said=said[-1] if said else "",
            model=next((model for message in reversed(answers) if (model := text(message.get("model")))), ""),
            status=status or "idle",
        )

    def _project(self, folder: Path, digest: str) -> str:
        """The directory of a project; nothing when nobody wrote it down."""
        root = _small(folder / ".project_root").decode(errors="replace").strip()
        if root:
            return root
        known = mapping(mapping(decoded(_small(self._home / "projects.json"))).get("projects"))
        for path, name in known.items():
            if name == folder.name or hashlib.sha256(path.encode(errors="replace")).hexdigest() == digest:
                return path
        return ""


class WholeReader(Reader):
    """A session that is one JSON object, written anew with every message.

    When it is taken up by a version that writes lines, all of it is written to another file, and goes on there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chat = Chat()
        self._stamp: Stamp | None = None
        self._failed: Stamp | None = None
        self._told: Stamp | None = None
        """What it was when it could not be read, the last time and when that was told."""
        self._newer: Reader | None = None

    def read(self) -> Step:
        lines = self._path.with_suffix(".jsonl")
        if self._newer is None and lines.exists():
            self._newer = LineReader(lines, lambda: self._chat)
        return self._newer.read() if self._newer is not None else self._look()

    def _look(self) -> Step:
        try:
            stamp = stamp_of(self._path.stat())
            if stamp == self._stamp:
                return Step(status=self._chat.status)
            record = _whole(self._path)
        except (OSError, Unreadable) as exc:
            return self._trouble(exc)
        self._stamp, self._failed = stamp, None
        updates = [update for message in items(record.get("messages")) for update in self._chat.take(mapping(message))]
        return Step(updates=updates, status=self._chat.status)

    def _trouble(self, exc: Exception) -> Step:
        """What cannot be read may be in the middle of being written: that is a problem when it stays so."""
        try:
            stamp = stamp_of(self._path.stat())
        except (OSError, Unreadable):
            stamp = Stamp(0, 0, 0, 0)
        before, self._failed = self._failed, stamp
        if before != stamp or stamp == self._told:
            return Step(status=self._chat.status, failed=True)
        self._told = stamp
        words = "it is gone" if isinstance(exc, FileNotFoundError) else str(exc)
        problems = [Problem(path=str(self._path), message=words)]
        return Step(status=self._chat.status, problems=problems, failed=True)

    def close(self) -> None:
        """Nothing is held open between looks."""


def _whole(path: Path) -> dict[str, Any]:
    with opened(path) as file:
        data = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise Unreadable(f"it is larger than {LIMIT:,} bytes")
    record = decoded(data)
    if record is None:
        raise Unreadable("it is no JSON object")
    return record


def _small(path: Path) -> bytes:
    try:
        with opened(path) as file:
            return file.read(SMALL)
    except Unreadable:
        return b""
