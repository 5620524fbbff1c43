"""Adoption of external sessions: the hub continues one itself, once its program has exited, or continues a fork of it.

Rules a change must not break: no other program has the session when the hub does, and all of its record is in the log
before; an external session has one session in the hub that is not over, besides its forks; a record that changes all
the time costs one reading at a time, and none while a turn runs here.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ...adapters.discovery.store import Reader
from ...log.contract import EventLog
from ...log.records import SessionRecord
from ...model.discovery import DiscoveredSession
from ..session.forks import unable
from ..session.session import HubSession
from .records import OVER, Finding, Key, ids_here, key_of
from .watch import Feeds
from .writer_lock import Holding, How

PAGE = 200


class Counterparts:
    """Of one hub. `open_session` gives a session by its id."""

    def __init__(self, log: EventLog, open_session: Callable[[str], Awaitable[HubSession]]) -> None:
        self._log = log
        self._open_session = open_session

    async def all(self) -> list[SessionRecord]:
        """Those that watch, and those that were adopted."""
        found: list[SessionRecord] = []
        before: str | None = None
        while True:
            page = await self._log.sessions.list(archived=None, before=before, limit=PAGE)
            found += (one for one in page.sessions if one.meta.keys() & {"watched", "adopted"})
            before = page.next
            if before is None:
                return found

    async def ids(self) -> dict[Key, str]:
        """The ids of the hub's own sessions that are not over, by those that agents keep."""
        return ids_here(await self._log.find(SessionRecord, {"deleted": None}))

    async def of(self, found: DiscoveredSession) -> SessionRecord | None:
        """The hub's own session of it, if there is one that is not over."""
        records = await self._log.find(SessionRecord, {"agent_session_id": found.id, "deleted": None})
        fitting = [one for one in records if key_of(one.agent, found.id) == key_of(found.agent, found.id)]
        return next((one for one in reversed(fitting) if one.status != OVER), None)

    async def shown(self, record: SessionRecord) -> HubSession:
        """A session that is there already, among those that are listed."""
        if record.archived is not None:
            await self._log.sessions.update(record.id, archived=False)
        return await self._open_session(record.id)

    async def make(
        self, found: DiscoveredSession, policy: dict[str, Any] | None, *, is_fork: bool = False
    ) -> HubSession:
        """A new one that watches it; one that is to become a fork of it is out of the way until it is whole."""
        about = {"sessionId": found.id, "projectPath": found.project_path, "model": found.model}
        about["createdAt"] = found.created_at
        watched = {key: value for key, value in about.items() if value} | ({"fork": True} if is_fork else {})
        record = await self._log.sessions.create(
            f"ses_{secrets.token_hex(8)}",
            agent=found.agent,
            cwd=found.project_path or str(Path.home()),
            title=found.session_name,
            agent_session_id=None if is_fork else found.id,
            policy=policy,
            meta={"watched": watched},
        )
        if is_fork:
            await self._log.sessions.update(record.id, archived=True)
        return await self._open_session(record.id)


if TYPE_CHECKING:  # a start does not need what looks through processes
    from ...adapters.discovery.processes import Holder


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


class Adopted:
    """Of one hub. `finder` gives who reads records; None when none does. `look` finds out who writes to a session."""

    def __init__(self, finder: Callable[[], Finding | None], look: Callable[[str, str, str], Awaitable[None]]) -> None:
        self._finder = finder
        self._look = look
        self._sessions: WeakValueDictionary[str, HubSession] = WeakValueDictionary()
        self._reading: dict[str, bool] = {}

    def begin(self, session: HubSession) -> bool:
        """Read the record of a session from now on, if it was adopted; whether that is new."""
        elsewhere = session.elsewhere
        if elsewhere is None or elsewhere.open_reader is not None or (finder := self._finder()) is None:
            return False

        async def open_reader() -> Reader | None:
            return await finder.reader(elsewhere.agent, elsewhere.session_id)

        elsewhere.open_reader = open_reader
        self._sessions[session.id] = session
        return True

    @property
    def sessions(self) -> list[str]:
        """Their ids."""
        return list(self._sessions)

    def is_due(self, session_id: str) -> bool:
        """Whether a session whose record changed has to be read; one that is being read is read again."""
        session = self._sessions.get(session_id)
        if session is None or not session.is_idle:
            return False  # a turn that begins reads it
        is_new = session_id not in self._reading
        self._reading[session_id] = True
        return is_new

    async def read_on(self, session_id: str) -> None:
        """Read one that is due, for as long as it changes."""
        try:
            while self._reading[session_id]:
                self._reading[session_id] = False
                session = self._sessions.get(session_id)
                elsewhere = session.elsewhere if session is not None else None
                if session is not None and elsewhere is not None and await session.read_on(waits=True):
                    await self._look(session_id, elsewhere.agent, elsewhere.session_id)
        finally:
            del self._reading[session_id]

    async def tell(self, session_id: str) -> None:
        """Tell what was done elsewhere in one so far, up to what is being done. While something that was asked there
        waits for its answer nothing is told: the end of what is told would be the end of that."""
        session = self._sessions.get(session_id)
        if session is not None and not session.state.index.pending:
            await session.read_on(holds=True)

    async def end(self, session_id: str) -> None:
        """A session leaves memory."""
        session = self._sessions.pop(session_id, None)
        if session is not None and session.elsewhere is not None:
            await session.elsewhere.close()

    async def close(self) -> None:
        for session_id in list(self._sessions):
            await self.end(session_id)
