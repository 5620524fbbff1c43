"""An editor for tests that lends its files and terminals: an ACP client of the hub over a link in memory.

async with lending(hub, fs=True, terminal=True) as editor:
    session_id = await editor.open(tmp_path)
    editor.buffers[str(path)] = "unsaved"
    await editor.prompt(session_id, f"read {path}")
    editor.said                       # what the agent said
    editor.calls                      # what was asked of the editor: (method, params)
    await editor.vanish()             # as if it had crashed

`editor.answers[method]` is a coroutine function of the params that stands before what is built in.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from pilothouse.acp.connection import Connection
from pilothouse.acp.dispatch import StreamDirection, StreamEvent
from pilothouse.acp.errors import RequestError
from pilothouse.acp.transport import memory_pair
from pilothouse.hub.client.terminals import Terminals
from pilothouse.hub.client.workspace import Workspace
from pilothouse.hub.hub import Hub
from pilothouse.server.acp.websocket import AcpFace
from pilothouse.server.auth.callers import ADMIN, Caller

from .hubs import PATIENCE

OWNER = Caller(name="editor", scopes=ADMIN)


def _is_about_act(params: dict[str, Any]) -> bool:
    return {option["optionId"] for option in params["options"]} == {"allow_once", "reject_once"}


class Lender:
    def __init__(
        self, hub: Hub, caller: Caller | None, capabilities: dict[str, Any], name: str, authenticate: Any = None
    ) -> None:
        ours, theirs = memory_pair()
        self.face = AcpFace(hub, ours, caller=caller, authenticate=authenticate)
        self.frames: list[tuple[str, str]] = []
        """All that passed, as the hub sees it: its direction and its text."""
        self.wire = Connection(self._handle, theirs, observers=[self._watch])
        self.capabilities = capabilities
        self.name = name
        self.buffers: dict[str, str] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.acts: list[dict[str, Any]] = []
        """Acts that the agent did not ask about and the hub did; the user of this editor allows them."""
        self.answers: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {}
        self.terminals: Terminals | None = None
        self._came = asyncio.Event()

    # -- what the hub says --

    def _watch(self, event: StreamEvent) -> None:
        is_hubs = event.direction is StreamDirection.INCOMING
        self.frames.append(("outgoing" if is_hubs else "incoming", event.raw.decode().rstrip("\n")))

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        if method == "session/request_permission" and method not in self.answers and _is_about_act(params):
            self.acts.append(params)
            return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        (self.told if is_notification else self.calls).append((method, params))
        self._came.set()
        self._came = asyncio.Event()
        if is_notification:
            return None
        answer = self.answers.get(method) or getattr(self, "on_" + method.replace("/", "_"), None)
        if answer is None:
            raise RequestError.method_not_found(method)
        return await answer(params)

    async def on_fs_read_text_file(self, params: dict[str, Any]) -> Any:
        if params["path"] not in self.buffers:
            raise RequestError(-32002, "no such buffer", {"path": params["path"]})
        return {"content": self.buffers[params["path"]], "_meta": {"from": self.name}}

    async def on_fs_write_text_file(self, params: dict[str, Any]) -> Any:
        self.buffers[params["path"]] = params["content"]
        return None

    async def on_terminal_create(self, params: dict[str, Any]) -> Any:
        if self.terminals is None:
            self.terminals = Terminals(Workspace(params["cwd"]), grace=0.2)
        made = await self.terminals.create(params["command"], params.get("args"), (), params["cwd"])
        return {"terminalId": made}

    async def on_terminal_output(self, params: dict[str, Any]) -> Any:
        assert self.terminals is not None
        output = self.terminals.output(params["terminalId"])
        status = output.exit_status
        ended = None if status is None else {"exitCode": status.exit_code, "signal": status.signal}
        return {"output": output.text, "truncated": output.truncated, "exitStatus": ended}

    async def on_terminal_wait_for_exit(self, params: dict[str, Any]) -> Any:
        assert self.terminals is not None
        status = await self.terminals.wait(params["terminalId"])
        return {"exitCode": status.exit_code, "signal": status.signal}

    async def on_terminal_kill(self, params: dict[str, Any]) -> Any:
        assert self.terminals is not None
        await self.terminals.kill(params["terminalId"])
        return {}

    async def on_terminal_release(self, params: dict[str, Any]) -> Any:
        assert self.terminals is not None
        await self.terminals.release(params["terminalId"])
        return {}

    # -- what the editor says --

    async def call(self, method: str, **params: Any) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.wire.send_request(method, params)

    async def initialize(self) -> Any:
        info = {"name": self.name, "version": "1"}
        return await self.call("initialize", protocolVersion=1, clientCapabilities=self.capabilities, clientInfo=info)

    async def new(self, cwd: Path, **fields: Any) -> Any:
        return await self.call("session/new", **{"cwd": str(cwd), "mcpServers": [], **fields})

    async def open(self, cwd: Path, agent: str = "odd", **fields: Any) -> str:
        answer = await self.new(cwd, **{"_meta": {"pilothouse": {"agent": agent}}, **fields})
        return str(answer["sessionId"])

    async def load(self, session_id: str, **fields: Any) -> Any:
        return await self.call("session/load", **{"sessionId": session_id, "cwd": "/", "mcpServers": [], **fields})

    async def prompt(self, session_id: str, text: str, **fields: Any) -> Any:
        return await self.call(
            "session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": text}], **fields
        )

    async def vanish(self) -> None:
        """Break the connection, as a crash does."""
        await self.wire.close()
        await self.face.close()

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await self._came.wait()

    # -- what it was told --

    @property
    def updates(self) -> list[dict[str, Any]]:
        return [params["update"] for method, params in self.told if method == "session/update"]

    def words(self, kind: str = "agent_message_chunk") -> str:
        chunks = [update for update in self.updates if update["sessionUpdate"] == kind]
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    @property
    def said(self) -> str:
        return self.words()

    def answered(self) -> Any:
        """What the agent says it was answered, the last time."""
        return json.loads(self.said.rpartition("ANSWER ")[2])

    def asked(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.calls if name == method]


@contextlib.asynccontextmanager
async def lending(
    hub: Hub,
    *,
    caller: Caller | None = OWNER,
    fs: bool = False,
    terminal: bool = False,
    name: str = "zed",
    authenticate: Any = None,
    **capabilities: Any,
) -> AsyncIterator[Lender]:
    offered = {"fs": {"readTextFile": fs, "writeTextFile": fs}, "terminal": terminal, **capabilities}
    editor = Lender(hub, caller, offered, name, authenticate)
    try:
        await editor.initialize()
        yield editor
    finally:
        await editor.vanish()
        if editor.terminals is not None:
            await editor.terminals.close()
