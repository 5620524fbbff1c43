"""Stored events as packets with the documents' fields: whatever an agent leaves out, or adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilothouse.dialects.packets.documented import PacketStream, encode_packet
from pilothouse.model.events import Event, encode_event
from tests.support.front_end import FrontEnd
from tests.support.packet_checker import check_packet
from tests.support.scenario import Drive

TRACES = Path(__file__).parents[3] / "golden" / "traces"


def packets(events: list[Event], stream: PacketStream | None = None) -> list[dict[str, Any]]:
    """What a consumer gets, from the events as they are stored."""
    taker = stream or PacketStream()
    made = [packet for event in events for packet in taker.take(event.type, encode_event(event), event.source)]
    for packet in made:
        assert check_packet(packet, by_the_book=False) == []
    return [json.loads(encode_packet(packet)) for packet in made]


def calls(made: list[dict[str, Any]]) -> list[tuple[str, str, Any, Any]]:
    return [
        (packet["type"], packet["status"], packet["rawInput"], packet["rawOutput"])
        for packet in made
        if packet["type"].startswith("tool_call")
    ]


def test_a_chunk_has_the_documents_fields_and_no_others() -> None:
    drive = Drive()
    drive.say("hi", messageId="m1", _meta={"a": 1}, extra=[1])
    (chunk,) = packets(drive.events)
    assert chunk == {
        "type": "agent_message_chunk",
        "timestamp": chunk["timestamp"],
        "sessionUpdate": "agent_message_chunk",
        "content": {"_meta": None, "annotations": None, "type": "text", "text": "hi"},
        "_meta": {"a": 1},
    }


def test_a_call_that_its_agents_death_ended_keeps_its_title_and_kind() -> None:
    drive = Drive()
    drive.prompt()
    drive.call("c1", title="Crash", kind="execute", status="in_progress", rawInput={"command": "crash"})
    drive.call("c2", title="Look", kind="read", status="pending")
    drive.keep(drive.translator.died(drive.now(), exit_code=1, stderr_tail=""))
    made = [packet for packet in packets(drive.events) if packet["type"].startswith("tool_call")]
    assert {(packet["toolCallId"], packet["title"], packet["kind"]) for packet in made} == {
        ("c1", "Crash", "execute"),
        ("c2", "Look", "read"),
    }
    assert [packet["status"] for packet in made if packet["toolCallId"] == "c1"][-1] == "failed"


def test_a_call_begins_pending_and_empty_and_tells_the_rest_at_once() -> None:
    drive = Drive()
    drive.call("c1", kind="read", status="in_progress", rawInput={"path": "a"}, locations=[{"path": "a"}])
    drive.progress("c1", status="completed", rawOutput={"content": "text"})
    made = packets(drive.events)
    assert calls(made) == [
        ("tool_call_start", "pending", {}, None),
        ("tool_call_progress", "in_progress", {"path": "a"}, None),
        ("tool_call_progress", "completed", {"path": "a"}, {"content": "text"}),
    ]
    assert made[0]["locations"] == []
    assert made[1]["locations"] == [{"_meta": None, "path": "a", "line": None}]
    assert {packet["title"] for packet in made} == {"c1"}
    assert {packet["kind"] for packet in made} == {"read"}


def test_a_call_that_tells_nothing_yet_is_one_packet() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="pending")
    assert calls(packets(drive.events)) == [("tool_call_start", "pending", {}, None)]


def test_a_call_that_nothing_announced_is_announced() -> None:
    drive = Drive()
    drive.progress("c1", title="Late", status="in_progress", kind="search")
    made = packets(drive.events)
    assert made[0]["type"] == "tool_call_start"
    assert [packet["type"] for packet in made].count("tool_call_start") == 1


def test_the_end_of_a_call_has_all_that_was_told_of_it() -> None:
    drive = Drive()
    drive.call("c1", kind="edit", rawInput={"path": "a"})
    content = [{"type": "diff", "path": "a", "oldText": None, "newText": "b"}]
    drive.progress("c1", status="in_progress", content=content, locations=[{"path": "a", "line": 3}])
    drive.progress("c1", status="in_progress")
    drive.progress("c1", status="completed")
    *_, between, end = packets(drive.events)
    assert between["content"] is None
    assert end["content"] == [{"_meta": None, "type": "diff", "path": "a", "oldText": "", "newText": "b"}]
    assert end["locations"] == [{"_meta": None, "path": "a", "line": 3}]


def test_a_status_never_goes_back() -> None:
    drive = Drive()
    drive.call("c1", status="in_progress")
    drive.progress("c1", status="pending")
    drive.progress("c1", status="completed")
    drive.progress("c1", status="in_progress", title="again")
    statuses = [status for _, status, _, _ in calls(packets(drive.events))]
    assert statuses == sorted(statuses, key=["pending", "in_progress", "completed"].index)
    assert statuses[-1] == "completed"


def test_what_is_no_object_is_put_into_one() -> None:
    drive = Drive()
    drive.call("c1", rawInput="ls")
    drive.progress("c1", status="completed", rawOutput=["a", "b"])
    assert calls(packets(drive.events))[-1][2:] == ({"input": "ls"}, {"output": ["a", "b"]})


def test_a_plan_has_known_words_only() -> None:
    drive = Drive()
    drive.update("plan", entries=[{"content": "a", "status": "blocked", "priority": "urgent", "id": 3}, "b", 7])
    (plan,) = packets(drive.events)
    assert plan["entries"][0] == {"_meta": None, "content": "a", "status": "pending", "priority": "medium"}
    assert len(plan["entries"]) == 2


def test_the_end_of_a_turn_has_its_reason_and_nothing_else() -> None:
    drive = Drive()
    drive.prompt()
    drive.end(usage={"totalTokens": 3})
    made = packets(drive.events)
    assert made[-1].keys() == {"type", "timestamp", "stopReason", "_meta"}


def test_what_is_remembered_ends_with_the_turn() -> None:
    drive = Drive()
    drive.prompt(turn_id="t1")
    drive.call("c1", rawInput={"a": 1}, status="completed")
    drive.end()
    before = len(drive.events)
    drive.prompt(turn_id="t2")
    drive.call("c1", rawInput={"b": 1}, status="completed")
    drive.end()
    assert packets(drive.events)[-len(packets(drive.events[before:])) :] == packets(drive.events[before:])


def test_a_copy_goes_its_own_way() -> None:
    drive = Drive()
    drive.call("c1", kind="read", rawInput={"a": 1})
    stream = PacketStream()
    packets(drive.events, stream)
    other = stream.copy()
    seen = len(drive.events)
    drive.progress("c1", status="completed")
    first, second = (packets(drive.events[seen:], taker) for taker in (stream, other))
    assert first == second
    assert first[-1]["rawInput"] == {"a": 1}


@pytest.mark.parametrize("value", [1 << 70, "\ud83d", -(1 << 65)])
def test_an_agents_json_that_the_encoder_refuses_is_written_all_the_same(value: Any) -> None:
    assert json.loads(encode_packet({"type": "x", "rawInput": {"n": value}}))["rawInput"]["n"] == value


def test_the_end_of_a_command_in_a_terminal_is_one_packet_with_its_output() -> None:
    drive = Drive()
    drive.call("c1", title="`ls`", kind="execute", rawInput={"command": "ls"}, status="in_progress")
    drive.progress("c1", content=[{"type": "terminal", "terminalId": "t1"}])
    drive.keep(drive.translator.terminal_output("t1", "a\n", drive.now()))
    drive.keep(drive.translator.terminal_output("t1", "b\n", drive.now()))
    drive.translator.terminal_ended("t1", output="a\nb\n", exit_code=0)
    drive.progress("c1", status="completed")
    made = packets(drive.events)
    shown = [packet["content"][0]["content"]["text"] for packet in made if packet["content"]]
    assert shown[:2] == ["a\n", "a\nb\n"]
    (end,) = (packet for packet in made if packet["status"] == "completed")
    assert end["title"] == "`ls`"
    assert end["rawInput"] == {"command": "ls"}
    assert end["rawOutput"]["output"] == "a\nb\n"
    assert end["rawOutput"]["metadata"]["exit"] == 0


def test_a_command_that_failed_is_failed_also_when_its_agent_calls_it_completed() -> None:
    drive = Drive()
    drive.call("c1", title="bash", kind="execute", rawInput={"command": "make"}, status="in_progress")
    drive.progress("c1", status="completed", rawOutput={"output": "no rule", "metadata": {"exit": 2}})
    end = packets(drive.events)[-1]
    assert (end["status"], end["rawOutput"]["metadata"]["exit"]) == ("failed", 2)


def test_a_call_that_cannot_be_read_still_ends_with_its_turn_and_one_without_an_id_is_left_out() -> None:
    drive = Drive()
    drive.prompt()
    stream = PacketStream()
    source = json.dumps({"sessionUpdate": "tool_call", "toolCallId": "c9", "title": "Odd"}).encode()
    odd = encode_event(drive.translator.fact("unreadable", {}, drive.now())[0]).replace(b"pilothouse", b"acp")
    start = stream.take("custom", odd, source)
    assert [packet["type"] for packet in start] == ["tool_call_start"]
    assert stream.take("custom", odd, source.replace(b'"c9"', b"null")) == []
    *_, end, answer = packets(drive.end(), stream)
    assert (end["toolCallId"], end["status"]) == ("c9", "failed")
    assert answer["type"] == "prompt_response"


@pytest.mark.parametrize("trace", sorted(TRACES.glob("*.jsonl")), ids=lambda trace: trace.stem)
def test_a_front_end_can_follow_what_agents_really_send(trace: Path) -> None:
    drive, stream, front_end = Drive(), PacketStream(), FrontEnd()
    seen = 0
    for line in trace.read_text().splitlines():
        message = json.loads(line).get("msg")
        if not isinstance(message, dict):
            continue  # a line that was no JSON
        if message.get("method") == "session/prompt":
            front_end, stream = FrontEnd(), PacketStream()
            packets(drive.prompt(), stream)
        elif message.get("method") == "session/update":
            made = packets(drive.raw(json.dumps(message["params"]["update"]).encode()), stream)
            seen += len(made)
            for packet in made:
                front_end.receive(packet)
        elif "stopReason" in (message.get("result") or {}):
            for packet in packets(drive.end(message["result"]["stopReason"]), stream):
                front_end.receive(packet)
            front_end.check_rest()
    assert seen


@pytest.mark.parametrize("kind", ["agent_message_chunk", "agent_thought_chunk"])
def test_plain_text_takes_a_short_way_to_the_same_packet(kind: str) -> None:
    drive = Drive()
    drive.say("short", kind=kind)
    drive.say("long", kind=kind, _meta={})
    short, long = packets(drive.events)
    assert short == {**long, "_meta": None, "timestamp": short["timestamp"], "content": short["content"]}
    assert list(short) == list(long)
    assert short["content"] == {**long["content"], "text": "short"}
