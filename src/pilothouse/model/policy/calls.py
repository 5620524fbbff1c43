"""Tool calls as a policy sees them: a command, reading, writing, searching, fetching, or other.

The input decides before the name does: a call with a command is judged as a command, however harmless the tool's name.
Paths are looked for under every key that sounds like one, because a path that is missed is not checked. Arguments are
equal only if they are the same JSON value: key order does not count, everything else does (`1`, `1.0`, `true` and `"1"`
are four values), and no text is normalised, so look-alike characters never make two calls equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ..tools import canonical_name, command_text, file_paths
from ..tools.commands import (
    DIRECTORY_MEMBERS,
    VARIABLE_MEMBERS,
    find_commands,
    find_other_texts,
    is_empty,
    is_nested_command,
    parse_json_input,
    simplify_key,
)
from ..tools.names import spelling

MAX_ARGUMENTS = 16_000
"""Characters of JSON that a stored rule may hold as its arguments."""
_MAX_DEPTH = 64


def canonical_arguments(raw: object) -> str | None:
    """The arguments as JSON with sorted keys; None if they are not a JSON object. No input counts as `{}`."""
    value = {} if raw is None else raw
    if not isinstance(value, Mapping) or not _is_json(value, _MAX_DEPTH):
        return None
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()  # half of a surrogate pair cannot be stored
    except (TypeError, ValueError, RecursionError):
        return None
    return text


def are_same_arguments(one: object, other: object) -> bool:
    """Whether two inputs are the same JSON object; inputs that cannot be compared never are."""
    text = canonical_arguments(one)
    return text is not None and text == canonical_arguments(other)


def _is_json(value: Any, depth: int) -> bool:
    """Whether `json.dumps` writes a value without changing it: it would turn a key that is a number into a string."""
    if depth <= 0:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(inner, depth - 1) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return all(_is_json(inner, depth - 1) for inner in value)
    return value is None or isinstance(value, str | bool | int | float)


Kind = Literal["command", "reads", "writes", "searches", "web_search", "fetch", "other"]

_KINDS: dict[str, Kind] = {
    "Read": "reads",
    "LS": "reads",
    "Glob": "searches",
    "Grep": "searches",
    "Search": "searches",
    "WebSearch": "web_search",
    "WebFetch": "fetch",
    "Write": "writes",
    "Edit": "writes",
    "MultiEdit": "writes",
    "NotebookEdit": "writes",
    "apply_patch": "writes",
    "Bash": "command",
}
_CODE_SEARCHES = frozenset({"codebasesearch", "codesearch", "semanticsearch", "searchcode", "searchcodebase"})
# the text editor tool has its verb where others have a shell command
_EDITOR_VERBS: dict[str, Kind] = {
    "view": "reads",
    "create": "writes",
    "str_replace": "writes",
    "insert": "writes",
    "undo_edit": "writes",
}
_COMMAND_KEYS = re.compile(r"(?:shell|bash|run|exec)?_?(?:command|cmd|script|argv)(?:_?line|_?text|s)?", re.IGNORECASE)
# shells whose text is not what the parser reads
_FOREIGN_SHELLS = frozenset({"powershell", "pwsh", "cmd", "fish"})
_PATH_KEYS = re.compile(
    r"path|file|dir|folder|uri|root|cwd|target|dest|source|include|glob|location|notebook|workspace", re.IGNORECASE
)
# these sound like a path and are text, a switch or a number
_TEXT_KEYS = re.compile(r"text|content|type|mode|count|limit|max|head|line|encoding|format|description", re.IGNORECASE)
# a tool for reading that is given something to write does not only read
_WRITES = re.compile(
    r"contents?|(?:old|new)_?(?:string|str|text)|write|edits?|save.*|output_?(?:path|file)", re.IGNORECASE
)
_DELETES = re.compile(r"^\s*\*{3}\s*Delete File:", re.IGNORECASE | re.MULTILINE)
MAX_DEPTH = 12


class Call(NamedTuple):
    """A tool call as a policy sees it; `doubt` says why no rule can cover it. `raw` is the input as it came.

    `is_shell`: its tool runs commands on this machine. Rules for commands do not allow those of any other tool.
    """

    name: str
    tool: str
    kind: Kind
    command: str = ""
    directories: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    doubt: str | None = None
    raw: object = None
    is_shell: bool = False


def read_call(name: object, raw: object) -> Call:
    """Read a tool call as a policy sees it; never raises, whatever the input is."""
    label = name if isinstance(name, str) else ""
    tool = canonical_name(label)
    if not label or not label.isascii() or not label.isprintable():
        # a look-alike of a known name is not that tool
        tool = label
    kind = _KINDS.get(tool, "other")
    if kind == "other" and label.isascii() and spelling(label) in _CODE_SEARCHES:
        kind = "searches"
    verb = _editor_verb(tool, raw)
    if verb:
        kind = verb
    elif kind == "command" or _may_carry_commands(raw):
        text = command_text(raw)
        if text is not None or kind == "command":
            return _command(label, tool, text, raw)
    paths, complete = _paths(raw, pattern=tool == "Glob")
    doubt = None if complete else "its input is too deep to be read"
    if not verb and isinstance(raw, Mapping) and any(isinstance(k, str) and _COMMAND_KEYS.fullmatch(k) for k in raw):
        doubt = "it carries something like a command"
    if kind == "reads" and isinstance(raw, Mapping) and any(isinstance(k, str) and _WRITES.fullmatch(k) for k in raw):
        doubt = "it carries something to write"
    if kind == "writes" and any(isinstance(text, str) and _DELETES.search(text) for _, text, _ in _leaves(raw, "", 0)):
        doubt = "it deletes a file"
    return Call(label, tool, kind, paths=paths, doubt=doubt, raw=raw)


def needs_exact_arguments(name: object, raw: object) -> bool:
    """Whether a call has a command and its tool is not a shell: only a rule with all of its arguments can allow it."""
    call = read_call(name, raw)
    return call.kind == "command" and not call.is_shell


def _may_carry_commands(raw: object) -> bool:
    """Whether an input is an object, holds one as JSON, or is a list of some; plain text is not a command by itself."""
    return isinstance(raw, Mapping) or parse_json_input(raw) is not None or _is_list_of_objects(raw)


def _is_list_of_objects(raw: object) -> bool:
    return isinstance(raw, list) and any(isinstance(item, Mapping | list) for item in raw)


def _editor_verb(tool: str, raw: object) -> Kind | None:
    if tool != "Edit" or not isinstance(raw, Mapping) or is_nested_command(raw):
        return None
    carriers = [key for key in raw if isinstance(key, str) and _COMMAND_KEYS.fullmatch(key)]
    return _EDITOR_VERBS.get(str(raw["command"])) if carriers == ["command"] else None


def _command(name: str, tool: str, text: str | None, raw: object) -> Call:
    """A call with a command.

    Rules for commands cover only calls of a shell whose other members are known to be harmless.
    """
    if text is None:
        return Call(name, tool, "command", doubt="it names no command", raw=raw)
    is_shell = _KINDS.get(tool) == "command"
    directories: list[str] = []
    doubt = "its shell is not one that can be read here" if spelling(name) in _FOREIGN_SHELLS else None
    for key, value in raw.items() if isinstance(raw, Mapping) and is_shell else ():
        if not isinstance(key, str) or is_empty(value) or value is False:
            continue
        plain = simplify_key(key)
        if plain in VARIABLE_MEMBERS:
            doubt = "it sets environment variables"
        elif plain in DIRECTORY_MEMBERS:
            if not isinstance(value, str):
                doubt = f"its `{key}` is not a path"
            else:
                directories.append(value)
    if is_nested_command(raw) or _is_list_of_objects(raw):
        # denials match such a command; how the agent uses the rest of the input is not known
        doubt = "its command is nested inside another argument"
    elif is_shell and doubt is None and (others := find_other_texts(raw, find_commands(raw))):
        doubt = f"its `{others[0][0]}` may change how the command runs"
    return Call(name, tool, "command", text, tuple(directories), doubt=doubt, raw=raw, is_shell=is_shell)


def _paths(raw: object, *, pattern: bool) -> tuple[tuple[str, ...], bool]:
    found = dict.fromkeys(file_paths(raw))
    complete = True
    for key, value, depth in _leaves(raw, "", 0):
        if depth >= MAX_DEPTH:
            complete = False
        elif isinstance(value, str) and value and (_sounds_like_path(key) or (pattern and key == "pattern")):
            found[value.removeprefix("file://")] = None
    return tuple(found), complete


def _sounds_like_path(key: str) -> bool:
    return _PATH_KEYS.search(key) is not None and _TEXT_KEYS.search(key) is None


def _leaves(value: Any, key: str, depth: int) -> Iterator[tuple[str, Any, int]]:
    if depth >= MAX_DEPTH or not isinstance(value, Mapping | list | tuple):
        yield key, value, depth
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, name if isinstance(name, str) else "", depth + 1)
    else:
        for inner in value:
            yield from _leaves(inner, key, depth + 1)
