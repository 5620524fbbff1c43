"""The packet stream over HTTP against the documents: every field, and the front end that they describe."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pilothouse.agents.demo.script import COMMANDS
from pilothouse.dialects.packets import packet_type, read_packet, write_packet
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import ApprovalRequestedEvent, UserQuestionEvent
from tests.support.front_end import FrontEnd
from tests.support.hubs import PATIENCE
from tests.support.packet_checker import check_packet
from tests.support.servers import Served, serving

GOLDEN = Path(__file__).parents[1] / "golden" / "packets.jsonl"
ARGUMENTS = {
    "echo": "hello  there",
    "edit": "note.txt some text",
    "bash": "echo one; echo two",
    "read": "note.txt",
    "mode": "plan",
    "config": "",
    "title": "A title",
    "notice": "warning careful",
    "big": "300000",
    "flood": "500",
    "slow": "1",
    "stubborn": "1",
    "stderr": "64",
}
ENDS = {"wait": "cancelled", "refuse": "refusal", "limit": "max_tokens", "error": "error", "crash": "error"}


async def packets_of(served: Served, session: HubSession, content: str) -> list[dict[str, Any]]:
    """All packets of a turn, live, while somebody allows everything and answers every question."""
    answering = asyncio.ensure_future(_answer(session, content))
    try:
        target = f"/sessions/{session.id}/send-message"
        async with asyncio.timeout(PATIENCE), served.client.stream("POST", target, {"content": content}) as stream:
            assert stream.status == 200
            assert stream.headers["content-type"].startswith("text/event-stream")
            frames = [frame async for frame in stream.frames() if frame.comment is None]
    finally:
        answering.cancel()
        await asyncio.wait((answering,))
    assert {frame.event for frame in frames} == {"message"}
    return [frame.json() for frame in frames]


async def _answer(session: HubSession, content: str) -> None:
    async for event in session.events(session.state.seq):
        if isinstance(event, ApprovalRequestedEvent):
            await session.decide(event.request_id, approved=True)
        elif isinstance(event, UserQuestionEvent):
            session.answer(event.question_id, None)
        elif content.startswith("wait") and event.type == "message:delta":
            asyncio.ensure_future(session.cancel())


def examples() -> list[Any]:
    """The documents' examples of whole packets; some are only parts of one."""
    found = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    return [example for example in found if packet_type(example["json"]) is not None]


@pytest.mark.parametrize("example", examples(), ids=lambda example: f"{example['document']}, {example['example']}")
def test_the_checker_accepts_what_the_documents_show(example: Any) -> None:
    whole = write_packet(read_packet({"timestamp": "2026-01-22T19:13:30.917345+00:00", **example["json"]}))
    for name, empty in (("rawInput", {}), ("title", ""), ("kind", "other")):
        if whole.get("type") == "tool_call_progress" and whole.get(name) is None:
            whole[name] = empty
    assert check_packet(whole) == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"title": None}, "tool_call_progress.title"),
        ({"kind": "command"}, "tool_call_progress.kind"),
        ({"messageId": "m1"}, "tool_call_progress.messageId: not in the documents"),
        ({"status": "done"}, "tool_call_progress.status"),
        ({"content": [{"type": "terminal", "terminalId": "t"}]}, "tool_call_progress.content"),
        ({"locations": [{"path": "a"}]}, "tool_call_progress.locations"),
        ({"timestamp": "yesterday"}, "tool_call_progress.timestamp"),
    ],
)
def test_the_checker_refuses_what_they_do_not_have(change: dict[str, Any], error: str) -> None:
    packet = next(item["json"] for item in examples() if item["json"].get("type") == "tool_call_progress")
    whole = write_packet(read_packet({"timestamp": "2026-01-22T19:13:30.917345+00:00", **packet}))
    assert check_packet(whole) == []
    errors = check_packet({**whole, **change})
    assert errors
    assert all(found.startswith(error) for found in errors)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Beside the hub's own directory, of whose files nobody is told."""
    place = tmp_path / "workspace"
    place.mkdir()
    return place


async def test_the_packets_of_a_tour_equal_the_documents_field_by_field(tmp_path: Path, workspace: Path) -> None:
    async with serving(tmp_path / "home") as served:
        session = await served.hub.start_session("demo", workspace)
        packets = await packets_of(served, session, "tour")
    wrong = [error for packet in packets for error in check_packet(packet)]
    assert wrong == []
    kinds = Counter(packet["type"] for packet in packets)
    assert kinds["prompt_response"] == 1
    assert packets[-1] == {
        "type": "prompt_response",
        "timestamp": packets[-1]["timestamp"],
        "stopReason": "end_turn",
        "_meta": {},
    }
    assert {"agent_message_chunk", "agent_thought_chunk", "agent_plan_update", "tool_call_start"} < kinds.keys()
    assert kinds["tool_call_start"] == 6
    assert kinds["approval_requested"] == kinds["approval_resolved"] == 4
    made = [packet["artifact"]["name"] for packet in packets if packet["type"] == "artifact_created"]
    assert made == ["cart.py", "test_cart.py"]
    kind_of = {packet["toolCallId"]: packet["kind"] for packet in packets if packet["type"] == "tool_call_start"}
    assert list(kind_of.values()) == ["edit", "read", "read", "execute", "edit", "execute"]


