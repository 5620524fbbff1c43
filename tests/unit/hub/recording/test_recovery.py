"""What a dead hub left open ends by events; a session at rest gets none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilothouse.dialects.acp import Translator
from pilothouse.hub.recording.recovery import closing_events, end_open, fold
from pilothouse.log.memory import MemoryLog
from pilothouse.model.events import CustomEvent, Event, decode_event
from pilothouse.model.session import Session

NOW = "2026-01-01T00:00:00.000Z"
OPTIONS = [{"optionId": "y", "name": "Y", "kind": "allow_once"}]


def open_session() -> list[Event]:
    """A turn with words, a thought, a tool call, an approval, a question and a queued prompt, none of them ended."""
    one = Translator("s", workspace="/w")
    events: list[Event] = [*one.started(NOW, agent="a"), *one.prompt("hi", NOW, turn_id="t1")]
    events += one.fact("prompt_queued", {"promptId": "t2", "content": []}, NOW)
    events += one.fact("prompt_queued", {"promptId": "t3", "content": []}, NOW)
    events += one.fact("prompt_cancelled", {"promptId": "t3"}, NOW)
    call = {"toolCallId": "c", "title": "Run", "kind": "execute", "rawInput": {"command": "ls"}}
    events += one.update({"sessionUpdate": "tool_call", "status": "in_progress", **call}, NOW)
    params = {"sessionId": "x", "toolCall": {**call, "toolCallId": "d"}, "options": OPTIONS}
    events += one.permission(params, NOW, request_id="apr")
    events += one.question({"sessionId": "x", "message": "?", "requestedSchema": {}}, NOW, question_id="qst")
    chunk = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
    events += one.update(chunk, NOW)
    return events


@pytest.fixture
async def log() -> AsyncIterator[MemoryLog]:
    async with MemoryLog() as log:
        await log.sessions.create("s", agent="a", cwd="/w", status="running")
        yield log


def names(events: list[Event]) -> list[str]:
    return [event.event_name if isinstance(event, CustomEvent) else event.type for event in events]


async def test_everything_open_ends_once_and_in_order(log: MemoryLog) -> None:
    last = await log.append("s", 0, open_session())
    state, queued = await fold(log, "s")
    assert queued == ["t2"]
    events = closing_events(state, NOW, queued)
    assert names(events) == [
        "thinking:complete",
        "approval:resolved",
        "question_answered",
        "tool:error",
        "tool:error",
        "turn_ended",
        "prompt_cancelled",
        "session:status_changed",
    ]
    state = await end_open(log, await log.sessions.get("s"))
    assert state.seq == last + len(events)
    assert state.turn is not None
    assert (state.turn.stop_reason, state.status) == ("interrupted", "idle")
    assert (await log.sessions.get("s")).status == "idle"
    assert closing_events(*(await fold(log, "s"))[:1], NOW) == []
    assert (await end_open(log, await log.sessions.get("s"))).seq == state.seq


async def test_a_paused_session_stays_paused_but_its_turn_ends(log: MemoryLog) -> None:
    events = open_session()
    paused = Translator("s", workspace="/w", status="waiting_for_input").paused(NOW)
    await log.append("s", 0, [*events, *paused])
    state = await end_open(log, await log.sessions.get("s"))
    assert state.status == "paused"
    assert (await log.sessions.get("s")).status == "paused"
    assert state.turn is not None
    assert not state.turn.open


def test_a_session_at_rest_gets_no_events() -> None:
    assert closing_events(Session(id="s"), NOW) == []


async def test_a_turn_of_another_program_goes_on_and_only_what_was_asked_here_ends(log: MemoryLog) -> None:
    await log.sessions.create("w", agent="a", cwd="/w", status="running", meta={"watched": {"sessionId": "x"}})
    events = open_session()
    for event in events:
        event.session_id = "w"
    await log.append("w", 0, events)
    state = await end_open(log, await log.sessions.get("w"))
    kept = [decode_event(entry.data) for entry in await log.read("w", len(events))]
    assert names(kept) == ["thinking:complete", "approval:resolved", "question_answered", "session:status_changed"]
    assert state.turn is not None
    assert state.turn.open
    assert [call.ended for call in state.tool_calls] == [False, False]
    assert (state.status, (await log.sessions.get("w")).status) == ("running", "running")
    assert (await end_open(log, await log.sessions.get("w"))).seq == state.seq
    await log.sessions.update("w", archived=True)  # nobody reads it on
    state = await end_open(log, await log.sessions.get("w"))
    assert (state.status, state.turn is not None and state.turn.open) == ("idle", False)


TOUCH = {"toolCallId": "c", "title": "Run", "kind": "execute", "rawInput": {"command": "touch made"}}
RUNNING = {"sessionUpdate": "tool_call", "status": "in_progress", **TOUCH}


def started() -> tuple[Translator, list[Event]]:
    one = Translator("s", workspace="/w")
    return one, [*one.started(NOW, agent="a"), *one.prompt("hi", NOW, turn_id="t1")]


async def flags_after(log: MemoryLog, events: list[Event]) -> list[str]:
    await log.append("s", 0, events)
    state, _ = await fold(log, "s")
    before = state.seq
    await end_open(log, await log.sessions.get("s"))
    ended = [decode_event(entry.data) for entry in await log.read("s", before)]
    found = [event for event in ended if isinstance(event, CustomEvent)]
    return [event.data["toolCallId"] for event in found if event.event_name == "acted_without_asking"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"kind": "edit", "rawInput": {"file_path": "a.txt", "content": "x"}},
        {"kind": "read", "name": "mcp__bank__pay", "rawInput": {"to": "mallory"}},
        {"kind": "read", "name": "Skill", "rawInput": {"command": "touch made"}},
    ],
)
async def test_a_running_call_that_nothing_permits_is_flagged(log: MemoryLog, fields: dict[str, Any]) -> None:
    one, events = started()
    assert await flags_after(log, [*events, *one.update({**RUNNING, **fields}, NOW)]) == ["c"]


@pytest.mark.parametrize(
    "fields",
    [
        {"rawInput": {"command": "ls"}},
        {"kind": "read", "rawInput": {"file_path": "/etc/hosts"}},
        {"kind": "other", "title": "skill", "rawInput": {"name": "x"}},
        {"status": "pending"},
    ],
)
async def test_a_running_call_that_needs_no_permission_is_not_flagged(log: MemoryLog, fields: dict[str, Any]) -> None:
    one, events = started()
    assert await flags_after(log, [*events, *one.update({**RUNNING, **fields}, NOW)]) == []


@pytest.mark.parametrize("request_call", ["c", "q1"])
async def test_a_running_call_that_was_approved_is_not_flagged(log: MemoryLog, request_call: str) -> None:
    one, events = started()
    params = {"sessionId": "x", "toolCall": {**TOUCH, "toolCallId": request_call}, "options": OPTIONS}
    events += one.permission(params, NOW, request_id="apr")
    events += one.resolve("apr", NOW, approved=True, resolved_by="user")
    assert await flags_after(log, [*events, *one.update(RUNNING, NOW)]) == []


async def test_a_running_call_through_the_hub_is_not_flagged(log: MemoryLog) -> None:
    one, events = started()
    events += one.update(RUNNING, NOW)
    events += one.fact("act_allowed", {"act": "command", "command": "touch made", "cwd": "/w"}, NOW)
    assert await flags_after(log, events) == []


async def test_an_agent_cannot_forge_the_note_of_an_act(log: MemoryLog) -> None:
    one, events = started()
    events += one.update(RUNNING, NOW)
    events += one.extension("act_allowed", {"act": "command", "command": "touch made", "cwd": "/w"}, NOW)
    assert await flags_after(log, events) == ["c"]


@pytest.mark.parametrize(("mode", "expected"), [("yolo", []), ("plan", ["c"])])
async def test_a_mode_that_does_not_ask_covers_a_running_call(log: MemoryLog, mode: str, expected: list[str]) -> None:
    one, events = started()
    events += one.fact("mode_chosen", {"modeId": mode}, NOW)
    events += one.update({"sessionUpdate": "current_mode_update", "currentModeId": mode}, NOW)
    assert await flags_after(log, [*events, *one.update(RUNNING, NOW)]) == expected


@pytest.mark.parametrize(
    ("mode", "given"),
    [
        ("acceptEdits", {"rawInput": {"command": "make"}}),
        ("yolo", {"rawInput": {"command": "touch made", "cwd": "/elsewhere"}}),
    ],
    ids=["command in a mode for writes", "command outside the workspace"],
)
async def test_a_mode_covers_no_more_than_it_says(log: MemoryLog, mode: str, given: dict[str, Any]) -> None:
    one, events = started()
    events += one.fact("mode_chosen", {"modeId": mode}, NOW)
    events += one.update({"sessionUpdate": "current_mode_update", "currentModeId": mode}, NOW)
    assert await flags_after(log, [*events, *one.update({**RUNNING, **given}, NOW)]) == ["c"]


async def test_an_approval_is_known_however_much_followed_it(log: MemoryLog) -> None:
    one, events = started()
    params = {"sessionId": "x", "toolCall": TOUCH, "options": OPTIONS}
    events += one.permission(params, NOW, request_id="apr")
    events += one.resolve("apr", NOW, approved=True, resolved_by="user")
    events += one.update(RUNNING, NOW)
    read = {"sessionUpdate": "tool_call", "title": "Read", "kind": "read", "status": "completed"}
    for number in range(1000):
        events += one.update({**read, "toolCallId": f"r{number}", "rawInput": {"file_path": "a" * 100}}, NOW)
    assert await flags_after(log, events) == []


async def test_the_chosen_mode_is_known_however_much_followed_it(log: MemoryLog) -> None:
    one, events = started()
    events += one.fact("mode_chosen", {"modeId": "yolo"}, NOW)
    events += one.update({"sessionUpdate": "current_mode_update", "currentModeId": "yolo"}, NOW)
    for _ in range(1200):
        events += one.fact("act_allowed", {"act": "command", "command": "make", "mode": "yolo"}, NOW)
    assert await flags_after(log, [*events, *one.update(RUNNING, NOW)]) == []


async def test_a_rule_covers_a_running_call() -> None:
    policy = {"autoApprove": {"commands": ["touch *"]}}
    async with MemoryLog() as log:
        await log.sessions.create("s", agent="a", cwd="/w", status="running", policy=policy)
        one, events = started()
        assert await flags_after(log, [*events, *one.update(RUNNING, NOW)]) == []
