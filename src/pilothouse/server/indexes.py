"""Where the turns of a session lie in its log, found once and then kept up as the log grows."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict

from msgspec import Struct

from ..log.base import EventLog
from ..log.entries import Entry
from ..model.errors import ValidationError
from ..model.events import CustomEvent, decode_event

__all__ = ["TurnIndex", "TurnIndexes", "turn_mark"]

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
