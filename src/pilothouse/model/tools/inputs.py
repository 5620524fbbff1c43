"""The input of a tool call: its command, its paths, its to-do list, its questions; and one line for people.

Risk and policy read `command_text` and `file_paths`: a new spelling of a command or a path belongs here, or no rule
would see it. Every function takes any JSON value and never raises. Paths are shown relative to the workspace, without
the long prefix of a sandbox.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from .commands import find_commands
from .names import NAME_LIMIT, SEPARATORS, canonical_name, first, text_of

_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_SESSION_ROOT = re.compile(rf"(?:^|/)(?:sandboxes/{_UUID}/)?sessions/{_UUID}(?:/|$)")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_TOKEN = re.compile(r"[^\s'\"`<>|,;()\[\]{}]+")
_KEPT_SEGMENTS = 3


def relative_path(path: object, workspace: object = None) -> str:
    """A path as people want to read it: from the workspace or the sandbox's session on, else its last three segments.

    Compared segment by segment after `..` is resolved, so `/work/ab` is never inside `/work/a`. A path that is
    relative already stays as it is.
    """
    text = _slashes(text_of(path))
    if not text:
        return ""
    inside = _inside(text, _slashes(text_of(workspace)))
    if inside is not None:
        return inside
    root = _last_session_root(text)
    if root is not None:
        return text[root:] or "."
    if not (text.startswith("/") or _WINDOWS.match(text)):
        return text
    return "/".join([part for part in posixpath.normpath(text).split("/") if part][-_KEPT_SEGMENTS:]) or "/"


def exact_path(path: str, workspace: str | None) -> str:
    """A path from the workspace on if it is inside, else the whole path.

    For requests to the user: a shortened path may look like one of the workspace. `..` stays, because the part in front
    of it may be a link.
    """
    root = (workspace or "").rstrip("/") + "/"
    is_inside = bool(workspace) and path.startswith(root) and ".." not in path.split("/")
    return (path[len(root) :] or path) if is_inside else path


def relative_paths_in_text(text: object, workspace: object = None) -> str:
    """Free text with the workspace and the sandbox's session taken off the paths in it; other paths stay whole."""
    result = text_of(text)
    root = text_of(workspace).rstrip("/\\")
    if root:
        bounded = rf"(?<![\w./\\~-]){re.escape(root)}(?:([/\\])(?=[\w.@+%~=-])|[/\\]?(?![\w~-]|\.\w))"
        result = re.sub(bounded, lambda match: "" if match[1] else ".", result)
    return _TOKEN.sub(_short_token, result) if "sessions/" in result else result


def _short_token(match: re.Match[str]) -> str:
    token = match[0]
    root = _last_session_root(token)
    if root is None:
        return token
    start = token.find("/")
    before = token[:start] if start < root and token[start - 1 : start] in {"=", ":", "@"} else ""
    return before + (token[root:] or ".")


def _last_session_root(path: str) -> int | None:
    end = None
    for match in _SESSION_ROOT.finditer(path):
        end = match.end()
    return end


def _slashes(path: str) -> str:
    return path.replace("\\", "/") if _WINDOWS.match(path) else path


def _inside(path: str, root: str) -> str | None:
    if not root or not path.startswith(("/", root[:1])):
        return None
    whole = posixpath.normpath(path).split("/")
    base = [part for part in posixpath.normpath(root).split("/") if part] if root.strip("/") else []
    parts = [part for part in whole if part]
    if path.startswith("/") != root.startswith("/") or parts[: len(base)] != base:
        return None
    return "/".join(parts[len(base) :]) or "."


PATH_KEYS = (
    "file_path", "filePath", "filepath", "path", "absolute_path", "absolutePath", "notebook_path", "notebookPath",
    "target_file", "targetFile", "fileName", "filename", "file", "dir_path", "dirPath", "directory", "uri",
    "old_path", "oldPath", "new_path", "newPath", "source", "destination", "relative_path", "relativePath",
    "relative_workspace_path", "abspath",
)  # fmt: skip
_LIST_KEYS = ("paths", "files", "file_paths", "filePaths", "edits", "changes", "locations", "operations")
# no pattern here may look for the end of a run of spaces from each of them: a patch can be megabytes
_PATCH_FILE = re.compile(r"^[ \t]*\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.+)$", re.MULTILINE)


