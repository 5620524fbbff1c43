"""Frames of stored events for SSE and packet streams: encoded once, and shared by all clients at the same cursor.

A lane selects and encodes the entries that a stream carries. Frames of a batch are cached for a moment under its first
and last position, so a hundred clients that are woken together cost one encoding. Packets depend on what came before in
the same turn; that state is a value handed along with each batch, so a client that reconnects in the middle gets what
it would have got. `TurnIndex` finds where the turns of a session are in its log.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ...dialects.packets.documented import PacketStream, encode_packet, prompt_packets
from ...log.contract import EventLog
from ...log.entries import Entry
from ...model.errors import ValidationError
from ...model.events import CustomEvent, decode_event
from ..frame_cache import FrameCache
from .sse import event_frame, packet_frames

KEPT = 64
"""Sessions whose turns are remembered."""
_MARKS = (b'"turn_started"', b'"turn_ended"', b'"prompt_queued"', b'"prompt_cancelled"')


def turn_mark(entry: Entry) -> tuple[str, str] | None:
    """What an entry says of a turn as a whole: the name of the fact, and the turn's id."""
    data = entry.data
    if entry.type != "custom" or not any(mark in data for mark in _MARKS):
        return None
    try:
        event = decode_event(data)
    except ValidationError:
        return None
    if not isinstance(event, CustomEvent) or event.namespace != "pilothouse":
        return None
    turn_id = event.data.get("turnId") or event.data.get("promptId")
    return (event.event_name, turn_id) if isinstance(turn_id, str) else None


class TurnIndex(Struct):
    """One session's turns as far as the log was read."""

    upto: int = 0
    marks: dict[str, tuple[str, int]] = {}
    """By turn, what was told of it last and where: that it waits, that it began, or that it never will."""
    borders: list[int] = []
    """The seqs of turns' beginnings and ends: packets depend on nothing before."""

    def add(self, entry: Entry) -> None:
        self.upto = entry.seq
        mark = turn_mark(entry)
        if mark is None:
            return
        name, turn_id = mark
        if name in ("turn_started", "turn_ended"):
            self.borders.append(entry.seq)
        if name != "turn_ended":
            self.marks[turn_id] = (name, entry.seq)


class TurnIndexes:
    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._known: OrderedDict[str, TurnIndex] = OrderedDict()

    async def border_before(self, session_id: str, seq: int) -> int:
        """The last beginning or end of a turn at this seq or before; 0 when there is none. Raises UnknownSession."""
        index = await self._read(session_id, seq)
        place = bisect_right(index.borders, seq)
        return index.borders[place - 1] if place else 0

    async def find(self, session_id: str, turn_id: str) -> tuple[str, int] | None:
        """`prompt_queued`, `turn_started` or `prompt_cancelled`, and at which seq; None for a turn not heard of.

        Raises UnknownSession.
        """
        index = await self._read(session_id, await self._log.last_seq(session_id))
        return index.marks.get(turn_id)

    async def _read(self, session_id: str, upto: int) -> TurnIndex:
        index = self._known.get(session_id)
        if index is None:
            index = self._known[session_id] = TurnIndex()
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(session_id)
        while index.upto < upto:
            before = index.upto
            entries = await self._log.read(session_id, before)
            if not entries:
                break
            for entry in entries:
                if entry.seq > index.upto:  # somebody else may have read on meanwhile
                    index.add(entry)
        return index


logger = logging.getLogger(__name__)

Memory: TypeAlias = PacketStream
"""What the packets of the next batch depend on. It is never changed, only replaced."""
NOTHING = PacketStream()


class Lane(Struct, frozen=True):
    """Events as they are stored, or packets; numbered by `seq` or, over all sessions, by `position`.

    `types` are the wanted types, with `*` at the end for all that begin so; none means all. `prompts`: what the user
    said is among the packets.
    """

    kind: Literal["events", "packets"]
    by: Literal["seq", "position"] = "seq"
    source: bool = False
    types: tuple[str, ...] = ()
    prompts: bool = False


class Batch(NamedTuple):
    frames: bytes
    memory: Memory
    upto: int
    """The number of the last frame; 0 when there is none."""


