"""The sessions that agents keep on this machine on their own: the finder that lists them, and readers of their records.

A session that the adapter of a package follows is read like a record: its events become updates again. The adapter
calls back in the loop; the record is read in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol

import msgspec

from ...adapters.contract import AdapterError, AgentSession
from ...adapters.discovery.store import Problem, Reader, Step
from ...dialects.acp.project import Projector
from ...log.records import SessionRecord
from ...model.discovery import DiscoveredSession, SessionDiscoveryEvent
from ...model.events import Event

if TYPE_CHECKING:  # a start does not need what looks through processes
    from ...adapters.discovery.processes import Holder


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


logger = logging.getLogger(__name__)

MOST = 500
"""Updates of one step."""
LEAVING = 5.0
"""Seconds that an adapter has to let go of a session."""


class AttachedReader(Reader):
    """Make it and `begin` it in the loop; `news` is called there when something was heard."""

    def __init__(self, session: AgentSession, news: Callable[[], None]) -> None:
        self._session = session
        self._news = news
        self._loop = asyncio.get_running_loop()
        self._project = Projector().project
        self._updates: deque[bytes] = deque()
        self._early: list[Event] | None = []
        self._stop = session.on_event(self._heard)

    async def begin(self) -> None:
        """Take in what was before. Raises AdapterError."""
        history = await self._session.get_history()
        early, self._early = self._early or [], None
        for event in [*history, *(one for one in early if one not in history)]:
            self._heard(event)

    def _heard(self, event: Event) -> None:
        if self._early is not None:
            self._early.append(event)
            return
        try:
            updates = self._project(event)
        except Exception as exc:  # nobody holds a package to what the fields of an event are
            logger.warning("an event of session %s is left out: %r", self._session.session_id, exc)
            return
        self._updates.extend(updates)
        self._news()

    def read(self) -> Step:
        updates = [msgspec.json.decode(self._updates.popleft()) for _ in range(min(MOST, len(self._updates)))]
        return Step(updates=updates)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result()

    async def _leave(self) -> None:
        self._stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVING):
                await self._session.detach()


async def attached_reader(finder: Finding, agent: str, session_id: str, news: Callable[[], None]) -> Reader | None:
    """A session that the adapter of a package follows; None when none does."""
    try:
        session = await finder.attach(agent, session_id)
    except AdapterError as exc:
        logger.info("%s", exc)
        return None
    try:
        reader = AttachedReader(session, news)
    except AdapterError as exc:
        logger.info("%s", exc)
        await session.detach()
        return None
    try:
        await reader.begin()
    except AdapterError as exc:
        logger.info("%s", exc)
        await asyncio.to_thread(reader.close)
        return None
    return reader
