"""Capabilities: nothing is claimed that was not said or seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.acp.schema import InitializeResponse, NewSessionResponse
from pilothouse.model.capabilities import (
    ACPCapabilities,
    Features,
    capabilities_from_acp,
    negotiate,
    observe,
)
from pilothouse.model.errors import ValidationError
from pilothouse.model.events import EVENT_TYPES, EVENT_VERSION, Event, decode_event

GOLDEN = Path(__file__).parents[2] / "golden" / "unified_samples.jsonl"
SAMPLES = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
HEAD = {"seq": 1, "sessionId": "s", "timestamp": "t"}


def flags(capabilities: ACPCapabilities) -> set[str]:
    """The flags that are on, by wire name; custom namespaces as they are."""
    found: set[str] = set()
    for name, value in msgspec.to_builtins(capabilities.features).items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}" for inner, on in value.items() if on}
        elif name == "customEvents":
            found |= set(value)
        elif value:
            found.add(name)
    return found


def event(kind: str, **fields: Any) -> Event:
    return decode_event({**HEAD, "type": kind, **fields})


def bare() -> ACPCapabilities:
    """An agent that answered `initialize` with the least that is allowed."""
    return capabilities_from_acp({"protocolVersion": 1})


# -- the record ---------------------------------------------------------------------------------------------------


def test_the_example_of_the_stream_is_read_and_written_unchanged() -> None:
    (row,) = [row for row in SAMPLES if row["type"] == "ACPCapabilities"]
    capabilities = msgspec.convert(row["value"], ACPCapabilities)
    assert json.loads(msgspec.json.encode(capabilities)) == row["value"]
    assert "subAgents" in flags(capabilities)


def test_every_flag_is_off_at_first_and_is_sent_all_the_same() -> None:
    capabilities = ACPCapabilities(agent=bare().agent)
    assert flags(capabilities) == set()
    (row,) = [row for row in SAMPLES if row["type"] == "ACPCapabilities"]
    sent, wanted = msgspec.to_builtins(capabilities)["features"], row["value"]["features"]
    assert {name: sorted(value) for name, value in sent.items() if isinstance(value, dict)} == {
        name: sorted(value) for name, value in wanted.items() if isinstance(value, dict)
    }
    assert list(sent) == list(wanted)


# -- what the agent says ------------------------------------------------------------------------------------------


def test_an_agent_that_says_nothing_can_be_cancelled_and_no_more() -> None:
    assert flags(bare()) == {"sessionControl.cancel"}
    assert bare().protocol_version == EVENT_VERSION
    assert bare().agent.integration_method == "acp"


def test_the_agent_is_described_by_what_it_says_of_itself() -> None:
    answer = {"agentInfo": {"name": "goose", "title": "Goose", "version": "1.2"}}
    agent = capabilities_from_acp(answer, icon="🪿").agent
    assert (agent.name, agent.display_name, agent.icon, agent.version) == ("goose", "Goose", "🪿", "1.2")
    untitled = capabilities_from_acp({"agentInfo": {"name": "goose", "version": "1.2"}}).agent
    assert untitled.display_name == "goose"
    nameless = capabilities_from_acp({}, name="configured").agent
    assert (nameless.name, nameless.display_name, nameless.version) == ("configured", "configured", "")


STATED = {
    "images": ({"promptCapabilities": {"image": True}}, {}, {"multimodal"}),
    "sounds": ({"promptCapabilities": {"audio": True}}, {}, {"multimodal"}),
    "files as context": ({"promptCapabilities": {"embeddedContext": True}}, {}, set()),
    "load": ({"loadSession": True}, {}, {"sessionControl.resume"}),
    "resume": ({"sessionCapabilities": {"resume": {}}}, {}, {"sessionControl.resume"}),
    "resume as null": ({"sessionCapabilities": {"resume": None}}, {}, set()),
    "a plan mode": ({}, {"modes": {"availableModes": [{"id": "ask"}, {"id": "plan"}]}}, {"planning.planMode"}),
    "a plan mode by name": (
        {},
        {"modes": {"availableModes": [{"id": "m2", "name": "Plan Mode"}]}},
        {"planning.planMode"},
    ),
    "a plan mode among options": (
        {},
        {"configOptions": [{"id": "m", "category": "mode", "options": [{"value": "plan", "name": "Plan"}]}]},
        {"planning.planMode"},
    ),
    "a plan of another kind": (
        {},
        {"configOptions": [{"id": "billing", "category": "other", "options": [{"value": "plan", "name": "Plan"}]}]},
        set(),
    ),
    "modes without planning": ({}, {"modes": {"availableModes": [{"id": "code"}, {"id": "explanatory"}]}}, set()),
}


@pytest.mark.parametrize(("agent", "session", "expected"), STATED.values(), ids=STATED)
def test_what_the_agent_states_turns_its_flag_on(agent: Any, session: Any, expected: set[str]) -> None:
    capabilities = capabilities_from_acp({"protocolVersion": 1, "agentCapabilities": agent}, session)
    assert flags(capabilities) == {"sessionControl.cancel", *expected}


def test_schema_types_are_read_as_their_json_is() -> None:
    answer = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True, "promptCapabilities": {"image": True}}}
    session = {
        "sessionId": "s",
        "modes": {"currentModeId": "plan", "availableModes": [{"id": "plan", "name": "Plan"}]},
    }
    typed = capabilities_from_acp(InitializeResponse.model_validate(answer), NewSessionResponse.model_validate(session))
    assert typed == capabilities_from_acp(answer, session)
    assert flags(typed) > {"multimodal", "planning.planMode", "sessionControl.resume"}


ODD: list[Any] = [None, True, 5, 1.5, "yes", "\ud800", [], [5, None], {}, {"x": 1}]


@pytest.mark.parametrize("odd", ODD, ids=[f"{value!a}" for value in ODD])
def test_what_has_the_wrong_type_counts_as_not_said(odd: Any) -> None:
    answers: list[Any] = [
        odd,
        {"agentInfo": odd, "agentCapabilities": odd},
        {"agentInfo": {"name": odd if odd != "yes" else 5, "title": 5, "version": []}},
        {"agentCapabilities": {"promptCapabilities": odd, "sessionCapabilities": odd}},
    ]
    sessions: list[Any] = [odd, {"modes": odd, "configOptions": odd}, {"modes": {"availableModes": odd}}]
    for answer in answers:
        for session in sessions:
            assert flags(capabilities_from_acp(answer, session)) == {"sessionControl.cancel"}


# -- what is seen -------------------------------------------------------------------------------------------------

TOKENS = {"inputTokens": 1, "outputTokens": 2}
COST = {"total": 0.1, "currency": "USD"}
ASKED = {
    "requestId": "r",
    "toolCallId": "t",
    "toolName": "Bash",
    "toolInput": {},
    "description": "",
    "riskLevel": "low",
}
DIFF = {"type": "file_diff", "path": "a", "diff": "+a", "changeType": "created"}
TEXT = {"type": "text", "text": "hi"}
PICTURE = {"type": "image", "url": "u"}
CHANGE = {"path": "a", "changeType": "created"}
SEEN: list[tuple[str, dict[str, Any], set[str]]] = [
    ("message:start", {"messageId": "m", "role": "user"}, set()),
    ("message:delta", {"messageId": "m", "role": "assistant", "delta": "a"}, {"streaming.messages"}),
    (
        "message:delta",
        {"messageId": "m", "role": "user", "delta": "", "content": PICTURE},
        {"streaming.messages", "multimodal"},
    ),
    ("message:complete", {"messageId": "m", "role": "user", "content": [TEXT]}, set()),
    ("message:complete", {"messageId": "m", "role": "user", "content": [TEXT, PICTURE]}, {"multimodal"}),
    ("thinking:start", {"messageId": "m"}, {"thinking"}),
    ("thinking:delta", {"messageId": "m", "delta": "a"}, {"thinking", "streaming.thinking"}),
    ("thinking:complete", {"messageId": "m", "content": "a"}, {"thinking"}),
    ("tool:start", {"toolCallId": "t", "name": "Bash", "category": "terminal"}, set()),
    ("tool:args_delta", {"toolCallId": "t", "delta": "{"}, {"streaming.toolArgs"}),
    (
        "tool:executing",
        {"toolCallId": "t", "name": "Bash", "input": {}, "riskLevel": "low", "requiresApproval": True},
        set(),
    ),
    ("tool:result", {"toolCallId": "t", "name": "Bash", "output": "", "duration": 1}, set()),
    (
        "tool:result",
        {"toolCallId": "t", "name": "Edit", "output": "", "duration": 1, "structured": DIFF},
        {"fileOperations.diffs"},
    ),
    (
        "tool:error",
        {"toolCallId": "t", "name": "Bash", "error": {"code": "x", "message": "x", "recoverable": True}},
        set(),
    ),
    ("approval:requested", ASKED, {"approval.toolCalls"}),
    (
        "approval:requested",
        {**ASKED, "preview": {"type": "description", "text": "x"}},
        {"approval.toolCalls", "approval.preview"},
    ),
    ("approval:resolved", {"requestId": "r", "toolCallId": "t", "approved": True, "resolvedBy": "user"}, set()),
    ("session:started", {}, set()),
    ("session:paused", {}, {"sessionControl.pause"}),
    ("session:resumed", {}, {"sessionControl.resume"}),
    ("session:status_changed", {"from": "idle", "to": "thinking"}, set()),
    ("session:error", {"error": {"code": "x", "message": "x", "recoverable": True}}, set()),
    (
        "session:completed",
        {
            "summary": {
                "filesChanged": [],
                "tokenUsage": TOKENS,
                "duration": 1,
                "toolCallsCount": 0,
                "messagesCount": 0,
                "errorCount": 0,
            }
        },
        set(),
    ),
    ("file:change", CHANGE, set()),
    ("file:change", {**CHANGE, "diff": "+a"}, {"fileOperations.diffs"}),
    ("file:batch", {"changes": [CHANGE, CHANGE]}, {"fileOperations.batchedChanges"}),
    (
        "file:batch",
        {"changes": [CHANGE, {**CHANGE, "diff": "+a"}]},
        {"fileOperations.batchedChanges", "fileOperations.diffs"},
    ),
    ("subagent:spawned", {"subAgentId": "a", "parentToolCallId": "t", "task": "x"}, {"subAgents"}),
    ("subagent:progress", {"subAgentId": "a", "message": "x"}, {"subAgents"}),
    ("subagent:completed", {"subAgentId": "a", "parentToolCallId": "t", "result": "x"}, {"subAgents"}),
    ("progress:todo_update", {"todos": []}, {"planning.todos"}),
    ("progress:plan_mode", {"active": True}, {"planning.planMode"}),
    ("progress:update", {"label": "x"}, set()),
    ("resource:token_usage", {"delta": TOKENS, "cumulative": TOKENS}, {"resources.tokenUsage"}),
    ("resource:cost", {"delta": COST, "cumulative": COST}, {"resources.costTracking"}),
    ("resource:context_window", {"used": 1, "limit": 2, "percentage": 50.0}, {"resources.contextWindow"}),
    ("resource:rate_limit", {"retryAfter": 1, "limit": "x"}, set()),
    (
        "environment:info",
        {
            "context": {
                "agent": {"name": "a", "version": "1", "displayName": "A"},
                "project": {"path": "/p", "name": "p"},
            }
        },
        set(),
    ),
    ("interaction:question", {"questionId": "q", "question": "?"}, {"userInteraction.questions"}),
    (
        "interaction:notification",
        {"level": "info", "title": "", "message": ""},
        {"userInteraction.notifications"},
    ),
    ("git:operation", {"operation": {"kind": "push", "remote": "origin", "branch": "main"}}, {"git"}),
    ("web:operation", {"operation": {"kind": "search", "query": "x"}}, {"webSearch"}),
    ("custom", {"namespace": "acme", "eventName": "x", "data": {}}, {"acme"}),
]


@pytest.mark.parametrize(("kind", "fields", "expected"), SEEN, ids=[f"{row[0]}-{i}" for i, row in enumerate(SEEN)])
def test_an_event_turns_on_what_it_shows_and_no_more(kind: str, fields: Any, expected: set[str]) -> None:
    before = bare()
    after = observe(before, event(kind, **fields))
    assert flags(after) - flags(before) == expected
    assert flags(before) == {"sessionControl.cancel"}
    assert observe(after, event(kind, **fields)) is after
    if not expected:
        assert after is before


def test_the_table_above_has_every_type_and_all_of_it_together_turns_every_flag_on() -> None:
    assert {kind for kind, _, _ in SEEN} == set(EVENT_TYPES)
    capabilities = bare()
    for kind, fields, _ in SEEN:
        capabilities = observe(capabilities, event(kind, **fields))
    (row,) = [row for row in SAMPLES if row["type"] == "ACPCapabilities"]
    everything = {
        f"{name}.{inner}" if inner else name
        for name, value in row["value"]["features"].items()
        if name != "customEvents"
        for inner in (value if isinstance(value, dict) else [""])
    }
    assert flags(capabilities) == {*everything, "acme"}


def test_namespaces_are_collected_once_each_in_order() -> None:
    capabilities = bare()
    for namespace in ("pilothouse", "acp", "pilothouse"):
        capabilities = observe(capabilities, event("custom", namespace=namespace, eventName="x", data={}))
    assert capabilities.features.custom_events == ("acp", "pilothouse")


def test_the_defaults_are_not_changed_by_what_one_agent_shows() -> None:
    observe(bare(), event("thinking:start", messageId="m"))
    assert Features() == Features(thinking=False)
    assert flags(bare()) == {"sessionControl.cancel"}


# -- versions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theirs", ["1.0.0", "1.0", "1", "v1.0.0", "1.0.1", "1.7.0", "1.0.0-beta", "1.0.0+build"])
def test_the_older_of_two_versions_is_spoken(theirs: str) -> None:
    assert negotiate(theirs) == "1.0.0"


def test_a_later_peer_that_still_reads_ours_is_spoken_to() -> None:
    assert negotiate("3.1.0", minimum="1.0.0") == "1.0.0"


@pytest.mark.parametrize(
    ("theirs", "minimum", "path", "says"),
    [
        ("0.9.9", None, "protocolVersion", "1.0.0 or later, got '0.9.9'"),
        ("0.1", "0.1", "protocolVersion", "1.0.0 or later"),
        ("2.0.0", None, "protocolVersion", "needs '2.0.0'"),
        ("2.0.0", "1.5.0", "minVersion", "needs '1.5.0'"),
        ("", None, "protocolVersion", "such as '1.0.0'"),
        ("one", None, "protocolVersion", "got 'one'"),
        ("1.0.0.0", None, "protocolVersion", "such as"),
        ("9" * 6000, None, "protocolVersion", "such as"),
        (1, None, "protocolVersion", "such as"),
        (None, None, "protocolVersion", "such as"),
        ("1.0.0", "x", "minVersion", "such as"),
    ],
)
def test_a_version_that_cannot_be_spoken_is_refused(theirs: Any, minimum: Any, path: str, says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        negotiate(theirs, minimum=minimum)
    assert caught.value.path == path
    assert says in caught.value.reason
