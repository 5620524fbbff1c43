"""A peer made of raw lines: what a misbehaving program would put on the wire, and what it would see."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from pilothouse.acp import AgentSideConnection, ClientSideConnection, Diagnostic


class Wire:
    """The far end of a connection, spoken to in lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *messages: Any) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.writer.write(line + b"\n")
        await self.writer.drain()

    async def receive(self) -> Any:
        async with asyncio.timeout(30):
            return json.loads(await self.reader.readline())

    async def answer(self, result: Any = None, **fields: Any) -> Any:
        """Answer the next request and say what it was."""
        request = await self.receive()
        await self.send({"jsonrpc": "2.0", "id": request["id"], **(fields or {"result": result})})
        return request

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass


async def open_pair() -> tuple[tuple[asyncio.StreamReader, asyncio.StreamWriter], Wire]:
    ours, theirs = socket.socketpair()
    near = await asyncio.open_connection(sock=ours)
    far = await asyncio.open_connection(sock=theirs, limit=64 << 20)
    return near, Wire(*far)


@asynccontextmanager
async def _on_wire(
    side: Any, handler: Any, options: dict[str, Any]
) -> AsyncIterator[tuple[Any, Wire, list[Diagnostic]]]:
    (reader, writer), wire = await open_pair()
    diagnostics: list[Diagnostic] = []
    connection = side(handler, writer, reader, on_diagnostic=diagnostics.append, **options)
    try:
        yield connection, wire, diagnostics
    finally:
        async with asyncio.timeout(10):
            await connection.close()
            await wire.close()


def client_on_wire(
    client: Any, **options: Any
) -> AbstractAsyncContextManager[tuple[ClientSideConnection, Wire, list[Diagnostic]]]:
    """A client of ours whose agent is the test."""
    return _on_wire(ClientSideConnection, client, options)


def agent_on_wire(
    agent: Any, **options: Any
) -> AbstractAsyncContextManager[tuple[AgentSideConnection, Wire, list[Diagnostic]]]:
    """An agent of ours whose client is the test."""
    return _on_wire(AgentSideConnection, agent, options)


def chunk(text: str, session: str = "s", **extra: Any) -> dict[str, Any]:
    """A `session/update` with a piece of agent text."""
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return update_message(update, session, **extra)


def update_message(update: dict[str, Any], session: str = "s", **extra: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update, **extra}}


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        os.kill(pid, 0)
        return True
