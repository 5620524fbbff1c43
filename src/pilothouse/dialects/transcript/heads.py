"""The head of a tool's card: a verb, and the one thing that tells this call from others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...model.session import ToolCall
from ...model.tools import command_text, file_paths, relative_path
from ..texts import shorten_middle

__all__ = ["FALLBACK", "VERBS", "detail_of", "verb_of"]

FALLBACK = "Running tool"
VERBS: Mapping[str, str] = {
    "Glob": "Searching files",
    "Grep": "Searching content",
    "Search": "Searching",
    "Read": "Reading",
    "LS": "Listing files",
    "Write": "Writing",
    "Edit": "Editing",
    "MultiEdit": "Editing",
    "NotebookEdit": "Editing",
    "Delete": "Deleting",
    "Move": "Moving",
    "apply_patch": "Applying patch",
    "Bash": "Running command",
    "BashOutput": "Reading output",
    "KillShell": "Stopping command",
    "Git": "Running command",
    "Task": "Running task",
    "TodoWrite": "Updating todos",
    "TodoRead": "Reading todos",
    "WebFetch": "Fetching web content",
    "WebSearch": "Searching web",
    "AskUserQuestion": "Asking",
    "Think": "Thinking",
    "SwitchMode": "Switching mode",
    "EnterPlanMode": "Switching mode",
    "ExitPlanMode": "Switching mode",
    "Skill": "Running skill",
}
"""By the tool's canonical name."""

_KIND_VERBS: Mapping[str, str] = {
    "read": "Reading",
    "edit": "Editing",
    "delete": "Deleting",
    "move": "Moving",
    "search": "Searching",
    "execute": "Running command",
    "fetch": "Fetching web content",
    "switch_mode": "Switching mode",
}
"""By kind, for tools that nobody knows."""

_WRITERS = frozenset({"Write", "Edit", "MultiEdit"})


def verb_of(tool: str, kind: str, *, new_file: bool | None) -> str:
    """What the call does. Whether a file is new, once that is known, decides between writing and editing."""
    if new_file is not None and (tool in _WRITERS or (tool not in VERBS and kind == "edit")):
        return "Writing" if new_file else "Editing"
    return VERBS.get(tool) or _KIND_VERBS.get(kind, FALLBACK)


_KEYS: Mapping[str, tuple[str, ...]] = {
    "Glob": ("pattern", "glob", "query"),
    "Grep": ("pattern", "query", "regex"),
    "Search": ("pattern", "query", "regex"),
    "WebSearch": ("query", "search_query", "search_term", "q"),
    "WebFetch": ("url", "uri"),
    "Task": ("description", "task", "prompt"),
    "Skill": ("skill", "name", "command"),
    "AskUserQuestion": ("question",),
}
_LENGTH = 200
_BLANKS = re.compile(r"(?:[ \t\n]|\r\n)+")


def detail_of(tool: str, call: ToolCall, arguments: Any, workspace: str) -> str:
    """The command, pattern, address or path; else the agent's own title. One line."""
    return _one_line(_detail(tool, call, arguments, workspace) or call.title or call.description or "")


def _detail(tool: str, call: ToolCall, arguments: Any, workspace: str) -> str | None:
    if tool in _KEYS:
        found = (arguments.get(key) for key in _KEYS[tool]) if isinstance(arguments, Mapping) else ()
        return next((value for value in found if isinstance(value, str) and value), None)
    if tool == "Bash" or call.category in ("terminal", "git"):
        return command_text(arguments)
    if tool == "TodoWrite":
        return ""
    paths = file_paths(arguments) or [change.path for change in call.files] or _located(call)
    if not paths:
        return None
    more = f" +{len(paths) - 1} more" if len(paths) > 1 else ""
    return relative_path(paths[0], workspace) + more


def _located(call: ToolCall) -> list[str]:
    places = call.locations if isinstance(call.locations, list) else []
    paths = [place.get("path") for place in places if isinstance(place, Mapping)]
    return [path for path in paths if isinstance(path, str) and path]


def _one_line(text: str) -> str:
    """A text on one line. Only spaces, tabs and line ends are joined: other white space is made visible later."""
    if len(text) <= 8 * _LENGTH:
        return shorten_middle(_BLANKS.sub(" ", text).strip(" "), _LENGTH)
    # of a long text, which may be drawn many times a second, only the ends are read
    ends = (_BLANKS.sub(" ", text[:_LENGTH]).lstrip(" "), _BLANKS.sub(" ", text[-_LENGTH:]).rstrip(" "))
    head, tail = ends[0][: _LENGTH // 2], ends[1][-_LENGTH // 2 :]
    return f"{head} … {len(text) - len(head) - len(tail):,} characters left out … {tail}"
