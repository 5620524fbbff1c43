"""Helpers above the protocol: track tool calls, ask for permission, fold updates into a session's state."""

from __future__ import annotations

from .permissions import PermissionBroker, default_permission_options, is_allowed
from .session_state import SessionAccumulator, SessionSnapshot, ToolCallView
from .tool_calls import ToolCallTracker, TrackedToolCallView

__all__ = [
    "PermissionBroker",
    "SessionAccumulator",
    "SessionSnapshot",
    "ToolCallTracker",
    "ToolCallView",
    "TrackedToolCallView",
    "default_permission_options",
    "is_allowed",
]
