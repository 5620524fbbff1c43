"""The status of a session: which moves are legal, and which move an event implies.

Both are tables. The rule that a change must not break: only a turn makes an idle session run. Agents send updates
after their turn has ended (a late tool result, usage, the end of a background command), and those must not wake a
session that nobody will ever put to sleep again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast, get_args

from ..errors import ValidationError
from ..events import CustomEvent, Event, MessageStartEvent, SessionErrorEvent, SessionStatusChangedEvent
from ..records import SessionStatus

STATUSES: tuple[SessionStatus, ...] = get_args(SessionStatus)


def _set(*statuses: SessionStatus) -> frozenset[SessionStatus]:
    return frozenset(statuses)


WAITING = _set("waiting_for_approval", "waiting_for_input")
"""Somebody is asked something."""

ACTIVE = WAITING | _set("running", "thinking")
"""A turn is under way."""

_ENDS = _set("idle", "paused", "completed", "error")
"""Where any active status may go: the turn ended, or the session did."""

TRANSITIONS: Mapping[SessionStatus, frozenset[SessionStatus]] = {
    "starting": _set("idle", "running", "paused", "completed", "error"),
    "idle": ACTIVE | _set("starting", "paused", "completed", "error"),
    "running": _ENDS | WAITING | _set("thinking"),
    "thinking": _ENDS | WAITING | _set("running"),
    "waiting_for_approval": _ENDS | _set("running", "thinking", "waiting_for_input"),
    "waiting_for_input": _ENDS | _set("running", "thinking", "waiting_for_approval"),
    "paused": _set("starting", "idle", "running", "completed", "error"),
    "completed": _set("starting", "idle"),
    "error": _set("starting", "idle", "running", "completed"),
}
"""From each status, where it may go. Staying is not a move."""


def can_move(from_: SessionStatus, to: SessionStatus) -> bool:
    """Whether the table allows the move. A status that stays the same has not moved."""
    return to in TRANSITIONS.get(from_, frozenset())


def check_move(from_: SessionStatus, to: SessionStatus) -> None:
    """Raise ValidationError, naming both statuses, when the move is not legal."""
    if not can_move(from_, to):
        legal = ", ".join(status for status in STATUSES if can_move(from_, status)) or "nothing"
        raise ValidationError(f"A session that is {from_!r} cannot become {to!r}, only {legal}", "status")


class Move(NamedTuple):
    """An event takes a session that is in one of `leaves` to `to`, and leaves any other where it is."""

    leaves: frozenset[SessionStatus]
    to: SessionStatus


_TURN_ENDED = "pilothouse/turn_ended"
_OUT = _set("starting", "paused", "completed", "error")
_WORK = Move(ACTIVE, "running")
_ANSWERED = Move(WAITING, "running")
_ENDED = Move(ACTIVE, "idle")
_FAILED = Move(ACTIVE, "error")
_RESUMED = Move(_OUT, "idle")

MOVES: Mapping[str, Move] = {
    # A session that is started or resumed inside of a turn (the agent was restarted for it) goes on with that turn.
    "session:started": Move(_OUT, "idle"),
    "session:resumed": _RESUMED,
    "session:paused": Move(ACTIVE | _set("starting", "idle"), "paused"),
    "session:completed": Move(frozenset(STATUSES), "completed"),
    "session:error": Move(frozenset(STATUSES) - _set("completed"), "error"),
    # A paused session starts no turn of its own accord; if the log says one began, it began.
    "pilothouse/turn_started": Move(frozenset(STATUSES) - _set("completed"), "running"),
    # `paused` and `error` outlive the turn in which they came about.
    _TURN_ENDED: _ENDED,
    # A turn that failed is told until the next one begins; nothing keeps that from beginning.
    f"{_TURN_ENDED} error": _FAILED,
    "pilothouse/question_answered": _ANSWERED,
    "approval:resolved": _ANSWERED,
    # A background command may ask although no turn is open, so these two leave `idle` as well.
    "approval:requested": Move(ACTIVE | _set("idle"), "waiting_for_approval"),
    "interaction:question": Move(ACTIVE | _set("idle"), "waiting_for_input"),
    "thinking:start": Move(ACTIVE, "thinking"),
    "thinking:complete": Move(_set("thinking"), "running"),
    "message:start": _WORK,
    "tool:start": _WORK,
    "tool:executing": _WORK,
}
"""What each event implies. Custom events stand under `namespace/eventName`, a turn that ended by an error under a name
of its own; events that are not here move nothing."""


def status_after(status: SessionStatus, event: Event, *, pending: bool, turn: bool | None = None) -> SessionStatus:
    """The status of a session in `status` after `event`.

    `pending` says whether an approval or a question is open once the event has happened, `turn` whether a turn is
    (None: not known, as with agents that do not tell). While something is pending, a session that waits goes on
    waiting whatever else its agent does meanwhile.
    """
    if type(event) is SessionStatusChangedEvent:
        return event.to
    move = MOVES.get(_key(event))
    if move is None or status not in move.leaves:
        return status
    if status in WAITING and pending and move.to in ("running", "thinking"):
        return status
    return _settle(status, move, turn)


def _settle(status: SessionStatus, move: Move, turn: bool | None) -> SessionStatus:
    """The end of the move, given whether a turn is open."""
    if turn is False and move is _ANSWERED:
        return "idle"  # asked and answered outside of any turn
    if turn and (move is _ENDED or move is _FAILED):
        return status  # the late end of an earlier turn
    if turn and move is _RESUMED and can_move(status, "running"):
        return "running"
    return move.to


def _key(event: Event) -> str:
    """Under which name the event stands in MOVES; "" for one that moves nothing whatever its type."""
    kind = type(event)
    if kind is CustomEvent:
        custom = cast(CustomEvent, event)
        key = f"{custom.namespace}/{custom.event_name}"
        return f"{key} error" if key == _TURN_ENDED and custom.data.get("stopReason") == "error" else key
    if kind is MessageStartEvent and cast(MessageStartEvent, event).role != "assistant":
        return ""
    if kind is SessionErrorEvent and cast(SessionErrorEvent, event).error.recoverable:
        return ""
    return event.type
