"""How the hub goes on with a session that was begun elsewhere: with itself, once its program has ended, or a fork.

Rules a change must not break: nobody else has the session when the hub does; all of its record is told before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ..log.base import EventLog
from ..log.records import SessionRecord
from ..model.discovery import DiscoveredSession
from .counterparts import Counterparts
from .feeds import Feeds
from .finding import key_of
from .forks import unable
from .holding import Holding, How
from .session import HubSession

if TYPE_CHECKING:  # a start does not need what looks through processes
    from ..adapters.discovery.processes import Holder

__all__ = ["Adoption"]


class Adoption:
    """Of one hub. `delete` takes away a session that nobody has heard of."""

    def __init__(
        self,
        log: EventLog,
        counterparts: Counterparts,
        feeds: Feeds,
        holding: Holding,
        delete: Callable[[str], Awaitable[None]],
    ) -> None:
        self._log = log
        self._counterparts = counterparts
        self._feeds = feeds
        self._holding = holding
        self._delete = delete

    async def carry_out(
        self, found: DiscoveredSession, how: How, *, by: str, pid: int | None, policy: dict[str, Any] | None
    ) -> HubSession:
        """The session that goes on here. Raises Held, Unsupported, AgentFailed, HubError, NotStored."""
        if how == "fork":
            return await self._fork(found, by, policy)
        record = await self._counterparts.of(found)
        ended = await self._holding.free(found, how, pid)
        fact = _fact(found, how, by, ended)
        if record is not None and record.watched_id is None:  # it is the hub's own already
            return await self._ours_again(record, fact if ended is not None else None)
        if record is not None:
            session = await self._counterparts.shown(record)
        else:
            session = await self._counterparts.make(found, policy)
        await self._feeds.finish(session)
        await session.adopt(fact)
        self._holding.adopted[key_of(found.agent, found.id)] = session.id
        return session

    async def _ours_again(self, record: SessionRecord, fact: dict[str, Any] | None) -> HubSession:
        """A session of the hub's own; with `fact` one that a program was writing to, which has been ended for it."""
        session = await self._counterparts.shown(record)
        if fact is not None:
            session.taken_back(fact)
        return session

    async def _fork(self, found: DiscoveredSession, by: str, policy: dict[str, Any] | None) -> HubSession:
        session = await self._counterparts.make(found, policy, is_fork=True)
        try:
            await self._feeds.finish(session)
            await session.adopt(_fact(found, "fork", by, None), fork_of=found.id)
            await self._log.sessions.update(session.id, archived=False)
        except BaseException as exc:
            await self._delete(session.id)  # nobody has heard of it
            if (refusal := unable(exc, found.agent)) is not None:
                raise refusal from exc
            raise
        return session


def _fact(found: DiscoveredSession, how: How, by: str, ended: Holder | None) -> dict[str, Any]:
    about = {"how": how, "by": by, "agent": found.agent, "agentSessionId": found.id}
    return about | ({"endedPid": ended.pid} if ended is not None else {})
