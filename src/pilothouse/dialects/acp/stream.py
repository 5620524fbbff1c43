"""Where a translator puts the events of the update at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from ...model.events import DERIVED, ACPEvent, Event, SessionStatusChangedEvent, TodoUpdateEvent
from ...model.records import SessionStatus, Todo
from ...model.session import WAITING, status_after

__all__ = ["Stream"]


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
