"""Updates, answers, errors and events as packets.

An event that carries the update it came from gives that update's packet, so a packet made from an event equals the
one made from the update. An event without a source gives a packet made here; an event whose source rides on an
earlier one gives none. Every packet has all documented keys, null where nothing is known, and keeps what the agent
sent besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...model.events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    MessageDeltaEvent,
    PlanModeEvent,
    ProgressEvent,
    SessionErrorEvent,
    ThinkingDeltaEvent,
    TodoUpdateEvent,
    ToolCallErrorEvent,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserQuestionEvent,
)
from ...model.records import CommandOutput, FileDiff, MessageContent, SearchResults, ToolStructuredOutput
from ...model.tools import PACKET_KINDS, kind_of_category, packet_kind
from ..acp.content import to_block
from .detect import TYPE_OF_UPDATE

__all__ = ["packet_from_error", "packet_from_result", "packet_from_update", "packets_from_event", "stop_reason"]

Made = dict[str, Any]

# -- from updates -------------------------------------------------------------------------------------------------


def packet_from_update(update: Mapping[str, Any], timestamp: str) -> Made | None:
    """The packet of one `update` object; None for updates that have no packet."""
    variant = update.get("sessionUpdate")
    complete = _COMPLETE.get(variant) if isinstance(variant, str) else None
    return complete(update, timestamp) if complete else None


def _chunk(update: Mapping[str, Any], timestamp: str) -> Made:
    return {
        "_meta": None,
        **update,
        "content": _block(update.get("content")),
        "type": update["sessionUpdate"],
        "timestamp": timestamp,
    }


def _block(block: object) -> Made:
    if isinstance(block, dict):
        return {"_meta": None, "annotations": None, **block}
    return {"_meta": None, "annotations": None, "type": "text", "text": block if isinstance(block, str) else ""}


def _start(update: Mapping[str, Any], timestamp: str) -> Made:
    packet = _call(update, timestamp, "tool_call_start")
    for name, empty in (("title", ""), ("kind", "other"), ("status", "pending"), ("rawInput", {}), ("locations", [])):
        if packet[name] is None:
            packet[name] = empty
    return packet


def _progress(update: Mapping[str, Any], timestamp: str) -> Made:
    return _call(update, timestamp, "tool_call_progress")


_CALL_FIELDS: Made = dict.fromkeys(
    ("_meta", "toolCallId", "title", "kind", "status", "rawInput", "rawOutput", "content", "locations")
)


def _call(update: Mapping[str, Any], timestamp: str, kind: str) -> Made:
    packet = {**_CALL_FIELDS, **update, "type": kind, "timestamp": timestamp}
    if isinstance(packet["kind"], str) and packet["kind"] not in PACKET_KINDS:
        packet["kind"] = packet_kind(packet["kind"])
    for name, part in (("content", _item), ("locations", _location)):
        if isinstance(packet[name], list):
            packet[name] = [part(item) for item in packet[name]]
    return packet


def _item(item: object) -> Any:
    """One item of a call's content; agents that send a bare block mean a wrapped one."""
    if isinstance(item, str):
        return {"_meta": None, "type": "content", "content": _block(item)}
    if not isinstance(item, dict):
        return item
    match item.get("type"):
        case "content":
            return {"_meta": None, **item, "content": _block(item.get("content"))}
        case "diff":
            return {"_meta": None, "oldText": None, **item}
        case "text" | "image" | "audio" | "resource" | "resource_link":
            return {"_meta": None, "type": "content", "content": _block(item)}
    return {"_meta": None, **item}


def _location(item: object) -> Any:
    return {"_meta": None, "line": None, **item} if isinstance(item, dict) else item


def _plan(update: Mapping[str, Any], timestamp: str) -> Made:
    entries = update.get("entries")
    return {
        "_meta": None,
        **update,
        "entries": [_entry(item) for item in entries] if isinstance(entries, list) else [],
        "type": "agent_plan_update",
        "timestamp": timestamp,
    }


def _entry(item: object) -> Any:
    if isinstance(item, str):
        item = {"content": item}
    return {"_meta": None, "status": "pending", "priority": "medium", **item} if isinstance(item, dict) else item


def _mode(update: Mapping[str, Any], timestamp: str) -> Made:
    return {"_meta": None, "currentModeId": "", **update, "type": "current_mode_update", "timestamp": timestamp}


_COMPLETE: dict[str, Callable[[Mapping[str, Any], str], Made]] = {
    "agent_message_chunk": _chunk,
    "agent_thought_chunk": _chunk,
    "tool_call": _start,
    "tool_call_update": _progress,
    "plan": _plan,
    "current_mode_update": _mode,
}
assert _COMPLETE.keys() == TYPE_OF_UPDATE.keys()

