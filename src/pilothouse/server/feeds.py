"""What consumers get of stored events: bytes made once, and shared by all that stand at the same place.

A lane says what is wanted of an entry. Frames of a batch are kept for a moment under its first and last position, so a
hundred consumers that are woken together cost one encoding. Packets depend on what came before in the same turn; that
memory is a value handed along with each batch, so a consumer that comes back in the middle gets what it would have
got, and the frames can be shared all the same.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ..dialects.packets.stored import PacketStream, encode_packet, prompt_packets
from ..log.base import EventLog
from ..log.entries import Entry
from .indexes import TurnIndexes
from .sse import event_frame, packet_frames

__all__ = ["Batch", "Feeds", "Lane", "Memory", "chosen"]

logger = logging.getLogger(__name__)

KEPT_BYTES = 8 << 20
KEPT_COUNT = 256
"""What is kept of frames lately made, all lanes together."""

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

    def __init__(self, log: EventLog, root_path: str = "") -> None:
        self._root = root_path
        self.turns = TurnIndexes(log)
        self._log = log
        self._kept: OrderedDict[tuple[Lane, int, int], Batch] = OrderedDict()
        self._used = 0

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
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        made = self._events(lane, entries) if lane.kind == "events" else self._packets(lane, entries, memory)
        self._keep(key, made)
        return made

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

    def _keep(self, key: tuple[Lane, int, int], batch: Batch) -> None:
        self._kept[key] = batch
        self._used += len(batch.frames)
        while self._used > KEPT_BYTES or len(self._kept) > KEPT_COUNT:
            self._used -= len(self._kept.popitem(last=False)[1].frames)


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
