"""The two ways in: run an agent, connect to one."""

from __future__ import annotations

import asyncio
from typing import Any

from .agent.connection import AgentSideConnection
from .client.connection import ClientSideConnection
from .connection import Connection, JsonValue, MethodHandler
from .errors import RequestError
from .interfaces import Agent, Client
from .stdio import stdio_link

__all__ = [
    "DEFAULT_STDIO_BUFFER_LIMIT_BYTES",
    "Agent",
    "AgentSideConnection",
    "Client",
    "ClientSideConnection",
    "Connection",
    "JsonValue",
    "MethodHandler",
    "RequestError",
    "connect_to_agent",
    "run_agent",
]

DEFAULT_STDIO_BUFFER_LIMIT_BYTES = 50 * 1024 * 1024
"""Kept for compatibility. The size of a line is limited by `line_limit`; the read buffer need not hold a line."""


async def run_agent(
    agent: Agent,
    input_stream: Any = None,
    output_stream: Any = None,
    *,
    use_unstable_protocol: bool = True,
    stdio_buffer_limit_bytes: int = DEFAULT_STDIO_BUFFER_LIMIT_BYTES,
    **connection_kwargs: Any,
) -> None:
    """Serve `agent` until the client closes its end; on stdin and stdout unless streams are given."""
    if input_stream is None and output_stream is None:
        input_stream = await stdio_link()
    connection = AgentSideConnection(
        agent,
        input_stream,
        output_stream,
        listening=False,
        use_unstable_protocol=use_unstable_protocol,
        **connection_kwargs,
    )
    try:
        await connection.listen()
    finally:
        await asyncio.shield(connection.close())


def connect_to_agent(
    client: Client,
    input_stream: Any,
    output_stream: Any = None,
    *,
    use_unstable_protocol: bool = True,
    **connection_kwargs: Any,
) -> ClientSideConnection:
    """Connect `client` to an agent by a writer and a reader, a `Transport` or a `Link`."""
    return ClientSideConnection(
        client,
        input_stream,
        output_stream,
        use_unstable_protocol=use_unstable_protocol,
        **connection_kwargs,
    )