# -- from answers and errors --------------------------------------------------------------------------------------

_STOP_REASONS = {
    "success": "end_turn",
    "error_max_turns": "max_turn_requests",
    "error_max_budget_usd": "max_turn_requests",
    "interrupted": "cancelled",
    "canceled": "cancelled",
}


def stop_reason(reason: object) -> str:
    """A turn's stop reason in the packets' words; those of the protocol, and `stop_sequence`, are already."""
    return _STOP_REASONS.get(reason, reason) or "end_turn" if isinstance(reason, str) else "end_turn"


def packet_from_result(result: Mapping[str, Any] | None, timestamp: str) -> Made:
    """The packet that ends a turn, of the answer to its prompt."""
    answer = result if isinstance(result, Mapping) else {}
    meta = answer.get("_meta")
    return {
        **answer,
        "_meta": meta if isinstance(meta, dict) else {},
        "stopReason": stop_reason(answer.get("stopReason", answer.get("stop_reason"))),
        "type": "prompt_response",
        "timestamp": timestamp,
    }


def packet_from_error(error: object, timestamp: str) -> Made:
    """The packet of a JSON-RPC error object; any other value becomes its message."""
    fields = error if isinstance(error, Mapping) else {"message": error if isinstance(error, str) else None}
    message = fields.get("message")
    return {
        "type": "error",
        "timestamp": timestamp,
        "message": message if isinstance(message, str) and message else "Unknown error",
        "code": _code(fields.get("code")),
        "details": _details(fields.get("data", fields.get("details"))),
    }


def _code(code: object) -> int | None:
    if isinstance(code, str):
        try:
            code = int(code)
        except ValueError:
            return None
    # JavaScript reads a larger number as another one, and our encoder refuses the largest
    return code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**53 else None


def _details(data: object) -> Made | None:
    if data is None:
        return None
    return data if isinstance(data, dict) else {"data": data}


# -- from events --------------------------------------------------------------------------------------------------

_decode = msgspec.json.Decoder().decode


def packets_from_event(event: Event) -> list[Made]:
    """The packets of one event, none for most."""
    source = event.source
    if source is None:
        maker = _MAKERS.get(type(event))
        return maker(event) if maker else []
    if not source:
        return []
    answered = _ANSWERED.get(type(event))
    if answered is not None and (type(event) is not CustomEvent or event.namespace == "pilothouse"):
        return answered(event)
    packet = packet_from_update(_decoded(source), event.timestamp)
    return [packet] if packet is not None else []


def _decoded(source: bytes) -> Made:
    try:
        value = _decode(source)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _of_update(event: Event, variant: str, **fields: Any) -> list[Made]:
    packet = packet_from_update({"sessionUpdate": variant, **fields}, event.timestamp)
    return [packet] if packet is not None else []


def _content(delta: str, content: MessageContent | None) -> Made:
    return {"type": "text", "text": delta} if content is None else dict(to_block(content))


def _message(event: MessageDeltaEvent) -> list[Made]:
    if event.role != "assistant":
        return []
    return _of_update(event, "agent_message_chunk", content=_content(event.delta, event.content))


def _thought(event: ThinkingDeltaEvent) -> list[Made]:
    return _of_update(event, "agent_thought_chunk", content=_content(event.delta, event.content))


def _tool_start(event: ToolCallStartEvent) -> list[Made]:
    return _of_update(
        event,
        "tool_call",
        toolCallId=event.tool_call_id,
        name=event.name,
        title=event.title or event.name,
        kind=event.kind or kind_of_category(event.category),
        locations=event.locations,
    )


def _tool_update(event: Event, call_id: str, **fields: Any) -> list[Made]:
    return _of_update(event, "tool_call_update", toolCallId=call_id, **fields)


def _tool_executing(event: ToolCallExecutingEvent) -> list[Made]:
    status = "pending" if event.requires_approval else "in_progress"
    return _tool_update(event, event.tool_call_id, **_named(event.name), status=status, rawInput=event.input)


def _named(name: str) -> Made:
    return {"name": name, "title": name, "kind": _kind(name)}


def _kind(name: str) -> str:
    # a sub-agent is known by its tool's name; the field has no word for it
    kind = packet_kind(name)
    return "other" if kind == "task" else kind


def _tool_progress(event: ProgressEvent) -> list[Made]:
    if event.tool_call_id is None:
        return []
    fields: Made = {"title": event.label, "status": "in_progress", "locations": event.locations}
    if event.output is not None and event.replace:
        fields["content"] = _shown(event.output)
    elif event.output is not None:
        # content stands for all of it; a piece goes where agents that stream a terminal put theirs
        delta = {"data": event.output, "terminal_id": event.tool_call_id}
        fields["_meta"] = {"terminal_output_delta": delta}
    return _tool_update(event, event.tool_call_id, **fields)


