"""Which tool a call uses, from evidence in a fixed order: meta, name, input, id, kind, title.

Titles change while a call runs ("6 todos", a path, a summary of the result), so a title never beats the rest: it may
only refine the kind it agrees with, or speak where nothing else does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from ..records import ToolCategory
from .inputs import PATH_KEYS, command_text, patch_text, paths_under
from .names import (
    NAME_LIMIT,
    AcpKind,
    PacketKind,
    acp_kind,
    category_of,
    category_of_kind,
    first,
    kind_of_category,
    known,
    packet_kind,
    text_of,
)

Evidence = Literal["meta", "name", "input", "id", "kind", "title", "none"]


class ToolIdentity(msgspec.Struct, frozen=True, gc=False):
    """Which tool a call uses, and which evidence said so."""

    name: str
    category: ToolCategory
    kind: AcpKind
    how: Evidence


# the tool a call is taken for when its kind is all that is known
_KIND_TOOL = {
    "read": "Read", "edit": "Edit", "delete": "Delete", "move": "Move", "search": "Search", "execute": "Bash",
    "fetch": "WebFetch",
}  # fmt: skip
_STRONG_KINDS = frozenset(_KIND_TOOL)
_ID_NAME = re.compile(r"([A-Za-z][A-Za-z_]*?)(?:__|-\d{6,})")
_TODO_TITLE = re.compile(r"(?:set |updat\w+ )?(?:\d+ )?todo(?:s|\(s\)|[ -]list)?", re.IGNORECASE)
_TITLE_WORD = re.compile(r"\s*([\w-]+(?:\.\w+)*)(?=\s|:|$|\()")
_SUMMARY_LIMIT = 80
_UPDATE_FIELDS = (
    ("meta", ("_meta", "meta", "field_meta")),
    ("name", ("name", "toolName", "tool_name")),
    ("raw_input", ("rawInput", "raw_input", "input")),
    ("kind", ("kind",)),
    ("title", ("title",)),
    ("tool_call_id", ("toolCallId", "tool_call_id")),
)


def identify(
    update: Mapping[str, Any] | None = None,
    /,
    *,
    meta: object = None,
    name: object = None,
    raw_input: object = None,
    kind: object = None,
    title: object = None,
    tool_call_id: object = None,
) -> ToolIdentity:
    """Name the tool of a call from all that is known of it so far: an update or packet, or its fields by keyword.

    A call's later updates know more than its first one: ask again when a field arrives.
    """
    if isinstance(update, Mapping):
        given = {field: first(update, keys) for field, keys in _UPDATE_FIELDS}
        return identify(**given)
    said = acp_kind(kind) if kind else "other"
    for how, evidence in (
        ("meta", _meta_name(meta)),
        ("name", text_of(name)),
        ("input", _shape(raw_input, said)),
        ("id", _id_name(tool_call_id)),
    ):
        if evidence:
            return _identity(evidence, said, how)  # type: ignore[arg-type]
    return _by_kind_or_title(said, text_of(title))


def _identity(name: str, said: AcpKind, how: Evidence) -> ToolIdentity:
    tool = known(name)
    if tool is not None:
        return ToolIdentity(tool.name, tool.category, tool.kind if said == "other" else said, how)
    category = category_of(name)
    kind = kind_of_category(category) if said == "other" else said
    return ToolIdentity(name, category if category != "other" else category_of_kind(said), kind, how)


def _by_kind_or_title(said: AcpKind, title: str) -> ToolIdentity:
    """A title that is a tool's name may refine the kind it agrees with, and speaks where the kind says nothing."""
    tool = known(title) if title else None
    if tool is not None and (tool.kind == said or said not in _STRONG_KINDS):
        return _identity(tool.name, said, "title")
    if said in _STRONG_KINDS:
        name = _KIND_TOOL[said]
        return ToolIdentity(name, category_of_kind(said), said, "kind")
    if _TODO_TITLE.fullmatch(title.strip()):
        return _identity("TodoWrite", said, "title")
    word = _TITLE_WORD.match(title[:NAME_LIMIT])
    tool = known(word[1]) if word else None
    if tool is not None:
        return _identity(tool.name, said, "title")
    if word and word.end() == len(title):  # a single word is the agent's own name for its tool
        return _identity(title.strip(), said, "title")
    if said != "other":
        return ToolIdentity("Think" if said == "think" else "SwitchMode", "other", said, "kind")
    summary = title.strip().partition("\n")[0][:_SUMMARY_LIMIT]
    category: ToolCategory = "mcp" if " MCP " in title else "other"  # "shout (echo MCP Server)"
    return ToolIdentity(summary, category, said, "title" if summary else "none")


def _meta_name(meta: object) -> str:
    """`toolName` in `_meta`, or in what an agent keeps there under its own name, at most two levels down."""
    if not isinstance(meta, Mapping):
        return ""
    found = text_of(first(meta, ("toolName", "tool_name")))
    if found:
        return found
    for value in meta.values():
        if isinstance(value, Mapping):
            found = text_of(first(value, ("toolName", "tool_name")))
            inner = value.get("toolCall") if not found else None
            if isinstance(inner, Mapping):
                found = text_of(first(inner, ("toolName", "tool_name")))
            if found:
                return found
    return ""


