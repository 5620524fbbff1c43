"""The CLI's own record of its sessions: which there are, where their files lie, and what these hold.

Each session is a file of JSON lines below the CLI's directory, in a folder named after its workspace. The format is the
CLI's own and changes: what is not known is skipped, and a file that cannot be read is a session that is not there.
Nothing is ever written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from ..discovery.lines import Unreadable, opened
from .reading import mapping, shortened, text
from .records import Outline, is_id, is_message
from .wire import decoded

__all__ = ["Subagents", "cli_home", "find", "has_turns", "listing", "records"]

HEAD = 256 * 1024
"""Bytes of a file that are read to learn where its session was and what it is about."""
LONGEST = 16 * 1024 * 1024
"""Bytes of the line in which the head ends that are read with it: a picture in the first prompt makes one long."""
TAIL = 64 * 1024
"""Bytes at the end of a longer file that are read for the title that it was given last."""
TITLE = 100
FOLDER = 180
"""Characters of a workspace's path that are in the name of its folder for certain."""

_OTHER = re.compile(r"[^a-zA-Z0-9]")

Json = dict[str, Any]


def cli_home(environ: Mapping[str, str] | None = None) -> Path:
    """The directory in which the CLI keeps everything."""
    environ = os.environ if environ is None else environ
    known = environ.get("CLAUDE_CONFIG_DIR")
    return Path(known) if known else Path(environ.get("HOME") or Path.home()) / ".claude"


def find(home: Path, session_id: str) -> Path | None:
    """The file of a session, whichever workspace it was in."""
    if not is_id(session_id):
        return None  # it becomes a part of a path
    return next(iter(_files(home, f"{session_id}.jsonl")), None)


def has_turns(path: Path) -> bool:
    """Whether anything was said in it: the CLI makes the file before, and takes up no session that is empty."""
    return any(map(is_message, _lines(path)))


def listing(home: Path, cwd: str | None = None, *, without: Collection[str] = ()) -> Iterator[Json]:
    """The sessions, the youngest first, each as the `SessionInfo` of a list. A file is read when its turn comes."""
    wanted = None if cwd is None else {cwd, os.path.realpath(cwd)}
    found = (path for path in _files(home, "*.jsonl") if is_id(path.stem) and path.stem not in without)
    paths = [path for path in found if _may_be_of(path, wanted)]
    for path in sorted(paths, key=_changed, reverse=True):
        told = _described(path)
        if told is not None and (wanted is None or told["cwd"] in wanted):
            stamp = datetime.fromtimestamp(_changed(path), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            yield {"sessionId": path.stem, **told, "updatedAt": stamp}


def _may_be_of(path: Path, wanted: set[str] | None) -> bool:
    """Whether a file is in the folder of a workspace; names that are long have an end of their own."""
    return wanted is None or any(path.parent.name.startswith(_OTHER.sub("-", cwd)[:FOLDER]) for cwd in wanted)


def records(path: Path) -> Iterator[Json]:
    """Everything that is recorded of a session, as far as it can be read."""
    return _lines(path)


class Subagents:
    """What the sub-agents of a session did: each has a file of its own beside the session's, and is told once."""

    def __init__(self, session: Path) -> None:
        self._folder = session.with_suffix("") / "subagents"
        self._told: set[str] = set()

    def __call__(self, call_id: str, agent_id: str) -> Iterator[Json]:
        """The records of the one with this id, or of the one that a call has started, where only that is known."""
        found = [path for path in self._files() if path.stem == f"agent-{agent_id}" or _caller(path) == call_id]
        for path in sorted(found, key=lambda path: path.stem != f"agent-{agent_id}")[:1]:
            self._told.add(path.name)
            yield from _lines(path)

    def _files(self) -> list[Path]:
        try:
            return [path for path in sorted(self._folder.glob("agent-*.jsonl")) if path.name not in self._told]
        except OSError:
            return []


def _caller(path: Path) -> str:
    """The call that has started a sub-agent; "" where an older CLI did not write that down."""
    told = next(_lines(path.with_suffix(".meta.json"), TAIL), {})
    return text(told.get("toolUseId"))


def _files(home: Path, pattern: str) -> Iterator[Path]:
    try:
        folders = sorted((home / "projects").iterdir())
    except OSError:
        return
    for folder in folders:
        yield from sorted(folder.glob(pattern))


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _lines(path: Path, limit: int | None = None) -> Iterator[Json]:
    """The objects in a file, those that can be read; with a limit, in the lines that begin before it."""
    try:
        with opened(path) as raw, BufferedReader(raw) as file:  # type: ignore[type-var]
            if limit is None:
                yield from _objects(file)
                return
            head = file.read(limit)
            rest = file.readline(LONGEST) if not head.endswith(b"\n") else b""
            yield from _objects((head + rest).splitlines())
    except Unreadable:
        return


def _objects(lines: Iterable[bytes]) -> Iterator[Json]:
    for line in lines:
        try:
            yield mapping(decoded(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # cut off, or not of this format


def _tail(path: Path) -> Iterator[Json]:
    """The objects at the end of a long file: a title that was given later is there."""
    try:
        with opened(path) as file:
            if file.seek(0, os.SEEK_END) <= HEAD:
                return
            file.seek(-min(TAIL, file.tell() - HEAD), os.SEEK_END)
            lines = file.read().splitlines()[1:]  # the first one has lost its beginning
    except Unreadable:
        return
    yield from _objects(lines)


def _described(path: Path) -> Json | None:
    """Where a session was, and its title."""
    outline = Outline(chain(_lines(path, HEAD), _tail(path)))
    if not outline.cwd or not outline.title:
        return None
    return {"cwd": outline.cwd, "title": shortened(outline.title, TITLE)}
