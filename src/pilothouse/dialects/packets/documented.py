"""Packets with the documents' fields and no others, also when the agent told less, or more.

The documents know a tool call's beginning only as pending and empty, and have its title, kind and input on every packet
after that. Agents of the protocol begin a call in any state and repeat nothing. So a call is remembered from its first
packet on, and each packet is completed with what is known. A status never goes back; a call that nothing announced is
announced here. What is remembered ends with the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .updates import Made

__all__ = ["Documented"]

SHOWN = 4096
"""Characters of a running command's output that a packet shows: the end of it."""

_CHUNK = ("type", "timestamp", "sessionUpdate", "content", "_meta")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "agent_message_chunk": _CHUNK,
    "agent_thought_chunk": _CHUNK,
    "agent_plan_update": ("type", "timestamp", "sessionUpdate", "entries", "_meta"),
    "current_mode_update": ("type", "timestamp", "sessionUpdate", "currentModeId", "_meta"),
    "prompt_response": ("type", "timestamp", "stopReason", "_meta"),
}
"""The fields of those packets that agents' own words become; packets of our own making have no others anyway."""

UNFINISHED = "The turn ended before the agent told how the tool call ended."
_NOTHING_TOLD: Made = dict.fromkeys(("_meta", "title", "kind", "rawInput", "rawOutput", "content", "locations"))
_RANK = {"pending": 0, "in_progress": 1, "completed": 2, "failed": 2}
_ENTRY = {
    "status": ("pending", ("pending", "in_progress", "completed")),
    "priority": ("medium", ("high", "medium", "low")),
}


class _Call(NamedTuple):
    """What is known of a tool call. Never changed, only replaced."""

    title: str
    kind: str
    status: str = "pending"
    raw_input: Made | None = None
    raw_output: Made | None = None
    content: list[Any] | None = None
    locations: list[Any] | None = None
    printed: str = ""


class Documented:
    """Completes the packets of one turn, in order."""

    def __init__(self, calls: Mapping[str, _Call] | None = None) -> None:
        self._calls = dict(calls or {})

    def copy(self) -> Documented:
        return Documented(self._calls)

    def knows(self, call_id: object) -> bool:
        """Whether a call has been announced in this turn."""
        return call_id in self._calls

    def complete(self, packet: Made) -> list[Made]:
        kind = packet["type"]
        make = _CALLS.get(kind)
        if make is not None:
            return make(self, packet) if _text(packet["toolCallId"]) else []  # no card could be found again
        fields = FIELDS.get(kind)
        if fields is None:
            return [packet]
        made = {name: packet[name] for name in fields}
        made["_meta"] = _meta(packet)
        if fields is _CHUNK:
            made["content"] = _block(made["content"])
        elif kind == "agent_plan_update":
            made["entries"] = [_entry(item) for item in packet["entries"] if isinstance(item, dict)]
        elif kind == "current_mode_update":
            made["currentModeId"] = _text(packet["currentModeId"])
        elif kind == "prompt_response":
            made["_meta"] = made["_meta"] or {}
            return [*self._left_open(packet["timestamp"]), made]
        return [made]

    def _left_open(self, timestamp: str) -> list[Made]:
        """Ends for calls that only an update which could not be read had announced; all others have theirs."""
        left = [call_id for call_id, call in self._calls.items() if _RANK[call.status] < 2]
        told = {"status": "failed", "rawOutput": {"error": UNFINISHED}, "timestamp": timestamp}
        ends = ({**_NOTHING_TOLD, **told, "toolCallId": call_id} for call_id in left)
        return [made for end in ends for made in self._progress(end)]

    def _start(self, packet: Made) -> list[Made]:
        call_id = _text(packet["toolCallId"])
        known = self._calls.get(call_id)
        if known is not None:  # it began before: this only tells more
            return self._progress(packet)
        begun = self._calls[call_id] = _Call(_text(packet["title"]), _text(packet["kind"]) or "other")
        start = _written(packet, call_id, begun, "tool_call_start")
        start |= {"locations": [], "_meta": _meta(packet)}
        tells = packet["status"] != "pending" or any(packet[name] for name in ("rawInput", "content", "locations"))
        return [start, *self._progress(packet)] if tells or packet["rawOutput"] is not None else [start]

    def _progress(self, packet: Made) -> list[Made]:
        call_id = _text(packet["toolCallId"])
        before = self._calls.get(call_id)
        announced: list[Made] = []
        if before is None:
            before = self._calls[call_id] = _Call(_text(packet["title"]), _text(packet["kind"]) or "other")
            announced = [{**_written(packet, call_id, before, "tool_call_start"), "locations": [], "_meta": None}]
        piece = _printed(packet)
        call = self._calls[call_id] = _merged(before, packet, piece)
        made = _written(packet, call_id, call, "tool_call_progress")
        made["rawInput"] = call.raw_input or {}
        made["_meta"] = None if piece is not None else _meta(packet)
        ended = _RANK[call.status] == 2
        for name, value in (("rawOutput", call.raw_output), ("content", call.content), ("locations", call.locations)):
            if ended or packet[name] is not None:  # the end has all of it; before, what did not change is null
                made[name] = value
        if piece is not None:
            made["content"] = _shown(call.printed)
        if ended:  # a turn may have thousands of these, and hardly one is heard of again
            self._calls[call_id] = _Call(call.title, call.kind, call.status, call.raw_input)
        return [*announced, made]


