"""Updates, answers, errors and events as packets: complete, faithful, and the same on every way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.dialects.acp import Translator
from pilothouse.dialects.packets import (
    PACKETS,
    Projector,
    packet_from_error,
    packet_from_result,
    packet_from_update,
    packets_from_event,
    read_packet,
    stop_reason,
    write_packet,
)
from pilothouse.model.events import Event, create_event, decode_event

NOW = "2026-01-22T19:13:30.917Z"
TEXT = {"_meta": None, "annotations": None, "type": "text"}


def made(type_: str, source: bytes | None = None, **fields: Any) -> list[dict[str, Any]]:
    event = create_event("s", {"type": type_}, now=lambda: NOW, **fields)
    event.source = source
    return packets_from_event(event)


def only(packets: list[dict[str, Any]]) -> dict[str, Any]:
    [packet] = packets
    assert packet["timestamp"] == NOW
    assert packet["type"] in PACKETS
    json.dumps(packet)
    assert write_packet(read_packet(packet)) == packet
    return packet


# -- updates ------------------------------------------------------------------------------------------------------


def test_a_chunk_gets_the_documents_nulls() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I'll help you create"}}
    assert packet_from_update(update, NOW) == {
        "_meta": None,
        "content": {**TEXT, "text": "I'll help you create"},
        "sessionUpdate": "agent_message_chunk",
        "type": "agent_message_chunk",
        "timestamp": NOW,
    }


def test_a_call_that_starts_has_every_key() -> None:
    update = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "glob", "kind": "search", "status": "pending"}
    assert packet_from_update(update, NOW) == {
        "_meta": None,
        "content": None,
        "kind": "search",
        "locations": [],
        "rawInput": {},
        "rawOutput": None,
        "status": "pending",
        "title": "glob",
        "toolCallId": "c",
        "sessionUpdate": "tool_call",
        "type": "tool_call_start",
        "timestamp": NOW,
    }


def test_a_call_that_goes_on_has_nulls_where_the_update_is_silent() -> None:
    update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "status": "completed",
        "content": [
            {"type": "content", "content": {"type": "text", "text": "ok"}},
            {"type": "diff", "path": "/a", "newText": "x"},
            {"type": "terminal", "terminalId": "t"},
            {"type": "text", "text": "bare"},
            "words",
        ],
        "locations": [{"path": "/a"}],
    }
    packet = packet_from_update(update, NOW)
    assert packet is not None
    assert packet["content"] == [
        {"_meta": None, "type": "content", "content": {**TEXT, "text": "ok"}},
        {"_meta": None, "type": "diff", "path": "/a", "newText": "x", "oldText": None},
        {"_meta": None, "type": "terminal", "terminalId": "t"},
        {"_meta": None, "type": "content", "content": {**TEXT, "text": "bare"}},
        {"_meta": None, "type": "content", "content": {**TEXT, "text": "words"}},
    ]
    assert packet["locations"] == [{"_meta": None, "path": "/a", "line": None}]
    assert [packet[name] for name in ("title", "kind", "rawInput", "rawOutput", "_meta")] == [None] * 5


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("edit", "edit"),
        ("other", "other"),
        ("delete", "edit"),
        ("think", "other"),
        ("fetch", "other"),
        ("task", "task"),
    ],
)
def test_a_kind_the_documents_do_not_have_becomes_one_they_have(kind: str, shown: str) -> None:
    packet = packet_from_update({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": kind}, NOW)
    assert packet is not None
    assert packet["kind"] == shown


def test_a_plan_entry_without_priority_is_of_medium_priority() -> None:
    packet = packet_from_update({"sessionUpdate": "plan", "entries": [{"content": "A", "status": "completed"}]}, NOW)
    assert packet is not None
    assert packet["entries"] == [{"_meta": None, "content": "A", "status": "completed", "priority": "medium"}]


def test_what_the_agent_sent_besides_is_kept() -> None:
    update = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "image", "data": "aGk="}, "messageId": "m"}
    packet = packet_from_update({**update, "_meta": {"x": 1}}, NOW)
    assert packet is not None
    assert (packet["messageId"], packet["_meta"], packet["content"]["data"]) == ("m", {"x": 1}, "aGk=")


@pytest.mark.parametrize(
    "variant", ["user_message_chunk", "available_commands_update", "usage_update", None, 7, ["plan"]]
)
def test_other_updates_have_no_packet(variant: Any) -> None:
    assert packet_from_update({"sessionUpdate": variant}, NOW) is None


# -- answers and errors -------------------------------------------------------------------------------------------


def test_the_answer_to_a_prompt_ends_the_turn() -> None:
    assert packet_from_result({"stopReason": "end_turn"}, NOW) == {
        "_meta": {},
        "stopReason": "end_turn",
        "type": "prompt_response",
        "timestamp": NOW,
    }
    assert packet_from_result({"stopReason": "refusal", "_meta": {"x": 1}, "usage": {"totalTokens": 3}}, NOW) == {
        "_meta": {"x": 1},
        "usage": {"totalTokens": 3},
        "stopReason": "refusal",
        "type": "prompt_response",
        "timestamp": NOW,
    }
    assert packet_from_result(None, NOW)["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("end_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("stop_sequence", "stop_sequence"),
        ("max_turn_requests", "max_turn_requests"),
        ("cancelled", "cancelled"),
        ("success", "end_turn"),
        ("error_max_turns", "max_turn_requests"),
        ("error_max_budget_usd", "max_turn_requests"),
        ("interrupted", "cancelled"),
        ("", "end_turn"),
        (None, "end_turn"),
        (["x"], "end_turn"),
    ],
)
def test_stop_reasons_are_told_in_the_packets_words(reason: Any, shown: str) -> None:
    assert stop_reason(reason) == shown


def test_an_error_has_a_number_or_null_as_its_code() -> None:
    assert packet_from_error({"code": -32603, "message": "Internal error", "data": {"why": "x"}}, NOW) == {
        "type": "error",
        "timestamp": NOW,
        "message": "Internal error",
        "code": -32603,
        "details": {"why": "x"},
    }
    assert packet_from_error({"message": "Session not found", "code": "gone", "data": "text"}, NOW) == {
        "type": "error",
        "timestamp": NOW,
        "message": "Session not found",
        "code": None,
        "details": {"data": "text"},
    }
    assert packet_from_error("words", NOW)["message"] == "words"
    assert packet_from_error(None, NOW)["message"] == "Unknown error"
    assert packet_from_error({"code": True, "message": 3}, NOW)["code"] is None
    assert packet_from_error({"code": 10**30, "message": "m"}, NOW)["code"] is None
    assert packet_from_error({"code": "9" * 5000, "message": "m"}, NOW)["code"] is None


# -- events without a source --------------------------------------------------------------------------------------


def test_messages_and_thoughts_are_chunks() -> None:
    packet = only(made("message:delta", message_id="m", role="assistant", delta="Hi"))
    assert (packet["type"], packet["content"]["text"]) == ("agent_message_chunk", "Hi")
    image = {"type": "image", "url": "data:image/png;base64,aGk=", "mimeType": "image/png"}
    packet = only(made("message:delta", message_id="m", role="assistant", delta="", content=image))
    assert packet["content"]["type"] == "image"
    assert only(made("thinking:delta", message_id="m", delta="Hm"))["type"] == "agent_thought_chunk"
    assert made("message:delta", message_id="m", role="user", delta="Hi") == []
    assert made("message:start", message_id="m", role="assistant") == []


def test_a_call_is_told_from_start_to_end() -> None:
    start = only(made("tool:start", tool_call_id="c", name="Bash", category="terminal"))
    assert (start["title"], start["kind"], start["status"], start["rawInput"]) == ("Bash", "execute", "pending", {})
    running = {"tool_call_id": "c", "name": "Bash", "input": {"command": "ls"}, "risk_level": "low"}
    packet = only(made("tool:executing", **running, requires_approval=False))
    assert (packet["status"], packet["rawInput"], packet["rawOutput"]) == ("in_progress", {"command": "ls"}, None)
    assert only(made("tool:executing", **running, requires_approval=True))["status"] == "pending"
    output = {"type": "command_output", "exitCode": 0, "stdout": "a\n", "stderr": ""}
    packet = only(made("tool:result", tool_call_id="c", name="Bash", output="a\n", duration=4, structured=output))
    assert (packet["status"], packet["kind"]) == ("completed", "execute")
    assert packet["rawOutput"] == {
        "output": "a\n",
        "metadata": {"output": "a\n", "exit": 0, "description": "", "truncated": False},
    }
    error = {"code": "rejected", "message": "No.", "recoverable": True}
    packet = only(made("tool:error", tool_call_id="c", name="Bash", error=error))
    assert (packet["status"], packet["rawOutput"]) == ("failed", {"error": "No."})


def test_a_sub_agents_call_is_known_by_name_not_by_kind() -> None:
    packet = only(made("tool:result", tool_call_id="c", name="Task", output="done", duration=1))
    assert (packet["kind"], packet["name"]) == ("other", "Task")


def test_output_so_far_replaces_or_is_a_piece() -> None:
    packet = only(made("progress:update", label="ls", tool_call_id="c", output="all", replace=True))
    assert packet["content"][0]["content"]["text"] == "all"
    packet = only(made("progress:update", label="ls", tool_call_id="c", output="more"))
    assert packet["content"] is None
    assert packet["_meta"] == {"terminal_output_delta": {"data": "more", "terminal_id": "c"}}
    assert made("progress:update", label="of the session") == []


def test_plan_and_mode_are_told() -> None:
    packet = only(made("progress:todo_update", todos=[{"content": "A", "status": "pending"}]))
    assert packet["entries"][0]["priority"] == "medium"
    assert only(made("progress:plan_mode", active=True, mode_id="plan"))["currentModeId"] == "plan"
    assert made("progress:plan_mode", active=True, plan="1. look") == []


def test_an_approval_is_asked_and_resolved() -> None:
    asked: dict[str, Any] = {
        "request_id": "r",
        "tool_call_id": "c",
        "tool_name": "Bash",
        "tool_input": {"command": "rm x"},
        "description": "Run: rm x",
        "risk_level": "high",
        "preview": {"type": "command", "command": "rm x", "workingDir": "/w"},
        "options": [{"optionId": "once", "name": "Allow", "kind": "allow_once"}],
        "risk_reasons": ["deletes files"],
    }
    packet = only(made("approval:requested", **asked))
    assert packet == {
        "_meta": None,
        "type": "approval_requested",
        "timestamp": NOW,
        "requestId": "r",
        "toolCallId": "c",
        "toolName": "Bash",
        "toolInput": {"command": "rm x"},
        "description": "Run: rm x",
        "riskLevel": "high",
        "expiresAt": None,
        "preview": {"type": "command", "command": "rm x", "workingDir": "/w"},
        "options": [{"optionId": "once", "name": "Allow", "kind": "allow_once", "label": "Allow once"}],
        "riskReasons": ["deletes files"],
        "notes": [],
        "origin": "agent",
        "ruleOffers": [],
        "ruleRefusal": None,
        "choosesMode": False,
        "questionIds": [],
    }
    assert made("approval:requested", source=b'{"toolCall":{}}', **asked) == [packet]
    resolved = only(made("approval:resolved", request_id="r", tool_call_id="c", approved=False, resolved_by="user"))
    assert (resolved["approved"], resolved["resolvedBy"], resolved["optionId"]) == (False, "user", None)


def test_approval_packet_keeps_our_label_apart_from_the_agents() -> None:
    asked: dict[str, Any] = {
        "request_id": "r",
        "tool_call_id": "c",
        "tool_name": "t",
        "tool_input": {},
        "description": "d",
        "risk_level": "low",
        "options": [{"optionId": "y", "name": "Deny", "kind": "allow_always"}],
        "notes": ["Denied before in this turn."],
        "origin": "hub",
        "rule_offers": [{"offerId": "exact", "text": "only this", "subject": "tools", "pattern": "t"}],
        "question_ids": ["c:0"],
    }
    packet = only(made("approval:requested", **asked))
    option = {"optionId": "y", "name": "Deny", "kind": "allow_always", "label": "Always allow", "isMisleading": True}
    assert packet["options"] == [option]
    assert (packet["notes"], packet["origin"]) == (["Denied before in this turn."], "hub")
    assert packet["ruleOffers"] == [{"offerId": "exact", "text": "only this", "subject": "tools", "pattern": "t"}]
    assert packet["questionIds"] == ["c:0"]
    assert write_packet(read_packet(packet)) == packet


def test_a_question_is_asked_and_resolved_also_one_that_a_tool_asks() -> None:
    asked: dict[str, Any] = {"question_id": "q", "question": "Which?", "options": ["A", "B"], "tool_call_id": "c"}
    packet = only(made("interaction:question", **asked))
    assert packet == {
        "_meta": None,
        "type": "question_requested",
        "timestamp": NOW,
        "questionId": "q",
        "question": "Which?",
        "options": ["A", "B"],
        "defaultValue": None,
        "expiresAt": None,
        "multiSelect": False,
        "form": None,
        "url": None,
        "toolCallId": "c",
    }
    assert made("interaction:question", source=b'{"mode":"form"}', **asked) == [packet]
    assert made("interaction:question", source=b"", **asked) == [packet]
    data = {"questionId": "q", "outcome": "answered", "answer": "A"}
    told = {"namespace": "pilothouse", "event_name": "question_answered", "data": data}
    resolved = only(made("custom", **told))
    assert resolved == {"_meta": None, "type": "question_resolved", "timestamp": NOW, **data}
    assert made("custom", source=b"", **told) == [resolved]
    assert made("custom", source=b"", **{**told, "namespace": "acp"}) == []


def test_a_turn_that_nobody_cancelled_says_why_it_ended() -> None:
    data = {"turnId": "t", "stopReason": "interrupted"}
    ended = {"namespace": "pilothouse", "event_name": "turn_ended", "data": data}
    why, end = made("custom", **ended)
    assert (why["type"], why["code"]) == ("error", None)
    assert why["details"] == {"code": "interrupted", "recoverable": True}
    assert end["stopReason"] == "cancelled"
    # a user of another program who interrupts it there has cancelled it
    assert only(made("custom", source=b'{"stopReason":"interrupted"}', **ended))["stopReason"] == "cancelled"


def test_the_end_of_a_turn_is_one_packet() -> None:
    ended = {"namespace": "pilothouse", "event_name": "turn_ended", "data": {"turnId": "t", "stopReason": "cancelled"}}
    assert only(made("custom", **ended))["stopReason"] == "cancelled"
    answer = b'{"stopReason":"max_tokens","usage":{"totalTokens":9}}'
    packet = only(made("custom", source=answer, **ended))
    assert (packet["stopReason"], packet["usage"]) == ("max_tokens", {"totalTokens": 9})
    failed = {**ended, "data": {"turnId": "t", "stopReason": "error"}}
    assert only(made("custom", source=b'{"code":-32603,"message":"x"}', **failed))["stopReason"] == "error"


def test_a_failure_is_an_error_packet() -> None:
    error: dict[str, Any] = {"code": "agent_error", "message": "Internal", "recoverable": True, "agentCode": "-32603"}
    assert only(made("session:error", error=error)) == packet_from_error({"code": -32603, "message": "Internal"}, NOW)
    died = {"code": "agent_died", "message": "Gone.", "recoverable": True, "details": {"exitCode": 1}}
    packet = only(made("session:error", error=died))
    assert packet["code"] is None
    assert packet["details"] == {"exitCode": 1, "code": "agent_died", "recoverable": True}


def test_an_artifact_is_announced() -> None:
    artifact = {
        "id": "a/b",
        "type": "image",
        "name": "x.png",
        "path": "x.png",
        "mime_type": "image/png",
        "size_bytes": 7,
    }
    data = {"namespace": "pilothouse", "event_name": "artifact_created", "data": {"artifact": artifact}}
    place = "/sessions/s/artifacts/a%2Fb"
    urls = {"preview_url": f"{place}/preview", "download_url": place}
    assert only(made("custom", **data))["artifact"] == {**artifact, **urls, "metadata": {}}
    data["data"] = {"artifact": {"id": "a", "type": "nextjs_app", "name": "web", "path": "web"}}
    packet = only(made("custom", **data))["artifact"]
    assert (packet["preview_url"], packet["download_url"], packet["size_bytes"]) == (None, None, None)


def test_custom_events_of_updates_are_their_updates() -> None:
    mode = {"namespace": "acp", "event_name": "current_mode_update", "data": {"currentModeId": "code", "event": 1}}
    assert only(made("custom", **mode))["currentModeId"] == "code"
    assert made("custom", namespace="acp", event_name="usage_update", data={"used": 3}) == []
    assert made("custom", namespace="mine", event_name="turn_ended", data={}) == []
    assert made("custom", namespace="pilothouse", event_name="diagnostic", data={"text": "x"}) == []


def test_an_event_whose_source_rides_on_another_gives_nothing() -> None:
    assert made("message:delta", source=b"", message_id="m", role="assistant", delta="Hi") == []


@pytest.mark.parametrize("source", [b"{", b"[]", b"3", b'"x"', b"\xff", b"{}", b'{"sessionUpdate":3}'])
def test_a_source_that_is_no_update_gives_nothing(source: bytes) -> None:
    assert made("message:delta", source=source, message_id="m", role="assistant", delta="Hi") == []


# -- the two ways are one -----------------------------------------------------------------------------------------

CONTENT = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "text", "text": ""},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    ]
)
ITEMS = st.lists(
    st.sampled_from(
        [
            {"type": "content", "content": {"type": "text", "text": "out"}},
            {"type": "diff", "path": "/w/a", "oldText": None, "newText": "x\n"},
            {"type": "diff", "path": "/w/a", "oldText": "y\n", "newText": "x\n"},
            {"type": "terminal", "terminalId": "t"},
        ]
    ),
    max_size=2,
)
CALL = {
    "title": st.sampled_from(["bash", "6 todos", "/w/a", ""]),
    "kind": st.sampled_from(["read", "edit", "execute", "think", "other", "fetch"]),
    "status": st.sampled_from(["pending", "in_progress", "completed", "failed"]),
    "rawInput": st.sampled_from(
        [{}, {"command": "git commit -m x"}, {"todos": [{"content": "A"}]}, {"filePath": "/w/a"}]
    ),
    "rawOutput": st.sampled_from([{"output": "x"}, {"error": "no"}, "text", {"metadata": {"exit": 1}}]),
    "content": ITEMS,
    "locations": st.just([{"path": "/w/a"}]),
}
IDS = st.fixed_dictionaries({"toolCallId": st.sampled_from(["c1", "c2"])})
UPDATES = st.one_of(
    st.builds(
        lambda kind, content: {"sessionUpdate": kind, "content": content},
        st.sampled_from(["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]),
        CONTENT,
    ),
    st.builds(
        lambda ids, fields: {"sessionUpdate": "tool_call", "title": "t", **ids, **fields},
        IDS,
        st.fixed_dictionaries({}, optional=CALL),
    ),
    st.builds(
        lambda ids, fields: {"sessionUpdate": "tool_call_update", **ids, **fields},
        IDS,
        st.fixed_dictionaries({}, optional=CALL),
    ),
    st.builds(
        lambda status: {"sessionUpdate": "plan", "entries": [{"content": "A", "priority": "high", "status": status}]},
        st.sampled_from(["pending", "in_progress", "completed"]),
    ),
    st.builds(
        lambda mode: {"sessionUpdate": "current_mode_update", "currentModeId": mode}, st.sampled_from(["plan", "code"])
    ),
    st.sampled_from(
        [
            {"sessionUpdate": "available_commands_update", "availableCommands": []},
            {"sessionUpdate": "usage_update", "used": 5, "size": 10},
            {"sessionUpdate": "not_yet_invented", "x": 1},
        ]
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(UPDATES, max_size=12))
def test_packets_of_events_equal_packets_of_the_updates(updates: list[dict[str, Any]]) -> None:
    direct = [packet for update in updates if (packet := packet_from_update(update, NOW))]
    translator = Translator("s", workspace="/w")
    events: list[Event] = []
    for update in updates:
        events += translator.update(json.dumps(update).encode(), NOW)
    assert [packet for event in events for packet in packets_from_event(event)] == direct


def test_a_whole_turn_ends_with_exactly_one_answer() -> None:
    translator = Translator("s", workspace="/w")
    events = translator.prompt("go", NOW, turn_id="t")
    events += translator.update(b'{"sessionUpdate":"tool_call","toolCallId":"c","title":"bash"}', NOW)
    events += translator.result({"stopReason": "cancelled", "usage": {"totalTokens": 3}}, NOW)
    kinds = [packet["type"] for event in events for packet in packets_from_event(event)]
    assert kinds.count("prompt_response") == 1
    assert kinds[-1] == "prompt_response"
    assert kinds[0] == "tool_call_start"
    closed = [packet for event in events for packet in packets_from_event(event) if packet.get("status") == "failed"]
    assert [packet["toolCallId"] for packet in closed] == ["c"]


def test_a_message_that_never_came_in_pieces_is_sent_whole_and_a_streamed_one_once() -> None:
    head = {"seq": 1, "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z"}
    said = {**head, "type": "message:delta", "messageId": "m", "role": "assistant", "delta": "Hello"}
    content = [{"type": "text", "text": "Hello"}]
    whole = {**head, "type": "message:complete", "messageId": "m", "role": "assistant", "content": content}
    thought = {**head, "type": "thinking:complete", "messageId": "t", "content": "Hm"}

    def packets(*events: dict[str, Any]) -> list[tuple[str, str]]:
        project = Projector().project
        made = [packet for event in events for packet in project(decode_event(event))]
        return [(packet["type"], packet["content"]["text"]) for packet in made]

    assert packets(whole) == [("agent_message_chunk", "Hello")]
    assert packets(said, whole) == [("agent_message_chunk", "Hello")]
    assert packets(thought) == [("agent_thought_chunk", "Hm")]
    assert packets({**whole, "role": "user"}) == []