def patch_text(raw: object) -> str | None:
    """The patch an apply_patch call carries, under any of its names."""
    if not isinstance(raw, Mapping):
        return raw if isinstance(raw, str) and "*** Begin Patch" in raw[:NAME_LIMIT] else None
    for key in ("patchText", "patch_text"):
        if isinstance(raw.get(key), str):
            return str(raw[key])
    for key in ("patch", "input"):
        value = raw.get(key)
        if isinstance(value, str) and "*** Begin Patch" in value[:NAME_LIMIT]:
            return value
    return None


def command_text(raw: object) -> str | None:
    """The shell text of a call: a string as it is, an argument list quoted for a shell.

    An input that carries several different commands gives all of them, a line each: any of them may run, so a policy
    must see every one.
    """
    found = find_commands(raw)
    return "\n".join(dict.fromkeys(command.text for command in found)) or None


def file_paths(raw: object) -> list[str]:
    """Every path an input names, in order, each once."""
    if isinstance(raw, str):
        found = _patch_paths(raw)
    elif isinstance(raw, Mapping):
        found = list(paths_under(raw, PATH_KEYS))
        for key in _LIST_KEYS:
            found += _paths_in_list(raw.get(key))
        found += _patch_paths(patch_text(raw) or "")
    else:
        found = _paths_in_list(raw)
    return list(dict.fromkeys(found))


def _patch_paths(patch: str) -> list[str]:
    return [path for found in _PATCH_FILE.findall(patch) if (path := found.strip())]


def paths_under(raw: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        value = raw.get(key)
        if isinstance(value, str) and value:
            if key != "uri":
                yield value
            elif value.startswith("file://"):
                yield value.removeprefix("file://")


def _paths_in_list(value: object) -> list[str]:
    if isinstance(value, Mapping):  # some agents key their changes by path
        return [key for key in value if isinstance(key, str)]
    found: list[str] = []
    for item in value if isinstance(value, list) else ():
        if isinstance(item, str) and item:
            found.append(item)
        elif isinstance(item, Mapping):
            found += paths_under(item, PATH_KEYS)
    return found


_VERBS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "Glob": ("Search", 0, ("pattern", "glob", "query")),
    "Grep": ("Grep", 0, ("pattern", "query", "regex")),
    "Task": ("Task", 50, ("description", "prompt", "task", "agent_name", "message")),
    "WebSearch": ("Search", 0, ("query", "search_query", "search_term", "q")),
    "WebFetch": ("Fetch", 0, ("url", "uri", "prompt")),
}
_FILE_VERBS = {
    "Read": "Read", "Write": "Write", "Edit": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit",
    "apply_patch": "Edit", "Delete": "Delete", "LS": "List",
}  # fmt: skip


def describe_tool_call(name: object, input: object = None) -> str:  # noqa: A002
    """A short line for people: `Run: npm test`, `Read: /src/index.ts`; the tool's name when there is no more to say."""
    tool = canonical_name(name)
    if tool == "Bash":
        return _line("Run", _first_line(command_text(input) or "")[:100])
    if tool in _FILE_VERBS:
        paths = file_paths(input)
        return _line(_FILE_VERBS[tool], ", ".join(paths) if tool == "apply_patch" else (paths[0] if paths else ""))
    if tool in _VERBS:
        verb, limit, keys = _VERBS[tool]
        text = text_of(first(input, keys)) if isinstance(input, Mapping) else text_of(input)
        return _line(verb, text[: limit or None])
    return text_of(name)


