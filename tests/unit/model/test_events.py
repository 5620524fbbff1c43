"""The unified events: their vocabulary, their wire form, and how they are made and chosen.

`golden/unified_samples.jsonl` holds the shapes and examples that the stream is defined by, one a line: a name, the
type it is read as, and the JSON. Each must be read and written again unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import pilothouse.model as model
from pilothouse.model.commands import encode_command, parse_command
from pilothouse.model.errors import ValidationError
from pilothouse.model.events import (
    ACP_MIN_VERSION,
    ACP_VERSION,
    DERIVED,
    EVENT_MIN_VERSION,
    EVENT_TYPES,
    EVENT_VERSION,
    CustomEvent,
    Event,
    MessageDeltaEvent,
    SessionPausedEvent,
    SessionStatusChangedEvent,
    create_event,
    decode_event,
    encode_event,
    events_by_prefix,
    filter_events,
    reset_all_sequences,
    reset_sequence,
    utc_now,
)
from pilothouse.model.records import TextContent

GOLDEN = Path(__file__).parents[2] / "golden" / "unified_samples.jsonl"
ROWS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
HEAD = {"seq": 1, "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z"}

FIELDS = {
    "session:started": ("", "agent projectPath projectName workingDirectory model environment"),
    "session:resumed": ("", "previousSessionId"),
    "session:paused": ("", "reason"),
    "session:completed": ("summary", ""),
    "session:error": ("error", ""),
    "session:status_changed": ("from to", "reason"),
    "message:start": ("messageId role", ""),
    "message:delta": ("messageId role delta", "content"),
    "message:complete": ("messageId role content", "model stopReason"),
    "thinking:start": ("messageId", ""),
    "thinking:delta": ("messageId delta", "content"),
    "thinking:complete": ("messageId content", "redacted"),
    "tool:start": ("toolCallId name category", "description title kind locations parentToolCallId"),
    "tool:args_delta": ("toolCallId delta", "replace"),
    "tool:executing": ("toolCallId name input riskLevel requiresApproval", "riskReasons"),
    "tool:result": ("toolCallId name output duration", "structured"),
    "tool:error": ("toolCallId name error", "duration output structured"),
    "approval:requested": (
        "requestId toolCallId toolName toolInput description riskLevel",
        "expiresAt preview options riskReasons notes origin ruleOffers ruleRefusal questionIds choosesMode",
    ),
    "approval:resolved": ("requestId toolCallId approved resolvedBy", "reason optionId decidedBy deviceId"),
    "file:change": ("path changeType", "diff language linesAdded linesRemoved toolCallId"),
    "file:batch": ("changes", "description toolCallId"),
    "subagent:spawned": ("subAgentId parentToolCallId task", "model"),
    "subagent:progress": ("subAgentId message", "progress"),
    "subagent:completed": ("subAgentId parentToolCallId result", "tokenUsage"),
    "progress:todo_update": ("todos", ""),
    "progress:plan_mode": ("active", "plan modeId"),
    "progress:update": ("label", "current total percentage toolCallId output replace locations"),
    "resource:token_usage": ("delta cumulative", "messageId"),
    "resource:cost": ("delta cumulative", ""),
    "resource:context_window": ("used limit percentage", ""),
    "resource:rate_limit": ("retryAfter limit", "message"),
    "environment:info": ("context", ""),
    "interaction:question": ("questionId question", "options defaultValue expiresAt multiSelect form url toolCallId"),
    "interaction:notification": ("level title message", "actionUrl"),
    "git:operation": ("operation", "toolCallId"),
    "web:operation": ("operation", "toolCallId"),
    "custom": ("namespace eventName data", ""),
}
"""Every type of the stream: the fields it must have, and those it may have. A change here changes the wire."""

EXPORT_LIST = """
    ACP_VERSION ACP_MIN_VERSION
    ACPError ACPEventBase ACPEvent ACPEventByPrefix ACPCapabilities IntegrationMethod
    ACPCommand SendMessageCommand ApproveToolCallCommand DenyToolCallCommand AnswerQuestionCommand CancelCommand
    PauseCommand ResumeCommand TerminateCommand SetPermissionPolicyCommand PermissionPolicy
    ACPAdapter ACPSession AgentDataPaths DiscoveredSession SessionDiscoveryEvent StartSessionOptions
    SessionStatus SessionStartedEvent SessionResumedEvent SessionPausedEvent SessionCompletedEvent SessionErrorEvent
    SessionStatusChangedEvent SessionSummary
    MessageRole MessageContent MessageStartEvent MessageDeltaEvent MessageCompleteEvent
    ThinkingStartEvent ThinkingDeltaEvent ThinkingCompleteEvent
    ToolCategory RiskLevel ToolStructuredOutput ToolCallStartEvent ToolCallArgsDeltaEvent ToolCallExecutingEvent
    ToolCallResultEvent ToolCallErrorEvent
    ApprovalPreview ApprovalRequestedEvent ApprovalResolvedEvent
    FileChangeEvent FileChangeBatchEvent FileChangeSummary
    SubAgentSpawnedEvent SubAgentProgressEvent SubAgentCompletedEvent
    TodoUpdateEvent PlanModeEvent ProgressEvent
    TokenUsage CostBreakdown TokenUsageEvent CostUpdateEvent ContextWindowEvent RateLimitEvent
    EnvironmentContext EnvironmentInfoEvent UserQuestionEvent NotificationEvent
    GitOperation GitOperationEvent WebOperation WebOperationEvent CustomEvent
    createEvent resetSequence resetAllSequences categorizeTool assessRisk describeToolCall
