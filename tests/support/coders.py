"""The built-in agent in this process: a model by script, and a client that lends files and terminals.

async with coder(script, tmp_path) as client:
    client.choose("reject_once")
    answer = await client.say("write it")
    client.text, client.calls, client.asked

A script is a list of answers of the model, one for each request to it: a text, a list of calls, or an `Answer`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.profiles import ModelProfile

from pilothouse.acp import (
    AgentSideConnection,
    AllowedOutcome,
    ClientCapabilities,
    ClientSideConnection,
    CreateTerminalResponse,
    DeniedOutcome,
    FileSystemCapabilities,
    PermissionOption,
    PromptResponse,
    ReadTextFileResponse,
    RequestError,
    RequestPermissionResponse,
    TerminalOutputResponse,
    ToolCallProgress,
    ToolCallStart,
    WaitForTerminalExitResponse,
    memory_pair,
    text_block,
)
from pilothouse.agents.coder import CoderAgent
from pilothouse.agents.coder.host import Options
from pilothouse.agents.commands import Child

__all__ = ["MODEL", "PATIENCE", "Answer", "Call", "Client", "Script", "coder", "prompts", "results"]

PATIENCE = 60
MODEL = "lab:scripted"

Call = tuple[str, dict[str, Any]]


@dataclass
class Answer:
    """One answer of the model. `until` is waited for before the first piece, `then` after each."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[Call] = ()
    until: asyncio.Event | None = None
    then: asyncio.Event | None = None
    error: Exception | None = None


@dataclass
class Script:
    """What the model says. `heard` are the conversations it was given, `offered` the tools by name."""

    answers: list[Answer | str | list[Call]]
    heard: list[list[ModelMessage]] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)
    instructions: list[str] = field(default_factory=list)
    thinking: list[Any] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """The client's, which waits for either."""
    summary: str = "A summary."
    context_window: int | None = None

    def model(self) -> FunctionModel:
        profile = ModelProfile(supports_thinking=True)
        if self.context_window:
            profile["context_window"] = self.context_window
        return FunctionModel(self._whole, stream_function=self._stream, profile=profile)

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> Answer:
        self.heard.append(list(messages))
        self.offered.append([tool.name for tool in info.function_tools])
        self.instructions.append(info.instructions or "")
        self.thinking.append(info.model_request_parameters.thinking)
        self.asked.set()
        self.changed.set()
        answer = self.answers.pop(0) if self.answers else "(end of script)"
        if isinstance(answer, str):
            return Answer(answer)
        return Answer(calls=answer) if isinstance(answer, list) else answer

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        answer = self._next(messages, info)
        if answer.until is not None:
            await answer.until.wait()
        if answer.error is not None:
            raise answer.error
        if answer.thinking:
            yield {0: DeltaThinkingPart(content=answer.thinking)}
        for word in answer.text.split(" ") if answer.text else ():
            yield word + " "
            if answer.then is not None:
                await answer.then.wait()
        for number, (name, given) in enumerate(answer.calls, 1):
            call_id = f"{name}-{len(self.heard)}-{number}"
            whole = json.dumps(given)
            yield {number: DeltaToolCall(name, whole[:1], tool_call_id=call_id)}
            if answer.then is not None:
                await answer.then.wait()
            yield {number: DeltaToolCall(json_args=whole[1:], tool_call_id=call_id)}

    async def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.heard.append(list(messages))
        return ModelResponse(parts=[TextPart(self.summary)])


def results(messages: Sequence[ModelMessage]) -> list[str]:
    """What the tools told the model."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def prompts(messages: Sequence[ModelMessage]) -> list[Any]:
    """What the user told the model."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [part.content for part in parts if isinstance(part, UserPromptPart)]


