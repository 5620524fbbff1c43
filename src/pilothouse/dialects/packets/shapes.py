"""The Build packets and their parts as structs, and the documents' rules that detect what a packet shows.

A shape is read leniently: camelCase or snake_case; a value of the wrong type stays in `extra` under its wire name, and
the attribute has its default. So nothing is lost, and writing a shape gives back the JSON that was read, completed with
the documented nulls. The JSON names are the documents'; a change of one is a change of the protocol. The detection
rules take a packet of any origin (live or stored, any JSON value for a field) and never raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ...acp.naming import camel, snake
from ...model.tools import acp_kind, file_paths, identify, relative_path, tool_kind

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


ArtifactType = Literal["file", "image", "nextjs_app", "web_app"]
Meta = dict[str, Any] | None
Parts = Mapping[str, Any]
"""Fields and the shape of their value, or of each item of it. (A field named `type` hides the word `type` in here.)"""
Names = Mapping[str, tuple[str, ...]]
"""Fields and other spellings of their JSON names."""


class Shape(Struct, kw_only=True, rename=camel):
    """Base: `extra` holds what the documents do not name. `NESTED` says which fields hold shapes, or lists of them."""

    extra: dict[str, Any] = {}
    NESTED: ClassVar[Parts] = {}
    ALIASES: ClassVar[Names] = {}


ShapeT = TypeVar("ShapeT", bound=Shape)


def wire_names(cls: type[Shape]) -> set[str]:
    """The JSON names of a shape's fields."""
    return {name for name in cls.__struct_encode_fields__ if name != "extra"}


def read_shape(cls: type[ShapeT], value: Mapping[str, Any]) -> ShapeT:
    """Fill a shape from JSON; never raises."""
    left = dict(value)
    given: dict[str, Any] = {}
    for item in msgspec.structs.fields(cls):
        if item.name == "extra":
            continue
        names = (item.encode_name, item.name, snake(item.encode_name), *cls.ALIASES.get(item.name, ()))
        found = next((name for name in names if name in left), None)
        if found is None:
            continue
        raw = left.pop(found)
        try:
            given[item.name] = _field(cls.NESTED.get(item.name), raw, item.type)
        except (msgspec.ValidationError, UnicodeError, OverflowError, RecursionError):
            left[item.encode_name] = raw
    return cls(**given, extra=left)


def _field(nested: type[Shape] | None, raw: Any, kind: Any) -> Any:
    if nested is not None and isinstance(raw, Mapping):
        return read_shape(nested, raw)
    if nested is not None and isinstance(raw, list):
        return [read_shape(nested, item) if isinstance(item, Mapping) else item for item in raw]
    return msgspec.convert(raw, kind)


def write_shape(value: Any) -> Any:
    """A shape as JSON values; nulls are kept, what is unset is left out."""
    if isinstance(value, Shape):
        written = {
            item.encode_name: write_shape(held)
            for item in msgspec.structs.fields(type(value))
            if item.name != "extra" and (held := getattr(value, item.name)) is not UNSET
        }
        return {**written, **value.extra}
    return [write_shape(item) for item in value] if isinstance(value, list) else value


# -- parts --------------------------------------------------------------------------------------------------------


class TextBlock(Shape):
    """A content block. Blocks that are no text keep their own fields in `extra`."""

    field_meta: Meta = field(name="_meta", default=None)
    type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    annotations: dict[str, Any] | None = None


class ContentItem(Shape):
    """One item of a tool call's content: wrapped content, a diff, or a terminal."""

    NESTED: ClassVar[Parts] = {"content": TextBlock}

    field_meta: Meta = field(name="_meta", default=None)
    type: str | UnsetType = UNSET
    content: TextBlock | UnsetType = UNSET
    new_text: str | UnsetType = UNSET
    old_text: str | UnsetType | None = UNSET
    path: str | UnsetType = UNSET


class Location(Shape):
    field_meta: Meta = field(name="_meta", default=None)
    path: str = ""
    line: int | None = None


class PlanEntry(Shape):
    field_meta: Meta = field(name="_meta", default=None)
    content: str = ""
    status: str = "pending"
    priority: str = "medium"


class Artifact(Shape):
    """Alone among the packets it has names in snake_case. The addresses begin at the hub's; an application has none."""

    id: str = ""
    type: str = "file"
    name: str = ""
    path: str = ""
    preview_url: str | None = field(name="preview_url", default=None)
    download_url: str | None = field(name="download_url", default=None)
    mime_type: str | None = field(name="mime_type", default=None)
    size_bytes: int | None = field(name="size_bytes", default=None)
    metadata: dict[str, Any] = {}


# -- packets ------------------------------------------------------------------------------------------------------


class Packet(Shape):
    """Base of all packets. `timestamp` is put on when a packet is made; packets stored by others may lack it."""

    TYPE: ClassVar[str] = ""

    type: str = ""
    timestamp: str | UnsetType = UNSET