def _first_line(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    return f"{first.rstrip()} …" if rest.strip() else first


def _line(verb: str, text: str) -> str:
    return f"{verb}: {text}" if text else verb


_TODO_STATUS = {
    "inprogress": "in_progress", "doing": "in_progress", "active": "in_progress", "running": "in_progress",
    "started": "in_progress", "current": "in_progress", "completed": "completed", "complete": "completed",
    "done": "completed", "finished": "completed", "cancelled": "completed", "canceled": "completed",
}  # fmt: skip
_TODO_LISTS = ("todos", "todo_list", "todoList", "plan", "entries", "items", "tasks", "steps")
_TODO_TEXTS = ("content", "text", "title", "step", "task", "subject", "description", "name")
_CHECKBOX = re.compile(r"^[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+\[([ xX~/-])\][ \t]+(\S.*)$", re.MULTILINE)
_PRIORITIES = frozenset({"high", "medium", "low"})


def todos_of(raw: object) -> list[dict[str, str]]:
    """The to-do list a call carries: `content`, `status`, and `activeForm` and `priority` where they are given.

    A list item nobody works on any more (cancelled) counts as completed: the three statuses know no other end.
    """
    value: object = raw
    if isinstance(raw, Mapping):
        value = next((raw[key] for key in _TODO_LISTS if isinstance(raw.get(key), list | str)), None)
        if value is None and next(paths_under(raw, PATH_KEYS), None) is None:
            value = raw.get("content")
    if isinstance(value, str):
        value = _decoded_list(value)
    return [todo for item in (value if isinstance(value, list) else ()) if (todo := _todo(item))]


def _decoded_list(text: str) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text.encode("utf-8", "replace"), type=list[Any])
        except (msgspec.DecodeError, RecursionError):
            pass
    marks = {" ": "pending", "x": "completed", "X": "completed"}
    items = _CHECKBOX.findall(text)
    return [{"content": item.rstrip(), "status": marks.get(mark, "in_progress")} for mark, item in items]


def _todo(item: object) -> dict[str, str] | None:
    if isinstance(item, str):
        return {"content": item, "status": "pending"} if item else None
    content = text_of(first(item, _TODO_TEXTS)) if isinstance(item, Mapping) else ""
    if not content or not isinstance(item, Mapping):
        return None
    status = SEPARATORS.sub("", text_of(item.get("status", item.get("state")))[:32]).lower()
    todo = {"content": content, "status": _TODO_STATUS.get(status, "pending")}
    if item.get("completed") is True or item.get("done") is True:
        todo["status"] = "completed"
    active = text_of(first(item, ("activeForm", "active_form")))
    if active:
        todo["activeForm"] = active
    priority = text_of(item.get("priority")).lower()
    if priority in _PRIORITIES:
        todo["priority"] = priority
    return todo


def questions_of(name: object, raw: object) -> list[dict[str, Any]]:
    """What an ask-the-user call asks: `question`, `header`, `options` (`label`, `description`), `multiSelect`."""
    if canonical_name(name) != "AskUserQuestion" or not isinstance(raw, Mapping):
        return []
    asked = raw.get("questions")
    items = asked if isinstance(asked, list) else [raw]
    return [question for item in items if (question := _question(item))]


def _question(item: object) -> dict[str, Any] | None:
    if isinstance(item, str):
        item = {"question": item}
    text = text_of(first(item, ("question", "text", "prompt"))) if isinstance(item, Mapping) else ""
    if not text or not isinstance(item, Mapping):
        return None
    options = first(item, ("options", "choices", "follow_up"))
    return {
        "question": text,
        "header": text_of(item.get("header")),
        "options": [option for each in (options if isinstance(options, list) else ()) if (option := _option(each))],
        "multiSelect": first(item, ("multiSelect", "multi_select", "multiple")) is True,
    }


def _option(value: object) -> dict[str, str] | None:
    if isinstance(value, Mapping):
        label = text_of(first(value, ("label", "value", "text", "name", "id")))
        return {"label": label, "description": text_of(value.get("description"))} if label else None
    label = text_of(value)
    return {"label": label, "description": ""} if label else None


_PLAN_MODES = frozenset({"plan", "planning", "planmode", "planonly"})


def is_plan_mode(mode_id: object) -> bool:
    """Whether a mode plans without acting; some agents' mode ids are addresses that end in the mode's name."""
    last = re.split(r"[#/:]", text_of(mode_id))[-1]
    return SEPARATORS.sub("", last).lower() in _PLAN_MODES
