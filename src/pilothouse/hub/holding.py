"""Who has a session that an agent keeps: a program, another hub, or an agent of this one. There is one writer.

Whoever wants a session finds out first whether somebody has it; what cannot be known is refused. No program is ended
unless that was asked for, and then exactly the one that was found; one that only may have the session, unless it was
named.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from ..log.records import SessionRecord
from ..model.discovery import DiscoveredSession
from .errors import Held
from .finding import Finding, Key, key_of
from .leases import Leases, NoLeases, held_by_hub

if TYPE_CHECKING:  # a start does not need what looks through processes
    from ..adapters.discovery.processes import Holder

__all__ = ["Holding", "How", "SessionClaim"]

logger = logging.getLogger(__name__)

How = Literal["resume", "fork", "take_over"]
CHOICES: Sequence[str] = ("watch", "fork", "take_over")
LINGER = 3.0
STEP = 0.1
"""Seconds for all of a program to be gone that was ended, and between two looks."""


class Holding:
    """Of one hub. `finder` gives who knows the processes, `is_shared` tells whether others find the sessions of an
    agent; `adopted` are the hub's sessions that were begun elsewhere."""

    def __init__(self, finder: Callable[[], Finding | None], is_shared: Callable[[str], bool]) -> None:
        self._finder = finder
        self.is_shared = is_shared
        self.leases: Leases | None = None
        self.adopted: dict[Key, str] = {}

    async def holder(self, agent: str, session_id: str) -> Holder | None:
        """The process that has a session and is none of this hub's. Raises Held when that cannot be known."""
        finder = self._finder()
        if finder is None:
            raise Held("whether a program has this session cannot be known: this hub does not look", choices=[])
        try:
            return await finder.holder(agent, session_id)
        except Exception as exc:  # whatever a store does, no answer is not "nobody"
            message = f"whether a program has this session cannot be known: {exc or type(exc).__name__}"
            raise Held(f"{message}; watch it, or fork it", choices=list(CHOICES[:2])) from exc

    async def free(self, found: DiscoveredSession, how: How, pid: int | None) -> Holder | None:
        """See to it that nobody has a session; the program that was ended for that, if one was to be. Raises Held."""
        holder = await self.holder(found.agent, found.id)
        if holder is not None and (how != "take_over" or not _may_end(holder, pid)):
            raise held_by(holder)
        if self.leases is not None:  # before a program is ended: it would be for nothing
            lease = await asyncio.to_thread(self.leases.holder, *key_of(found.agent, found.id))
            if lease is not None:
                raise held_by_hub(lease)
        if holder is not None:
            await self._end(holder)
            await self._wait_free(found)
        return holder

    async def _end(self, holder: Holder) -> None:
        """Raises Held when it cannot be ended."""
        finder = self._finder()
        assert finder is not None
        try:
            await finder.end(holder)
        except OSError as exc:
            message = f"process {holder.pid} could not be ended: {exc.strerror or exc}; end it where it was started"
            raise Held(message, choices=list(CHOICES[:2]), pid=holder.pid) from exc

    async def _wait_free(self, found: DiscoveredSession) -> None:
        """What a program was started by may end a moment after it. Raises Held when somebody has the session still."""
        deadline = asyncio.get_running_loop().time() + LINGER
        while (holder := await self.holder(found.agent, found.id)) is not None:
            if asyncio.get_running_loop().time() > deadline:
                raise held_by(holder)
            await asyncio.sleep(STEP)

    # -- agents of this hub --

    def claim(self, record: SessionRecord) -> SessionClaim:
        if "adopted" in record.meta and record.agent_session_id is not None:
            self.adopted[key_of(record.agent, record.agent_session_id)] = record.id
        return SessionClaim(self, record.id)


class SessionClaim:
    """The lease that a session's agent needs, for as long as it runs."""

    def __init__(self, holding: Holding, session_id: str) -> None:
        self._holding = holding
        self._session_id = session_id
        self._taken: Key | None = None

    async def take(self, agent: str, session_id: str) -> None:
        """Raises Held. Only where a session was begun elsewhere it counts that no lease can be written: of its own
        sessions nobody else knows."""
        holding, key = self._holding, key_of(agent, session_id)
        is_adopted = holding.adopted.get(key) == self._session_id
        if holding.leases is None or not (is_adopted or holding.is_shared(agent)):
            return
        if is_adopted and (holder := await holding.holder(agent, session_id)) is not None:
            raise held_by(holder)
        if self._taken not in (None, key):
            await self.give_back()
        try:
            await asyncio.to_thread(holding.leases.take, *key, self._session_id)
        except NoLeases as exc:
            if is_adopted:
                raise
            logger.warning("session %s goes without a lease: %s", self._session_id, exc)
            return
        self._taken = key

    async def give_back(self) -> None:
        taken, self._taken = self._taken, None
        if taken is not None and self._holding.leases is not None:
            await asyncio.to_thread(self._holding.leases.give_back, *taken, self._session_id)


def _may_end(holder: Holder, pid: int | None) -> bool:
    """Whether a program may be ended by who names this one, or none."""
    if holder.hub is not None:
        return False
    return pid == holder.pid or (pid is None and holder.is_sure)


def held_by(holder: Holder) -> Held:
    """What is told who wants a session that a process has."""
    since = datetime.fromtimestamp(holder.started, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    who = f"process {holder.pid} ({holder.program})" if holder.program else f"process {holder.pid}"
    choices = CHOICES if holder.hub is None and holder.is_sure else CHOICES[:2]
    message = f"{who} has this session since {since}; watch it, fork it, or take it over, which ends that program"
    if holder.hub is not None:
        message = f"{who} of another hub has this session since {since}; watch it, or fork it"
    elif not holder.is_sure:
        message = f"{who} may have this session: it runs in its directory since {since}, and does not tell what it has"
        message += "; look there: if it is another session, say something in that one and try again; if it is this one,"
        message += " end it there, watch or fork the session, or take it over by naming that process"
    about = {"pid": holder.pid, "program": holder.program, "since": since, "sure": holder.is_sure}
    return Held(message, choices=list(choices), **about)
