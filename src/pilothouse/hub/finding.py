"""What a hub needs to know of the sessions on this machine that agents keep on their own. `Finder` tells it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol

from ..adapters.base import AgentSession
from ..adapters.discovery.store import Problem, Reader
from ..log.records import SessionRecord
from ..model.discovery import DiscoveredSession, SessionDiscoveryEvent

if TYPE_CHECKING:  # a start does not need what looks through processes
    from ..adapters.discovery.processes import Holder

__all__ = [
    "KEEPERS",
    "OVER",
    "Finding",
    "Found",
    "Key",
    "ids_here",
    "keeper_of",
    "key_of",
]

FAMILY = {"claude-code": "claude", "claude-acp": "claude"}
"""Agents whose sessions are kept by another's program."""
KEEPERS = frozenset({"claude", "codex", "opencode", "gemini", "goose"})
"""Agents that are known, without any look, to keep sessions where others find them."""

OVER = "completed"

Key = tuple[str, str]
"""A session by who keeps it and that one's id."""


def keeper_of(agent: str) -> str:
    """The agent whose program keeps the sessions of this one."""
    return FAMILY.get(agent, agent)


def key_of(agent: str, session_id: str) -> Key:
    return keeper_of(agent), session_id


def ids_here(records: Iterable[SessionRecord]) -> dict[Key, str]:
    """The ids of a hub's own sessions that are not over, by those that agents keep."""
    return {
        key_of(one.agent, one.agent_session_id): one.id
        for one in records
        if one.agent_session_id is not None and one.status != OVER
    }


class Found(Protocol):
    @property
    def sessions(self) -> Collection[DiscoveredSession]: ...
    @property
    def problems(self) -> Collection[Problem]: ...


class Finding(Protocol):
    """What is known of the sessions on this machine; `Finder` is it."""

    hub_id: str | None

    @property
    def agents(self) -> Collection[str]:
        """Those whose records are known."""

    async def sessions(self) -> Found: ...
    async def session(self, agent: str, session_id: str, since: float | None = None) -> DiscoveredSession | None:
        """One of them as it is now; with `since`, a time of the loop's clock, as it was then or later."""

    async def reader(self, agent: str, session_id: str) -> Reader | None: ...
    async def holder(self, agent: str, session_id: str) -> Holder | None: ...
    async def end(self, holder: Holder) -> None: ...
    async def attach(self, agent: str, session_id: str) -> AgentSession: ...
    def watch(self, callback: Callable[[SessionDiscoveryEvent], None]) -> Callable[[], None]: ...
    async def noticing(self) -> None: ...
    async def close(self) -> None: ...
