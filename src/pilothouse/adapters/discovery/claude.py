"""Claude Code's sessions: a file of JSON lines each, in a folder for each workspace.

What its records mean is known in one place, the adapter that runs the CLI; here they are only listed and followed. The
CLI also tells by a file for each of its processes which session that has, and what it does; a process that was killed
leaves its file behind, so whoever uses it must look whether the process is still the same. What sub-agents did is in
files of their own, read where a session tells of their end; other files beside it are none of our business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...agents.claude_bridge.records import Outline, Subagents, cli_home, find, is_id, is_message
from ...agents.claude_bridge.replay import Replay
from ...agents.claude_bridge.translate import Translator
from ...model.discovery import DiscoveredSession, DiscoveredStatus
from ...model.loose_json import number, text
from ...model.titles import title
from ...plain_files import Unreadable, opened
from .files import Glance, Json, LineStore, Translation, decoded
from .store import Owner, Update, iso, listed, moment

PROCESSES = 1000
"""Files of processes that are looked at."""
_STATUS: Mapping[str, DiscoveredStatus] = {"busy": "running", "waiting": "waiting", "idle": "idle"}


class ClaudeStore(LineStore):
    """The sessions below a directory of the CLI; by default the one that the environment names."""

    agent = "claude"
    also = ("claude-code", "claude-acp")
    depth = 1

    def __init__(self, home: Path | None = None) -> None:
        super().__init__()
        self._home = home or cli_home()

    @property
    def places(self) -> Sequence[Path]:
        return (self._home / "projects", self._home / "sessions")

    @property
    def folders(self) -> Sequence[Path]:
        return (self._home / "projects",)

    @property
    def programs(self) -> frozenset[str]:
        return frozenset({"claude"})

    def session_of(self, name: str) -> str | None:
        stem, dot, ending = name.rpartition(".")
        return stem if dot and ending == "jsonl" and is_id(stem) else None

    def is_enough(self, glance: Glance) -> bool:
        """Whether the ends have what is listed: the CLI puts long records of its own between the messages."""
        return any(map(is_message, glance.head)) and self.sees_end(glance)

    def sees_end(self, glance: Glance) -> bool:
        return any(map(is_message, glance.tail))

    def describe(self, glance: Glance) -> DiscoveredSession | None:
        outline = Outline(glance.records)
        is_untitled = not outline.title and not glance.tail  # else its first words may be long, such as a picture
        if not outline.cwd or is_untitled or not any(map(is_message, glance.records)):
            return None
        written = iso(glance.changed)
        return listed(
            self.agent,
            glance.session_id,
            outline.cwd,
            created_at=moment(outline.created) or written,
            last_activity=moment(outline.active) or written,
            name=outline.title,
            said=outline.last,
            model=outline.model,
            status=outline.activity.status,
        )

    def translation(self, session_id: str) -> Translation:
        path = find(self._home, session_id)
        return ClaudeTranslation(session_id, Subagents(path) if path is not None else None)

    def owners(self) -> Sequence[Owner]:
        return [owner for path in self._told_by_processes() if (owner := _owner(path)) is not None]

    def _told_by_processes(self) -> Iterator[Path]:
        try:
            with os.scandir(self._home / "sessions") as entries:
                names = [entry.name for entry in entries if _is_pid_file(entry.name)]
        except OSError:
            return  # an older CLI tells nothing of its processes
        for name in names[:PROCESSES]:
            yield self._home / "sessions" / name


def _is_pid_file(name: str) -> bool:
    return name.endswith(".json") and name.removesuffix(".json").isdecimal()


def _owner(path: Path) -> Owner | None:
    """What a process of the CLI tells of itself."""
    try:
        with opened(path) as file:
            told = decoded(file.read(64 * 1024)) or {}
    except Unreadable:
        return None
    session_id, since = text(told.get("sessionId")), number(told.get("startedAt"))
    if not is_id(session_id) or told.get("pid") != int(path.stem) or since is None:
        return None
    return Owner(
        session_id=session_id,
        pid=int(path.stem),
        since=since / 1000,
        status=_STATUS.get(text(told.get("status"))),
    )


class ClaudeTranslation(Translation):
    """The records of a session, told as the adapter would have told them; its title too, when it changes."""

    def __init__(self, session_id: str, subagents: Subagents | None = None) -> None:
        self._session_id = session_id
        self._subagents = subagents
        self._replay: Replay | None = None
        self._titles = Outline()
        self._title = ""

    def when(self, record: Json) -> str:
        return moment(record.get("timestamp"))

    def take(self, record: Json) -> Iterator[Update]:
        cwd = text(record.get("cwd"))
        if self._replay is None and cwd:  # no message comes before it is known, and titles of tool calls depend on it
            self._replay = Replay(Translator(self._session_id, cwd=cwd), self._subagents)
        if self._replay is not None:
            yield from self._replay.take(record)
            self.status = self._replay.activity.status
        if is_message(record):
            return
        self._titles.take_title(record)
        given = title(self._titles.given_title)
        if given != self._title:
            self._title = given
            yield {"sessionUpdate": "session_info_update", "title": given}
