"""The sessions of Codex: a file of JSON lines each, below `sessions/year/month/day` of its home.

Threads that a session has started for its sub-agents have files of their own and are not listed; sessions that the
user has archived are in another directory and are not listed either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...model.discovery import DiscoveredSession
from ...model.loose_json import items, mapping, text
from .codex_rollout import Rollout, prompt_blocks, status_of, unwrapped
from .files import Glance, LineStore, Translation
from .store import iso, listed, moment

Json = dict[str, Any]

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_ID.pattern})\.jsonl")


class CodexStore(LineStore):
    """`home` is Codex's directory: `CODEX_HOME`, or `.codex` in the user's home."""

    agent = "codex"
    depth = 3

    def __init__(self, home: Path | None = None, environ: Mapping[str, str] = os.environ) -> None:
        super().__init__()
        known = environ.get("CODEX_HOME")
        self._home = home or (Path(known) if known else Path(environ.get("HOME") or Path.home()) / ".codex")
        self._locks = self._home / "thread-writer-locks"

    @property
    def places(self) -> Sequence[Path]:
        return [self._home / "sessions"]

    @property
    def programs(self) -> Collection[str]:
        return ("codex", "codex-acp")

    def session_of(self, name: str) -> str | None:
        found = _NAME.fullmatch(name)
        return found[1] if found else None

    def translation(self, session_id: str) -> Translation:
        return Rollout()

    def files(self, session_id: str) -> Sequence[Path]:
        """The record first; beside it the lock that Codex holds for a thread while it may write to it."""
        found = super().files(session_id)
        return [*found, self._locks / f"{session_id}.lock"] if found else []

    def touched(self, path: Path) -> str | None:
        if path.suffix == ".lock" and path.parent == self._locks:
            return path.stem if _ID.fullmatch(path.stem) else None
        return super().touched(path)

    def is_enough(self, glance: Glance) -> bool:
        """The first prompt comes after instructions, which may be long."""
        return super().is_enough(glance) and any(_prompt(*unwrapped(record)) for record in glance.head)

    def describe(self, glance: Glance) -> DiscoveredSession | None:
        lines = [unwrapped(record) for record in glance.records]
        meta = next((payload for kind, payload in lines if kind == "session_meta" or "type" not in payload), {})
        prompt = next((words for line in lines if (words := _prompt(*line))), "")
        answer = next((words for line in reversed(lines) if (words := _answer(*line))), "")
        if _is_sub_agent(meta) or not (prompt or answer):
            return None  # of a sub-agent, or nothing was said in it yet
        settings = next((payload for kind, payload in reversed(lines) if kind == "turn_context"), {})
        changed = iso(glance.changed)
        return listed(
            self.agent,
            glance.session_id,
            text(settings.get("cwd")) or text(meta.get("cwd")),
            created_at=moment(meta.get("timestamp")) or changed,
            last_activity=next(
                (at for each in reversed(glance.records) if (at := moment(each.get("timestamp")))), changed
            ),
            name=next((words for line in reversed(lines) if (words := _name(*line))), "") or prompt,
            said=answer,
            model=text(settings.get("model")),
            status=status_of(glance.tail or glance.head),
        )


def _is_sub_agent(meta: Json) -> bool:
    return "subagent" in (meta.get("thread_source"), *mapping(meta.get("source")))


def _prompt(kind: str, payload: Json) -> str:
    """The words of the user in a line."""
    if kind != "response_item" or payload.get("role") != "user":
        return ""
    return " ".join(text(block.get("text")) for block in prompt_blocks(payload)).strip()


def _answer(kind: str, payload: Json) -> str:
    """The words of the agent in a line."""
    if kind != "response_item" or payload.get("role") != "assistant":
        return ""
    return "".join(text(mapping(item).get("text")) for item in items(payload.get("content")))


def _name(kind: str, payload: Json) -> str:
    """The name that a line gives to the session."""
    is_name = kind == "event_msg" and payload.get("type") == "thread_name_updated"
    return text(payload.get("thread_name")) if is_name else ""