class AgentMessageChunk(Packet):
    TYPE: ClassVar[str] = "agent_message_chunk"
    NESTED: ClassVar[Parts] = {"content": TextBlock}

    type: str = "agent_message_chunk"
    session_update: str = "agent_message_chunk"
    content: TextBlock | UnsetType = UNSET
    field_meta: Meta = field(name="_meta", default=None)


class AgentThoughtChunk(Packet):
    TYPE: ClassVar[str] = "agent_thought_chunk"
    NESTED: ClassVar[Parts] = {"content": TextBlock}

    type: str = "agent_thought_chunk"
    session_update: str = "agent_thought_chunk"
    content: TextBlock | UnsetType = UNSET
    field_meta: Meta = field(name="_meta", default=None)


class ToolCallPacket(Packet):
    """What `tool_call_start` and `tool_call_progress` have in common."""

    NESTED: ClassVar[Parts] = {"content": ContentItem, "locations": Location}

    session_update: str = ""
    tool_call_id: str = ""
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    raw_input: Any = None
    raw_output: Any = None
    content: list[ContentItem] | None = None
    locations: list[Location] | None = None
    field_meta: Meta = field(name="_meta", default=None)


class ToolCallStart(ToolCallPacket):
    TYPE: ClassVar[str] = "tool_call_start"

    type: str = "tool_call_start"
    session_update: str = "tool_call"


class ToolCallProgress(ToolCallPacket):
    TYPE: ClassVar[str] = "tool_call_progress"

    type: str = "tool_call_progress"
    session_update: str = "tool_call_update"


class AgentPlanUpdate(Packet):
    TYPE: ClassVar[str] = "agent_plan_update"
    NESTED: ClassVar[Parts] = {"entries": PlanEntry}

    type: str = "agent_plan_update"
    session_update: str = "plan"
    entries: list[PlanEntry] = []
    field_meta: Meta = field(name="_meta", default=None)


class CurrentModeUpdate(Packet):
    TYPE: ClassVar[str] = "current_mode_update"

    type: str = "current_mode_update"
    session_update: str = "current_mode_update"
    current_mode_id: str = ""
    field_meta: Meta = field(name="_meta", default=None)


class PromptResponse(Packet):
    """The end of a turn. Its `_meta` is an object, never null."""

    TYPE: ClassVar[str] = "prompt_response"

    type: str = "prompt_response"
    stop_reason: str = "end_turn"
    field_meta: dict[str, Any] = field(name="_meta", default_factory=dict)


class ErrorPacket(Packet):
    """A failure. An older document has a text as `code`; such a code is read and kept."""

    TYPE: ClassVar[str] = "error"

    type: str = "error"
    message: str = ""
    code: int | str | None = None
    details: dict[str, Any] | None = None


class ArtifactCreated(Packet):
    TYPE: ClassVar[str] = "artifact_created"
    NESTED: ClassVar[Parts] = {"artifact": Artifact}

    type: str = "artifact_created"
    artifact: Artifact = field(default_factory=Artifact)


class ApprovalRequested(Packet):
    """A decision is needed; not part of the documented packets.

    Of an option, `label` is the hub's label for what it does; `name` is the agent's own label, and `isMisleading` is
    true if that says the opposite. `notes` are written by the hub.
    """

    TYPE: ClassVar[str] = "approval_requested"

    type: str = "approval_requested"
    request_id: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    description: str = ""
    risk_level: str = ""
    risk_reasons: list[str] = []
    preview: dict[str, Any] | None = None
    options: list[dict[str, Any]] = []
    expires_at: str | None = None
    notes: list[str] = []
    origin: str = "agent"
    rule_offers: list[dict[str, Any]] = []
    rule_refusal: str | None = None
    question_ids: list[str] = []
    chooses_mode: bool = False
    field_meta: Meta = field(name="_meta", default=None)


class ApprovalResolved(Packet):
    """The decision, whoever made it."""

    TYPE: ClassVar[str] = "approval_resolved"

    type: str = "approval_resolved"
    request_id: str = ""
    tool_call_id: str = ""
    approved: bool = False
    resolved_by: str = ""
    reason: str | None = None
    option_id: str | None = None
    decided_by: str | None = None
    device_id: str | None = None
    field_meta: Meta = field(name="_meta", default=None)


class QuestionRequested(Packet):
    """An answer is needed: some of `options` with `multiSelect`, else one; or what fits `form`, a JSON schema."""

    TYPE: ClassVar[str] = "question_requested"

    type: str = "question_requested"
    question_id: str = ""
    question: str = ""
    options: list[str] | None = None
    default_value: str | None = None
    expires_at: str | None = None
    multi_select: bool = False
    form: dict[str, Any] | None = None
    url: str | None = None
    tool_call_id: str | None = None
    field_meta: Meta = field(name="_meta", default=None)


class QuestionResolved(Packet):
    """The question is no longer open: `outcome` is `answered`, `declined` or `cancelled`."""

    TYPE: ClassVar[str] = "question_resolved"

    type: str = "question_resolved"
    question_id: str = ""
    outcome: str = ""
    answer: Any = None
    field_meta: Meta = field(name="_meta", default=None)


class OtherPacket(Packet):
    """A packet of a type nobody here knows, whole in `extra`."""
