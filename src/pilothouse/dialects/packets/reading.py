"""One reader for live packets and stored rows: the same typed packet either way, and back to the same JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...acp.naming import snake
from .shapes import (
    TYPE_OF_UPDATE,
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactCreated,
    ContentItem,
    CurrentModeUpdate,
    ErrorPacket,
    OtherPacket,
    Packet,
    PromptResponse,
    QuestionRequested,
    QuestionResolved,
    Shape,
    ToolCallProgress,
    ToolCallStart,
    either,
    packet_type,
    read_shape,
    wire_names,
    write_shape,
)
from .updates import packet_from_update

PACKETS: dict[str, type[Packet]] = {
    cls.TYPE: cls
    for cls in (
        AgentMessageChunk,
        AgentThoughtChunk,
        ToolCallStart,
        ToolCallProgress,
        AgentPlanUpdate,
        CurrentModeUpdate,
        PromptResponse,
        ErrorPacket,
        ArtifactCreated,
        ApprovalRequested,
        ApprovalResolved,
        QuestionRequested,
        QuestionResolved,
    )
}
"""Every packet type and its shape."""

# rows that hold a whole message where the stream had chunks
_STORED = {"agent_message": "agent_message_chunk", "agent_thought": "agent_thought_chunk"}
_UPDATES = {kind: update for update, kind in TYPE_OF_UPDATE.items()}


def read_packet(value: object) -> Packet:
    """Read a live packet, or a row that stores one (itself, or under `message_metadata` or `packet`); never raises."""
    fields = _unwrapped(value)
    kind = packet_type(fields)
    if not isinstance(fields, Mapping) or kind is None:
        return OtherPacket(extra=dict(fields) if isinstance(fields, Mapping) else {"value": value})
    cls = PACKETS.get(_STORED.get(kind, kind))
    if cls is None:
        return read_shape(OtherPacket, fields)
    return read_shape(cls, {**_completed(cls, fields), "type": cls.TYPE})


def write_packet(packet: Packet) -> dict[str, Any]:
    """A packet as JSON values, with all documented keys."""
    written: dict[str, Any] = write_shape(packet)
    if isinstance(packet, OtherPacket) and not packet.type and "type" not in packet.extra:
        del written["type"]
    return written


def _unwrapped(value: object) -> object:
    if isinstance(value, Mapping):
        for name in ("message_metadata", "messageMetadata", "packet"):
            inner = value.get(name)
            if packet_type(inner) is not None and isinstance(inner, Mapping):
                when = either(value, "timestamp", "created_at", "createdAt")
                return inner if "timestamp" in inner or when is None else {**inner, "timestamp": when}
    return value


def _completed(cls: type[Packet], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Camel case, and the parts completed as those of a live update are."""
    given: dict[str, Any] = _camel(fields, cls)
    if isinstance(given.get("content"), list):
        given["content"] = [_camel(item, ContentItem) for item in given["content"]]
    update = _UPDATES.get(cls.TYPE)
    if update is None:
        return given
    whole = packet_from_update({**given, "sessionUpdate": update}, "")
    assert whole is not None, "every packet of an update is made by its update"
    whole.pop("timestamp")
    kind = given.get("kind")
    return {**whole, **({"timestamp": given["timestamp"]} if "timestamp" in given else {}), **_as_it_is(kind)}


def _camel(fields: Any, cls: type[Shape]) -> Any:
    if not isinstance(fields, Mapping):
        return fields
    known = {snake(name): name for name in wire_names(cls)}
    return {known.get(name, name): value for name, value in fields.items()}


def _as_it_is(kind: object) -> dict[str, Any]:
    # a stored packet keeps the kind it was stored with; `tool_kind` says what it stands for
    return {"kind": kind} if isinstance(kind, str) else {}
