"""Packets with exactly the documents' fields, made of live events or of stored ones.

The documents know a tool call's start only as pending and empty, and repeat its title, kind and input on every later
packet. ACP agents start a call in any state and repeat nothing. So each call is remembered until the end of its turn,
and its packets are completed from that. A status never goes back; a call without an announcement is announced here.

Most stored events either carry the update that their packet is made of, or have no packet; both are known from the type
and the source, without decoding the event. Rules a change must not break: the packets are those that `Projector` makes
of the decoded event, joined and completed; and they depend on nothing before the last start or end of a turn, so that a
client can connect in the middle.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from ...model.events import CustomEvent, MessageCompleteEvent, decode_event
from ..acp.content import to_block
from .project import Projector
from .updates import Made, packet_from_update

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


READ = frozenset(("tool:result", "tool:error", "approval:requested", "interaction:question", "custom"))
"""Events that are read also when they have a source: it is no update, or not all of the packet."""
RIDING = frozenset(("tool:result", "tool:error", "interaction:question", "custom"))
"""Of those, the ones that may have a packet although their source rides on an earlier event."""
SPEECH = frozenset(("message:start", "message:delta", "thinking:start", "thinking:delta"))
TURN = frozenset(("turn_started", "turn_ended"))

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _Stamp(Struct):
    timestamp: str


class _Block(Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _Chunk(Struct, rename="camel"):
    """A piece of text with nothing about it that would need care: nearly all that agents send."""

    session_update: Literal["agent_message_chunk", "agent_thought_chunk"]
    content: _Block
    field_meta: None = msgspec.field(default=None, name="_meta")


_stamp = msgspec.json.Decoder(_Stamp).decode
_chunk = msgspec.json.Decoder(_Chunk).decode


class PacketStream:
    """The packets of a session's stored events, in order."""

    def __init__(self) -> None:
        self._projector = Projector()
        self._documented = Documented()

    def copy(self) -> PacketStream:
        other = PacketStream()
        other._projector = copy.deepcopy(self._projector)
        other._documented = self._documented.copy()
        return other

    def take(self, kind: str, data: bytes, source: bytes | None) -> list[Made]:
        """The packets of an event by its type, its JSON and its source. Raises ValidationError for what is no event."""
        if source and kind in SPEECH and (chunk := _from_chunk(data, source)):
            return chunk
        if source and kind not in READ:
            return self._completed(_from_source(data, source))
        if source == b"" and kind not in RIDING:
            return []
        event = decode_event(data)
        event.source = source
        made = _joined(self._projector.project(event))
        if source is None:
            self._keep_names(made)
        packets = self._completed(made)
        if isinstance(event, CustomEvent) and event.namespace == "pilothouse" and event.event_name in TURN:
            self._projector = Projector()
            self._documented = Documented()
        return packets

    def _keep_names(self, packets: list[Made]) -> None:
        """What the hub tells of a call that its agent has announced changes nothing in what the agent calls it."""
        for packet in packets:
            if packet["type"] == "tool_call_progress" and self._documented.knows(packet["toolCallId"]):
                packet["title"] = packet["kind"] = None

    def _completed(self, packets: list[Made]) -> list[Made]:
        complete = self._documented.complete
        return [made for packet in packets for made in complete(packet)]


def _from_chunk(data: bytes, source: bytes) -> list[Made]:
    """What the long way would give for a plain piece of text; nothing for any other update."""
    try:
        chunk = _chunk(source)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    kind = chunk.session_update
    content = {"_meta": None, "annotations": None, "type": "text", "text": chunk.content.text}
    return [
        {"type": kind, "timestamp": _stamp(data).timestamp, "sessionUpdate": kind, "content": content, "_meta": None}
    ]


def _joined(packets: list[Made]) -> list[Made]:
    """The end of a call that the agent told of, and what the hub knows of it, as one packet under the agent's title."""
    if len(packets) != 2 or {packet["type"] for packet in packets} != {"tool_call_progress"}:
        return packets
    told, known = packets
    more = {name: value for name, value in known.items() if value is not None and name not in ("title", "kind")}
    return [{**told, **more}]


def prompt_packets(kind: str, data: bytes, source: bytes | None) -> list[Made]:
    """What the user said, one `user_message` for each block: not part of a turn's stream, but of what is stored."""
    if kind != "message:complete" or source is not None or b'"role":"user"' not in data:
        return []
    event = decode_event(data)
    if not isinstance(event, MessageCompleteEvent) or event.role != "user":
        return []
    blocks = ({"_meta": None, "annotations": None, **to_block(part)} for part in event.content)
    return [{"type": "user_message", "timestamp": event.timestamp, "content": block, "_meta": None} for block in blocks]


def _from_source(data: bytes, source: bytes) -> list[Made]:
    try:
        update = _decode(source)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    packet = packet_from_update(update, _stamp(data).timestamp) if isinstance(update, dict) else None
    return [packet] if packet is not None else []


def encode_packet(packet: Made) -> bytes:
    """A packet as JSON on one line."""
    try:
        return _encode(packet)
    except (UnicodeError, OverflowError, ValueError):
        # numbers beyond 64 bits, and halves of characters: an agent's JSON may have them, and the encoder does not
        return json.dumps(packet, separators=(",", ":")).encode()
