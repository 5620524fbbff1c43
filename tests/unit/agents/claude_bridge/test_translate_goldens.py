"""Recordings of the real CLI: what comes of them, read by eye once, and what holds of every one of them.

`NAME.jsonl` is what passed between the CLI and whoever recorded it, `NAME.acp.jsonl` what the translator makes of it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.agents.claude_bridge.actions import Action, Ask, Ended, Note, Send, Update, Withdraw
from pilothouse.dialects.acp import Translator as Events
from pilothouse.model.events import (
    ApprovalRequestedEvent,
    ToolCallErrorEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserQuestionEvent,
)
from tests.unit.agents.claude_bridge.playing import Play, checked, entries_of

GOLDEN = Path(__file__).parents[3] / "golden" / "claude"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl") if not path.stem.endswith(".acp"))
TRACES = os.environ.get("PILOTHOUSE_TRACES", "")
"""A directory of recordings of real agents; those of the CLI are in its folder `claude`."""
NOW = "2026-01-01T00:00:00.000Z"
OUTPUT = re.compile(r"<local-command-stdout>(.*)</local-command-stdout>", re.DOTALL)
Json = dict[str, Any]


def played(name: str) -> Play:
    return Play(entries_of(GOLDEN / f"{name}.jsonl"))


def as_json(action: Action) -> Json:
    told = json.loads(action.line) if isinstance(action, Send) else msgspec.to_builtins(action)
    return {type(action).__name__.lower(): told}


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_becomes_what_it_did_when_it_was_read(name: str) -> None:
    expected = [json.loads(line) for line in (GOLDEN / f"{name}.acp.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [as_json(action) for action in played(name).actions] == expected


STOPS = {
    "api_error_400": ["invalid_request", "end_turn"],
    "api_error_401": ["auth_required", "end_turn"],
    "api_error_429": ["rate_limit", "end_turn"],
    "api_faults": ["overloaded", "connection"],
    "interrupt_permission": ["cancelled", "end_turn"],
    "interrupt_text": ["cancelled", "end_turn"],
    "interrupt_tool": ["cancelled", "end_turn"],
    "max_budget": ["max_turn_requests"],
    "max_turns": ["max_turn_requests"],
    "permission_deny_interrupt": ["cancelled", "end_turn"],
    "refusal": ["refusal"],
    "resume_6_unknown": ["session_not_found"],
    "stop_max_tokens": ["max_tokens"],
}
"""How the turns of a recording ended, or what they failed of, where not all simply ended."""


@pytest.mark.parametrize("name", NAMES)
def test_every_turn_ends_as_it_did(name: str) -> None:
    ends = [
        ended.failure.kind if ended.failure is not None else (ended.response or {})["stopReason"]
        for ended in played(name).ended
    ]
    assert ends == STOPS.get(name, ["end_turn"] * len(ends))


@pytest.mark.parametrize("name", NAMES)
def test_every_recording_holds_what_is_promised(name: str) -> None:
    check(checked(played(name)))


@pytest.mark.parametrize("folder", [f"{TRACES}/claude" if TRACES else str(GOLDEN)])
def test_all_recordings_of_a_folder_hold_what_is_promised(folder: str) -> None:
    found = sorted(path for path in Path(folder).glob("*.jsonl") if not path.stem.endswith(".acp"))
    assert found
    problems = []
    for path in found:
        try:
            check(checked(Play(entries_of(path))))
        except Exception as exc:
            problems.append(f"{path.stem}: {exc!r}"[:500])
    assert not problems, "\n".join(problems)


def check(play: Play) -> None:
    assert not play.translator.unknown
    assert play.translator.late == 0
    check_text(play)
    check_calls(play)
    check_answers(play)
    check_events(play)


# -- text --


def check_text(play: Play) -> None:
    """What was said is what the whole messages say, once."""
    for kind, chunk in (("text", "agent_message_chunk"), ("thinking", "agent_thought_chunk")):
        assert play.text(chunk) == told(play, kind), kind


def told(play: Play, kind: str) -> str:
    said: list[str] = []
    turn = 0
    for line in play.lines:
        words = whole(line, kind)
        if line["type"] == "result" and kind == "text":
            silent = len(said) == turn and not line["is_error"]
            words = [line["result"]] if silent else []
        said += [word for word in words if word]
        turn = len(said) if line["type"] == "result" else turn
    return "".join(said)


def whole(line: Json, kind: str) -> list[str]:
    if line["type"] not in ("user", "assistant"):
        return []
    content = line["message"]["content"]
    if line["type"] == "user" and kind == "text" and isinstance(content, str):
        output = OUTPUT.fullmatch(content)
        return [output[1].strip()] if output else []
    if line["type"] != "assistant" or line["parent_tool_use_id"] is not None or line.get("error"):
        return []
    return [block[kind] for block in content if block["type"] == kind]


# -- calls --


def check_calls(play: Play) -> None:
    """Every call is announced first, once, and ends once; in the turn, unless it runs in the background."""
    uses = {
        block["id"]: line["parent_tool_use_id"]
        for line in play.lines
        if line["type"] == "assistant"
        for block in line["message"]["content"]
        if block["type"] == "tool_use"
    }
    assert set(play.calls()) == set(uses)
    for call_id, updates in play.calls().items():
        assert [update["sessionUpdate"] for update in updates].count("tool_call") == 1
        assert updates[0]["sessionUpdate"] == "tool_call"
        assert play.statuses(call_id)[-1] in ("completed", "failed")
        assert sum(status in ("completed", "failed") for status in play.statuses(call_id)) == 1
        assert updates[0]["_meta"]["claudeCode"].get("parentToolUseId") == uses[call_id]
    still_open: set[str] = set()
    for action in play.actions:
        if isinstance(action, Ended):
            assert all(uses[call_id] is not None for call_id in still_open)
        elif isinstance(action, Update) and "status" in action.update and "toolCallId" in action.update:
            change = still_open.discard if action.update["status"] in ("completed", "failed") else still_open.add
            change(action.update["toolCallId"])


def check_answers(play: Play) -> None:
    """Every prompt ends once; every request of the CLI is answered or withdrawn, with the id of the call it is for."""
    prompts = [line for line in play.sent if line["type"] == "user"]
    assert sum(ended.prompts for ended in play.ended) == len(prompts)
    requests = {line["request_id"] for line in play.lines if line["type"] == "control_request"}
    answers = [line["response"]["request_id"] for line in play.sent if line["type"] == "control_response"]
    withdrawn = [action.request_id for action in play.of(Withdraw)]
    assert sorted([*answers, *withdrawn]) == sorted(requests)
    for asked in play.of(Ask):
        assert (asked.params.get("toolCall") or asked.params)["toolCallId"] in play.calls()


# -- the same through the hub's vocabulary --


def check_events(play: Play) -> None:
    """Whoever reads the updates as events sees each call start and end, and each question answered."""
    events = Events("events", workspace="/work/project")
    found: list[Any] = events.started(NOW, agent="claude", result=play.translator.setup())
    for number, action in enumerate(play.actions):
        if isinstance(action, Update):
            found += events.update(msgspec.json.encode(action.update), NOW)
        elif isinstance(action, Send) and b'"type":"user"' in action.line and events.turn is None:
            found += events.prompt("go", NOW, turn_id=str(number))
        elif isinstance(action, Ask) and action.method == "session/request_permission":
            found += events.permission(action.params, NOW, request_id=action.request_id)
            found += events.resolve(action.request_id, NOW, approved=True, resolved_by="user")
        elif isinstance(action, Ask):
            found += events.question(action.params, NOW, question_id=action.request_id)
            found += events.answer(action.request_id, NOW, outcome="answered", answer={})
        elif isinstance(action, Note):
            found += events.extension(action.method, action.params, NOW)
        elif isinstance(action, Ended) and action.failure is None:
            found += events.result(action.response, NOW)
        elif isinstance(action, Ended):
            found += events.failed(msgspec.to_builtins(action.failure), NOW)
    started = [event.tool_call_id for event in found if isinstance(event, ToolCallStartEvent)]
    ends = {event.tool_call_id for event in found if isinstance(event, (ToolCallResultEvent, ToolCallErrorEvent))}
    assert sorted(started) == sorted(play.calls())
    assert set(started) == ends
    assert not [event for event in found if getattr(event, "event_name", "") == "diagnostic"]
    asked = [event for event in found if isinstance(event, (ApprovalRequestedEvent, UserQuestionEvent))]
    assert len(asked) >= len(play.of(Ask))
