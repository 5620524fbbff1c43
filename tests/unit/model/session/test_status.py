"""The status machine: legal moves, and the move that each event implies."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pilothouse.model.errors import ACPError, ValidationError
from pilothouse.model.events import EVENT_TYPES, CustomEvent, Event, SessionStatusChangedEvent
from pilothouse.model.records import SessionStatus, SessionSummary, TokenUsage
from pilothouse.model.session import (
    ACTIVE,
    MOVES,
    STATUSES,
    TRANSITIONS,
    WAITING,
    can_move,
    check_move,
    status_after,
)

FILLER: dict[str, dict[str, Any]] = {
    "session:completed": {
        "summary": SessionSummary(
            files_changed=[],
            token_usage=TokenUsage(input_tokens=0, output_tokens=0),
            duration=0,
            tool_calls_count=0,
            messages_count=0,
            error_count=0,
        )
    },
    "session:error": {"error": ACPError(code="x", message="x", recoverable=False)},
    "message:start": {"message_id": "m", "role": "assistant"},
    "thinking:start": {"message_id": "m"},
    "thinking:complete": {"message_id": "m", "content": ""},
    "tool:start": {"tool_call_id": "t", "name": "bash", "category": "terminal"},
    "tool:executing": {
        "tool_call_id": "t",
        "name": "bash",
        "input": {},
        "risk_level": "low",
        "requires_approval": False,
    },
    "tool:result": {"tool_call_id": "t", "name": "bash", "output": "", "duration": 0},
    "approval:requested": {
        "request_id": "a",
        "tool_call_id": "t",
        "tool_name": "bash",
        "tool_input": {},
        "description": "",
        "risk_level": "low",
    },
    "approval:resolved": {"request_id": "a", "tool_call_id": "t", "approved": True, "resolved_by": "user"},
    "interaction:question": {"question_id": "q", "question": "?"},
    "progress:update": {"label": "x", "tool_call_id": "t"},
    "resource:token_usage": {
        "delta": TokenUsage(input_tokens=1, output_tokens=1),
        "cumulative": TokenUsage(input_tokens=1, output_tokens=1),
    },
}


def event(kind: str) -> Event:
    if "/" in kind:
        namespace, _, name = kind.partition("/")
        return CustomEvent(seq=0, session_id="s", timestamp="", namespace=namespace, event_name=name, data={})
    return EVENT_TYPES[kind](seq=0, session_id="s", timestamp="", **FILLER.get(kind, {}))


def test_there_are_nine_statuses_and_each_has_its_moves() -> None:
    assert len(STATUSES) == 9
    assert set(TRANSITIONS) == set(STATUSES)
    assert all(moves <= set(STATUSES) and moves for moves in TRANSITIONS.values())


def test_staying_is_not_a_move() -> None:
    assert not any(can_move(status, status) for status in STATUSES)


def test_an_illegal_move_is_refused_by_an_error_that_names_both() -> None:
    check_move("idle", "running")
    with pytest.raises(ValidationError, match=r"'completed'.*'running'.*starting, idle"):
        check_move("completed", "running")


@pytest.mark.parametrize("kind", sorted(MOVES))
def test_no_event_makes_an_illegal_move(kind: str) -> None:
    for status, pending, turn in itertools.product(STATUSES, [True, False], [True, False, None]):
        after = status_after(status, event(kind), pending=pending, turn=turn)
        assert after == status or can_move(status, after), (status, after, pending, turn)


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        ("starting", "session:started", "idle"),
        ("idle", "pilothouse/turn_started", "running"),
        ("error", "pilothouse/turn_started", "running"),
        ("running", "thinking:start", "thinking"),
        ("thinking", "thinking:complete", "running"),
        ("thinking", "message:start", "running"),
        ("thinking", "tool:start", "running"),
        ("running", "approval:requested", "waiting_for_approval"),
        ("thinking", "approval:requested", "waiting_for_approval"),
        ("running", "interaction:question", "waiting_for_input"),
        ("waiting_for_approval", "approval:resolved", "running"),
        ("waiting_for_input", "pilothouse/question_answered", "running"),
        ("running", "pilothouse/turn_ended", "idle"),
        ("waiting_for_approval", "pilothouse/turn_ended", "idle"),
        ("idle", "session:paused", "paused"),
        ("paused", "session:resumed", "idle"),
        ("completed", "session:resumed", "idle"),
        ("idle", "session:completed", "completed"),
        ("running", "session:error", "error"),
        # what must stay
        ("running", "session:resumed", "running"),
        ("paused", "pilothouse/turn_ended", "paused"),
        ("error", "pilothouse/turn_ended", "error"),
        ("completed", "session:error", "completed"),
        ("completed", "pilothouse/turn_started", "completed"),
        ("idle", "approval:resolved", "idle"),
        ("paused", "tool:start", "paused"),
    ],
)
def test_an_event_implies_a_status(before: SessionStatus, kind: str, after: SessionStatus) -> None:
    assert status_after(before, event(kind), pending=False) == after


@pytest.mark.parametrize(
    "kind",
    [
        "thinking:start",
        "message:start",
        "tool:start",
        "tool:executing",
        "tool:result",
        "progress:update",
        "resource:token_usage",
        "approval:resolved",
        "pilothouse/question_answered",
        "acp/usage_update",
    ],
)
def test_late_events_leave_an_idle_session_idle(kind: str) -> None:
    assert status_after("idle", event(kind), pending=False) == "idle"


@pytest.mark.parametrize("kind", ["thinking:start", "message:start", "tool:start", "approval:resolved"])
@pytest.mark.parametrize("status", sorted(WAITING))
def test_a_session_waits_as_long_as_something_is_pending(status: SessionStatus, kind: str) -> None:
    assert status_after(status, event(kind), pending=True) == status
    assert status_after(status, event(kind), pending=False) in ("running", "thinking")


def test_an_approval_outside_of_a_turn_leads_back_to_idle() -> None:
    asked = status_after("idle", event("approval:requested"), pending=True, turn=False)
    assert asked == "waiting_for_approval"
    assert status_after(asked, event("approval:resolved"), pending=False, turn=False) == "idle"


def test_a_pause_inside_of_a_turn_ends_in_that_turn() -> None:
    assert status_after("paused", event("session:resumed"), pending=False, turn=True) == "running"


def test_the_late_end_of_an_earlier_turn_does_not_end_this_one() -> None:
    assert status_after("running", event("pilothouse/turn_ended"), pending=False, turn=True) == "running"


def test_what_the_user_says_and_an_error_that_passes_move_nothing() -> None:
    said = EVENT_TYPES["message:start"](seq=0, session_id="s", timestamp="", message_id="m", role="user")
    assert status_after("thinking", said, pending=False) == "thinking"
    passing = ACPError(code="x", message="x", recoverable=True)
    failed = EVENT_TYPES["session:error"](seq=0, session_id="s", timestamp="", error=passing)
    assert {status_after(status, failed, pending=False) for status in ACTIVE} == ACTIVE


def test_a_stated_change_counts_as_stated() -> None:
    changed = SessionStatusChangedEvent(seq=0, session_id="s", timestamp="", from_="idle", to="thinking")
    assert status_after("completed", changed, pending=True) == "thinking"
