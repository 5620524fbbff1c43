"""OpenCode's older storage: a JSON file for each session, message and part.

    storage/session/PROJECT/SESSION.json
    storage/message/SESSION/MESSAGE.json
    storage/part/MESSAGE/PART.json

Names sort as their times do. A file is read again when its stamp has changed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ...model.discovery import DiscoveredSession
from ...model.loose_json import mapping, text
from ...plain_files import Stamp, Unreadable, opened, stamp_of
from .opencode_parts import model_of, shown_text, status_of
from .opencode_rows import Message, decoded_object
from .store import Problem, iso, listed

LARGE = 32 * 2**20
"""Bytes of a file beyond which it is not read."""
PAGE = 50
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")

Json = dict[str, Any]


def is_id(name: str) -> bool:
    """Whether this can be the id of something; nothing else becomes a part of a path."""
    return _ID.fullmatch(name) is not None


class Files:
    """The sessions of one storage."""

    def __init__(self, agent: str, root: Path) -> None:
        self._agent = agent
        self.root = root
        self._known: dict[str, tuple[Any, DiscoveredSession | None, str]] = {}

    def sessions(self) -> tuple[list[DiscoveredSession], list[Problem]]:
        """All of them, and what could not be read."""
        known, self._known = self._known, {}
        problems: list[Problem] = []
        for folder in _folders(self.root / "session", problems):
            for path, stamp in _files(folder, problems):
                said = _stamp(self.root / "message" / path.stem)
                before = known.get(str(path))
                if before is None or before[0] != (stamp, said) or (before[1] and before[1].status != "idle"):
                    before = ((stamp, said), *self._described(path))
                self._known[str(path)] = before
        problems += [Problem(path=path, message=words) for path, (_, _, words) in self._known.items() if words]
        return [session for _, session, _ in self._known.values() if session is not None], problems

    def has(self, session_id: str) -> bool:
        return is_id(session_id) and any((self.root / "session").glob(f"*/{session_id}.json"))

    def _described(self, path: Path) -> tuple[DiscoveredSession | None, str]:
        try:
            told = _read(path)
        except Unreadable as exc:
            return None, str(exc)
        session_id = path.stem
        messages = _files(self.root / "message" / session_id, [])
        if text(told.get("parentID")) or not is_id(session_id) or not messages:
            return None, ""
        try:
            message = _read(messages[-1][0])
            parts = [_read(part) for part, _ in _files(self.root / "part" / messages[-1][0].stem, [])]
        except Unreadable as exc:
            message, parts, words = {}, [], f"its last message cannot be read: {exc}"
        else:
            words = ""
        said = [each for part in parts if (each := shown_text(part))] if message.get("role") == "assistant" else []
        times = mapping(told.get("time"))
        created, updated = (_seconds(times.get(key)) for key in ("created", "updated"))
        session = listed(
            self._agent,
            session_id,
            text(told.get("directory")),
            created_at=iso(created),
            last_activity=iso(updated or created),
            name=text(told.get("title")),
            said=said[-1] if said else "",
            model=model_of(message),
            status=status_of(message, parts) if message else "idle",
        )
        return session, words


class FilesOf:
    """One session's messages, look by look."""

    def __init__(self, root: Path, session_id: str) -> None:
        self._root = root
        self._session_id = session_id
        self._stamps: dict[str, Stamp] = {}
        self._told: dict[str, Json] = {}
        self.problems: list[str] = []

    @property
    def path(self) -> Path:
        return self._root / "message" / self._session_id

    def news(self) -> tuple[list[Message], bool]:
        """Messages that are new or have changed, in order, a page of them, and whether there may be more."""
        found: list[Message] = []
        for path, stamp in _files(self.path, []):
            message_id = path.stem
            message = self._object(path) if self._is_changed(path, stamp) else None
            if message is not None:
                self._told[message_id] = message
            elif message_id not in self._told:
                continue  # whose words its parts are is not known yet
            parts = [
                (part.stem, data)
                for part, at in _files(self._root / "part" / message_id, [])
                if self._is_changed(part, at) and (data := self._object(part)) is not None
            ]
            if message is not None or parts:
                found.append(Message(message_id, self._told[message_id], parts))
            if len(found) == PAGE:
                break
        return found, len(found) == PAGE

    def _is_changed(self, path: Path, stamp: Stamp) -> bool:
        before, self._stamps[str(path)] = self._stamps.get(str(path)), stamp
        return before != stamp

    def _object(self, path: Path) -> Json | None:
        """None for what cannot be read: that is no news, however often it is looked at."""
        try:
            return _read(path)
        except Unreadable as exc:
            self._stamps.pop(str(path), None)  # it may be in the middle of being written
            words = f"{path.name}: {exc}"
            self.problems.append(words)
            return None


def _read(path: Path) -> Json:
    with opened(path) as file:
        data = file.read(LARGE + 1)
    if len(data) > LARGE:
        raise Unreadable(f"it is larger than {LARGE:,} bytes")
    found = decoded_object(data)
    if not found:
        raise Unreadable("it is no JSON object")
    return found


def _folders(place: Path, problems: list[Problem]) -> list[Path]:
    return sorted(Path(entry.path) for entry in _entries(place, problems) if entry.is_dir())


def _files(folder: Path, problems: list[Problem]) -> list[tuple[Path, Stamp]]:
    found = []
    for entry in _entries(folder, problems):
        if not entry.name.endswith(".json"):
            continue
        try:
            found.append((Path(entry.path), stamp_of(entry.stat())))
        except (OSError, Unreadable) as exc:
            problems.append(Problem(path=entry.path, message=f"it cannot be read: {exc}"))
    return sorted(found)


def _entries(folder: Path, problems: list[Problem]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as exc:
        problems.append(Problem(path=str(folder), message=f"it cannot be read: {exc.strerror or exc}"))
        return []


def _stamp(folder: Path) -> int:
    """What tells that a directory has another file."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _seconds(milliseconds: Any) -> float:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) else 0.0
