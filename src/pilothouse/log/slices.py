"""Slices: how an event or source that is too large for one commit is written ahead of it, piece by piece.

They are found by session, seq and part. A session's events are committed in order, so a slice beyond the session's
last seq belongs to no event: the writer died, or the event was refused. The rule a change must not break: an event is
committed only after the last of its slices, and slices that an earlier try left are gone before the first is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .entries import Entry

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
