"""Wire samples in the dialects of an SDK reference and of a bridge, read as a peer would send them.

`golden/sdk_samples.jsonl` and `golden/bridge_samples.jsonl` hold every kind of ACP message they use, one a line: a
name, the message, and what has to be reported about it because it departs from the schema. What each must be read
as stands here. The samples run twice: through the parts without I/O, and over a pair of real connections.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.acp import ClientSideConnection, Connection, Diagnostic, lenient, memory_pair
from pilothouse.acp.framing import LineFramer
from pilothouse.acp.interfaces import Client
from pilothouse.acp.methods import CLIENT
from pilothouse.acp.peer import Message, Peer, Response
from pilothouse.acp.routing import Router, decoder
from pilothouse.acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommand,
    AvailableCommandsUpdate,
    ContentToolCallContent,
    CurrentModeUpdate,
    ImageContentBlock,
    PlanEntry,
    PromptResponse,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)
from tests.support.schema_samples import stable

TESTS = Path(__file__).resolve().parents[2]
GOLDEN = TESTS / "golden"


def text(value: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=value)


def shown(value: str) -> ContentToolCallContent:
    return ContentToolCallContent(type="content", content=text(value))


SDK_SAMPLES = {
    "a read is announced": ToolCallStart(
        session_update="tool_call",
        tool_call_id="read_001",
        title="Reading file",
        kind="read",
        status="pending",
        locations=[ToolCallLocation(path="/src/main.py")],
        raw_input={"path": "/src/main.py"},
    ),
    "a read shows its text": ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id="read_001",
        status="in_progress",
        content=[shown("File contents: ...")],
    ),
    "a read is complete": ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id="read_001",
        status="completed",
        raw_output={"lines": 42, "bytes": 1024},
    ),
}
SDK_SAMPLES |= {f"{name}, by the real method": value for name, value in SDK_SAMPLES.items()}
BRIDGE_SAMPLES: dict[str, Any] = {
    "agent message": AgentMessageChunk(content=text("Hello! How can I help?")),
    "user message": UserMessageChunk(content=text("User message...")),
    "thought": AgentThoughtChunk(content=text("Thinking about...")),
    "tool call": ToolCallStart(
        tool_call_id="uuid", title="Read", kind="read", status="pending", raw_input={"file_path": "/path/to/file"}
    ),
    "tool call update with bare content": ToolCallProgress(
        tool_call_id="uuid", status="completed", title="Read", content=[shown("file contents...")]
    ),
    "plan without priority": AgentPlanUpdate(
        entries=[PlanEntry(content="Step description", priority="medium", status="pending")]
    ),
    "commands": AvailableCommandsUpdate(
        available_commands=[AvailableCommand(name="commit", description="Commit changes")]
    ),
    "mode": CurrentModeUpdate(current_mode_id="plan"),
    "text chunk": AgentMessageChunk(content=text("...")),
    "image chunk with media type": AgentMessageChunk(
        content=ImageContentBlock(data="base64...", mime_type="image/png")
    ),
}
STATUSES = ("pending", "in_progress", "completed", "failed")
BRIDGE_SAMPLES |= {f"status {word}": ToolCallProgress(tool_call_id="uuid", status=word) for word in STATUSES}
KINDS = {"read": "read", "write": "edit", "edit": "edit", "command": "execute", "other": "other"}
BRIDGE_SAMPLES |= {
    f"kind {told}": ToolCallStart(tool_call_id="uuid", title="Tool", kind=meant, status="pending")
    for told, meant in KINDS.items()
}
STOPS = ("end_turn", "cancelled", "max_turn_requests", "max_tokens")
BRIDGE_SAMPLES |= {f"prompt answered {word}": PromptResponse(stop_reason=word) for word in STOPS}


def samples(file: str, expected: dict[str, Any]) -> list[Any]:
    rows = [json.loads(line) for line in (GOLDEN / file).read_text().splitlines()]
    assert [row["name"] for row in rows] == list(expected), f"{file} and this test name the same samples"
    return [pytest.param(row, expected[row["name"]], id=f"{file.partition('.')[0]} {row['name']}") for row in rows]


SAMPLES = [*samples("sdk_samples.jsonl", SDK_SAMPLES), *samples("bridge_samples.jsonl", BRIDGE_SAMPLES)]
UPDATES = [param for param in SAMPLES if "answers" not in param.values[0]]
ANSWERS = [param for param in SAMPLES if "answers" in param.values[0]]


class Listener:
    def __init__(self) -> None:
        self.heard: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        await self.heard.put((session_id, update))


@pytest.mark.parametrize(("row", "expected"), UPDATES)
def test_updates_are_typed_without_io(row: Any, expected: Any) -> None:
    """Bytes in odd chunks to lines, lines to messages, messages to the arguments of the handler."""
    repairs: list[str] = []
    router = Router(Listener(), CLIENT, Client)
    router.report = lambda method, items: repairs.extend(f"{item.path}: {item.action}" for item in items)
    framer, peer = LineFramer(), Peer[Any]()
    data = json.dumps(row["message"], ensure_ascii=False).encode() + b"\n"
    lines = [line for i in range(0, len(data), 7) for line in framer.feed(data[i : i + 7])]
    assert len(lines) == 1
    message = peer.receive(lines[0])
    assert isinstance(message, Message)
    assert isinstance(message.params, msgspec.Raw)
    route = router.notification(str(message.method), message.params)
    assert route is not None
    session, _, arguments = route
    assert session == row["message"]["params"]["sessionId"]
    assert arguments["update"] == expected
    assert type(arguments["update"]) is type(expected)
    assert repairs == row["repairs"]


@pytest.mark.parametrize(("row", "expected"), ANSWERS)
def test_answers_are_typed_without_io(row: Any, expected: Any) -> None:
    peer = Peer[str]()
    request_id, _ = peer.request(row["answers"], {}, "token")
    assert request_id == row["message"]["id"]
    response = peer.receive(json.dumps(row["message"]).encode())
    assert isinstance(response, Response)
    assert (response.token, response.error) == ("token", None)
    assert response.result is not None
    assert decoder(PromptResponse)(response.result) == expected


async def silence(method: str, params: Any, is_notification: bool) -> Any:
    raise AssertionError(f"the client called {method}")


@pytest.mark.parametrize(("row", "expected"), UPDATES)
async def test_updates_are_typed_and_reported_over_a_connection(row: Any, expected: Any) -> None:
    link, other = memory_pair()
    listener, reports = Listener(), list[Diagnostic]()
    agent = Connection(silence, other)
    async with asyncio.timeout(30), agent, ClientSideConnection(listener, link, on_diagnostic=reports.append):
        await agent.send_notification(row["message"]["method"], row["message"]["params"])
        assert await listener.heard.get() == (row["message"]["params"]["sessionId"], expected)
    assert {report.kind for report in reports} <= {"repair"}
    told = [": ".join(report.message.split(": ")[:2]) for report in reports]  # without the reason
    assert [entry for entry in told if entry.startswith("$")] == [r for r in row["repairs"] if r.startswith("$")]
    assert len(reports) == len(row["repairs"]), "every departure from the schema is reported"


@pytest.mark.parametrize(("row", "expected"), ANSWERS)
async def test_answers_are_typed_over_a_connection(row: Any, expected: Any) -> None:
    async def agent(method: str, params: Any, is_notification: bool) -> Any:
        assert method == row["answers"]
        return row["message"]["result"]

    link, other = memory_pair()
    reports: list[Diagnostic] = []
    async with (
        asyncio.timeout(30),
        Connection(agent, other),
        ClientSideConnection(Listener(), link, on_diagnostic=reports.append) as client,
    ):
        assert await client.prompt(session_id="sess", prompt=[text("hi")]) == expected
    assert reports == []


@pytest.mark.parametrize(("row", "expected"), UPDATES)
def test_what_needs_no_repair_is_valid_and_what_does_is_not(row: Any, expected: Any) -> None:
    """The list of repairs in the goldens is not our opinion: an independent validator draws the same line."""
    errors = stable().errors("SessionNotification", row["message"]["params"])
    departs = [repair for repair in row["repairs"] if repair.startswith("$")]
    assert bool(errors) == bool(departs)
    wire = {"sessionId": "s", "update": json.loads(msgspec.json.encode(expected, enc_hook=lambda value: value.raw))}
    assert stable().errors("SessionNotification", wire) == []


def test_all_the_words_of_the_document_are_among_the_samples() -> None:
    names = {param.values[0]["name"] for param in SAMPLES}
    assert {f"status {word}" for word in STATUSES} <= names
    assert {f"kind {word}" for word in KINDS} <= names
    assert {f"prompt answered {word}" for word in STOPS} <= names


def test_a_repaired_message_is_written_as_the_schema_wants_it() -> None:
    raw = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "1",
        "kind": "command",
        "content": [{"type": "image", "data": "aGk=", "mediaType": "image/png"}],
    }
    value, _ = lenient.decode(ToolCallProgress, json.dumps(raw).encode())
    assert value.model_dump(mode="json", by_alias=True, exclude_none=True) == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "1",
        "kind": "execute",
        "content": [{"type": "content", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}}],
    }


def test_every_golden_file_is_claimed_by_a_test() -> None:
    sources = "\n".join(path.read_text() for path in TESTS.rglob("*.py") if "node_modules" not in path.parts)
    files = [path for path in GOLDEN.rglob("*") if path.is_file()]
    assert files
    # a folder that a test goes through is claimed with all below it
    folders = {folder for path in files for folder in path.parents if f'"golden" / "{folder.name}"' in sources}
    unclaimed = [path for path in files if path.name not in sources and folders.isdisjoint(path.parents)]
    assert [str(path.relative_to(GOLDEN)) for path in unclaimed] == []
