"""Forks: a new session that goes on from where another one is, with the other's history as its own.

The history is copied, event by event, with the times and words it had; where the copy ends a fact says whose it was.
So everything that can be done with a session can be done with a fork, and neither needs the other.
"""

from __future__ import annotations

from typing import NamedTuple

from ...acp.errors import METHOD_NOT_FOUND, RequestError
from ...log.contract import EventLog
from ...model.events import Event, decode_event
from ..errors import AgentFailed, IllegalCommand, Unsupported
from .session import HubSession

BATCH = 500


class Fork(NamedTuple):
    """A fork, and the seq up to which its events are those of the session that it is a fork of."""

    session: HubSession
    inherited: int


def forkable(session: HubSession) -> str:
    """The agent's own id of a session that can be forked now. Raises IllegalCommand."""
    known = session.agent_session_id
    reasons = {
        "its agent has never had it": known is None,
        "it is over": session.status == "completed",
        "a turn runs": not session.is_idle,
    }
    why = next((reason for reason, holds in reasons.items() if holds), None)
    if known is None or why is not None:
        raise IllegalCommand(f"session {session.id} cannot be forked now: {why}", sessionId=session.id)
    return known


def check_unmoved(session: HubSession, turns: int) -> None:
    """Raises IllegalCommand when a turn began while it was forked: which side of that the agent took, nobody knows."""
    if not session.is_idle or session.state.turns != turns:
        message = f"session {session.id} was prompted while it was forked; do it again when the turn is over"
        raise IllegalCommand(message, sessionId=session.id)


def unable(exc: BaseException, agent: str) -> Unsupported | None:
    """What it means that an agent could not begin a fork, if that is that it never can."""
    cause = exc.__cause__
    if isinstance(exc, AgentFailed) and isinstance(cause, RequestError) and cause.code == METHOD_NOT_FOUND:
        return Unsupported(f"{agent} cannot fork a session", method="session/fork")
    return None


async def copy_history(log: EventLog, origin: str, fork: str, until: int) -> None:
    """Append the events of one session, up to a seq, to another one that has none. Raises LogError."""
    cursor = 0
    while cursor < until:
        entries = await log.read(origin, cursor, min(BATCH, until - cursor))
        if not entries:
            return
        events: list[Event] = []
        for entry in entries:
            event = decode_event(entry.data)
            event.source, event.session_id = entry.source, fork
            events.append(event)
        await log.append(fork, cursor, events)
        cursor = entries[-1].seq
