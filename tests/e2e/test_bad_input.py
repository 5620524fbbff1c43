"""Bad input gets a clear error: methods, parameters, lines, programs."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import (
    Agent,
    Client,
    ConnectionClosed,
    InitializeResponse,
    NewSessionResponse,
    SpawnError,
    spawn_agent_process,
)
from tests.support.wire import agent_on_wire


class Nothing(Client):
    pass


class Some(Agent):
    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=1)

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="s")

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> None:
        raise KeyError("broken handler")


async def ask(method: str, params: Any) -> dict[str, Any]:
    async with agent_on_wire(Some()) as (_, wire, _):
        await wire.send({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
        answer = await wire.receive()
        assert answer["id"] == 7
        error: dict[str, Any] = answer["error"]
        return error


@pytest.mark.parametrize(
    "method", ["session/teleport", "prompt", "", "session/prompt", "_ext/thing", "$/cancel_request"]
)
async def test_an_unknown_or_unserved_method_is_method_not_found(method: str) -> None:
    error = await ask(method, {"sessionId": "s", "prompt": []})
    assert error["code"] == -32601
    assert error["data"] == {"method": method}


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "cwd"),
        ({"cwd": 5}, "cwd"),
        ({"cwd": "/", "mcpServers": "x"}, "mcpServers"),
        ({"cwd": "/", "mcpServers": [{"name": "n", "command": "c", "args": [1], "env": []}]}, "mcpServers[0].args[0]"),
        ({"cwd": "/", "mcpServers": [{"type": "http", "name": "n"}]}, "mcpServers[0].url"),
        ([], ""),
        ("text", ""),
        (None, "cwd"),
    ],
)
async def test_bad_params_name_the_field(params: Any, field: str) -> None:
    error = await ask("session/new", params)
    assert error["code"] == -32602
    assert error["data"]["field"] == field
    assert error["data"]["reason"]


async def test_a_broken_handler_is_an_internal_error() -> None:
    error = await ask("session/load", {"sessionId": "s", "cwd": "/", "mcpServers": []})
    assert error["code"] == -32603
    assert "broken handler" in error["data"]["details"]


async def test_a_malformed_line_is_answered_reported_and_survived() -> None:
    async with agent_on_wire(Some()) as (_, wire, diagnostics):
        await wire.send(b"this is not JSON", b"[1]")
        parse = await wire.receive()
        batch = await wire.receive()
        assert (parse["id"], parse["error"]["code"]) == (None, -32700)
        assert (batch["id"], batch["error"]["code"]) == (None, -32600)
        assert "this is not JSON" in diagnostics[0].excerpt
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        assert (await wire.receive())["result"]["protocolVersion"] == 1


async def test_a_missing_command_is_named_with_the_path_it_was_looked_for_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/no/such/dir:/usr/bin")
    with pytest.raises(SpawnError) as caught:
        async with spawn_agent_process(Nothing(), "no-such-agent", "--acp"):
            pass
    assert "'no-such-agent'" in str(caught.value)
    assert "/no/such/dir:/usr/bin" in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError), "what callers of the SDK catch"


async def test_a_missing_directory_and_a_file_that_is_no_program_are_named(tmp_path: Path) -> None:
    with pytest.raises(SpawnError, match="working directory"):
        async with spawn_agent_process(Nothing(), sys.executable, cwd=tmp_path / "gone"):
            pass
    plain = tmp_path / "plain.txt"
    plain.write_text("no program")
    with pytest.raises(SpawnError, match=r"plain\.txt"):
        async with spawn_agent_process(Nothing(), str(plain)):
            pass


async def test_an_agent_that_dies_at_start_leaves_its_exit_code_and_last_words() -> None:
    code = "import sys; sys.stderr.write('no key: set SOME_KEY\\n'); sys.exit(3)"
    async with asyncio.timeout(20), spawn_agent_process(Nothing(), sys.executable, "-c", code) as (connection, process):
        with pytest.raises(ConnectionClosed) as caught:
            await connection.initialize()
        assert caught.value.exit_code == 3
        assert "no key: set SOME_KEY" in caught.value.stderr_tail
        assert "exit code 3" in str(caught.value)
        assert "no key: set SOME_KEY" in str(caught.value)
        with pytest.raises(ConnectionClosed, match="no key: set SOME_KEY"):
            await connection.initialize()
        assert process.returncode == 3


async def test_an_agent_killed_by_a_signal_says_so() -> None:
    code = "import os, sys; sys.stdin.readline(); os.kill(os.getpid(), 9)"
    async with asyncio.timeout(20), spawn_agent_process(Nothing(), sys.executable, "-c", code) as (connection, _):
        with pytest.raises(ConnectionClosed, match="signal 9") as caught:
            await connection.initialize()
        assert caught.value.exit_code == -9


async def test_the_stderr_of_a_child_stays_readable() -> None:
    code = "import sys; sys.stderr.write('one\\ntwo\\n'); sys.stderr.flush(); sys.stdin.read()"
    async with asyncio.timeout(20), spawn_agent_process(Nothing(), sys.executable, "-c", code) as (_, process):
        assert process.stderr is not None
        assert await process.stderr.readline() == b"one\n"
        assert await process.stderr.readline() == b"two\n"


async def test_observers_see_every_message_in_both_directions() -> None:
    code = (
        "import sys, json\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': {'protocolVersion': 1}}), flush=True)\n"
    )
    seen: list[tuple[str, dict[str, Any]]] = []

    async def observe(event: Any) -> None:
        seen.append((event.direction, event.message))
        assert json.loads(event.raw) == event.message

    async with (
        asyncio.timeout(20),
        spawn_agent_process(Nothing(), sys.executable, "-c", code, observers=[observe]) as pair,
    ):
        await pair[0].initialize()
    assert [direction for direction, _ in seen] == ["outgoing", "incoming"]
    assert seen[0][1]["method"] == "initialize"
    assert seen[1][1]["result"] == {"protocolVersion": 1}
