"""Updates to events and back: byte for byte where there was a source, valid where there was none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.dialects.acp import Projector, Translator, to_updates
from pilothouse.model.events import EVENT_TYPES, Event, decode_event, encode_event
from tests.support.scenario import Drive
from tests.support.schema_samples import Drawn, Full, Minimal, Null, Schema
from tests.unit.dialects.acp.test_translate_scenarios import SCENARIOS, played

STABLE = Schema("acp-v1.schema.json")
UNSTABLE = Schema("acp-v1.unstable.schema.json")
NOW = "2026-03-01T10:00:00.000Z"
UNKNOWN = [
    {"sessionUpdate": "_vendor/x", "deep": {"a": [1, None, "é"]}},
    {"sessionUpdate": "from_a_later_version", "value": 1.5},
    {"noDiscriminator": True},
    {"sessionUpdate": 42},
    {"sessionUpdate": "agent_message_chunk"},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "beam": "x"}},
    {"sessionUpdate": "tool_call", "title": "no id"},
    {},
]


def variants(schema: Schema, source: type) -> list[dict[str, Any]]:
    return [schema.make("SessionUpdate", source(path)) for path in schema.paths("SessionUpdate")]


def round_trip(update: Any) -> bytes:
    raw = json.dumps(update, ensure_ascii=False).encode()
    events = Translator("s", status="running").update(raw, NOW)
    assert events, "every update becomes something"
    assert events[0].source == raw
    assert to_updates(events) == [raw]
    return raw


@pytest.mark.parametrize("schema", [STABLE, UNSTABLE], ids=["stable", "unstable"])
@pytest.mark.parametrize("source", [Minimal, Full, Null])
def test_every_variant_comes_back_as_it_was(schema: Schema, source: type) -> None:
    made = variants(schema, source)
    assert len({update["sessionUpdate"] for update in made}) >= 14
    for update in made:
        round_trip(update)


@pytest.mark.parametrize("update", UNKNOWN, ids=lambda update: json.dumps(update)[:40])
def test_what_nobody_knows_comes_back_as_it_was(update: Any) -> None:
    round_trip(update)


IMAGE = {"type": "image", "data": "aGk="}
CALL = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t"}
DIALECT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (CALL | {"kind": "write"}, CALL | {"kind": "edit"}),
    (CALL | {"kind": "command"}, CALL | {"kind": "execute"}),
    (
        CALL | {"content": [{"type": "text", "text": "bare"}]},
        CALL | {"content": [{"type": "content", "content": {"type": "text", "text": "bare"}}]},
    ),
    (
        {"sessionUpdate": "plan", "entries": [{"id": "1", "content": "do", "status": "pending"}]},
        {"sessionUpdate": "plan", "entries": [{"content": "do", "priority": "medium", "status": "pending"}]},
    ),
    (
        {"sessionUpdate": "agent_message_chunk", "content": IMAGE | {"mediaType": "image/png"}},
        {"sessionUpdate": "agent_message_chunk", "content": IMAGE | {"mimeType": "image/png"}},
    ),
]


@pytest.mark.parametrize(("said", "meant"), DIALECT)
def test_a_dialect_that_can_be_mended_comes_back_in_the_words_of_the_protocol(said: Any, meant: Any) -> None:
    """Clients drop what they cannot read of a tool call or a plan without a word."""
    events = Translator("s", status="running").update(said, NOW)
    assert [json.loads(update) for update in to_updates(events)] == [meant]


@st.composite
def updates(draw: Any) -> Any:
    path = draw(st.sampled_from(UNSTABLE.paths("SessionUpdate")))
    return UNSTABLE.make("SessionUpdate", Drawn(draw, path, extra=True))


@settings(max_examples=150, deadline=None)
@given(st.lists(updates(), max_size=6))
def test_a_stream_of_any_updates_comes_back_in_order(stream: list[Any]) -> None:
    translator, projector = Translator("s", status="running"), Projector()
    sent = [json.dumps(update).encode() for update in stream]
    back = []
    for raw in sent:
        for event in translator.update(raw, NOW):
            decoded = decode_event(encode_event(event))
            decoded.source = event.source
            back += projector.project(decoded)
    assert back == sent


@pytest.mark.parametrize("name", SCENARIOS)
def test_updates_made_for_events_without_a_source_fit_the_schema(name: str) -> None:
    """As a consumer sees a session of an adapter that does not speak ACP: no event has a source."""
    drive = played(name)
    for event in drive.events:
        event.source = None
    for made in to_updates(drive.events):
        assert UNSTABLE.errors("SessionUpdate", json.loads(made)) == [], made


def test_what_is_made_tells_the_same_story() -> None:
    drive = Drive()
    drive.prompt([{"type": "text", "text": "Fix"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}])
    drive.say("Let me ", "see.", kind="agent_thought_chunk")
    drive.say("Hel", "lo")
    drive.call("c1", kind="execute", status="in_progress", rawInput={"command": "ls"})
    drive.progress("c1", content=[{"type": "content", "content": {"type": "text", "text": "a\n"}}])
    drive.progress("c1", content=[{"type": "content", "content": {"type": "text", "text": "a\nb\n"}}])
    drive.progress("c1", status="completed")
    drive.update("plan", entries=[{"content": "Look", "status": "pending", "priority": "high"}])
    drive.update("usage_update", used=1, size=2, cost={"amount": 0.5, "currency": "USD"})
    drive.end()
    for event in drive.events:
        event.source = None
    made = [json.loads(update) for update in to_updates(drive.events)]
    texts = {
        kind: "".join(u["content"].get("text", "") for u in made if u["sessionUpdate"] == kind)
        for kind in ("user_message_chunk", "agent_thought_chunk", "agent_message_chunk")
    }
    assert texts == {
        "user_message_chunk": "Fix",
        "agent_thought_chunk": "Let me see.",
        "agent_message_chunk": "Hello",
    }
    picture = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    assert picture in [u["content"] for u in made if u["sessionUpdate"] == "user_message_chunk"]
    calls = [u for u in made if u["sessionUpdate"] in ("tool_call", "tool_call_update")]
    assert [u.get("status") for u in calls] == ["pending", "in_progress", None, None, "completed"]
    pieces = [call["_meta"]["terminal_output_delta"]["data"] for call in calls[2:4]]
    assert pieces == ["a\n", "b\n"]
    assert calls[4]["content"][0]["content"]["text"] == "a\nb\n"
    assert {"sessionUpdate": "plan", "entries": [{"content": "Look", "status": "pending", "priority": "high"}]} in made
    assert made[-1]["cost"] == {"amount": 0.5, "currency": "USD"}


def test_a_message_that_was_never_streamed_is_sent_whole_and_a_streamed_one_once() -> None:
    whole = {"type": "message:complete", "messageId": "m", "role": "assistant"}
    head = {"seq": 1, "sessionId": "s", "timestamp": NOW}
    content = [{"type": "text", "text": "Hello"}]
    delta = {**head, "type": "message:delta", "messageId": "m", "role": "assistant", "delta": "Hello"}
    complete = {**head, **whole, "content": content}
    once = [json.loads(u) for u in to_updates([decode_event(complete)])]
    assert [u["content"]["text"] for u in once] == ["Hello"]
    streamed = to_updates([decode_event(delta), decode_event(complete)])
    assert [json.loads(u)["content"]["text"] for u in streamed] == ["Hello"]


def test_events_that_are_no_news_to_an_acp_client_give_nothing() -> None:
    silent = {"session:started", "session:status_changed", "file:change", "git:operation", "environment:info"}
    assert silent <= set(EVENT_TYPES)
    seen: list[Event] = [event for name in SCENARIOS for event in played(name).events if event.type in silent]
    for event in seen:
        event.source = None
    assert {event.type for event in seen} == silent
    assert to_updates(seen) == []