"""
EXPORTS = EXPORT_LIST.split()
OURS = {
    "ACPEventByPrefix": "events_by_prefix",  # a type there, functions over types and events here
    "createEvent": "create_event",
    "resetSequence": "reset_sequence",
    "resetAllSequences": "reset_all_sequences",
    "categorizeTool": "categorize_tool",
    "assessRisk": "assess_risk",
    "describeToolCall": "describe_tool_call",
}
ELSEWHERE = {
    "ACPAdapter": "a contract with I/O: it belongs to the adapters",
    "ACPSession": "a contract with I/O: it belongs to the adapters",
}


# -- samples made from the structs --------------------------------------------------------------------------------


def variants(node: msgspec.inspect.Type, depth: int = 0) -> list[Any]:
    """JSON values of a type: for a struct the smallest one, then ones with every field."""
    inspect = msgspec.inspect
    if isinstance(node, inspect.StructType):
        return structs(node, depth)
    if isinstance(node, inspect.UnionType):
        return [value for part in node.types for value in variants(part, depth) if value is not None]
    if isinstance(node, inspect.ListType):
        inner = variants(node.item_type, depth + 1)
        return [[], inner, *([[item] for item in inner] if depth < 2 else [])]
    if isinstance(node, inspect.LiteralType):
        return list(node.values)
    if isinstance(node, inspect.DictType):
        return [{}, {"key": {"nested": [1, "é\u2028", None, True, 1.5]}}]
    simple: dict[type, list[Any]] = {
        inspect.StrType: ["", 'text "quoted" é 🟠\n'],
        inspect.IntType: [0, 2**53],
        inspect.FloatType: [0.5, 100.0],
        inspect.BoolType: [True, False],
        inspect.NoneType: [None],
        inspect.AnyType: [{"any": []}, "text"],
    }
    return simple[type(node)]


def structs(node: msgspec.inspect.StructType, depth: int) -> list[dict[str, Any]]:
    tag = {node.tag_field: node.tag} if node.tag_field else {}
    smallest = {field.encode_name: variants(field.type, depth + 1)[-1] for field in node.fields if field.required}
    choices = {field.encode_name: variants(field.type, depth + 1) for field in node.fields}
    count = max((len(values) for values in choices.values()), default=0)
    full = [{name: values[i % len(values)] for name, values in choices.items()} for i in range(count)]
    return [{**tag, **fields} for fields in (smallest, *full)]


def samples(cls: type[Event]) -> Iterator[dict[str, Any]]:
    for sample in variants(msgspec.inspect.type_info(cls)):
        yield {**sample, **HEAD}


ALL_SAMPLES = [pytest.param(cls, list(samples(cls)), id=name) for name, cls in EVENT_TYPES.items()]


@pytest.fixture(autouse=True)
def _fresh_numbers() -> Iterator[None]:
    reset_all_sequences()
    yield
    reset_all_sequences()


def now() -> str:
    return HEAD["timestamp"]  # type: ignore[return-value]


# -- the vocabulary -----------------------------------------------------------------------------------------------


def test_every_type_of_the_stream_exists_and_no_other() -> None:
    assert len(FIELDS) == 37
    assert list(EVENT_TYPES) == list(FIELDS)
    assert {cls.type for cls in EVENT_TYPES.values()} == set(FIELDS)


@pytest.mark.parametrize("kind", FIELDS)
def test_the_fields_of_a_type_are_as_the_stream_defines_them(kind: str) -> None:
    fields = [item for item in msgspec.structs.fields(EVENT_TYPES[kind]) if item.encode_name not in HEAD]
    required = " ".join(item.encode_name for item in fields if item.required)
    optional = " ".join(item.encode_name for item in fields if not item.required)
    assert (required, optional) == FIELDS[kind]


def test_every_event_needs_its_number_session_and_time() -> None:
    for cls in EVENT_TYPES.values():
        assert {item.encode_name for item in msgspec.structs.fields(cls) if item.required} >= set(HEAD)


@pytest.mark.parametrize("name", EXPORTS)
def test_every_name_of_the_stream_is_in_the_model(name: str) -> None:
    if name in ELSEWHERE:
        assert not hasattr(model, name)
        return
    assert OURS.get(name, name) in model.__all__
    assert getattr(model, OURS.get(name, name)) is not None


def test_the_versions_have_the_names_of_the_stream_and_our_own() -> None:
    assert (ACP_VERSION, ACP_MIN_VERSION) == (EVENT_VERSION, EVENT_MIN_VERSION) == ("1.0.0", "1.0.0")


# -- reading and writing ------------------------------------------------------------------------------------------


def reread(kind: str, value: Any) -> Any:
    if kind == "ACPEvent":
        return json.loads(encode_event(decode_event(value)))
    if kind == "ACPCommand":
        return json.loads(encode_command(parse_command(value)))
    return json.loads(msgspec.json.encode(msgspec.convert(value, getattr(model, kind))))


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_a_sample_of_the_stream_is_read_and_written_unchanged(row: dict[str, Any]) -> None:
    assert reread(row["type"], row["value"]) == row["value"]


@pytest.mark.parametrize(("cls", "values"), ALL_SAMPLES)
def test_every_event_survives_the_wire(cls: type[Event], values: list[dict[str, Any]]) -> None:
    assert values
    for value in values:
        event = decode_event(value)
        assert type(event) is cls
        data = encode_event(event)
        assert decode_event(data) == event
        assert decode_event(data.decode()) == event
        assert decode_event(json.loads(data)) == event
        assert encode_event(decode_event(data)) == data
        assert json.loads(data)["type"] == event.type


@pytest.mark.parametrize(("cls", "values"), ALL_SAMPLES)
def test_a_missing_field_is_named(cls: type[Event], values: list[dict[str, Any]]) -> None:
    for name in (*FIELDS[cls.type][0].split(), *HEAD):
        broken = {key: value for key, value in values[0].items() if key != name}
        with pytest.raises(ValidationError, match=f"`{name}`"):
            decode_event(broken)


def test_what_is_unknown_is_left_out_of_the_wire() -> None:
    event = SessionPausedEvent(seq=1, session_id="s", timestamp="t")
    assert json.loads(encode_event(event)) == {"type": "session:paused", "seq": 1, "sessionId": "s", "timestamp": "t"}


def test_a_field_of_a_later_version_is_passed_over() -> None:
    assert decode_event({**HEAD, "type": "session:paused", "mood": 3}) == decode_event(
        {**HEAD, "type": "session:paused"}
    )


def test_a_type_of_a_later_version_is_kept_whole() -> None:
    event = decode_event({**HEAD, "type": "weather:rain", "depth": 3})
    assert isinstance(event, CustomEvent)
    assert (event.namespace, event.event_name, event.data) == ("unified", "weather:rain", {"depth": 3})
    assert (event.seq, event.session_id) == (1, "s")


NOT_EVENTS = {
    "nothing": b"",
    "no json": b"{nope",
    "a number": b"5",
    "a list": b"[1]",
    "a type that is no text": b'{"type":5}',
    "no type": b"{}",
    "cut short": b'{"type":"session:paused","seq":1,"sess',
    "cut short after a wrong field": b'{"type":"session:paused","seq":"x","sess',
    "cut short after an unknown type": b'{"type":"weather:rain","depth":',
    "an unknown type with a wrong number": b'{"type":"weather:rain","seq":"one"}',
    "a number without end": b'{"type":"weather:rain","depth":' + b"9" * 6000 + b"}",
    "too deep": b'{"type":"weather:rain","depth":' + b"[" * 100_000,
    "broken unicode": b'{"type":"session:paused","reason":"\xff"}',
    "half a surrogate": '{"type":"session:paused","reason":"\ud800"}',
}


@pytest.mark.parametrize("data", NOT_EVENTS.values(), ids=NOT_EVENTS)
def test_what_is_no_event_is_refused_and_nothing_else_happens(data: Any) -> None:
    with pytest.raises(ValidationError):
        decode_event(data)


# -- source -------------------------------------------------------------------------------------------------------


def test_the_source_is_no_field_and_goes_along_only_when_asked_for() -> None:
    event = SessionPausedEvent(seq=1, session_id="s", timestamp="t")
    plain = encode_event(event)
    assert event.source is None
    event.source = b'{"sessionUpdate":"x","future":[1,{"a":null}]}'
    assert encode_event(event) == plain
    assert json.loads(encode_event(event, source=True)) == {**json.loads(plain), "source": json.loads(event.source)}
    assert event.source in encode_event(event, source=True)
    assert decode_event(encode_event(event, source=True)) == SessionPausedEvent(seq=1, session_id="s", timestamp="t")


def test_an_event_without_a_source_is_written_without_one_and_a_derived_one_with_none() -> None:
    event = SessionPausedEvent(seq=1, session_id="s", timestamp="t")
    assert encode_event(event, source=True) == encode_event(event)
    event.source = DERIVED
    assert json.loads(encode_event(event, source=True))["source"] is None


def test_the_source_of_one_event_is_not_that_of_another() -> None:
    first, second = (SessionPausedEvent(seq=i, session_id="s", timestamp="t") for i in (1, 2))
    first.source = b"{}"
    assert second.source is None


# -- choosing -----------------------------------------------------------------------------------------------------


def test_types_are_chosen_by_prefix() -> None:
    names = [cls.__name__ for cls in events_by_prefix("tool:")]
    assert names == [name for name in EXPORTS if name.startswith("ToolCall") and name.endswith("Event")]
    assert len(events_by_prefix("")) == 37
    assert events_by_prefix("weather:") == ()


def test_events_are_chosen_by_any_of_several_prefixes() -> None:
    made = [decode_event(next(samples(cls))) for cls in EVENT_TYPES.values()]
    kinds = [event.type for event in filter_events(made, "git:", "thinking:")]
    assert kinds == ["thinking:start", "thinking:delta", "thinking:complete", "git:operation"]
    assert list(filter_events(made)) == made


# -- making -------------------------------------------------------------------------------------------------------

DELTA = {"type": "message:delta", "messageId": "msg-1", "role": "assistant", "delta": "Hello "}


def test_events_are_numbered_within_their_session() -> None:
    made = [create_event(session, DELTA, now=now) for session in ("session-123", "other", "session-123")]
    assert [event.seq for event in made] == [1, 1, 2]
    assert made[0] == MessageDeltaEvent(
        seq=1, session_id="session-123", timestamp=now(), message_id="msg-1", role="assistant", delta="Hello "
    )


def test_the_time_is_that_of_the_clock_that_is_given() -> None:
    ticks = iter(["first", "second"])
    assert create_event("s", DELTA, now=lambda: next(ticks)).timestamp == "first"
    assert create_event("s", DELTA, now=lambda: next(ticks)).timestamp == "second"


def test_the_clock_writes_utc_with_milliseconds() -> None:
    text = utc_now()
    assert len(text) == len(now())
    assert text.endswith("Z")
    assert create_event("s", DELTA).timestamp >= text


def test_fields_are_taken_under_either_name() -> None:
    made = create_event("s", type="session:status_changed", from_="idle", to="running", now=now)
    assert made == SessionStatusChangedEvent(seq=1, session_id="s", timestamp=now(), from_="idle", to="running")
    snake = create_event("s", type="message:complete", message_id="m", role="user", content=[TextContent(text="hi")])
    assert json.loads(encode_event(snake))["content"] == [{"type": "text", "text": "hi"}]


def test_a_reset_counts_one_session_from_the_start() -> None:
    for session in ("a", "b"):
        create_event(session, DELTA)
    reset_sequence("a")
    reset_sequence("never seen")
    assert [create_event(session, DELTA).seq for session in ("a", "b")] == [1, 2]


def test_a_reset_of_all_counts_every_session_from_the_start() -> None:
    for session in ("a", "b"):
        create_event(session, DELTA)
    reset_all_sequences()
    assert [create_event(session, DELTA).seq for session in ("a", "b")] == [1, 1]


REFUSED = {
    "no type": ({}, "type", "got None"),
    "an unknown type": ({"type": "message:delat"}, "type", "message:delta"),
    "a type that is no text": ({"type": ["x"]}, "type", "got"),
    "a missing field": ({"type": "message:start", "role": "user"}, "$", "messageId"),
    "a misspelt field": ({**DELTA, "detla": ""}, "detla", "delta"),
    "a wrong type": ({**DELTA, "delta": 5}, "$.delta", "`str`, got `int`"),
    "a wrong word": ({**DELTA, "role": "robot"}, "$.role", "robot"),
    "a number of one's own": ({**DELTA, "seq": 7}, "seq", "create_event itself"),
}


@pytest.mark.parametrize(("fields", "path", "says"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_field_is_named_and_takes_no_number(fields: dict[str, Any], path: str, says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        create_event("s", fields, now=now)
    assert caught.value.path == path
    assert says in caught.value.reason
    assert create_event("s", DELTA).seq == 1


@pytest.mark.parametrize("source", [None, b"", b'{"sessionUpdate":"_x","a":"\xc3\xa9"}'])
def test_a_source_survives_the_json_of_its_event(source: bytes | None) -> None:
    event = create_event("s", type="custom", namespace="acp", event_name="_x", data={"source": "not this one"})
    event.source = source
    data = encode_event(event, source=True)
    assert decode_event(data).source == source
    assert decode_event(data.decode()).source == source
    assert decode_event(msgspec.json.decode(data)).source == source
    assert decode_event(encode_event(event)).source is None


def test_no_prefix_is_every_event() -> None:
    events = [create_event("s", type="session:paused"), create_event("s", type="session:resumed")]
    assert list(filter_events(events)) == events


def test_an_event_that_is_no_dict_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="event"):
        create_event("s", "message:delta")  # type: ignore[arg-type]
