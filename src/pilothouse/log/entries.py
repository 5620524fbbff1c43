"""An entry is one event as the log keeps and hands it out: bytes, encoded once, shared by every consumer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, islice, repeat

import msgspec

from ..model.events import Event, encode_event
from .errors import LogError

ENTRY_OVERHEAD = 250
"""Bytes an entry costs in memory beyond its data: the objects around it."""

MANY = 8
"""Events that are encoded all at once rather than one by one; a few may be large, and that way takes one copy more."""

_UNWRITABLE = (UnicodeError, TypeError, ValueError, RecursionError, OverflowError)
_encode_lines = msgspec.json.Encoder().encode_lines


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One event in the log. `data` is its JSON, `seq` included.

    `position` counts over all sessions: it grows with each entry but may leave out numbers. `source` is the verbatim
    ACP update, `None` where there was none, empty where it rides on an earlier event.
    """

    session_id: str
    seq: int
    position: int
    type: str
    data: bytes
    source: bytes | None = None

    @property
    def size(self) -> int:
        return len(self.data) + len(self.source or b"")


def weights_of(entries: Iterable[Entry]) -> list[int]:
    """Bytes that each takes in memory: its event, its source and the objects around them."""
    return [len(entry.data) + len(entry.source or b"") + ENTRY_OVERHEAD for entry in entries]


def number(session_id: str, expected: int, events: Sequence[Event], position: int) -> list[Entry]:
    """Give events their numbers (`expected` + 1 and on) and encode them, each once. `position` is the last one given.

    Raises LogError for an event that is of another session or cannot be written as JSON.
    """
    if expected < 0:
        raise ValueError(f"`expected` is the last seq, 0 for none; got {expected!r}")
    for seq, event in enumerate(events, expected + 1):
        if event.session_id != session_id:
            raise LogError(f"an event of session {event.session_id!r} can't be appended to session {session_id!r}")
        event.seq = seq
    types = [event.type for event in events]
    sources = [event.source for event in events]
    numbers, places = count(expected + 1), count(position + 1)
    return list(map(Entry, repeat(session_id), numbers, places, types, _encoded(events), sources))


def _encoded(events: Sequence[Event]) -> list[bytes]:
    """The JSON of each. Raises LogError."""
    if len(events) >= MANY:
        try:
            lines = _encode_lines(events).split(b"\n")  # JSON has no other line breaks
        except _UNWRITABLE:
            pass  # below it is found out which one it is
        else:
            if len(lines) == len(events) + 1:
                return lines[:-1]
    return [_encoded_one(event) for event in events]


def _encoded_one(event: Event) -> bytes:
    try:
        return encode_event(event)
    except _UNWRITABLE as exc:
        raise LogError(f"event `{event.type}` can't be written as JSON: {exc}") from exc


def cut(entries: Iterable[Entry], limit: int, max_bytes: int) -> list[Entry]:
    """The first entries: at most `limit`, and no further one once there are so many bytes."""
    taken: list[Entry] = []
    size = 0
    for entry in islice(entries, max(limit, 0)):
        taken.append(entry)
        size += entry.size
        if size >= max_bytes:
            break
    return taken
