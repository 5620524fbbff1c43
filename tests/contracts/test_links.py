"""One contract for every way frames can move: an agent and a client over each of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from pilothouse.acp import (
    Agent,
    AgentSideConnection,
    Client,
    ClientSideConnection,
    ConnectionClosed,
    PromptResponse,
    ReadTextFileResponse,
    memory_pair,
    memory_transport_pair,
    text_block,
    update_agent_message_text,
)
from pilothouse.acp.transport import StreamLink
from pilothouse.acp.websocket import WebSocketLink

Ends = tuple[Any, Any]
OpenPair = Callable[[], AbstractAsyncContextManager[Ends]]


@asynccontextmanager
async def streams() -> AsyncIterator[Ends]:
    left, right = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=left)
    other_reader, other_writer = await asyncio.open_connection(sock=right)
    yield StreamLink(reader, writer), StreamLink(other_reader, other_writer)


@asynccontextmanager
async def memory() -> AsyncIterator[Ends]:
    yield memory_pair()


@asynccontextmanager
async def messages() -> AsyncIterator[Ends]:
    yield memory_transport_pair()


@asynccontextmanager
async def websockets() -> AsyncIterator[Ends]:
    accepted: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    finished = asyncio.Event()

    async def handler(connection: Any) -> None:
        accepted.set_result(connection)
        await finished.wait()

    async with serve(handler, "127.0.0.1", 0, max_size=None) as server:
        port = server.sockets[0].getsockname()[1]
        client = await connect(f"ws://127.0.0.1:{port}", max_size=None, proxy=None)
        try:
            yield WebSocketLink(await accepted), WebSocketLink(client)
        finally:
            finished.set()


@pytest.fixture(params=[streams, memory, messages, websockets])
def open_pair(request: pytest.FixtureRequest) -> OpenPair:
    opener: OpenPair = request.param
    return opener


class Talkative(Agent):
    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        count = int(prompt[0].text)
        for i in range(count):
            await self.conn.session_update(session_id, update_agent_message_text(f"{i} é"))
        file = await self.conn.read_text_file(session_id, "/f")
        await self.conn.session_update(session_id, update_agent_message_text(file.content))
        return PromptResponse(stop_reason="end_turn")


class Listening(Client):
    def __init__(self, content: str = "file") -> None:
        self.texts: list[str] = []
        self.content = content

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.texts.append(update.content.text)
        if len(self.texts) % 100 == 0:
            await asyncio.sleep(0)

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=self.content)


async def test_a_turn_arrives_whole_and_in_order(open_pair: OpenPair) -> None:
    client = Listening()
    async with asyncio.timeout(20), open_pair() as (left, right):
        async with AgentSideConnection(Talkative(), left), ClientSideConnection(client, right) as connection:
            response = await connection.prompt("s", [text_block("3000")])
        assert response.stop_reason == "end_turn"
        assert client.texts == [*(f"{i} é" for i in range(3000)), "file"]


async def test_a_large_message_passes(open_pair: OpenPair) -> None:
    client = Listening(content="x" * 3_000_000)
    async with asyncio.timeout(20), open_pair() as (left, right):
        async with AgentSideConnection(Talkative(), left), ClientSideConnection(client, right) as connection:
            await connection.prompt("s", [text_block("0")])
        assert [len(text) for text in client.texts] == [3_000_000]


async def test_the_end_of_one_side_fails_the_calls_of_the_other(open_pair: OpenPair) -> None:
    class Deaf(Agent):
        async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
            await asyncio.Event().wait()
            raise AssertionError("can't happen")

    async with asyncio.timeout(20), open_pair() as (left, right):
        agent = AgentSideConnection(Deaf(), left)
        async with ClientSideConnection(Listening(), right) as connection:
            call = asyncio.ensure_future(connection.prompt("s", [text_block("x")]))
            await asyncio.sleep(0.01)
            await agent.close()
            with pytest.raises(ConnectionClosed):
                await call
            with pytest.raises(ConnectionClosed):
                await connection.prompt("s", [text_block("x")])


async def test_a_slow_client_slows_the_agent_down_instead_of_filling_memory(open_pair: OpenPair) -> None:
    """Bounded on both ends: the client stops taking, the agent's sends wait."""
    started, release = asyncio.Event(), asyncio.Event()
    sent = 0

    class Endless(Agent):
        def on_connect(self, conn: Any) -> None:
            self.conn = conn

        async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
            nonlocal sent
            for _ in range(60):
                await self.conn.session_update(session_id, update_agent_message_text("y" * 500_000))
                sent += 1
            return PromptResponse(stop_reason="end_turn")

    class Stuck(Listening):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            started.set()
            await release.wait()
            await super().session_update(session_id, update)

    client = Stuck()
    async with asyncio.timeout(30), open_pair() as (left, right):
        async with AgentSideConnection(Endless(), left), ClientSideConnection(client, right) as connection:
            call = asyncio.ensure_future(connection.prompt("s", [text_block("x")]))
            await started.wait()
            for _ in range(20):
                await asyncio.sleep(0.005)
            backlog = connection.connection._backlog
            assert backlog.size <= backlog.limit + 1_100_000
            release.set()
            await call
        assert len(client.texts) == 60
