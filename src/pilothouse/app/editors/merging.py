"""An editor's `agent_servers`: what is there of ours, what would change, and the text after the change. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...config import runs_pilothouse
from .entries import is_own_name
from .jsonc import pretty, put, table, take

__all__ = ["SERVERS", "Standing", "difference", "merged", "own_servers", "standing", "without"]

SERVERS = "agent_servers"
HIDDEN = "(hidden)"

State = Literal["absent", "same", "differs"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How an entry stands in a file: not there, there as wanted, or there in another form."""

    name: str
    state: State
    old: Any
    new: dict[str, Any]


def standing(text: str, wanted: Mapping[str, dict[str, Any]]) -> list[Standing]:
    """How each wanted entry stands. Raises JsoncError."""
    there = table(text, (SERVERS,))
    found: list[Standing] = []
    for name, new in wanted.items():
        old = there.get(name)
        state: State = "absent" if name not in there else "same" if old == new else "differs"
        found.append(Standing(name, state, old, new))
    return found


def merged(text: str, wanted: Mapping[str, dict[str, Any]]) -> str:
    """The text with the wanted entries, in their order before the others. Raises JsoncError."""
    for name, server in reversed(list(wanted.items())):
        text = put(text, (SERVERS, name), server)
    return text


def without(text: str, names: Iterable[str]) -> str:
    """The text without these entries. Raises JsoncError."""
    for name in names:
        text = take(text, (SERVERS, name))
    return text


def own_servers(text: str) -> dict[str, Any]:
    """The entries that are ours: by their name, or because they run `pilothouse acp`. Raises JsoncError."""
    return {name: server for name, server in table(text, (SERVERS,)).items() if is_own_name(name) or _runs_us(server)}


def difference(entry: Standing) -> str:
    """What replacing an entry would change. The values of its environment are not shown, only those of ours."""
    old, new = (pretty({entry.name: _masked(value, entry.new)}).splitlines() for value in (entry.old, entry.new))
    return "\n".join(difflib.unified_diff(old, new, "there", "wanted", lineterm="", n=9))


def _runs_us(server: Any) -> bool:
    if not isinstance(server, dict) or not isinstance(server.get("args"), list):
        return False
    return runs_pilothouse([str(server.get("command")), *map(str, server["args"])])


def _masked(server: Any, ours: Mapping[str, Any]) -> Any:
    if not isinstance(server, dict) or not isinstance(server.get("env"), dict):
        return server
    known = ours.get("env", {})
    return {**server, "env": {key: value if key in known else HIDDEN for key, value in server["env"].items()}}
