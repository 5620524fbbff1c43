"""What a packet is and what it shows: its type, new file or edit, which tool, which file.

These are the documents' determination and detection rules. They take a packet of any origin (live or stored,
camelCase or snake_case, any JSON value where a field is expected) and never raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model.tools import acp_kind, file_paths, identify, relative_path, tool_kind

__all__ = [
    "TYPE_OF_UPDATE",
    "get_file_path",
    "is_new_file_operation",
    "is_task_tool",
    "is_todo_write_tool",
    "packet_type",
    "tool_kind",
]

TYPE_OF_UPDATE = {
    "agent_message_chunk": "agent_message_chunk",
    "agent_thought_chunk": "agent_thought_chunk",
    "tool_call": "tool_call_start",
    "tool_call_update": "tool_call_progress",
    "plan": "agent_plan_update",
    "current_mode_update": "current_mode_update",
}
"""The packet type of each update that has one."""


def packet_type(packet: object) -> str | None:
    """`type` if it is there, else by `sessionUpdate`; None for what is no packet."""
    if not isinstance(packet, Mapping):
        return None
    said = packet.get("type")
    if isinstance(said, str) and said:
        return said
    update = either(packet, "sessionUpdate", "session_update")
    return TYPE_OF_UPDATE.get(update) if isinstance(update, str) else None


def is_new_file_operation(packet: object) -> bool | None:
    """Whether an edit makes a file; None when the packet does not show it.

    Agents write "there was no file" as an empty `oldText`, as null, or by leaving it out.
    """
    kind = packet.get("kind") if isinstance(packet, Mapping) else None
    if not isinstance(packet, Mapping) or not isinstance(kind, str) or acp_kind(kind) != "edit":
        return None
    for item in _diffs(packet):
        return either(item, "oldText", "old_text") in ("", None)
    return None


def is_todo_write_tool(packet: object) -> bool:
    """Whether a call writes the to-do list, also after its title became "6 todos"."""
    if not isinstance(packet, Mapping):
        return False
    if _title(packet).lower() in {"todowrite", "todo_write"}:
        return True
    raw = raw_input(packet)
    return isinstance(raw.get("todos"), list) or identify(packet).name == "TodoWrite"


def is_task_tool(packet: object) -> bool:
    """Whether a call sets a sub-agent to work, also after its title became the task's description."""
    if not isinstance(packet, Mapping):
        return False
    raw = raw_input(packet)
    told = _title(packet).lower() == "task" or raw.get("subagent_type") or raw.get("subagentType")
    return bool(told) or identify(packet).name == "Task"


def get_file_path(packet: object, workspace: str | None = None) -> str:
    """The file a call is about, shortened for people: from its input, its diffs, its locations, its title; or ""."""
    if not isinstance(packet, Mapping):
        return ""
    found = file_paths(raw_input(packet))
    found += [path for item in _diffs(packet) if isinstance(path := item.get("path"), str)]
    found += file_paths({"locations": packet.get("locations")})
    title = _title(packet)
    # a sentence with a path in it is no path
    if "/" in title and not any(map(str.isspace, title)) and tool_kind(packet) in {"edit", "read", "other"}:
        found.append(title)
    return relative_path(next((path for path in found if path), ""), workspace)


def raw_input(packet: Mapping[str, Any]) -> Mapping[str, Any]:
    raw = either(packet, "raw_input", "rawInput")
    return raw if isinstance(raw, Mapping) else {}


def either(packet: Mapping[str, Any], *names: str) -> Any:
    """The value under the first of these names that has one."""
    return next((value for name in names if (value := packet.get(name)) is not None), None)


def _title(packet: Mapping[str, Any]) -> str:
    title = packet.get("title")
    return title if isinstance(title, str) else ""


def _diffs(packet: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = packet.get("content")
    items = content if isinstance(content, list) else []
    return [item for item in items if isinstance(item, Mapping) and item.get("type") == "diff"]
