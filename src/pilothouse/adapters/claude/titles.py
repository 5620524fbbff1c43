"""What a tool call is called, and where in the workspace it works, by its name and input alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .reading import count, items, mapping, shortened, text

__all__ = ["locations_of", "title_of"]

TITLE = 160
"""Characters of a title; the input has everything."""

_PATHS = ("file_path", "notebook_path", "path")


def title_of(name: str, given: dict[str, Any], cwd: str | None = None) -> str:
    """One line for people. A tool that is not known is called by its name."""
    make = _TITLES.get(name)
    said = make(given, cwd or "") if make is not None else _other(name)
    return shortened(said, TITLE) or name


def locations_of(given: dict[str, Any], line: int | None = None) -> list[dict[str, Any]] | None:
    """The file that the tool works on, and the line if one is known."""
    path = next((text(given.get(key)) for key in _PATHS if text(given.get(key))), "")
    if not path:
        return None
    if line is None:
        line = count(given.get("offset"))
    return [{"path": path} if line is None else {"path": path, "line": line}]


def _near(path: str, cwd: str) -> str:
    """A path as people know it who know where they are."""
    root = cwd.rstrip("/") + "/"
    return path[len(root) :] if cwd and path.startswith(root) and len(path) > len(root) else path


def _file(verb: str, key: str = "file_path") -> Callable[[dict[str, Any], str], str]:
    return lambda given, cwd: f"{verb} {_near(text(given.get(key)), cwd)}".strip()


def _read(given: dict[str, Any], cwd: str) -> str:
    first, limit = count(given.get("offset")), count(given.get("limit"))
    said = _file("Read")(given, cwd)
    if first is None and limit is None:
        return said
    first = first or 1
    return f"{said} ({first}–{first + limit - 1})" if limit else f"{said} (from line {first})"


def _command(given: dict[str, Any], cwd: str) -> str:
    return text(given.get("command")) or "Run a command"


def _glob(given: dict[str, Any], cwd: str) -> str:
    return _within(f"Find {text(given.get('pattern'))}", given, cwd)


def _grep(given: dict[str, Any], cwd: str) -> str:
    return _within(f"Search for {text(given.get('pattern'))}", given, cwd)


def _within(said: str, given: dict[str, Any], cwd: str) -> str:
    path = text(given.get("path"))
    return f"{said} in {_near(path, cwd)}" if path and path != cwd else said


def _task(given: dict[str, Any], cwd: str) -> str:
    return text(given.get("description")) or "Sub-agent"


def _question(given: dict[str, Any], cwd: str) -> str:
    asked = [text(mapping(item).get("question")) for item in items(given.get("questions"))]
    asked = [one for one in asked if one]
    more = f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
    return f"{asked[0]}{more}" if asked else "A question"


def _todo(given: dict[str, Any], cwd: str) -> str:
    subject = text(given.get("subject"))
    return f"Add to the plan: {subject}" if subject else "Update the plan"


def _other(name: str) -> str:
    """A tool of an MCP server says whose it is: `mcp__calc__add` is `add (calc)`."""
    prefix, _, rest = name.partition("__")
    server, _, tool = rest.partition("__")
    return f"{tool} ({server})" if prefix == "mcp" and tool else name


_TITLES: dict[str, Callable[[dict[str, Any], str], str]] = {
    "AskUserQuestion": _question,
    "Agent": _task,
    "Bash": _command,
    "BashOutput": lambda given, cwd: "Read the output of a command",
    "Edit": _file("Edit"),
    "EnterPlanMode": lambda given, cwd: "Start planning",
    "ExitPlanMode": lambda given, cwd: "Approve the plan",
    "Glob": _glob,
    "Grep": _grep,
    "KillShell": lambda given, cwd: "Stop a command",
    "LS": _file("List", "path"),
    "MultiEdit": _file("Edit"),
    "NotebookEdit": _file("Edit", "notebook_path"),
    "NotebookRead": _file("Read", "notebook_path"),
    "Read": _read,
    "Skill": lambda given, cwd: f"Skill {text(given.get('skill')) or text(given.get('command'))}".strip(),
    "Task": _task,
    "TaskCreate": _todo,
    "TaskGet": lambda given, cwd: "Read the plan",
    "TaskList": lambda given, cwd: "Read the plan",
    "TaskUpdate": _todo,
    "TodoWrite": _todo,
    "ToolSearch": lambda given, cwd: f"Look for tools: {text(given.get('query'))}".rstrip(": "),
    "WebFetch": lambda given, cwd: f"Fetch {text(given.get('url'))}".strip(),
    "WebSearch": lambda given, cwd: f"Search the web for {text(given.get('query'))}".strip(),
    "Write": _file("Write"),
}
