"""Talking with the scripted agent as a real process: clients that can do everything or nothing, and what they heard."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilothouse.acp import (
    AcceptElicitationResponse,
    AllowedOutcome,
    BooleanConfigOptionCapabilities,
    ClientCapabilities,
    ClientSessionCapabilities,
    ClientSideConnection,
    CompactionCapabilities,
    CreateTerminalResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    Diagnostic,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationFormSessionMode,
    ElicitationUrlCapabilities,
    FileSystemCapabilities,
    NoticeCapabilities,
    PromptResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
    SessionConfigOptionsCapabilities,
    spawn_agent_process,
    text_block,
)
from tests.support.workspace import Workspace

COMMAND = (sys.executable, "-m", "pilothouse.cli", "demo-agent")


QUICK = 2.0
"""Seconds in which a cancelled turn must have ended; far below any of the waits that are cancelled here."""


EVERYTHING = ClientCapabilities(
    fs=FileSystemCapabilities(read_text_file=True, write_text_file=True),
    terminal=True,
    elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities()),
    session=ClientSessionCapabilities(
        notices=NoticeCapabilities(),
        compaction=CompactionCapabilities(),
        config_options=SessionConfigOptionsCapabilities(boolean=BooleanConfigOptionCapabilities()),
    ),
)


class MinimalClient:
    """Implements nothing but what every client must, and remembers what it was told."""

    def __init__(self, root: Path) -> None:
        self.reset(root)

    def reset(self, root: Path) -> None:
        """Forget everything, for the next session."""
        self.workspace = Workspace(root)
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.told = asyncio.Event()
        self.choice: str | None = "allow_once"
        self.asking = asyncio.Event()
        self.hangs = False

    async def session_update(self, session_id: str, update: Any) -> None:
        self.updates.append(update)
        self.told.set()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.asking.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.choice is None:
            return RequestPermissionResponse(outcome=DeniedOutcome())
        chosen = next(option for option in options if option.kind == self.choice)
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=chosen.option_id))

    # -- what the tests look at --

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    @property
    def text(self) -> str:
        return "".join(u.content.text for u in self.of("agent_message_chunk") if u.content.type == "text")

    @property
    def calls(self) -> dict[str, dict[str, Any]]:
        """Tool calls with their updates merged, and all statuses they had."""
        merged: dict[str, dict[str, Any]] = {}
        for update in self.updates:
            if update.session_update not in ("tool_call", "tool_call_update"):
                continue
            call = merged.setdefault(update.tool_call_id, {"statuses": []})
            assert update.session_update == "tool_call_update" or not call["statuses"], "announced twice"
            for name in ("title", "kind", "name", "content", "locations", "raw_input", "raw_output", "field_meta"):
                if getattr(update, name) is not None:
                    call[name] = getattr(update, name)
            if update.status is not None:
                call["statuses"].append(update.status)
        return merged

    def only_call(self) -> dict[str, Any]:
        (call,) = self.calls.values()
        return call

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self.told.clear()
                with suppress(TimeoutError):  # files are also looked at, and they tell nobody
                    await asyncio.wait_for(self.told.wait(), 0.05)


class FullClient(MinimalClient):
    """Lends its files and terminals, answers questions, knows the extension."""

    def reset(self, root: Path) -> None:
        super().reset(root)
        self.used: list[str] = []
        self.completed: list[str] = []
        self.noted: list[Any] = []
        self.form: dict[str, Any] | None = {"name": "Ann", "colour": "blue", "fruits": ["plum"], "sure": False}
        self.schema: Any = None

    async def read_text_file(self, session_id: str, path: str, line: Any = None, limit: Any = None) -> Any:
        self.used.append("read")
        return ReadTextFileResponse(content=await self.workspace.read(path, line, limit))

    async def write_text_file(self, session_id: str, path: str, content: str) -> None:
        self.used.append("write")
        await self.workspace.write(path, content)

    async def create_terminal(self, session_id: str, command: str, args: Any, cwd: Any, output_byte_limit: Any) -> Any:
        self.used.append("create")
        started = await self.workspace.start([command, *args], cwd=cwd, env={}, limit=output_byte_limit)
        return CreateTerminalResponse(terminal_id=started)

    async def terminal_output(self, session_id: str, terminal_id: str) -> Any:
        self.used.append("output")
        return self.workspace.output(terminal_id)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str) -> Any:
        self.used.append("wait")
        return await self.workspace.wait(terminal_id)

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        self.used.append("kill")
        self.workspace.kill(terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        self.used.append("release")
        await self.workspace.release(terminal_id)

    async def create_elicitation(self, message: str, mode: Any) -> Any:
        if isinstance(mode, ElicitationFormSessionMode):
            self.schema = mode.requested_schema
            return DeclineElicitationResponse() if self.form is None else AcceptElicitationResponse(content=self.form)
        return AcceptElicitationResponse()

    async def complete_elicitation(self, elicitation_id: str) -> None:
        self.completed.append(elicitation_id)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"pong": params["text"]}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.noted.append((method, params["text"]))


class Talk:
    """A session with an agent."""

    def __init__(self, agent: Connected, session: str, cwd: Path) -> None:
        self.client = agent.client
        self.agent = agent.connection
        self.diagnostics = agent.diagnostics
        self.session = session
        self.cwd = cwd

    async def prompt(self, text: str) -> PromptResponse:
        async with asyncio.timeout(15):
            return await self.agent.prompt(session_id=self.session, prompt=[text_block(text)])

    async def says(self, text: str) -> str:
        """What the agent answers to a prompt."""
        before = len(self.client.text)
        response = await self.prompt(text)
        assert response.stop_reason == "end_turn"
        return str(self.client.text[before:])

    def start(self, text: str) -> asyncio.Task[PromptResponse]:
        return asyncio.create_task(self.prompt(text))

    async def cancelled(self, turn: asyncio.Task[PromptResponse]) -> None:
        """Cancel, and check that the turn ends at once and leaves nothing open."""
        began = time.monotonic()
        await self.agent.cancel(session_id=self.session)
        response = await turn
        assert response.stop_reason == "cancelled"
        assert time.monotonic() - began < QUICK
        for call in self.client.calls.values():
            assert call["statuses"][-1] in ("completed", "failed")


@dataclass
class Connected:
    """An agent process; many tests share one, each with a session of its own."""

    client: Any
    connection: ClientSideConnection
    diagnostics: list[Diagnostic]

    @asynccontextmanager
    async def session(self, root: Path) -> AsyncIterator[Talk]:
        self.client.reset(root)
        self.diagnostics.clear()
        async with asyncio.timeout(15):
            session = (await self.connection.new_session(cwd=str(root))).session_id
            # They come right after the answer and are the last that can come by themselves.
            await self.client.until(lambda: self.client.of("available_commands_update"))
        self.client.updates.clear()
        try:
            yield Talk(self, session, root)
        finally:
            await self.client.workspace.close()


@asynccontextmanager
async def connected(
    root: Path, client_type: type[MinimalClient], *, env: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[Connected]:
    client: Any = client_type(root)
    diagnostics: list[Diagnostic] = []
    async with spawn_agent_process(client, *COMMAND, env=env, on_diagnostic=diagnostics.append, **options) as (
        agent,
        _,
    ):
        async with asyncio.timeout(15):
            await agent.initialize(client_capabilities=EVERYTHING if client_type is FullClient else None)
        yield Connected(client, agent, diagnostics)


@asynccontextmanager
async def talk(root: Path, client_type: type[MinimalClient] = FullClient, **options: Any) -> AsyncIterator[Talk]:
    """A session with an agent process of its own."""
    async with connected(root, client_type, **options) as agent, agent.session(root) as it:
        yield it