class Client:
    """An editor. `asked` are the questions by the title of their call, `served` the methods that were used."""

    def __init__(self) -> None:
        self.agent: ClientSideConnection
        self.session = ""
        self.offer: Any = None
        self.opened: Any = None
        self.updates: list[Any] = []
        self.asked: list[tuple[Any, list[PermissionOption]]] = []
        self.served: list[str] = []
        self.buffers: dict[str, str] = {}
        self.changed = asyncio.Event()
        self.answer: Callable[[Any, list[PermissionOption]], Any] = lambda call, options: _chosen(options, "allow_once")
        self._terminals: dict[str, tuple[Child, bytearray]] = {}
        self._limits: dict[str, int] = {}
        self.released: list[str] = []

    # -- what it does --

    def choose(self, kind: str | None) -> None:
        """Answer every question with an option of this kind; `None` with "cancelled"."""
        self.answer = lambda call, options: _chosen(options, kind)

    async def say(self, *content: Any) -> PromptResponse:
        blocks = [text_block(one) if isinstance(one, str) else one for one in content]
        async with asyncio.timeout(PATIENCE):
            return await self.agent.prompt(session_id=self.session, prompt=blocks)

    def start(self, text: str) -> asyncio.Task[PromptResponse]:
        return asyncio.create_task(self.say(text))

    async def cancel(self) -> None:
        await self.agent.cancel(session_id=self.session)

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(PATIENCE):
            while not (found := condition()):
                self.changed.clear()
                await self.changed.wait()
        return found

    # -- what it has seen --

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    @property
    def text(self) -> str:
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    @property
    def thoughts(self) -> str:
        return "".join(update.content.text for update in self.of("agent_thought_chunk"))

    @property
    def calls(self) -> dict[str, dict[str, Any]]:
        """Every tool call with all that was last said of it, by its id; `statuses` are all of them in order."""
        calls: dict[str, dict[str, Any]] = {}
        for update in self.updates:
            if isinstance(update, (ToolCallStart, ToolCallProgress)):
                call = calls.setdefault(update.tool_call_id, {"statuses": [], "contents": []})
                said = {name: getattr(update, name) for name in update.__struct_fields__}
                call.update({name: value for name, value in said.items() if value is not None})
                call["statuses"] += [update.status] if update.status else []
                call["contents"] += update.content or []
        return calls

    def call(self, name: str) -> dict[str, Any]:
        (found,) = [call for call in self.calls.values() if call["name"] == name]
        return found

    def is_settled(self) -> bool:
        """Whether every call has ended."""
        return all(call["status"] in ("completed", "failed") for call in self.calls.values())

    # -- what the agent asks of it --

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.changed.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.changed.set()
        answer = self.answer(tool_call, options)
        return await answer if asyncio.iscoroutine(answer) else answer

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        self.served.append("read")
        if path in self.buffers:
            return ReadTextFileResponse(content=self.buffers[path])
        try:
            return ReadTextFileResponse(content=Path(path).read_bytes().decode())
        except FileNotFoundError:
            raise RequestError.resource_not_found(path) from None

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.served.append("write")
        self.buffers.pop(path, None)
        Path(path).write_bytes(content.encode())

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> CreateTerminalResponse:
        self.served.append("terminal")
        output = bytearray()

        async def take(data: bytes) -> None:
            output.extend(data)

        child = await Child.start((command, *(args or ())), cwd=cwd or "/", on_output=take)
        name = f"terminal-{len(self.served)}"
        self._terminals[name] = (child, output)
        self._limits[name] = output_byte_limit or sys.maxsize
        return CreateTerminalResponse(terminal_id=name)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> WaitForTerminalExitResponse:
        child, _output = self._terminals[terminal_id]
        await child.wait()
        return WaitForTerminalExitResponse(exit_code=child.exit_code, signal=child.signal)

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> TerminalOutputResponse:
        output, limit = self._terminals[terminal_id][1], self._limits[terminal_id]
        return TerminalOutputResponse(output=output[-limit:].decode(), truncated=len(output) > limit)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self._terminals[terminal_id][0].kill()

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.released.append(terminal_id)
        await self._terminals.pop(terminal_id)[0].close()

    async def close(self) -> None:
        for child, _output in self._terminals.values():
            await child.close()


def _chosen(options: list[PermissionOption], kind: str | None) -> RequestPermissionResponse:
    if kind is None:
        return RequestPermissionResponse(outcome=DeniedOutcome())
    option = next(option for option in options if option.kind == kind)
    return RequestPermissionResponse(outcome=AllowedOutcome(option_id=option.option_id))


@asynccontextmanager
async def coder(
    script: Script,
    cwd: Path,
    *,
    lends: bool = True,
    home: Path | None = None,
    options: Options | None = None,
    session: bool = True,
    capabilities: ClientCapabilities | None = None,
    resolve: Callable[[str], Any] | None = None,
    **new: Any,
) -> AsyncIterator[Client]:
    """The agent with a client; `lends` says whether that has files and terminals. A session is open in `cwd`.

    Every name of a model is that of the script, unless they are resolved otherwise.
    """
    left, right = memory_pair()
    agent = CoderAgent(options or Options(model=MODEL), home=home, resolve=resolve or (lambda _: script.model()))
    client = Client()
    script.changed = client.changed
    try:
        async with (
            AgentSideConnection(agent, left),  # type: ignore[arg-type]
            ClientSideConnection(client, right) as connection,  # type: ignore[arg-type]
        ):
            client.agent = connection
            files = FileSystemCapabilities(read_text_file=lends, write_text_file=lends)
            offered = capabilities or ClientCapabilities(fs=files, terminal=lends)
            client.offer = await connection.initialize(1, client_capabilities=offered)
            if session:
                client.opened = await connection.new_session(cwd=str(cwd), mcp_servers=[], **new)
                client.session = client.opened.session_id
            yield client
            await agent.close()
    finally:
        await client.close()