async def test_a_new_file_and_an_edited_one_can_be_told_apart_by_the_documents_own_rule(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)
        found = []
        for content in ("edit note.txt one", "edit note.txt two"):
            packets = await packets_of(served, session, content)
            ended = [packet for packet in packets if packet.get("status") == "completed"][-1]
            found += [item["oldText"] for item in ended["content"] if item["type"] == "diff"]
    assert found[0] == ""
    assert found[1].strip() == "one"


def scenarios() -> list[str]:
    return [f"{command.name} {ARGUMENTS.get(command.name, '')}".strip() for command in COMMANDS]


@pytest.mark.parametrize("root", ["", "/below/here"])
async def test_what_was_made_can_be_had_where_its_packet_says_and_is_announced_once(
    tmp_path: Path, workspace: Path, root: str
) -> None:
    async with serving(tmp_path / "home", root_path=root) as served:
        session = await served.hub.start_session("demo", workspace)
        packets = await packets_of(served, session, "edit page.html <h1>one</h1>")
        (packet,) = [packet for packet in packets if packet["type"] == "artifact_created"]
        assert check_packet(packet) == []
        assert packets.index(packet) < len(packets) - 1
        made = packet["artifact"]
        size = (workspace / "page.html").stat().st_size
        assert (made["type"], made["name"], made["mime_type"], made["size_bytes"], made["metadata"]) == (
            *("web_app", "page.html", "text/html", size),
            {},
        )
        (row,) = (await served.client.request("GET", f"/sessions/{session.id}/artifacts")).json()["artifacts"]
        assert (row["id"], row["contentUrl"], row["previewUrl"]) == (
            *(made["id"], made["download_url"], made["preview_url"]),
        )
        assert made["download_url"].startswith(f"{root}/sessions/")
        for url in (made["preview_url"], made["download_url"]):
            answer = await served.client.request("GET", url)
            assert (answer.status, len(answer.body)) == (200, size)
        again = await packets_of(served, session, "edit page.html <h1>two</h1>")
        assert [packet for packet in again if packet["type"] == "artifact_created"] == []
        stored = (await served.client.request("GET", f"/sessions/{session.id}/packets?limit=1000")).json()["packets"]
        assert [one for one in stored if one["type"] == "artifact_created"] == [packet]


async def test_the_documents_front_end_ends_right_whatever_the_agent_does(tmp_path: Path, workspace: Path) -> None:
    (workspace / "note.txt").write_text("a note\n")
    async with serving(tmp_path / "home") as served:
        session = await served.hub.start_session("demo", workspace)
        for content in scenarios():
            packets = await packets_of(served, session, content)
            front_end = FrontEnd()
            for packet in packets:
                assert check_packet(packet, by_the_book=False) == [], content
                front_end.receive(packet)
            front_end.check_rest()
            name = content.split()[0]
            assert front_end.stop_reason == ENDS.get(name, "end_turn"), content
            assert bool(front_end.errors) is (ENDS.get(name) == "error"), content
            assert session.status in ("idle", "error")
            if name == "echo":
                assert front_end.message_content == "hello  there"
            elif name == "tour":
                assert [call.history[-1] for call in front_end.tool_calls.values()].count("failed") == 1
                assert all(entry["status"] == "completed" for entry in front_end.plan)
            elif name == "crash":
                assert [call.status for call in front_end.tool_calls.values()] == ["failed"]


async def test_a_question_is_asked_by_a_packet_that_says_how_to_answer_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)
        place = f"/sessions/{session.id}"
        seen = []
        async with (
            asyncio.timeout(PATIENCE),
            served.client.stream("POST", f"{place}/send-message", {"content": "question"}) as stream,
        ):
            async for frame in stream.frames():
                packet = frame.json() if frame.comment is None else {"type": "comment"}
                seen.append(packet)
                if packet["type"] == "question_requested":
                    answer = {"questionId": packet["questionId"], "answer": None}
                    told = await served.client.request(
                        "POST", f"{place}/commands", {"command": "answer_question", **answer}
                    )
                    assert told.status < 300, told.body
    asked = [packet for packet in seen if packet["type"] == "question_requested"]
    resolved = [packet for packet in seen if packet["type"] == "question_resolved"]
    assert [check_packet(packet) for packet in (*asked, *resolved)] == [[]] * (len(asked) + len(resolved))
    assert asked[0]["form"]["properties"]
    assert [packet["questionId"] for packet in resolved] == [packet["questionId"] for packet in asked]
    assert {packet["outcome"] for packet in resolved} == {"declined"}
    assert seen[-1]["type"] == "prompt_response"


async def test_a_rejected_call_fails_and_says_why(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        policy = {"deny": {"commands": ["*"]}}
        session = await served.hub.start_session("demo", tmp_path, policy=policy)
        packets = await packets_of(served, session, "bash echo no")
    front_end = FrontEnd()
    for packet in packets:
        assert check_packet(packet, by_the_book=False) == []
        front_end.receive(packet)
    (call,) = front_end.tool_calls.values()
    assert call.history == ["pending", "failed"]
    assert call.raw_input["command"] == "echo no"
