"""Remote ACP over a real socket, and a hub in a process of its own that dies under its clients."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.support.servers import TOKEN, server_process, serving

PATIENCE = 60


class Wire:
    """One client. `updates` are all it was told, `answers` the answers by the id of the request."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count()
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.buffers: dict[str, str] = {}

    async def send(self, method: str, **params: Any) -> int:
        number = next(self._ids)
        await self._socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        return number

    async def raw(self, text: str) -> None:
        await self._socket.send(text)

    async def read(self) -> dict[str, Any]:
        """The next message; what is asked of the client is answered."""
        async with asyncio.timeout(PATIENCE):
            message: dict[str, Any] = json.loads(await self._socket.recv())
        if message.get("method") == "session/update":
            self.updates.append(message["params"]["update"])
        elif "method" in message and "id" in message:
            self.asked.append(message)
            content = self.buffers.get(message["params"].get("path", ""))
            reply = (
                {"result": {"content": content}}
                if content is not None
                else {"error": {"code": -32601, "message": "no such method"}}
            )
            await self._socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}))
        return message

    async def answer(self, number: int | str) -> dict[str, Any]:
        while True:
            message = await self.read()
            if message.get("id") == number and "method" not in message:
                return message

    async def call(self, method: str, **params: Any) -> Any:
        answer = await self.answer(await self.send(method, **params))
        assert "error" not in answer, answer
        return answer["result"]

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self.read()

    def words(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.updates if update["sessionUpdate"] == kind)

    @property
    def last_seq(self) -> int:
        return max((update["_meta"]["pilothouse"]["seq"] for update in self.updates), default=0)


@contextlib.asynccontextmanager
async def client(port: int, **capabilities: Any) -> AsyncIterator[Wire]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with connect(f"ws://127.0.0.1:{port}/acp", additional_headers=headers, max_size=None) as socket:
        wire = Wire(socket)
        await wire.call("initialize", protocolVersion=1, clientCapabilities=capabilities)
        yield wire


def prompt(text: str, request_id: str) -> dict[str, Any]:
    return {"prompt": [{"type": "text", "text": text}], "_meta": {"pilothouse": {"clientRequestId": request_id}}}


async def test_prompts_sent_again_after_the_hub_was_killed_are_answered_with_the_truth(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with server_process(home) as process, client(process.port) as wire:
        session_id = (await wire.call("session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
        first = await wire.call("session/prompt", sessionId=session_id, **prompt("echo first", "r1"))
        await wire.send("session/prompt", sessionId=session_id, **prompt("wait", "r2"))
        await wire.until(lambda: "Waiting" in wire.words())
        seen = wire.last_seq
        process.kill()
        await process.wait()
    async with server_process(home) as process, client(process.port) as wire:
        own = {"pilothouse": {"after": seen, "own": ["r1", "r2", "r3"]}}
        await wire.call("session/resume", sessionId=session_id, cwd=str(tmp_path), _meta=own)
        assert wire.words("user_message_chunk") == ""
        assert all(update["_meta"]["pilothouse"]["seq"] > seen for update in wire.updates)
        assert await wire.call("session/prompt", sessionId=session_id, **prompt("echo first", "r1")) == first
        number = await wire.send("session/prompt", sessionId=session_id, **prompt("wait", "r2"))
        error = (await wire.answer(number))["error"]
        assert error["data"]["stopReason"] == "interrupted"
        before = wire.words()
        done = await wire.call("session/prompt", sessionId=session_id, **prompt("echo third", "r3"))
        assert done["stopReason"] == "end_turn"
        assert wire.words().removeprefix(before) == "third"
        assert wire.words("user_message_chunk") == ""
        await wire.call("session/load", sessionId=session_id, cwd=str(tmp_path), mcpServers=[])
        assert wire.words("user_message_chunk") == "echo firstwaitecho third"


async def test_the_files_of_an_editor_at_the_other_end_of_a_socket_are_read(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("saved")
    async with serving(tmp_path / "home") as served, client(served.port, fs={"readTextFile": True}) as wire:
        meta = {"pilothouse": {"agent": "odd"}}
        session_id = (await wire.call("session/new", cwd=str(work), mcpServers=[], _meta=meta))["sessionId"]
        wire.buffers[str(work / "a.txt")] = "unsaved"
        await wire.call("session/prompt", sessionId=session_id, **prompt(f"read {work}/a.txt", "r1"))
        assert json.loads(wire.words())["content"] == "unsaved"
        session = await served.hub.session(session_id)
    async with serving(tmp_path / "home") as served:
        session = await served.hub.session(session_id)
        await session.prompt(f"read {work}/a.txt")
        assert any("saved" in message.text and "unsaved" not in message.text for message in session.state.messages)


async def test_a_prompt_that_is_nested_too_deeply_is_refused_and_the_next_one_runs(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, client(served.port) as wire:
        session = (await wire.call("session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
        for depth in (200, 480, 900, 20_000):
            deep = '{"a":' * depth + "1" + "}" * depth
            params = f'{{"sessionId":"{session}","prompt":[{{"type":"text","text":"echo x","_meta":{deep}}}]}}'
            await wire.raw(f'{{"jsonrpc":"2.0","id":"deep","method":"session/prompt","params":{params}}}')
            refused = (await wire.answer("deep"))["error"]
            assert "nested too deeply" in refused["data"]["reason"]
        text = [{"type": "text", "text": "echo well"}]
        assert (await wire.call("session/prompt", sessionId=session, prompt=text))["stopReason"] == "end_turn"
        assert wire.words() == "well"
