"""An entry is one event as the log keeps and hands it out: bytes, encoded once, shared by every client.

An event or source that is too large for one commit is written ahead of it in slices, found by session, seq and part. A
session's events are committed in order, so a slice beyond the session's last seq belongs to no event: the writer died,
or the event was refused. The rule a change must not break: an event is committed only after the last of its slices, and
slices of an earlier attempt are deleted before the first is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice, repeat
from typing import NamedTuple

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


SLICE_BYTES = 512 << 10
"""An event or source beyond this is written in such pieces; one of them is written in a few milliseconds."""


class Slice(NamedTuple):
    seq: int
    part: str
    number: int
    body: memoryview


def is_large(entry: Entry) -> bool:
    return len(entry.data) > SLICE_BYTES or (entry.source is not None and len(entry.source) > SLICE_BYTES)


def slices(entries: Iterable[Entry]) -> Iterator[Slice]:
    """The pieces of all that is large, in order."""
    for entry in entries:
        for part, body in (("event", entry.data), ("source", entry.source)):
            if body is not None and len(body) > SLICE_BYTES:
                view = memoryview(body)
                for number, start in enumerate(range(0, len(body), SLICE_BYTES)):
                    yield Slice(entry.seq, part, number, view[start : start + SLICE_BYTES])


def write_slice(db: sqlite3.Connection, session: int, piece: Slice) -> None:
    if piece.number == 0:
        sql = "DELETE FROM slices WHERE session = ? AND seq = ? AND part = ?"
        db.execute(sql, (session, piece.seq, piece.part))
    db.execute("INSERT INTO slices (session, seq, part, number, body) VALUES (?, ?, ?, ?, ?)", (session, *piece))


def read_slices(db: sqlite3.Connection, session: int, seq: int, part: str) -> bytes | None:
    """What was written in slices; None when nothing was."""
    sql = "SELECT body FROM slices WHERE session = ? AND seq = ? AND part = ? ORDER BY number"
    bodies = [body for (body,) in db.execute(sql, (session, seq, part))]
    return b"".join(bodies) if bodies else None


def drop_beyond(db: sqlite3.Connection, session: int, last: int) -> None:
    """Take away the slices of a session that no event has."""
    db.execute("DELETE FROM slices WHERE session = ? AND seq > ?", (session, last))


def sweep(db: sqlite3.Connection) -> None:
    """Take away what a writer that died left of all sessions."""
    sql = "SELECT session, max(seq) FROM slices GROUP BY session"
    for session, newest in db.execute(sql).fetchall():
        (last,) = db.execute("SELECT coalesce(max(seq), 0) FROM batches WHERE session = ?", (session,)).fetchone()
        if newest > last:
            drop_beyond(db, session, last)
