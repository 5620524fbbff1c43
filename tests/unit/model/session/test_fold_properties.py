"""The fold as a whole: cuts, storage, ends, cost. Any events in any order, as odd adapters send them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.model.errors import ACPError
from pilothouse.model.events import EVENT_TYPES, CustomEvent, Event, MessageDeltaEvent, ProgressEvent
from pilothouse.model.records import (
    CommandOutput,
    CommitMade,
    CostBreakdown,
    EnvironmentAgent,
    EnvironmentContext,
    EnvironmentModel,
    EnvironmentProject,
    FileChange,
    ImageContent,
    OtherContent,
    TextContent,
    Todo,
    TokenUsage,
    WebFetched,
)
from pilothouse.model.session import Session, Text, dump, fold, load, status_after, summary
from pilothouse.model.session import state as session_state

IDS = st.sampled_from(["", "1", "2", "3"])
TEXT = st.sampled_from(["", "a", "bc\n", "é😀", "```"])
ROLE = st.sampled_from(["user", "assistant", "system"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
MAYBE_TEXT = st.none() | TEXT
CONTENT = st.one_of(
    st.builds(TextContent, text=TEXT), st.builds(ImageContent, url=TEXT), st.builds(OtherContent, block=JSON)
)
ERROR = st.builds(
    ACPError, code=st.sampled_from(["cancelled", "x"]), message=TEXT, recoverable=st.booleans(), details=JSON
)
RISK = st.sampled_from(["low", "high"])
CHANGE = st.sampled_from(["created", "modified", "deleted"])
LINES = st.none() | st.integers(-1, 5)
USAGE = st.builds(TokenUsage, input_tokens=st.integers(0, 9), output_tokens=st.integers(0, 9))
COST = st.builds(CostBreakdown, total=st.floats(0, 9), currency=st.just("USD"))
LOCATIONS = st.none() | st.lists(st.dictionaries(TEXT, JSON, max_size=1), max_size=1)
STRUCTURED = st.none() | st.builds(CommandOutput, exit_code=st.integers(0, 2), stdout=TEXT, stderr=TEXT)
TODOS = st.lists(st.builds(Todo, content=TEXT, status=st.sampled_from(["pending", "completed"])), max_size=2)
ENVIRONMENT = st.builds(
    EnvironmentContext,
    agent=st.builds(EnvironmentAgent, name=TEXT, version=TEXT, display_name=TEXT),
    project=st.builds(EnvironmentProject, path=TEXT, name=TEXT),
    model=st.none() | st.builds(EnvironmentModel, id=TEXT),
)

FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "session:started": {"agent": TEXT, "project_path": TEXT, "model": MAYBE_TEXT},
    "session:resumed": {},
    "session:paused": {},
    "session:completed": {"summary": st.builds(lambda: summary(Session()))},
    "session:error": {"error": ERROR},
    "session:status_changed": {"from_": st.just("idle"), "to": st.sampled_from(["idle", "running", "paused"])},
    "message:start": {"message_id": IDS, "role": ROLE},
    "message:delta": {"message_id": IDS, "role": ROLE, "delta": TEXT, "content": st.none() | CONTENT},
    "message:complete": {"message_id": IDS, "role": ROLE, "content": st.lists(CONTENT, max_size=2)},
    "thinking:start": {"message_id": IDS},
    "thinking:delta": {"message_id": IDS, "delta": TEXT, "content": st.none() | CONTENT},
    "thinking:complete": {"message_id": IDS, "content": TEXT, "redacted": st.none() | st.booleans()},
    "tool:start": {
        "tool_call_id": IDS,
        "name": TEXT,
        "category": st.sampled_from(["terminal", "other"]),
        "title": MAYBE_TEXT,
        "locations": LOCATIONS,
        "parent_tool_call_id": st.none() | IDS,
    },
    "tool:args_delta": {"tool_call_id": IDS, "delta": TEXT, "replace": st.booleans()},
    "tool:executing": {
        "tool_call_id": IDS,
        "name": TEXT,
        "input": st.dictionaries(TEXT, JSON, max_size=2),
        "risk_level": RISK,
        "requires_approval": st.booleans(),
        "risk_reasons": st.lists(TEXT, max_size=1),
    },
    "tool:result": {
        "tool_call_id": IDS,
        "name": TEXT,
        "output": TEXT,
        "duration": st.integers(0, 9),
        "structured": STRUCTURED,
    },
    "tool:error": {"tool_call_id": IDS, "name": TEXT, "error": ERROR, "output": MAYBE_TEXT, "structured": STRUCTURED},
    "approval:requested": {
        "request_id": IDS,
        "tool_call_id": IDS,
        "tool_name": TEXT,
        "tool_input": st.dictionaries(TEXT, JSON, max_size=1),
        "description": TEXT,
        "risk_level": RISK,
    },
    "approval:resolved": {
        "request_id": IDS,
        "tool_call_id": IDS,
        "approved": st.booleans(),
        "resolved_by": st.sampled_from(["user", "cancelled"]),
    },
    "file:change": {
        "path": IDS,
        "change_type": CHANGE,
        "diff": st.none() | st.just("@@ -1 +1 @@\n-a\n+b\n"),
        "lines_added": LINES,
        "tool_call_id": st.none() | IDS,
    },
    "file:batch": {
        "changes": st.lists(st.builds(FileChange, path=IDS, change_type=CHANGE, lines_removed=LINES), max_size=2),
        "tool_call_id": st.none() | IDS,
    },
    "subagent:spawned": {"sub_agent_id": IDS, "parent_tool_call_id": IDS, "task": TEXT},
    "subagent:progress": {"sub_agent_id": IDS, "message": TEXT, "progress": st.none() | st.floats(0, 100)},
    "subagent:completed": {"sub_agent_id": IDS, "parent_tool_call_id": IDS, "result": TEXT},
    "progress:todo_update": {"todos": TODOS},
    "progress:plan_mode": {"active": st.booleans(), "plan": MAYBE_TEXT, "mode_id": MAYBE_TEXT},
    "progress:update": {
        "label": TEXT,
        "tool_call_id": st.none() | IDS,
        "output": MAYBE_TEXT,
        "replace": st.booleans(),
        "percentage": st.none() | st.floats(0, 100),
        "locations": LOCATIONS,
    },
    "resource:token_usage": {"delta": USAGE, "cumulative": USAGE},
    "resource:cost": {"delta": COST, "cumulative": COST},
    "resource:context_window": {"used": st.integers(0, 9), "limit": st.integers(0, 9), "percentage": st.floats(0, 100)},
    "resource:rate_limit": {"retry_after": st.floats(0, 9), "limit": TEXT},
    "environment:info": {"context": ENVIRONMENT},
    "interaction:question": {"question_id": IDS, "question": TEXT, "tool_call_id": st.none() | IDS},
    "interaction:notification": {"level": st.sampled_from(["info", "error"]), "title": TEXT, "message": TEXT},
    "git:operation": {
        "operation": st.builds(CommitMade, message=TEXT, hash=TEXT, files_changed=st.just(0)),
        "tool_call_id": st.none() | IDS,
    },
    "web:operation": {"operation": st.builds(WebFetched, url=TEXT), "tool_call_id": st.none() | IDS},
}
CUSTOM_DATA = {
    "turnId": IDS,
    "stopReason": st.sampled_from(["end_turn", "cancelled"]),
    "usage": JSON,
    "questionId": IDS,
    "outcome": TEXT,
    "answer": JSON,
    "artifact": JSON,
    "availableCommands": JSON,
    "configOptions": st.lists(st.dictionaries(st.sampled_from(["id", "currentValue"]), JSON, max_size=2), max_size=2),
    "title": MAYBE_TEXT,
    "currentModeId": JSON,
    "compactionId": IDS,
    "status": TEXT,
    "summary": st.lists(st.fixed_dictionaries({"text": TEXT}), max_size=2) | JSON,
    "content": st.fixed_dictionaries({"text": TEXT}) | JSON,
    "entries": st.lists(st.fixed_dictionaries({"content": TEXT, "status": st.just("pending")}), max_size=2) | JSON,
    "modes": st.fixed_dictionaries({"currentModeId": TEXT, "availableModes": JSON}) | JSON,
    "plan": st.fixed_dictionaries({"planId": IDS, "content": TEXT}) | JSON,
}
CUSTOM_NAMES = [
    ("pilothouse", "turn_started"),
    ("pilothouse", "turn_ended"),
    ("pilothouse", "question_answered"),
    ("pilothouse", "artifact_created"),
    ("pilothouse", "diagnostic"),
    *(
        ("acp", name)
        for name in (
            "available_commands_update",
            "config_option_update",
            "session_info_update",
            "current_mode_update",
            "compaction_update",
            "compaction_summary_chunk",
            "plan",
            "plan_update",
            "session_setup",
            "unknown_update",
        )
    ),
]
HEAD = {
    "seq": st.integers(0, 60),
    "session_id": st.just("s"),
    "timestamp": st.sampled_from(["", "2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z", "junk"]),
}


def customs(name: tuple[str, str]) -> st.SearchStrategy[Event]:
    data: Any = st.fixed_dictionaries({}, optional=CUSTOM_DATA)  # type: ignore[arg-type]
    return st.builds(CustomEvent, **HEAD, namespace=st.just(name[0]), event_name=st.just(name[1]), data=data)  # type: ignore[arg-type]


BY_KIND = [st.builds(EVENT_TYPES[kind], **HEAD, **fields) for kind, fields in FIELDS.items()]  # type: ignore[arg-type]
EVENTS = st.lists(st.one_of(*BY_KIND, *map(customs, CUSTOM_NAMES)), max_size=40)


def numbered(events: list[Event]) -> list[Event]:
    """The events as a log numbers them, so that none is a repetition; some stay without a number."""
    for number, event in enumerate(events, 1):
        event.seq = number if event.seq % 4 else 0
    return events


def test_the_generator_knows_every_event() -> None:
    assert {*FIELDS, "custom"} == set(EVENT_TYPES)


@settings(max_examples=400, deadline=None)
@given(EVENTS, st.data(), st.booleans())
def test_folding_from_any_cut_through_storage_gives_the_same_session(
    events: list[Event], data: st.DataObject, in_order: bool
) -> None:
    if in_order:
        numbered(events)
    whole = fold(events)
    cut = data.draw(st.integers(0, len(events)))
    stored = dump(fold(events[:cut]))
    parted = fold(events[cut:], into=load(stored))
    assert parted == whole
    assert parted.snapshot() == whole.snapshot()
    assert dump(parted) == dump(whole)
    assert load(dump(whole)) == whole


@settings(max_examples=200, deadline=None)
@given(EVENTS)
def test_the_tables_say_what_the_state_says(events: list[Event]) -> None:
    session = fold(numbered(events))
    rebuilt = load(dump(session)).index
    for name in session.index.__slots__:
        if name in ("open", "pending"):
            assert list(getattr(session.index, name).values()) == list(getattr(rebuilt, name).values())
        else:
            assert getattr(session.index, name) == getattr(rebuilt, name)


@settings(max_examples=200, deadline=None)
@given(EVENTS, st.sampled_from(["end_turn", "cancelled"]))
def test_every_call_that_starts_ends_with_the_turn(events: list[Event], reason: str) -> None:
    session = fold(numbered(events))
    current = session.turn.turn_id if session.turn is not None else "t"
    head = {"seq": 0, "session_id": "s", "timestamp": "2026-01-01T00:00:09Z"}
    data = {"turnId": current, "stopReason": reason}
    before = [call for call in session.tool_calls if not call.ended]
    session.apply(CustomEvent(**head, namespace="pilothouse", event_name="turn_ended", data=data))  # type: ignore[arg-type]
    assert all(call.ended and call.ended_at is not None for call in session.tool_calls)
    assert {call.status for call in before} <= {"cancelled" if reason == "cancelled" else "failed"}
    assert session.pending_approvals == session.pending_questions == []
    assert all(message.done for message in session.messages)
    assert session.status not in ("running", "thinking", "waiting_for_approval", "waiting_for_input")


@settings(max_examples=100, deadline=None)
@given(EVENTS)
def test_events_are_not_changed_by_the_fold(events: list[Event]) -> None:
    before = [repr(event) for event in events]
    fold([*events, *events])
    assert [repr(event) for event in events] == before


@settings(max_examples=100, deadline=None)
@given(EVENTS)
def test_the_status_is_the_one_that_each_event_implies(events: list[Event]) -> None:
    session = Session()
    for event in numbered(events):
        before = session.status
        session.apply(event)
        turn = session.turn.open if session.turn is not None else None
        pending = bool(session.pending_approvals or session.pending_questions)
        assert session.status == status_after(before, event, pending=pending, turn=turn)


def characters_joined(monkeypatch: pytest.MonkeyPatch, events: list[Event]) -> tuple[int, Session]:
    """How many characters the fold itself puts together. Every read of a growing text is counted in full."""
    count = 0
    read = Text.__str__

    def counting(self: Text) -> str:
        nonlocal count
        text = read(self)
        count += len(text)
        return text

    with monkeypatch.context() as patch:
        patch.setattr(Text, "__str__", counting)
        session = fold(events)
    return count, session


def stream(length: int) -> list[Event]:
    head = {"session_id": "s", "timestamp": "2026-01-01T00:00:00Z"}
    events: list[Event] = []
    for number in range(length):
        said = {"message_id": "m", "role": "assistant", "delta": "word "}
        events.append(MessageDeltaEvent(seq=2 * number + 1, **head, **said))  # type: ignore[arg-type]
        printed = {"label": "", "tool_call_id": "c", "output": "line\n"}
        events.append(ProgressEvent(seq=2 * number + 2, **head, **printed))  # type: ignore[arg-type]
    return events


def test_a_stream_is_never_joined_while_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    count, session = characters_joined(monkeypatch, stream(2000))
    assert count == 0
    assert session.messages[0].text == "word " * 2000
    assert str(session.tool_calls[0].output) == "line\n" * 2000


def test_dropping_notifications_walks_the_items_once_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_state, "CHATTER_LIMIT", 10)
    walks = 0
    drop = Session._drop_chatter

    def counting(self: Session) -> None:
        nonlocal walks
        walks += 1
        drop(self)

    monkeypatch.setattr(Session, "_drop_chatter", counting)
    head = {"session_id": "s", "timestamp": ""}
    events = [
        EVENT_TYPES["interaction:notification"](seq=n + 1, **head, level="info", title=str(n), message="")  # type: ignore[arg-type,call-arg]
        for n in range(1000)
    ]
    session = fold(events)
    assert walks <= 1000 // 10
    assert len(session.items) + session.chatter_dropped == 1000
