"""What the editor has been shown of each session: enough to go on at the very next update when the hub had to be
reached again. No I/O.

An update is looked into only when it must be: of a line that is passed on, no more is done than keeping it as the last
of its session. Rule a change must not break: what counts as seen is what was passed on, no more and no less.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

UPDATE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'
"""How every update of a hub begins; the session's id follows."""
MORE = b',"more":true}'
"""In every update that others of the same event follow."""
UNKNOWN = -1
"""The seq of a session of which the editor only wants what comes, and nothing has come yet."""
KEPT = 64 << 10
"""Bytes of a last line that is kept to be looked into later; of a longer one only its seq is."""


class Ours(Struct):
    seq: int = 0
    more: bool = False


class Meta(Struct):
    pilothouse: Ours | None = None


class Update(Struct):
    _meta: Meta | None = None


class Params(Struct):
    update: Update | None = None


class Line(Struct):
    params: Params | None = None


_line = msgspec.json.Decoder(Line).decode


class Begun(NamedTuple):
    """An event of which some updates were passed on, and others follow."""

    seq: int
    times: int


def key_of(session_id: str) -> bytes:
    """A session's id as it stands in its updates."""
    return msgspec.json.encode(session_id)[1:-1]


class View:
    """One session that the editor has open. `seq` is known to be complete; `last` may say that more is."""

    __slots__ = (
        *("base", "begun", "careful", "last", "left_out", "own", "params", "seq", "session_id", "stale", "status"),
    )

    def __init__(self, session_id: str, seq: int) -> None:
        self.session_id = session_id
        self.seq = seq
        self.params: Raw | None = None
        """With what the editor opened it."""
        self.base = seq
        self.last: bytes | None = None
        self.begun: Begun | None = None
        self.left_out: Begun | None = None
        """Updates of the begun event that will come again and are not to be passed on again."""
        self.stale = False
        """Whether the session is being told anew after `base`, and what comes may still be of the time before."""
        self.careful = False
        self.own: set[str] = set()
        """Prompts of this editor that were not answered by the hub: what they said is not to be said back."""
        self.status = ""

    def cursor(self) -> int:
        """The seq up to which the editor has everything."""
        if self.last is not None:
            self.seq = _facts(self.last).seq or self.seq
            self.last = None
        return self.seq

    def told(self, seq: int) -> None:
        """The hub says that everything up to a seq has been sent."""
        self.seq = max(self.cursor(), seq)
        self.begun = self.left_out = None
        self.stale = self.careful = False

    def noted(self, seq: int) -> None:
        """Something else than an update was passed on that has a seq."""
        if self.begun is None and not self.stale:
            self.seq = max(self.cursor(), seq)

    def lose(self) -> None:
        """What was seen is not in the log any more."""
        self.seq, self.last, self.begun = UNKNOWN, None, None

    def reload(self, after: int) -> None:
        """The editor opens it, and it is told after a seq; the first update that goes back shows where that starts."""
        self.base = after
        self.stale = self.careful = self.cursor() > after
        if not self.stale:
            self.seq = after
        self.begun = self.left_out = None

    def rejoin(self) -> int:
        """The connection is a new one: after which seq to go on. What comes twice by that is left out."""
        if self.stale:
            self.seq, self.last, self.stale = self.base, None, False
        self.left_out = self.begun
        self.careful = self.begun is not None
        return self.begun.seq - 1 if self.begun is not None else self.cursor()

    def passes(self, line: bytes) -> bool:
        """Take note of an update; whether it is new to the editor."""
        if self.careful or MORE in line:
            return self._looked_into(line)
        if len(line) > KEPT:
            self.seq, self.last = _facts(line).seq or self.cursor(), None
        else:
            self.last = line
        return True

    def _looked_into(self, line: bytes) -> bool:
        facts = _facts(line)
        if not facts.seq:
            return True
        if self.stale and facts.seq <= self.seq:
            self.stale = False
        left_out = self.left_out
        if left_out is not None and facts.seq == left_out.seq and left_out.times:
            self.left_out = Begun(left_out.seq, left_out.times - 1)
            return False
        self.left_out = None
        if facts.more:
            before = self.begun.times if self.begun is not None and self.begun.seq == facts.seq else 0
            self.begun = Begun(facts.seq, before + 1)
        else:
            self.begun, self.seq = None, facts.seq
        self.last = None
        self.careful = self.stale or self.begun is not None
        return True


class Views:
    """The sessions that the editor has open, by the key under which their updates name them."""

    def __init__(self) -> None:
        self._open: dict[bytes, View] = {}

    def all(self) -> list[View]:
        return list(self._open.values())

    def get(self, session_id: str) -> View | None:
        return self._open.get(key_of(session_id))

    def open(self, session_id: str, seq: int) -> View:
        """The view of a session; if there is none, one that has seen it up to a seq."""
        return self._open.setdefault(key_of(session_id), View(session_id, seq))

    def close(self, session_id: str) -> None:
        self._open.pop(key_of(session_id), None)

    def passes(self, line: bytes) -> bool:
        """Take note of a line that begins as `UPDATE` does; whether it is new to the editor."""
        view = self._open.get(line[len(UPDATE) : line.find(b'"', len(UPDATE))])
        return view is None or view.passes(line)

    def run(self, lines: Sequence[Any]) -> bytes | None:
        """Lines that are all plain updates of one session, as they are passed on; None for all others.

        They come like this in a flood, and need no look at each.
        """
        first = lines[0]
        if not first.startswith(UPDATE):
            return None
        head = first[: first.find(b'"', len(UPDATE)) + 1]
        view = self._open.get(head[len(UPDATE) : -1])
        if view is None or view.careful or not all(map(methodcaller("startswith", head), lines)):
            return None
        joined = b"\n".join(lines)
        if MORE in joined:
            return None
        view.passes(lines[-1])
        return joined


def _facts(line: bytes) -> Ours:
    """What the hub says of an update. Of one that cannot be read nothing is known, and it is passed on."""
    try:
        found = _line(line)
        return found.params.update._meta.pilothouse or Ours()  # type: ignore[union-attr]
    except (msgspec.DecodeError, UnicodeError, RecursionError, AttributeError):
        return Ours()
