"""An entry is one event as the log keeps and hands it out: bytes, encoded once, shared by every consumer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from ..model.events import Event, encode_event
from .errors import LogError


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


def number(session_id: str, expected: int, events: Sequence[Event], position: int) -> list[Entry]:
    """Give events their numbers (`expected` + 1 and on) and encode them, each once. `position` is the last one given.

    Raises LogError for an event that is of another session or cannot be written as JSON.
    """
    if expected < 0:
        raise ValueError(f"`expected` is the last seq, 0 for none; got {expected!r}")
    entries = []
    shift = position - expected
    for seq, event in enumerate(events, expected + 1):
        if event.session_id != session_id:
            raise LogError(f"an event of session {event.session_id!r} can't be appended to session {session_id!r}")
        event.seq = seq
        try:
            data = encode_event(event)
        except (UnicodeError, TypeError, ValueError, RecursionError, OverflowError) as exc:
            raise LogError(f"event `{event.type}` can't be written as JSON: {exc}") from exc
        entries.append(Entry(session_id, seq, shift + seq, event.type, data, event.source))
    return entries


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
