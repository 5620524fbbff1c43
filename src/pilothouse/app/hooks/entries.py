"""The entry in Claude Code's settings that runs `pilothouse hook`: as a value, found again, added and taken out. Pure.

Of Claude Code's hooks `PermissionRequest` is the one that runs where the program itself would ask its user, and only
there: what its own rules and modes allow or deny goes on without it. `PreToolUse` would run for every call of a tool,
each read of a file included. In a terminal the dialog of the program is shown while the hook waits, and whoever answers
first is heard; a hook that fails, says nothing or takes too long leaves the decision to that dialog.

An entry is found again by the command that it runs, so that must stay recognisable.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import PurePath
from typing import Any

from ..editors.jsonc import JsoncError, add_item, parse, put, table, take, take_item

EVENT = "PermissionRequest"
HOOKS = "hooks"
OFF = "disableAllHooks"
"""With this in its settings Claude Code runs no hook at all."""
MODULE = ("-m", "pilothouse.cli", "hook")
DAY = 24 * 3600
"""Seconds that a person has by default, before Claude Code goes on without the hook."""


@dataclass(frozen=True, slots=True)
class Found:
    """A command of ours in the settings: `group` and `place` are its numbers there, `alone` that nobody shares its
    group with it."""

    group: int
    place: int
    command: str
    timeout: Any
    alone: bool

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)

    @property
    def home(self) -> str | None:
        """The home that it names."""
        words = self.words
        at = words.index("--home") + 1 if "--home" in words else len(words)
        return words[at] if at < len(words) else None


def entry(words: Sequence[str], timeout: int = DAY) -> dict[str, Any]:
    """What belongs into the settings so that this command is run."""
    return {"hooks": [{"type": "command", "command": shlex.join(words), "timeout": timeout}]}


def found(text: str) -> list[Found]:
    """What is there of ours, in its order. Raises JsoncError for settings that are not what they should be."""
    return [
        Found(group, place, hook["command"], hook.get("timeout"), len(hooks) == 1)
        for group, hooks in _groups(text)
        for place, hook in enumerate(hooks)
        if isinstance(hook, dict) and runs_hook(hook.get("command"))
    ]


def switched_off(text: str) -> bool:
    """Whether these settings let Claude Code run no hooks. Raises JsoncError."""
    plain = parse(text).plain
    return isinstance(plain, dict) and plain.get(OFF) is True


def added(text: str, wanted: dict[str, Any]) -> str:
    """The text with this entry and no other of ours; the same text if that is so already. Raises JsoncError."""
    there = found(text)
    hook = wanted["hooks"][0]
    if len(there) == 1 and (there[0].command, there[0].timeout) == (hook["command"], hook["timeout"]):
        return text
    text = without(text)
    if EVENT in table(text, (HOOKS,)):
        return add_item(text, (HOOKS, EVENT), wanted)
    return put(text, (HOOKS, EVENT), [wanted])


def depth(text: str) -> int:
    """How much of the way to an entry is there without ours: 0 for nothing, 1 for the object, 2 for the array in it."""
    text = without(text)
    if HOOKS not in parse(text).plain:
        return 0
    return 2 if EVENT in table(text, (HOOKS,)) else 1


def without(text: str, own: int = 0) -> str:
    """The text without any entry of ours, and without the array and the object that this leaves empty, unless they are
    its user's own: `own` is the depth before the first entry."""
    there = found(text)
    for one in reversed(there):
        if one.alone:
            text = take_item(text, (HOOKS, EVENT, one.group))
        else:
            text = take_item(text, (HOOKS, EVENT, one.group, "hooks", one.place))
    if there and own < 2 and not table(text, (HOOKS,)).get(EVENT):
        return take(text, (HOOKS, EVENT), alone=own == 1)
    return text


def runs_hook(command: Any) -> bool:
    """Whether a command of a shell is `pilothouse hook`, as a script or by Python, with or without variables before it.

    A command of somebody else that only has these words among its arguments is not ours to take out.
    """
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    words = list(dropwhile(_is_lead, words))
    if words and PurePath(words[0]).name == "pilothouse":
        return words[1:2] == ["hook"]
    return words[1:4] == list(MODULE) or words[1:5] == ["-P", *MODULE]


def _is_lead(word: str) -> bool:
    """Whether a word only says in which environment the next one is run."""
    name, is_set, _ = word.partition("=")
    return (bool(is_set) and name.isidentifier()) or word in ("env", "exec")


def _groups(text: str) -> Iterator[tuple[int, list[Any]]]:
    groups = table(text, (HOOKS,)).get(EVENT, [])
    if not isinstance(groups, list):
        raise _not_an_array(text)
    for number, group in enumerate(groups):
        hooks = group.get("hooks") if isinstance(group, dict) else None
        if isinstance(hooks, list):
            yield number, hooks


def _not_an_array(text: str) -> JsoncError:
    root = parse(text)
    hooks = next(member for member in root.members or () if member.key == HOOKS)
    event = next(member for member in hooks.value.members or () if member.key == EVENT)
    shown = json.dumps(event.value.plain)[:40]
    return JsoncError(text, event.value.start, f"`{EVENT}` should be an array of hooks, got {shown}")