def _id_name(tool_call_id: object) -> str:
    """Some agents put the tool's name in front of the call's id (`read_file__call_1`)."""
    match = _ID_NAME.match(tool_call_id[:NAME_LIMIT]) if isinstance(tool_call_id, str) else None
    tool = known(match[1]) if match else None
    return tool.name if tool else ""


_OLD_TEXT = ("old_string", "oldString", "old_str", "oldText", "old_text", "new_string", "newString", "new_str")
_GREP_ONLY = ("output_mode", "include", "glob", "type", "-i", "-n", "-A", "-B", "-C", "multiline", "case_sensitive",
              "regex", "include_pattern", "max_results")  # fmt: skip
_READ_EXTRAS = {"offset", "limit", "line", "start_line", "end_line", "startLine", "endLine", "view_range"}
_EDITOR_COMMANDS = {"view": "Read", "create": "Write", "str_replace": "Edit", "insert": "Edit", "undo_edit": "Edit"}
_REGEX_ONLY = re.compile(r"[\\^$|+()]|\.\*")


def _shape(raw: object, said: AcpKind) -> str:
    """The tool whose input looks like this one; "" when several would fit.

    A model chooses its arguments, the agent says the kind: an extra argument must not make a command look harmless.
    """
    if not isinstance(raw, Mapping) or not raw:
        return ""
    path = next(paths_under(raw, PATH_KEYS), None)
    name = "Bash" if said == "execute" and command_text(raw) is not None else _shape_name(raw, path)
    if name == "Read":
        # a path alone is what every file tool starts with, so a kind that says more is believed
        return name if said in {"read", "other"} else ""
    if name == "WebSearch" and said == "search":
        return ""
    changes = said in {"edit", "delete", "move", "execute"}
    tool = known(name)
    return "" if changes and tool is not None and tool.kind not in {"edit", "execute"} else name


def _shape_name(raw: Mapping[str, Any], path: str | None) -> str:
    return next((name for name, fits in _SHAPES if fits(raw, path)), "") or _editor_command(raw, path)


def _editor_command(raw: Mapping[str, Any], path: str | None) -> str:
    command = raw.get("command")
    if path and isinstance(command, str) and command in _EDITOR_COMMANDS:
        return _EDITOR_COMMANDS[command]
    return ""


def _is_glob(pattern: str) -> bool:
    return "*" in pattern and not _REGEX_ONLY.search(pattern)


def _has(raw: Mapping[str, Any], keys: Iterable[str]) -> bool:
    return any(key in raw for key in keys)


def _dicts(value: object, *keys: str) -> bool:
    return isinstance(value, list) and any(isinstance(item, Mapping) and _has(item, keys) for item in value)


def _is_search(raw: Mapping[str, Any], glob: bool) -> bool:
    pattern = raw.get("pattern")
    return isinstance(pattern, str) and (_is_glob(pattern) and not _has(raw, _GREP_ONLY)) is glob


def _is_command(raw: Mapping[str, Any], path: str | None) -> bool:
    return command_text(raw) is not None and not _editor_command(raw, path)


# order matters: the first that fits wins, the most telling first
_SHAPES: tuple[tuple[str, Callable[[Mapping[str, Any], str | None], object]], ...] = (
    ("Task", lambda raw, path: raw.get("subagent_type") or raw.get("subagentType")),
    ("Bash", _is_command),
    ("TodoWrite", lambda raw, path: isinstance(raw.get("todos"), list) or _dicts(raw.get("plan"), "step")),
    ("apply_patch", lambda raw, path: patch_text(raw)),
    ("AskUserQuestion", lambda raw, path: _dicts(raw.get("questions"), "question")),
    ("MultiEdit", lambda raw, path: _dicts(raw.get("edits"), *_OLD_TEXT)),
    ("NotebookEdit", lambda raw, path: path and _has(raw, ("new_source", "newSource"))),
    ("Edit", lambda raw, path: path and _has(raw, (*_OLD_TEXT, "before", "diff"))),
    ("WebFetch", lambda raw, path: isinstance(raw.get("url"), str)),
    ("WebSearch", lambda raw, path: path is None and _has(raw, ("query", "search_query", "search_term"))),
    ("Glob", lambda raw, path: _is_search(raw, glob=True)),
    ("Grep", lambda raw, path: _is_search(raw, glob=False)),
    ("Write", lambda raw, path: path and isinstance(raw.get("content", raw.get("contents")), str)),
    ("Read", lambda raw, path: path and all(key in _READ_EXTRAS or key in PATH_KEYS for key in raw)),
)


def tool_kind(name_or_packet: object) -> PacketKind:
    """The Build packets' kind of a tool, by its name or by a packet that shows it in use."""
    if not isinstance(name_or_packet, Mapping):
        return packet_kind(name_or_packet)
    identity = identify(name_or_packet)
    if identity.name == "Task":
        return "task"
    if identity.how in {"meta", "name", "input", "id"} and known(identity.name) is not None:
        return packet_kind(identity.name)
    return packet_kind(identity.kind)
