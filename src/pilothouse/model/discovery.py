"""What adapters tell of sessions they found, and what they are told to start one: plain records with wire names.

Who looks for sessions, and where, is the adapters' business; nothing here reads a disk.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from .records import Record

__all__ = ["AgentDataPaths", "DiscoveredSession", "DiscoveredStatus", "SessionDiscoveryEvent", "StartSessionOptions"]

DiscoveredStatus: TypeAlias = Literal["running", "waiting", "idle"]
"""What a session that somebody else runs does: it works, it waits for its user's decision, or it waits for a prompt."""


class AgentDataPaths(Record):
    """Where an agent keeps its own files; a part that it does not have is left out."""

    sessions: str | None = None
    config: str | None = None
    logs: str | None = None


class DiscoveredSession(Record):
    """A session that an agent keeps on its own, whoever started it. Times are ISO 8601.

    Added by Pilothouse: `status` and `model`; `pid`, the process that has the session now, if one was found for sure
    that no hub started; `hub_session_id`, the hub's own session that watches it or has adopted it;
    `integration_method`, how its events are come by.
    """

    id: str
    agent: str
    project_path: str
    project_name: str
    created_at: str
    last_activity: str
    last_message: str | None = None
    session_name: str | None = None
    status: DiscoveredStatus | None = None
    model: str | None = None
    pid: int | None = None
    hub_session_id: str | None = None
    integration_method: str | None = None


class SessionDiscoveryEvent(Record):
    """A session appeared, changed or went away while an adapter watched."""

    type: Literal["session_created", "session_removed", "session_updated"]
    session_id: str
    agent: str


class StartSessionOptions(Record):
    """What a new session is to be: its directory, its first prompt, and what only this agent understands."""

    project_path: str
    prompt: str
    model: str | None = None
    agent_options: dict[str, Any] | None = None
