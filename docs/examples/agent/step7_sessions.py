"""Step 7: its sessions are kept, and can be loaded."""

import asyncio
import os
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import Agent as ModelAgent
from pydantic_ai import (
    ModelMessage,
    PartDeltaEvent,
    PartStartEvent,
    RunContext,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolDefinition,
    ToolFailed,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.exceptions import AgentRunError, RunCancelled, UserError
from pydantic_ai.messages import repair_messages
from stand_in import STAND_IN

from pilothouse.acp import (
    PROTOCOL_VERSION,
    Agent,
    AgentCapabilities,
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    RequestError,
    ToolCallLocation,
    ToolKind,
    run_agent,
    start_tool_call,
    tool_diff_content,
    update_agent_message_text,
    update_tool_call,
    update_user_message_text,
)
from pilothouse.acp.contrib import PermissionBroker, ToolCallTracker

MODEL = os.environ.get("PILOTHOUSE_MODEL") or STAND_IN
HOME = Path(os.environ.get("DECKHAND_HOME") or Path.home() / ".deckhand")
OPTIONS = [
    PermissionOption(option_id="yes", name="Write it", kind="allow_once"),
    PermissionOption(option_id="no", name="Leave it", kind="reject_once"),
]


def words(prompt: list[Any]) -> str:
    """What was asked: a text as it is, a link to a file as its address."""
    blocks = [block for block in prompt if block.type in ("text", "resource_link")]
    return "\n".join(block.text if block.type == "text" else block.uri for block in blocks)


@dataclass
class Session:
    id: str
    cwd: str
    messages: list[ModelMessage] = field(default_factory=list)
    turn: Any = None


STORED = TypeAdapter(Session)


def save(session: Session) -> None:
    HOME.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = HOME / f"{session.id}.new"
    unfinished.write_bytes(STORED.dump_json(session, exclude={"turn"}))
    unfinished.replace(HOME / f"{session.id}.json")


def load(session_id: str) -> Session:
    """The session as it was saved. Raises RequestError if there is none."""
    path = HOME / f"{session_id}.json"
    if not re.fullmatch("[0-9a-f]{32}", session_id) or not path.exists():
        raise RequestError.resource_not_found(session_id)
    try:
        return STORED.validate_json(path.read_bytes())
    except (OSError, ValidationError) as exc:
        raise RequestError(-32603, f"{path} cannot be read: {exc}") from exc


@dataclass
class Work:
    """What a tool has at hand: the client it works through, and the session it works for."""

    client: Any
    files: FileSystemCapabilities
    session: Session
    tracker: ToolCallTracker = field(default_factory=ToolCallTracker)

    @asynccontextmanager
    async def call(self, call_id: str, title: str, kind: ToolKind, path: str) -> AsyncIterator[str]:
        """Announce a call about a file, and end it whatever happens. Inside the block the path is whole."""
        whole = self.place(path)
        places = [ToolCallLocation(path=whole)]
        await self.tell(self.tracker.start(call_id, title=title, kind=kind, status="pending", locations=places))
        end: dict[str, Any] = {"status": "failed"}
        try:
            if self.is_outside(whole):
                raise ToolFailed(f"{path} is outside of the working directory.")
            yield whole
            end = {"status": "completed"}
        except (RequestError, ToolFailed, ValueError) as exc:
            end["raw_output"] = str(exc)
            raise ToolFailed(str(exc)) from exc
        finally:
            await self.tell(self.tracker.progress(call_id, **end))

    async def ask(self, call_id: str) -> None:
        """Go on only if the user allows the call."""
        broker = PermissionBroker(
            self.session.id, self.client.request_permission, tracker=self.tracker, default_options=OPTIONS
        )
        if not await broker.is_allowed(call_id):
            raise ToolFailed("The user rejected this. Do not try it in another way.")

    async def text_of(self, whole: str) -> str | None:
        """What is in a file now, None if there is none. Raises RequestError if it is there and cannot be read."""
        try:
            return (await self.client.read_text_file(self.session.id, whole)).content
        except RequestError:
            if is_there(whole):
                raise
            return None

    async def tell(self, update: Any) -> None:
        await self.client.session_update(self.session.id, update)

    def place(self, path: str) -> str:
        return os.path.normpath(Path(self.session.cwd, path))

    def is_outside(self, whole: str) -> bool:
        return not Path(os.path.realpath(whole)).is_relative_to(os.path.realpath(self.session.cwd))


mind = ModelAgent(deps_type=Work, instructions="You are a deckhand: brief, exact, and careful with what is not yours.")


async def if_readable(ctx: RunContext[Work], tool: ToolDefinition) -> ToolDefinition | None:
    return tool if ctx.deps.files.read_text_file else None


@mind.tool(prepare=if_readable)
async def read(ctx: RunContext[Work], path: str) -> str:
    """Read a text file of the working directory."""
    work = ctx.deps
    async with work.call(ctx.tool_call_id, f"Read {path}", "read", path) as whole:
        answer = await work.client.read_text_file(work.session.id, whole, limit=2000)
        return answer.content


def is_there(whole: str) -> bool:
    return os.path.lexists(whole)


async def if_writable(ctx: RunContext[Work], tool: ToolDefinition) -> ToolDefinition | None:
    files = ctx.deps.files
    return tool if files.read_text_file and files.write_text_file else None


@mind.tool(prepare=if_writable)
async def write(ctx: RunContext[Work], path: str, text: str) -> str:
    """Write a text file of the working directory; what was in it is replaced."""
    work = ctx.deps
    async with work.call(ctx.tool_call_id, f"Write {path}", "edit", path) as whole:
        before = await work.text_of(whole)
        diff = tool_diff_content(whole, new_text=text, old_text=before)
        await work.tell(work.tracker.progress(ctx.tool_call_id, content=[diff]))
        await work.ask(ctx.tool_call_id)
        if await work.text_of(whole) != before:
            raise ToolFailed(f"{path} was changed meanwhile. Read it again.")
        await work.client.write_text_file(work.session.id, whole, text)
        return f"{path} is written."


class Deckhand(Agent):
    def on_connect(self, conn: Any) -> None:
        self.client = conn
        self.sessions: dict[str, Session] = {}

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **kwargs: Any
    ) -> InitializeResponse:
        offered = client_capabilities or ClientCapabilities()
        self.files = offered.fs or FileSystemCapabilities()
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="deckhand", version="0.1"),
            agent_capabilities=AgentCapabilities(load_session=True),
        )

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        session = Session(id=uuid.uuid4().hex, cwd=cwd)
        self.sessions[session.id] = session
        save(session)
        return NewSessionResponse(session_id=session.id)

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> LoadSessionResponse:
        session = self.sessions.get(session_id) or load(session_id)
        session.cwd = cwd
        self.sessions[session_id] = session
        for message in session.messages:
            for part in message.parts:
                await self.replay(session_id, part)
        return LoadSessionResponse()

    async def replay(self, session_id: str, part: Any) -> None:
        """Show again what was said and done."""
        match part:
            case UserPromptPart(content=str(text)):
                update: Any = update_user_message_text(text)
            case TextPart(content=text):
                update = update_agent_message_text(text)
            case ToolCallPart(tool_call_id=call_id, tool_name=name, args=arguments):
                # failed, until its result says otherwise
                update = start_tool_call(call_id, name, status="failed", raw_input=arguments)
            case ToolReturnPart(tool_call_id=call_id, outcome="success"):
                update = update_tool_call(call_id, status="completed")
            case _:
                return
        await self.client.session_update(session_id, update)

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        session = self.find(session_id)
        if session.turn is not None:
            raise RequestError(-32600, "A turn is under way in this session.")
        work = Work(self.client, self.files, session)
        try:
            run = mind.run_stream_events(words(prompt), model=MODEL, message_history=session.messages, deps=work)
            async with run as session.turn:
                async for event in session.turn:
                    await self.show(session_id, event)
        except RunCancelled:
            return PromptResponse(stop_reason="cancelled")
        except (AgentRunError, UserError) as exc:
            raise RequestError(-32603, f"The model failed: {exc}") from exc
        finally:
            self.remember(session)
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        session = self.sessions.get(session_id)
        if session is not None and session.turn is not None:
            session.turn.cancel()

    def remember(self, session: Session) -> None:
        """Keep what was said and done, however the turn has ended."""
        with suppress(UserError):  # it was over before the model was asked
            session.messages = repair_messages(session.turn.all_messages())
        session.turn = None
        save(session)

    def find(self, session_id: str) -> Session:
        if session_id not in self.sessions:
            raise RequestError.resource_not_found(session_id)
        return self.sessions[session_id]

    async def show(self, session_id: str, event: Any) -> None:
        """Send on what the model says, piece by piece."""
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                if text:
                    await self.client.session_update(session_id, update_agent_message_text(text))


if __name__ == "__main__":
    asyncio.run(run_agent(Deckhand()))