def _shown(text: str) -> list[Made]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def _tool_result(event: ToolCallResultEvent) -> list[Made]:
    raw = {"output": event.output, "metadata": _metadata(event.structured)}
    content = _shown(event.output)
    return _tool_update(
        event, event.tool_call_id, **_named(event.name), status="completed", rawOutput=raw, content=content
    )


def _metadata(structured: ToolStructuredOutput | None) -> Made:
    match structured:
        case CommandOutput():
            output = structured.stdout + structured.stderr
            return {"output": output, "exit": structured.exit_code, "description": "", "truncated": False}
        case SearchResults():
            return {"count": len(structured.results), "truncated": False}
        case FileDiff():
            return {
                "filepath": structured.path,
                "exists": structured.change_type != "created",
                "diff": structured.diff,
                "diagnostics": {},
                "truncated": False,
            }
    return {"truncated": False}


def _tool_error(event: ToolCallErrorEvent) -> list[Made]:
    raw: Made = {"error": event.error.message}
    if event.output:
        raw["output"] = event.output
    content = _shown(event.output or event.error.message)
    return _tool_update(
        event, event.tool_call_id, **_named(event.name), status="failed", rawOutput=raw, content=content
    )


def _todos(event: TodoUpdateEvent) -> list[Made]:
    entries = [
        {"content": todo.content, "status": todo.status, "priority": todo.priority or "medium"} for todo in event.todos
    ]
    return _of_update(event, "plan", entries=entries)


def _plan_mode(event: PlanModeEvent) -> list[Made]:
    if event.mode_id is None:
        return []
    return _of_update(event, "current_mode_update", currentModeId=event.mode_id)


def _error(event: SessionErrorEvent) -> list[Made]:
    error = event.error
    packet = packet_from_error(
        {"message": error.message, "code": error.agent_code, "data": error.details}, event.timestamp
    )
    if error.agent_code is None:
        # an error of ours has no number; its name tells a consumer whether to retry or to sign in
        details = packet["details"] or {}
        packet["details"] = {**details, "code": error.code, "recoverable": error.recoverable}
    return [packet]


def _approval(kind: str) -> Callable[[Any], list[Made]]:
    def make(event: Event) -> list[Made]:
        packet: Made = {"_meta": None, "type": kind, "timestamp": event.timestamp}
        for name, wire in zip(event.__struct_fields__, event.__struct_encode_fields__, strict=True):
            if name not in {"seq", "session_id", "timestamp"}:
                packet[wire] = msgspec.to_builtins(getattr(event, name))
        return [packet]

    return make


def _custom(event: CustomEvent) -> list[Made]:
    if event.namespace != "acp":
        return _ours(event)
    packet = packet_from_update({**event.data, "sessionUpdate": event.event_name}, event.timestamp)
    return [packet] if packet is not None else []


def _ours(event: CustomEvent) -> list[Made]:
    if event.namespace != "pilothouse":
        return []
    if event.event_name == "turn_ended":
        answer = _decoded(event.source) if event.source else {}
        known = answer if "stopReason" in answer else {"stopReason": event.data.get("stopReason")}
        return [packet_from_result(known, event.timestamp)]
    if event.event_name == "artifact_created":
        artifact = event.data.get("artifact", event.data)
        told = artifact if isinstance(artifact, dict) else {}
        blank = {"id": "", "type": "file", "name": "", "path": "", "preview_url": None}
        return [{"type": "artifact_created", "timestamp": event.timestamp, "artifact": {**blank, **told}}]
    return []


_approval_requested = _approval("approval_requested")

_MAKERS: dict[type[Event], Callable[[Any], list[Made]]] = {
    MessageDeltaEvent: _message,
    ThinkingDeltaEvent: _thought,
    ToolCallStartEvent: _tool_start,
    ToolCallExecutingEvent: _tool_executing,
    ProgressEvent: _tool_progress,
    ToolCallResultEvent: _tool_result,
    ToolCallErrorEvent: _tool_error,
    TodoUpdateEvent: _todos,
    PlanModeEvent: _plan_mode,
    SessionErrorEvent: _error,
    ApprovalRequestedEvent: _approval_requested,
    ApprovalResolvedEvent: _approval("approval_resolved"),
    CustomEvent: _custom,
}
# the source of these is a request or an answer, no update
_ANSWERED: dict[type[Event], Callable[[Any], list[Made]]] = {
    ApprovalRequestedEvent: _approval_requested,
    UserQuestionEvent: lambda event: [],
    CustomEvent: _ours,
}
