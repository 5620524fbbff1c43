"""The Agent Client Protocol for Python: types, agents, clients.

Source compatible with the `agent-client-protocol` package: change `acp` to `pilothouse.acp` in the imports. It needs
nothing of the rest of Pilothouse but msgspec. Start with `run_agent` for an agent, `spawn_agent_process` for a client.

Types and builders are there at once; what needs an event loop is imported when it is first used, so that a program
which only reads or writes messages does not pay for asyncio.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import schema
from .errors import (
    ConnectionClosed,
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
    RequestError,
    SpawnError,
    ValidationError,
)
from .helpers import (
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    is_allowed,
    plan_entry,
    resource_block,
    resource_link_block,
    session_notification,
    start_edit_tool_call,
    start_read_tool_call,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    tool_terminal_ref,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought,
    update_agent_thought_text,
    update_available_commands,
    update_current_mode,
    update_plan,
    update_tool_call,
    update_user_message,
    update_user_message_text,
)
from .interfaces import Agent, Client
from .methods import AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION
from .model import Model
from .schema import *  # noqa: F403 - every type of the protocol is part of this package's face

if TYPE_CHECKING:
    from .agent.connection import AgentSideConnection
    from .client.connection import ClientSideConnection
    from .connection import Connection, Diagnostic, StreamDirection, StreamEvent
    from .core import connect_to_agent, run_agent
    from .process import default_environment, spawn_stdio_transport
    from .stdio import spawn_agent_process, spawn_client_process, spawn_stdio_connection, stdio_streams
    from .transport import Transport, memory_pair, memory_transport_pair

_LATER = {
    "AgentSideConnection": "agent.connection",
    "ClientSideConnection": "client.connection",
    "Connection": "connection",
    "Diagnostic": "connection",
    "StreamDirection": "connection",
    "StreamEvent": "connection",
    "Transport": "transport",
    "connect_to_agent": "core",
    "default_environment": "process",
    "memory_pair": "transport",
    "memory_transport_pair": "transport",
    "run_agent": "core",
    "spawn_agent_process": "stdio",
    "spawn_client_process": "stdio",
    "spawn_stdio_connection": "stdio",
    "spawn_stdio_transport": "process",
    "stdio_streams": "stdio",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [  # noqa: PLE0604
    *schema.__all__,
    "AGENT_METHODS",
    "CLIENT_METHODS",
    "PROTOCOL_VERSION",
    "Agent",
    "AgentSideConnection",
    "Client",
    "ClientSideConnection",
    "Connection",
    "ConnectionClosed",
    "Diagnostic",
    "LocalProtocolError",
    "Model",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestError",
    "SpawnError",
    "StreamDirection",
    "StreamEvent",
    "Transport",
    "ValidationError",
    "audio_block",
    "connect_to_agent",
    "default_environment",
    "embedded_blob_resource",
    "embedded_text_resource",
    "image_block",
    "is_allowed",
    "memory_pair",
    "memory_transport_pair",
    "plan_entry",
    "resource_block",
    "resource_link_block",
    "run_agent",
    "session_notification",
    "spawn_agent_process",
    "spawn_client_process",
    "spawn_stdio_connection",
    "spawn_stdio_transport",
    "start_edit_tool_call",
    "start_read_tool_call",
    "start_tool_call",
    "stdio_streams",
    "text_block",
    "tool_content",
    "tool_diff_content",
    "tool_terminal_ref",
    "update_agent_message",
    "update_agent_message_text",
    "update_agent_thought",
    "update_agent_thought_text",
    "update_available_commands",
    "update_current_mode",
    "update_plan",
    "update_tool_call",
    "update_user_message",
    "update_user_message_text",
]
