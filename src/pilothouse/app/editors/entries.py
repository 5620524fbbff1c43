"""What an editor is told: entries that run `pilothouse acp`. Pure values; where they go is not known here.

An entry has its name from us and is found by it again, so names must not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NAME", "Entry", "is_own_name", "make_entries", "name_for"]

NAME = "Pilothouse"


@dataclass(frozen=True, slots=True)
class Entry:
    """One agent of an editor: the name it is listed by, and how it is started."""

    name: str
    agent: str | None
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A name for where only letters, digits and `-` may be."""
        return "-".join(["pilothouse", *([re.sub(r"\W+", "-", self.agent)] if self.agent else [])])

    def server(self, *, is_typed: bool) -> dict[str, Any]:
        """As a member of `agent_servers`; Zed tells kinds of them apart by `type`, JetBrains has only one."""
        about: dict[str, Any] = {"type": "custom"} if is_typed else {}
        about |= {"command": self.command[0], "args": list(self.command[1:])}
        return about | ({"env": dict(self.env)} if self.env else {})


def make_entries(program: Iterable[str], agents: Iterable[str], env: Mapping[str, str]) -> list[Entry]:
    """The entry that offers every agent, and one for each of `agents`."""
    base = (*program, "acp")
    single = [Entry(name_for(agent), agent, (*base, "-a", agent), env) for agent in dict.fromkeys(agents)]
    return [Entry(NAME, None, base, env), *single]


def name_for(agent: str | None) -> str:
    return f"{NAME} ({agent})" if agent else NAME


def is_own_name(name: str) -> bool:
    return re.fullmatch(rf"{NAME}(?: \(.+\))?", name) is not None
