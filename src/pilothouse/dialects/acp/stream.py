"""The output of a translator: the events of the current update, and the terminals whose output they show.

A terminal becomes known by its output, by its exit or by the call that names it, in any order. Its output before a call
names it is kept until then. The rule a change must not break: memory is bounded, however much is printed and however
many terminals come and go without being named.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from ...model.events import DERIVED, ACPEvent, Event, SessionStatusChangedEvent, TodoUpdateEvent
from ...model.records import SessionStatus, Todo
from ...model.session import WAITING, status_after


class Stream:
    """Events in order, stamped with session and time; the status moves with them."""

    def __init__(self, session_id: str, status: SessionStatus) -> None:
        self.session_id = session_id
        self.status = status
        self.is_held = status == "paused"
        """Whether no turn begins until the pause is over. A turn, or an agent, that was on its way ends no pause."""
        self.now = ""
        self.source: bytes | None = DERIVED
        self.waiting: dict[str, SessionStatus] = {}
        self.plan_mode = False
        self.turn: bool | None = None
        self._todos: list[Todo] | None = None
        self._events: list[ACPEvent] = []

    def emit(self, cls: type[Event], *, because: str | None = None, **fields: Any) -> Event:
        """Append an event, and the move of the status that it implies (`because` is that move's reason)."""
        event = cls(seq=0, session_id=self.session_id, timestamp=self.now, **fields)
        event.source = self.source
        self._events.append(cast(ACPEvent, event))
        status = status_after(self.status, event, pending=bool(self.waiting), turn=self.turn)
        if status in WAITING and self.status in WAITING and self.waiting:
            # of several questions the approvals are named first: they hold up what the agent wants to do
            asked = set(self.waiting.values())
            status = "waiting_for_approval" if "waiting_for_approval" in asked else "waiting_for_input"
        self.move(status, because)
        if self.is_held and self.status == "idle":
            self.move("paused")
        return event

    def move(self, status: SessionStatus, because: str | None = None) -> None:
        """Let the session be in a status, by an event unless it is."""
        if status != self.status:
            before, self.status = self.status, status
            self.emit(SessionStatusChangedEvent, from_=before, to=status, reason=because)

    @contextmanager
    def unsourced(self) -> Iterator[None]:
        """What is emitted in here was told by no update; consumers of updates get one made for it."""
        before, self.source = self.source, None
        try:
            yield
        finally:
            self.source = before

    def todos(self, items: Iterable[Mapping[str, Any]]) -> bool:
        """Append the list of things to do, unless it is the one that was told last."""
        todos = [_todo(item) for item in items]
        if todos == self._todos:
            return False
        self._todos = todos
        self.emit(TodoUpdateEvent, todos=todos)
        return True

    def take(self, source: bytes | None = None) -> list[ACPEvent]:
        """The events since the last time; `source` goes with the first of them."""
        events, self._events = self._events, []
        if source is not None and events:
            events[0].source = source
        return events


_STATUSES = ("pending", "in_progress", "completed")
_PRIORITIES = ("high", "medium", "low")


def _todo(item: Mapping[str, Any]) -> Todo:
    """An item of an agent's list; a word that the stream does not have is read as the most harmless one it has."""
    status, priority = item.get("status"), item.get("priority")
    return Todo(
        content=item["content"],
        status=status if status in _STATUSES else "pending",
        priority=priority if priority in _PRIORITIES else None,
        active_form=item.get("activeForm"),
    )


KEPT = 256 * 1024
"""Bytes of the end of an output that are kept, and that the result of its call has."""
MOST = 64
"""Terminals without a call that are kept after their end, for a call that may still name them."""


class Terminal:
    """One terminal; `call_id` is the call that shows it, `ended` whether its program has."""

    __slots__ = ("_pieces", "_size", "call_id", "ended", "exit_code", "left_out", "signal")

    def __init__(self) -> None:
        self._pieces: deque[str] = deque()
        self._size = 0
        self.left_out = 0
        self.call_id: str | None = None
        self.ended = False
        self.exit_code: int | None = None
        self.signal: str | None = None

    def print(self, text: str) -> None:
        """Keep the end of what is printed; the rest is counted."""
        text, cut = _end_of(text)
        self.left_out += cut
        self._pieces.append(text)
        self._size += len(text.encode())
        while self._size > KEPT:
            size = len(self._pieces.popleft().encode())
            self._size -= size
            self.left_out += size

    def end(self, output: str | None, left_out: int, exit_code: int | None, signal: str | None) -> None:
        """Its program ended; `output` is the true end of what that printed, if it is known."""
        self.ended, self.exit_code, self.signal = True, exit_code, signal
        if output is not None:
            self._pieces.clear()
            self._size, self.left_out = 0, left_out
            self.print(output)

    @property
    def text(self) -> str:
        """The end of what was printed."""
        return "".join(self._pieces)

    @property
    def shown(self) -> str:
        """The same, and what is missing of it."""
        return f"… {self.left_out:,} bytes left out …\n{self.text}" if self.left_out else self.text


def _end_of(text: str) -> tuple[str, int]:
    data = text.encode()
    if len(data) <= KEPT:
        return text, 0
    kept = data[-KEPT:].decode(errors="ignore")
    return kept, len(data) - len(kept.encode())


class Terminals:
    """The terminals of one session."""

    def __init__(self) -> None:
        self._known: dict[str, Terminal] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, terminal_id: str) -> Terminal:
        """The terminal of an id; a new one if it was never heard of."""
        return self._known.setdefault(terminal_id, Terminal())

    def of(self, ids: Iterable[str]) -> list[Terminal]:
        """Those of some ids of which something was heard."""
        found = (self._known.get(one) for one in ids)
        return [terminal for terminal in found if terminal is not None and (terminal.ended or terminal.text)]

    def let_go(self, call_id: str, ids: Iterable[str]) -> None:
        """Release the terminals of an ended call. Those with output are kept until the turn ends, at most `MOST`: a
        second call may show the same terminal, for example when the hub requested approval for its command."""
        for one in ids:
            terminal = self._known.get(one)
            if terminal is None or terminal.call_id != call_id:
                continue
            terminal.call_id = None
            if not terminal.text:
                del self._known[one]
        self.sweep()

    def sweep(self, most: int = MOST) -> None:
        """Forget those that ended and that no call names, the oldest first, but for so many."""
        over = [one for one, terminal in self._known.items() if terminal.ended and terminal.call_id is None]
        for one in over[: max(0, len(over) - most)]:
            del self._known[one]
