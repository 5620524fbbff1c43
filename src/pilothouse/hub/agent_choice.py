"""The choice of a session's agent, as one more option beside the agent's own: open until somebody has prompted.

It is no option of any agent, so it is not among those that the log keeps; whoever shows options adds it. A change is
an event, and in the session's record with it; what the agent before had to offer is offered no longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..log.records import SessionRecord, Update
from ..model.events import CustomEvent
from .errors import IllegalCommand, UnknownAgent
from .link import AgentSpec
from .recorder import Recorder

__all__ = ["AGENT_OPTION", "agent_option", "check_change", "record_change"]

AGENT_OPTION = "pilothouse.agent"


def agent_option(current: str, agents: Mapping[str, AgentSpec], *, is_open: bool) -> dict[str, Any] | None:
    """The option, as on the wire; None when there is nothing to choose."""
    if len(agents) < 2 or not is_open:
        return None
    return {
        "type": "select",
        "id": AGENT_OPTION,
        "name": "Agent",
        "description": "Who works in this session; it can be chosen until the first prompt.",
        "currentValue": current,
        "options": [{"value": name, "name": spec.title or name} for name, spec in agents.items()],
    }


def check_change(session_id: str, name: str, agents: Mapping[str, AgentSpec], *, is_open: bool) -> None:
    """Raises IllegalCommand when the agent was fixed or somebody has prompted, UnknownAgent."""
    if not agents or not is_open:
        why = "it is fixed" if is_open else "somebody has prompted"
        raise IllegalCommand(f"the agent of {session_id} cannot be changed: {why}", sessionId=session_id)
    if name not in agents:
        known = ", ".join(sorted(agents))
        raise UnknownAgent(f"no agent {name!r} is configured; there are: {known}", agent=name)


def record_change(recorder: Recorder, session_id: str, before: str, after: str) -> None:
    """Say who has the session now, and that nothing is known yet of what that one offers."""
    now = recorder.now()
    values = {"agent": after, "agent_session_id": None, "updated": now}
    change = Update(SessionRecord, (session_id,), values, where={"deleted": None}, strict=True)
    recorder.note("agent_changed", {"from": before, "to": after}, also=[change])
    nothing = {"modes": {"availableModes": []}, "models": {"availableModels": []}, "configOptions": []}
    setup = CustomEvent(
        seq=0, session_id=session_id, timestamp=now, namespace="acp", event_name="session_setup", data=nothing
    )
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    recorder.record([setup, *recorder.translator.update(commands, now)])
