"""An agent and a client on two ends of one link in memory, for the samples of the SDK reference."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pilothouse.acp import (
    Agent,
    AgentSideConnection,
    Client,
    ClientSideConnection,
    StreamDirection,
    StreamEvent,
    memory_pair,
)
from pilothouse.acp.helpers import tool_diff_content
from pilothouse.acp.model import encode
from pilothouse.acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    PromptResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
    SessionNotification,
    ToolCallLocation,
    ToolCallUpdate,
    WriteTextFileResponse,
)

SESSION = "sess_1"


OPTIONS = (
    PermissionOption(kind="allow_once", name="Allow", option_id="allow"),
    PermissionOption(kind="reject_once", name="Reject", option_id="reject"),
)

LOCATION = ToolCallLocation(path="/a", line=4)
DIFF = tool_diff_content("/a", "new", "old")


def notify(update: Any, session: str = SESSION) -> SessionNotification:
    return SessionNotification(session_id=session, update=update)


def wire(value: Any) -> Any:
    return json.loads(encode(value))


class Editor:
    """A client that keeps files in memory, records what it is told, and answers permission as it is set to."""

    def __init__(self, choice: str | None = None) -> None:
        self.choice = choice
        self.files: dict[str, str] = {"/project/config.json": '{"debug": false}'}
        self.updates: list[Any] = []
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.events: list[str] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)
        self.events.append(f"{update.session_update} {getattr(update, 'status', '')}".strip())

    async def request_permission(
        self, options: list[PermissionOption], session_id: str, tool_call: ToolCallUpdate, **kwargs: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.events.append("permission")
        if self.choice is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.choice))

    async def read_text_file(
        self, path: str, session_id: str, limit: int | None = None, line: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        self.events.append("read")
        return ReadTextFileResponse(content=self.files[path])

    async def write_text_file(
        self, content: str, path: str, session_id: str, **kwargs: Any
    ) -> WriteTextFileResponse | None:
        self.events.append("write")
        self.files[path] = content
        return None


class Wire:
    """What passed between the two, seen from the agent."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def __call__(self, event: StreamEvent) -> None:
        if event.direction is StreamDirection.OUTGOING:
            self.messages.append(event.message)

    def params(self, method: str) -> list[Any]:
        return [message["params"] for message in self.messages if message.get("method") == method]


@asynccontextmanager
async def connected(agent: Any, client: Any) -> AsyncIterator[tuple[ClientSideConnection, AgentSideConnection, Wire]]:
    """An agent and a client on two ends of one link in memory."""
    seen = Wire()
    left, right = memory_pair()
    async with asyncio.timeout(30):
        agent_side = AgentSideConnection(agent, left, observers=[seen])
        client_side = ClientSideConnection(client, right)
        async with agent_side, client_side:
            yield client_side, agent_side, seen


def prompted(work: Callable[[Any], Awaitable[Any]]) -> Any:
    """An agent whose prompts do `work` with the connection to the client."""

    class Working(Agent):
        result: Any = None

        def on_connect(self, conn: Client) -> None:
            self.client_conn = conn

        async def prompt(self, prompt: list[Any], session_id: str, **kwargs: Any) -> PromptResponse:
            self.result = await work(self.client_conn)
            return PromptResponse(stop_reason="end_turn")

    return Working()