_CALLS: Mapping[str, Callable[[Documented, Made], list[Made]]] = {
    "tool_call_start": Documented._start,
    "tool_call_progress": Documented._progress,
}


def _written(packet: Made, call_id: str, call: _Call, kind: str) -> Made:
    return {
        "type": kind,
        "timestamp": packet["timestamp"],
        "sessionUpdate": "tool_call" if kind == "tool_call_start" else "tool_call_update",
        "toolCallId": call_id,
        "title": call.title,
        "kind": call.kind,
        "status": call.status,
        "rawInput": {},
        "rawOutput": None,
        "content": None,
        "locations": None,
    }


def _merged(call: _Call, packet: Made, piece: str | None) -> _Call:
    told = packet["rawInput"]
    output, content, locations = packet["rawOutput"], packet["content"], packet["locations"]
    return _Call(
        title=packet["title"] if isinstance(packet["title"], str) else call.title,
        kind=packet["kind"] if isinstance(packet["kind"], str) else call.kind,
        status=_status(call.status, packet["status"]),
        raw_input=call.raw_input if told is None else told if isinstance(told, dict) else {"input": told},
        raw_output=call.raw_output if output is None else output if isinstance(output, dict) else {"output": output},
        content=_items(content) if isinstance(content, list) else call.content,
        locations=_places(locations) if isinstance(locations, list) else call.locations,
        printed=call.printed if piece is None else (call.printed + piece)[-SHOWN:],
    )


def _status(before: str, told: object) -> str:
    if not isinstance(told, str):
        return before
    status = told if told in _RANK else "failed"
    return status if _RANK[status] > _RANK[before] else before


def _items(content: list[Any]) -> list[Any]:
    """Content and diffs. A terminal is left out: what it printed comes by itself, and the call's end has all of it."""
    return [_item(item) for item in content if isinstance(item, dict) and item.get("type") in ("content", "diff")]


def _item(item: Made) -> Made:
    if item["type"] == "content":
        return {"_meta": _meta(item), "type": "content", "content": _block(item["content"])}
    # the documents' front end takes a file for new when its old text is empty, not when there is none
    texts = {name: _text(item.get(name)) for name in ("newText", "oldText", "path")}
    return {"_meta": _meta(item), "type": "diff", **texts}


def _places(locations: list[Any]) -> list[Any]:
    return [
        {
            "_meta": _meta(item),
            "path": _text(item.get("path")),
            "line": line if type(line := item["line"]) is int else None,
        }
        for item in locations
        if isinstance(item, dict)
    ]


def _block(block: Made) -> Made:
    """A content block; one that is text, or is nothing, has a text."""
    if block.get("type") == "text" and type(block.get("text")) is str and _meta(block) is block["_meta"]:
        return block
    kind = _text(block.get("type")) or "text"
    whole = {**block, "_meta": _meta(block), "type": kind}
    return {**whole, "text": _text(block.get("text"))} if kind == "text" else whole


def _entry(item: Made) -> Made:
    entry: Made = {"_meta": _meta(item), "content": _text(item.get("content"))}
    for name, (default, known) in _ENTRY.items():
        entry[name] = item[name] if item[name] in known else default
    return entry


def _printed(packet: Made) -> str | None:
    """A piece of a command's output, where the packet is one."""
    meta = packet["_meta"]
    piece = meta.get("terminal_output_delta") if isinstance(meta, dict) and packet["content"] is None else None
    text = piece.get("data") if isinstance(piece, dict) else None
    return text if isinstance(text, str) else None


def _shown(text: str) -> list[Made]:
    block = {"_meta": None, "annotations": None, "type": "text", "text": text}
    return [{"_meta": None, "type": "content", "content": block}]


def _meta(packet: Made) -> Made | None:
    meta = packet.get("_meta")
    return meta if isinstance(meta, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
