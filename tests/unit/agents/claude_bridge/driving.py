"""The agent over the fake CLI, and a client of our own library that keeps what it is told."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pilothouse.acp import RequestError, spawn_agent_process, text_block
from pilothouse.acp.agent.connection import AgentSideConnection
from pilothouse.acp.client.connection import ClientSideConnection
from pilothouse.acp.model import to_wire
from pilothouse.acp.transport import memory_pair
from pilothouse.agents.claude_bridge.agent import ClaudeAgent
from pilothouse.agents.claude_bridge.session import ClaudeSession
from tests.support import fake_claude

PATIENCE = 60
BRIDGE = (sys.executable, "-P", "-m", "pilothouse.agents.claude_bridge")
Json = dict[str, Any]


def fake_cli(folder: Path) -> Path:
    """The fake CLI as a program."""
    path = folder / "claude"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{fake_claude.__file__}" "$@"\n')
    path.chmod(0o755)
    return path


class Watcher:
    """A client. `choose` gives the option for a permission, or waits."""

    def __init__(self) -> None:
        self.updates: list[Json] = []
        self.notes: list[tuple[str, Json]] = []
        self.asked: list[Json] = []
        self.withdrawn = 0
        self.choose: Callable[[], str | None] = lambda: "allow"
        self.changed = asyncio.Condition()
        self.frames: list[str] = []

    async def _told(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def session_update(self, session_id: str, update: Any) -> None:
        self.updates.append({"session": session_id, **to_wire(update)})
        await self._told()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any) -> Any:
        self.asked.append({"call": to_wire(tool_call), "options": [option.option_id for option in options]})
        await self._told()
        chosen = self.choose()
        if chosen is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.withdrawn += 1
                raise
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async def create_elicitation(self, message: str, mode: Any) -> Any:
        return {"action": "accept", "content": {"q1": "Blue"}}

    async def ext_notification(self, method: str, params: Json) -> None:
        self.notes.append((method, params))

    # -- what came --

    async def until(self, fits: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(fits)

    def of(self, kind: str) -> list[Json]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"].get("text", "") for update in self.of(kind))

    def statuses(self) -> list[str]:
        calls = [update for update in self.updates if update["sessionUpdate"].startswith("tool_call")]
        return [update["status"] for update in calls if "status" in update]


class Talk:
    """A connection to the agent, with one session open."""

    def __init__(self, agent: Any, watcher: Watcher, work: Path) -> None:
        self.agent = agent
        self.watcher = watcher
        self.work = work
        self.session = ""
        self.opened: Any = None

    async def open(self, **meta: Any) -> None:
        self.opened = await self.agent.new_session(cwd=str(self.work), mcp_servers=[], **meta)
        self.session = self.opened.session_id

    async def prompt(self, words: str) -> str:
        """The stop reason."""
        answer = await self.agent.prompt(session_id=self.session, prompt=[text_block(words)])
        return str(answer.stop_reason)

    async def said(self, words: str) -> str:
        """What is said in answer to a prompt."""
        before = len(self.watcher.said())
        assert await self.prompt(words) == "end_turn"
        return self.watcher.said()[before:]

    async def failed(self, words: str) -> RequestError:
        try:
            await self.prompt(words)
        except RequestError as exc:
            return exc
        raise AssertionError("the prompt did not fail")

    async def cancelled(self, words: str, when: Callable[[], Any]) -> str:
        """Prompt, cancel when something is seen; the stop reason."""
        task = asyncio.create_task(self.prompt(words))
        while not when():
            assert not task.done(), task.result()
            await asyncio.sleep(0.01)
        await self.agent.cancel(session_id=self.session)
        async with asyncio.timeout(PATIENCE):
            return await task


@asynccontextmanager
async def in_memory(
    tmp_path: Path, *, open_session: bool = True, program: str | None = None, **timing: float
) -> AsyncIterator[tuple[Talk, ClaudeAgent]]:
    """The agent in this process."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    watcher = Watcher()
    agent = ClaudeAgent(
        command=program or str(fake_cli(tmp_path)),
        home=Path(os.environ["CLAUDE_CONFIG_DIR"]),
        own=Path(os.environ["CLAUDE_CONFIG_DIR"]) / "own",
        session=partial(ClaudeSession, **timing),  # type: ignore[arg-type]
    )
    ours, theirs = memory_pair()
    serving = AgentSideConnection(agent, theirs)
    client = ClientSideConnection(watcher, ours)  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(60):
            await client.initialize(protocol_version=1)
            talk = Talk(client, watcher, work)
            if open_session:
                await talk.open()
            yield talk, agent
    finally:
        await agent.close()
        await client.close()
        await serving.close()


@asynccontextmanager
async def on_stdio(tmp_path: Path, *words: str) -> AsyncIterator[tuple[Talk, Any]]:
    """The agent as a program of its own."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    watcher = Watcher()
    env = {"PILOTHOUSE_CLAUDE": str(fake_cli(tmp_path))}
    program, *rest = (*BRIDGE, *words)
    spawned = spawn_agent_process(watcher, program, *rest, env=env, cwd=str(work))  # type: ignore[arg-type]
    async with asyncio.timeout(60), spawned as (connection, process):
        await connection.initialize(protocol_version=1)
        talk = Talk(connection, watcher, work)
        await talk.open()
        yield talk, process
