"""Updates, answers and errors of the protocol as packets.

Every packet has all documented keys, null where nothing is known, and keeps what the agent sent besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...model.tools import PACKET_KINDS, packet_kind
from .shapes import TYPE_OF_UPDATE

Made = dict[str, Any]

# -- updates -------------------------------------------------------------------------------------------------------


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

# -- answers and errors -------------------------------------------------------------------------------------------

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


def packet_from_interruption(message: str, timestamp: str) -> Made:
    """Why something ended that nobody has cancelled: the packets' stop reasons have no word for it."""
    return packet_from_error({"message": message, "data": {"code": "interrupted", "recoverable": True}}, timestamp)


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
