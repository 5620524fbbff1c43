"""The Agent Client Protocol for Python: types, agents, clients.

Source compatible with the `agent-client-protocol` package: change `acp` to `pilothouse.acp` in the imports. It needs
nothing of the rest of Pilothouse but msgspec. Start with `run_agent` for an agent, `spawn_agent_process` for a client.
"""

from __future__ import annotations

from . import schema
from .agent.connection import AgentSideConnection
from .client.connection import ClientSideConnection
from .connection import Connection, Diagnostic, StreamDirection, StreamEvent
from .core import connect_to_agent, run_agent
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
from .process import default_environment, spawn_stdio_transport
from .schema import *  # noqa: F403 - every type of the protocol is part of this package's face
from .stdio import spawn_agent_process, spawn_client_process, spawn_stdio_connection, stdio_streams
from .transport import Transport, memory_pair, memory_transport_pair

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
