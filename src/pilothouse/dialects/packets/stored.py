"""Stored events as packets with the documents' fields, read no further than needed.

Most events either carry the update that their packet is made of, or have no packet at all; both can be told from the
type and the source without reading the event. Rules a change must not break: what comes out is what `Projector` makes
of the decoded event, joined and completed; and it depends on nothing before the last beginning or end of a turn, so
that whoever comes in the middle can take up the thread from there.
"""

from __future__ import annotations

import copy
import json
from typing import Literal

import msgspec
from msgspec import Struct

from ...model.events import CustomEvent, MessageCompleteEvent, decode_event
from ..acp.content import to_block
from .documented import Documented
from .project import Projector
from .updates import Made, packet_from_update

__all__ = ["PacketStream", "encode_packet", "prompt_packets"]

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
