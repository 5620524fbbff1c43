"""Mutated lines against both ends of a connection: no crash, no hang, and calls are still answered.

The count is printed. PILOTHOUSE_FUZZ_LINES and PILOTHOUSE_FUZZ_SEED change how many and which.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.acp import (
    Agent,
    AgentSideConnection,
    Client,
    ClientSideConnection,
    ConnectionClosed,
    Diagnostic,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    ReadTextFileResponse,
    RequestError,
    RequestPermissionResponse,
    memory_pair,
    text_block,
)
from pilothouse.acp.transport import MemoryLink
from tests.support.mutation import Mutator

LINES = int(os.environ.get("PILOTHOUSE_FUZZ_LINES", "100000"))
SEED = int(os.environ.get("PILOTHOUSE_FUZZ_SEED", "20261115"))
BATCH = 500

TOOL = {
    "toolCallId": "t",
    "title": "Edit",
    "kind": "edit",
    "status": "pending",
    "locations": [{"path": "/a", "line": 3}],
}
CONTENT = [
    {"type": "content", "content": {"type": "text", "text": "hello"}},
    {"type": "diff", "path": "/a", "oldText": None, "newText": "x\n"},
    {"type": "terminal", "terminalId": "term"},
]
UPDATES = [
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "héllo 日本"}, "messageId": "m"},
    {"sessionUpdate": "agent_thought_chunk", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}},
    {"sessionUpdate": "user_message_chunk", "content": {"type": "resource", "resource": {"uri": "f:", "text": "t"}}},
    {"sessionUpdate": "tool_call", **TOOL, "content": CONTENT, "rawInput": {"a": [1, 2.5, None, True]}},
    {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "rawOutput": "done"},
    {"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "low", "status": "pending"}]},
    {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "n", "description": "d"}]},
    {"sessionUpdate": "usage_update", "used": 1, "size": 10, "cost": {"amount": 0.1, "currency": "USD"}},
    {"sessionUpdate": "notice", "severity": "info", "title": "t"},
    {"sessionUpdate": "session_info_update", "title": None},
]
TO_CLIENT: list[dict[str, Any]] = [
    *({"method": "session/update", "params": {"sessionId": f"s{i % 3}", "update": u}} for i, u in enumerate(UPDATES)),
    {"id": 1, "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": TOOL, "options": []}},
    {"id": "u-1", "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/a", "line": 1, "limit": 2}},
    {"id": 0, "method": "terminal/create", "params": {"sessionId": "s", "command": "ls", "args": ["-l"]}},
    {"id": 3, "method": "_ext/thing", "params": {"x": 1}},
    {"method": "_ext/note", "params": {"x": 1}},
    {"method": "$/cancel_request", "params": {"requestId": 1}},
    {"id": 10_000_000, "result": {"stopReason": "end_turn"}},
    {"id": "10000001", "error": {"code": -32603, "message": "no", "data": {"d": 1}}},
]
TO_AGENT: list[dict[str, Any]] = [
    {"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {"fs": {}}}},
    {
        "id": 1,
        "method": "session/new",
        "params": {"cwd": "/", "mcpServers": [{"name": "m", "command": "c", "args": [], "env": []}]},
    },
    {"id": 2, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]}},
    {"method": "session/cancel", "params": {"sessionId": "s"}},
    {
        "id": 4,
        "method": "session/set_config_option",
        "params": {"sessionId": "s", "configId": "c", "value": True, "type": "boolean"},
    },
    {"id": 5, "method": "session/load", "params": {"sessionId": "s", "cwd": "/", "mcpServers": []}},
    {"id": "x", "method": "_ext", "params": {}},
    {"method": "$/cancel_request", "params": {"requestId": 2}},
    {"id": 10_000_000, "result": {"outcome": {"outcome": "selected", "optionId": "o"}}},
]


def framed(corpus: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"jsonrpc": "2.0", **message} for message in corpus]


class FuzzedClient(Client):
    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        repr(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **kwargs: Any) -> Any:
        return RequestPermissionResponse(outcome={"outcome": "cancelled"})

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> Any:
        return ReadTextFileResponse(content=path)

    async def ext_method(self, method: str, params: dict[str, Any]) -> Any:
        return params

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        pass


class FuzzedAgent(Agent):
    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=1)

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="s")

    async def prompt(self, session_id: str, prompt: Any, **kwargs: Any) -> PromptResponse:
        repr(prompt)
        await asyncio.sleep(0)
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        pass

    async def ext_method(self, method: str, params: dict[str, Any]) -> Any:
        return params


@pytest.mark.slow
@pytest.mark.parametrize("side", ["client", "agent"])
async def test_mutated_lines_never_break_a_connection(side: str, tell: Callable[[str], None]) -> None:
    near, far = memory_pair()
    seen: Counter[str] = Counter()

    def note(diagnostic: Diagnostic) -> None:
        seen[diagnostic.kind] += 1

    connection: Any
    if side == "client":
        connection = ClientSideConnection(FuzzedClient(), near, on_diagnostic=note)
        mutator = Mutator(framed(TO_CLIENT), SEED)
    else:
        connection = AgentSideConnection(FuzzedAgent(), near, on_diagnostic=note)
        mutator = Mutator(framed(TO_AGENT), SEED + 1)
    peer = Answering(far)
    sent = answered = 0
    while sent < LINES:
        pending = asyncio.ensure_future(call(connection, side))
        await peer.next_request()
        for _ in range(min(BATCH, LINES - sent)):
            far.send(mutator.line())
            sent += 1
        peer.answer()
        async with asyncio.timeout(20):
            await pending
        answered += 1
    async with asyncio.timeout(10):
        assert not connection.connection.is_closed
        await connection.close()
    assert seen["handler_error"] == 0
    assert seen["malformed"] > LINES / 10, "most mutations should be visible"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in seen.most_common())
    tell(f"fuzz {side}: {sent:,} mutated lines, {answered:,} calls answered meanwhile; {kinds}")


async def call(connection: Any, side: str) -> None:
    """One call that is open while the lines come in; any answer to it counts, silence does not."""
    try:
        if side == "client":
            await connection.prompt("s0", [text_block("hi")])
        else:
            await connection.read_text_file("s", "/a")
    except ConnectionClosed:
        raise
    except (RequestError, Exception):
        pass  # a mutated line may have hit the open id


class Answering:
    """The far end: finds the requests among what comes and answers the last one."""

    def __init__(self, link: MemoryLink) -> None:
        self.link = link
        self.requests: list[Any] = []
        self.arrived = asyncio.Event()
        link.start(self.received, lambda error: None)

    def received(self, lines: Any) -> None:
        for line in lines:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.requests.append(message["id"])
                self.arrived.set()

    async def next_request(self) -> None:
        async with asyncio.timeout(10):
            await self.arrived.wait()
        self.arrived.clear()

    def answer(self) -> None:
        result = {"stopReason": "end_turn", "content": "text"}
        self.link.send(json.dumps({"jsonrpc": "2.0", "id": self.requests[-1], "result": result}).encode())
