"""The agents of the guide "build an agent", each step a file of its own, and a client that talks to one.

async with deckhand(5, tmp_path) as talk:      # a process, initialized
    await talk.begin(tmp_path / "work")        # a new session, and nothing seen yet
    answer = await talk.prompt("write notes.txt hello")
    talk.said, talk.calls, talk.asked

A process takes seconds to start. What does not concern one has the same file in this process: `aboard`, and `Fleet`,
which keeps one of each kind.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from pilothouse.acp import (
    AgentSideConnection,
    AllowedOutcome,
    Client,
    ClientCapabilities,
    ClientSideConnection,
    FileSystemCapabilities,
    InitializeResponse,
    ReadTextFileResponse,
    RequestError,
    RequestPermissionResponse,
    SessionNotification,
    WriteTextFileResponse,
    memory_pair,
    spawn_agent_process,
    text_block,
)
from pilothouse.acp.contrib import SessionAccumulator

__all__ = ["PATIENCE", "STEPS", "Fleet", "Talk", "aboard", "command", "deckhand", "environment"]

STEPS = sorted((Path(__file__).parents[2] / "docs" / "examples" / "agent").glob("step?_*.py"))
PATIENCE = 60


def command(step: int) -> list[str]:
    return [sys.executable, "-W", "error", str(STEPS[step - 1])]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Without a model or a key of whoever runs the tests."""
    nothing = dict.fromkeys(("PILOTHOUSE_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "DECKHAND_HOME"), "")
    return nothing | {"HOME": str(home)} | more


class Talk(Client):
    """A client with real files, and one session at a time."""

    def __init__(self) -> None:
        self.agent: Any = None
        self.offer: InitializeResponse
        self.news = asyncio.Condition()
        self.forget()

    def forget(self) -> None:
        self.allow: str | Callable[[], Any] = "allow_once"
        """The kind of the option that it chooses, or what it does when it is asked."""
        self.asked: list[Any] = []
        self.served: list[str] = []
        """Paths that were read."""
        self.chunks: list[str] = []
        self.users: list[str] = []
        self.reads: asyncio.Event | None = None
        """Set while reading waits for it."""
        self._state = SessionAccumulator()

    @property
    def said(self) -> str:
        return "".join(self.chunks)

    @property
    def calls(self) -> list[Any]:
        return list(self._state.snapshot().tool_calls.values()) if self._state.session_id else []

    async def begin(self, cwd: Path) -> None:
        """A new session, and nothing seen yet."""
        self.forget()
        cwd.mkdir(exist_ok=True)
        self.cwd = cwd
        self.session = (await self.agent.new_session(cwd=str(cwd), mcp_servers=[])).session_id

    async def load(self, session: str, cwd: Path) -> None:
        """Another session takes the place of the one before."""
        self.forget()
        self.cwd, self.session = cwd, session
        await self.agent.load_session(cwd=str(cwd), session_id=session, mcp_servers=[])

    async def prompt(self, text: str) -> str:
        """The stop reason. What was said before is forgotten."""
        self.chunks.clear()
        async with asyncio.timeout(PATIENCE):
            return (await self.agent.prompt(self.session, [text_block(text)])).stop_reason

    async def start(self, text: str) -> asyncio.Task[str]:
        """A prompt that has been sent, and is not waited for."""
        turn = asyncio.create_task(self.prompt(text))
        await asyncio.sleep(0)
        return turn

    async def until(self, seen: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE), self.news:
            await self.news.wait_for(seen)

    async def _tell(self) -> None:
        async with self.news:
            self.news.notify_all()

    # -- what an agent asks of it --

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self._state.apply(SessionNotification(session_id=session_id, update=update))
        if update.session_update == "agent_message_chunk":
            self.chunks.append(update.content.text)
        elif update.session_update == "user_message_chunk":
            self.users.append(update.content.text)
        await self._tell()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **kwargs: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        await self._tell()
        if not isinstance(self.allow, str):
            answer: RequestPermissionResponse = await self.allow()
            return answer
        (chosen,) = (option.option_id for option in options if option.kind == self.allow)
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=chosen))

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        if not Path(path).exists() and self.reads is None:
            raise RequestError.internal_error({"details": f"there is no {path}"})
        self.served.append(path)
        await self._tell()
        if self.reads is not None:
            await self.reads.wait()
        try:
            return ReadTextFileResponse(content=Path(path).read_text())
        except ValueError as exc:
            raise RequestError.internal_error({"details": str(exc)}) from exc

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> WriteTextFileResponse:
        Path(path).write_text(content)
        return WriteTextFileResponse()


@asynccontextmanager
async def deckhand(step: int, home: Path, *, files: bool = True, **variables: str) -> AsyncIterator[Talk]:
    """A step as a process with a home of its own, and a client that has files or not."""
    home.mkdir(exist_ok=True)
    talk = Talk()
    async with spawn_agent_process(talk, *command(step), env=environment(home, **variables)) as (agent, _):
        talk.agent = agent
        offered = FileSystemCapabilities(read_text_file=files, write_text_file=files)
        async with asyncio.timeout(PATIENCE):
            talk.offer = await agent.initialize(client_capabilities=ClientCapabilities(fs=offered))
        yield talk


@contextmanager
def program(step: int) -> Iterator[ModuleType]:
    """The file of a step as a module that nobody else has."""
    path = STEPS[step - 1]
    name = f"deckhand_{uuid.uuid4().hex}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(path.parent))
        del sys.modules[name]


@asynccontextmanager
async def aboard(step: int, home: Path, *, files: bool = True, model: Any = None) -> AsyncIterator[Talk]:
    """A step in this process, on a connection like that of one. `home` is where the last step keeps its sessions."""
    with program(step) as module:
        if model is not None:
            module.MODEL = model  # type: ignore[attr-defined]
        module.HOME = home  # type: ignore[attr-defined]
        left, right = memory_pair()
        talk = Talk()
        async with AgentSideConnection(module.Deckhand(), left), ClientSideConnection(talk, right) as agent:
            talk.agent = agent
            offered = FileSystemCapabilities(read_text_file=files, write_text_file=files)
            talk.offer = await agent.initialize(client_capabilities=ClientCapabilities(fs=offered))
            yield talk


class Fleet:
    """Agents in this process that several tests talk to, each in sessions of its own."""

    def __init__(self, home: Path, url: str) -> None:
        self._home = home
        self._server = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        self._model = OpenAIChatModel("fake", provider=OpenAIProvider(openai_client=self._server))
        self._stack = AsyncExitStack()
        self._running: dict[tuple[int, bool, bool], Talk] = {}

    async def get(self, step: int, cwd: Path, *, wire: bool = False, files: bool = True) -> Talk:
        """A new session with a step; `wire` is one whose model is a server."""
        kind = (step, wire, files)
        if kind not in self._running:
            started = aboard(step, self._home, files=files, model=self._model if wire else None)
            self._running[kind] = await self._stack.enter_async_context(started)
        talk = self._running[kind]
        await talk.begin(cwd)
        return talk

    async def close(self) -> None:
        await self._stack.aclose()
        await self._server.close()