class Feeds:
    """Frames and JSON values of entries, by lane."""

    def __init__(self, log: EventLog, cache: FrameCache, root_path: str = "") -> None:
        self._root = root_path
        self.turns = TurnIndexes(log)
        self._log = log
        self._cache = cache

    async def memory(self, lane: Lane, session_id: str, after: int) -> Memory:
        """What a consumer that stands at a seq has to know. Raises UnknownSession."""
        if lane.kind != "packets" or after == 0:
            return NOTHING
        stream = PacketStream()
        cursor = await self.turns.border_before(session_id, after)
        while cursor < after:
            entries = await self._log.read(session_id, cursor, min(after - cursor, 1024))
            for entry in entries:
                if entry.source is None or entry.type not in SPEECH:  # pieces of text leave nothing to remember
                    self._made(stream, entry)
            cursor = entries[-1].seq if entries else after
        return stream

    def frames(self, lane: Lane, entries: Sequence[Entry], memory: Memory = NOTHING) -> Batch:
        """The frames of consecutive entries, joined, and what those that follow depend on."""
        key = (lane, entries[0].position, entries[-1].position)
        batch: Batch | None = self._cache.get(key)
        if batch is None:
            batch = self._events(lane, entries) if lane.kind == "events" else self._packets(lane, entries, memory)
            self._cache.put(key, batch, len(batch.frames))
        return batch

    def values(self, lane: Lane, entries: Sequence[Entry], memory: Memory = NOTHING) -> tuple[list[bytes], Memory]:
        """The same as JSON values."""
        wanted = chosen(lane.types)
        if lane.kind == "events":
            return [_event(lane, entry) for entry in entries if wanted(entry.type)], memory
        stream = memory.copy()
        values = []
        for entry in entries:
            made = self._made(stream, entry, prompts=lane.prompts)
            values += [encode_packet(packet) for packet in made if wanted(packet["type"])]
        return values, stream

    def _events(self, lane: Lane, entries: Sequence[Entry]) -> Batch:
        if lane == PLAIN:  # by far the most: one loop, nothing looked at
            frames = b"".join([b"id: %d\ndata: %b\n\n" % (entry.seq, entry.data) for entry in entries])
            return Batch(frames, NOTHING, entries[-1].seq)
        wanted = chosen(lane.types)
        told = [entry for entry in entries if wanted(entry.type)]
        numbers = [entry.seq if lane.by == "seq" else entry.position for entry in told]
        frames = b"".join(
            [event_frame(number, _line(_event(lane, entry))) for number, entry in zip(numbers, told, strict=True)]
        )
        return Batch(frames, NOTHING, numbers[-1] if numbers else 0)

    def _packets(self, lane: Lane, entries: Sequence[Entry], memory: Memory) -> Batch:
        wanted = chosen(lane.types)
        stream = memory.copy()
        frames = []
        upto = 0
        for entry in entries:
            packets = [encode_packet(packet) for packet in self._made(stream, entry) if wanted(packet["type"])]
            if packets:
                frames.append(packet_frames(entry.seq, packets))
                upto = entry.seq
        return Batch(b"".join(frames), stream, upto)

    def _made(self, stream: PacketStream, entry: Entry, *, prompts: bool = False) -> list[dict[str, Any]]:
        try:
            if prompts and (said := prompt_packets(entry.type, entry.data, entry.source)):
                return said
            packets = stream.take(entry.type, entry.data, entry.source)
        except Exception:  # one event that cannot be read must not keep all others away
            logger.exception("session %s: event %d has no packets", entry.session_id, entry.seq)
            return []
        if self._root and entry.type == "custom":
            _place(packets, self._root)
        return packets


PLAIN = Lane("events")
SPEECH = frozenset(("message:delta", "thinking:delta"))


def chosen(types: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a type is wanted."""
    if not types:
        return lambda kind: True
    names = {name for name in types if not name.endswith("*")}
    beginnings = tuple(name[:-1] for name in types if name.endswith("*"))
    return lambda kind: kind in names or (bool(beginnings) and kind.startswith(beginnings))


def _event(lane: Lane, entry: Entry) -> bytes:
    if not lane.source or entry.source is None:
        return entry.data
    return b'%b,"source":%b}' % (entry.data[:-1], entry.source or b"null")


def _line(data: bytes) -> bytes:
    """JSON on one line: breaks in it can only be blanks between its parts."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


def _place(packets: list[dict[str, Any]], root: str) -> None:
    """Addresses of artifacts as a consumer of a hub below a path has to ask for them."""
    for packet in packets:
        if packet["type"] == "artifact_created":
            made = packet["artifact"]
            made |= {name: f"{root}{made[name]}" for name in ("preview_url", "download_url") if made[name]}
