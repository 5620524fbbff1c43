"""Sessions that were begun elsewhere: found on this machine, and handed to those who watch or adopt them.

`finder` knows what is on the disk and who runs it; without one nothing is found. Rules a change must not break: about
one session one thing is done at a time, and what was begun is carried through, whoever gave up waiting for it; nothing
is loaded for all this before somebody needs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from ...adapters.discovery.store import Problem
from ...log.contract import EventLog
from ...log.errors import LogError
from ...log.records import SessionRecord
from ...model.discovery import DiscoveredSession, SessionDiscoveryEvent
from ..errors import HubError, IllegalCommand, NotFound
from ..session.session import HubSession
from .adopt import Adopted, Adoption, Counterparts
from .records import KEEPERS, Finding, Found, Key, keeper_of, key_of
from .watch import READING, Feeds, unread
from .writer_lock import Holding, How, Leases, Writers

logger = logging.getLogger(__name__)

T = TypeVar("T")
FRESH = 2.0
"""Seconds for which a look at everything is good for all who ask."""


class Discovery:
    """Of one hub. `open_session` gives a session by its id, `check_agent` raises UnknownAgent, `delete` takes away a
    session that nobody has heard of."""

    def __init__(
        self,
        log: EventLog,
        open_session: Callable[[str], Awaitable[HubSession]],
        check_agent: Callable[[str], Awaitable[None]],
        check_directory: Callable[[str], Awaitable[Path]],
        delete: Callable[[str], Awaitable[None]],
    ) -> None:
        self._open_session = open_session
        self._check_agent = check_agent
        self._check_directory = check_directory
        self._delete = delete
        self._finder: Finding | None = None
        self._make: Callable[[], Finding] | None = None
        self.hub_id = ""
        self._listeners: list[Callable[[], None]] = []
        self._making, self._noticing = asyncio.Lock(), asyncio.Lock()
        self.holding = Holding(lambda: self.finder, self.knows)
        self._feeds = Feeds(lambda: None if self._closed else self.finder)
        self._counterparts = Counterparts(log, open_session)
        self._adoption = Adoption(log, self._counterparts, self._feeds, self.holding, delete)
        self._writers = Writers(self.holding, open_session)
        self._adopted = Adopted(lambda: None if self._closed else self.finder, self._writers.look)
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        """Each is kept by those who have it or wait for it."""
        self._stop: Callable[[], None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._looked: tuple[float, Found] | None = None
        self._changes = 0
        self._closed = False

    # -- begin and end --

    def prepare(self, make: Callable[[], Finding], leases: Leases | None) -> None:
        """Sessions can be found from now on, by a finder that is made when somebody needs it."""
        self._make, self.holding.leases = make, leases

    @property
    def finder(self) -> Finding | None:
        if self._finder is None and self._make is not None and not self._closed:
            self._use(self._make())
        return self._finder

    async def _ready(self) -> Finding | None:
        """The finder, made in a thread: much is imported for it."""
        async with self._making:
            if self._finder is None and self._make is not None and not self._closed:
                made = await asyncio.to_thread(self._make)
                if not self._has_finder():
                    self._use(made)
        return self.finder

    def _has_finder(self) -> bool:
        return self._finder is not None

    def _use(self, finder: Finding) -> None:
        finder.hub_id = self.hub_id or None
        self._finder = finder

    async def begin(self) -> None:
        """Take up what was watched or adopted before. Without such a session nothing is loaded until somebody listens.

        It takes a while, aside of all else.
        """
        records = await self._counterparts.all()
        if records:
            await self._notice()
        for record in records:
            if self._closed:
                return
            try:
                await self._take_up(record)
            except (HubError, LogError) as exc:
                logger.info("session %s is not watched again: %s", record.id, exc)

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the sessions on this machine changed; the answer ends it."""
        self._listeners.append(callback)
        if self._stop is None and not self._closed:
            self._keep(self._notice())

        def stop() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return stop

    async def _notice(self) -> None:
        """From now on changes on the disk are noticed."""
        async with self._noticing:
            finder = await self._ready()
            if finder is not None and self._stop is None and not self._closed:
                self._stop = finder.watch(self._changed)
                self._keep(self._look_again(finder))

    async def _look_again(self, finder: Finding) -> None:
        """What changed before changes were noticed is not told by anybody."""
        await finder.noticing()
        self._feeds.wake_all()
        for session_id in self._adopted.sessions:
            self._read_on(session_id)

    async def _take_up(self, record: SessionRecord) -> None:
        watched = record.meta.get("watched")
        if isinstance(watched, dict) and watched.get("fork"):  # a hub died while it was made
            await self._delete(record.id)
        elif record.watched_id is not None:
            if record.archived is None:
                self.loaded(await self._open_session(record.id))
        elif "adopted" in record.meta and record.agent_session_id is not None:
            self.holding.adopted[key_of(record.agent, record.agent_session_id)] = record.id

    async def close(self) -> None:
        """Watch nothing any more. Again is no harm."""
        self._closed = True
        if self._stop is not None:
            self._stop()
        await self._feeds.close()
        await self._adopted.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        if self._finder is not None:
            await self._finder.close()

    def loaded(self, session: HubSession) -> None:
        """A session is in memory: if it is watched, or was adopted, its record is read from now on."""
        is_adopted = self._adopted.begin(session)
        if (self._feeds.begin(session) or is_adopted) and self._stop is None:
            self._keep(self._notice())
        if is_adopted:
            self._read_on(session.id)

    async def told(self, session_id: str, timeout: float = READING) -> None:
        """Wait until a session that is watched, or was adopted, is told up to the end of its record. Raises HubError
        when that takes long."""
        await self._feeds.told(session_id, timeout)
        telling = self._keep(self._adopted.tell(session_id))
        await asyncio.wait((telling,), timeout=timeout)  # and no longer; what was begun is carried through
        if not telling.done():
            raise unread(session_id)

    async def left(self, session_id: str) -> None:
        """A session leaves memory: nothing more is told of it."""
        await self._feeds.end(session_id)
        await self._adopted.end(session_id)

    # -- changes on the disk --

    def _changed(self, event: SessionDiscoveryEvent) -> None:
        if self._closed:
            return
        self._looked = None
        self._changes += 1
        self._feeds.wake(event.agent, event.session_id)
        session_id = self.holding.adopted.get(key_of(event.agent, event.session_id))
        if session_id is not None and self._writers.is_new(session_id):
            self._keep(self._writers.check(session_id, event.agent, event.session_id))
        if session_id is not None:
            self._read_on(session_id)
        for listener in list(self._listeners):
            listener()

    def _read_on(self, session_id: str) -> None:
        if self._adopted.is_due(session_id):
            self._keep(self._adopted.read_on(session_id))

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # told to who waits, if anybody does

    # -- what there is --

    async def found(self, *, refresh: bool = False) -> tuple[list[DiscoveredSession], list[Problem]]:
        """All sessions, the one last active first, and what could not be read.

        Who asks again at once is told the same, unless something changed or it wants a new look (`refresh`).
        """
        finder = await self._ready()
        if finder is None:
            return [], []
        now, looked, changes = asyncio.get_running_loop().time(), self._looked, self._changes
        if refresh or looked is None or now - looked[0] > FRESH:
            looked = now, await finder.sessions()
            self._looked = looked if changes == self._changes else None  # else it may be old already
        found = looked[1]
        ours = await self._counterparts.ids()
        sessions = [
            msgspec.structs.replace(one, hub_session_id=ours[key])
            if (key := key_of(one.agent, one.id)) in ours
            else one
            for one in found.sessions
        ]
        return sorted(sessions, key=lambda one: one.last_activity, reverse=True), list(found.problems)

    def knows(self, agent: str) -> bool:
        """Whether the sessions of this agent are found without asking it."""
        if keeper_of(agent) in KEEPERS:
            return True
        return self._finder is not None and agent in self._finder.agents

    def is_of(self, found: DiscoveredSession, agent: str) -> bool:
        """Whether a session is one of this agent, under any of its names."""
        return keeper_of(found.agent) == keeper_of(agent)

    async def find(self, agent: str, session_id: str) -> DiscoveredSession:
        """A session by its agent and that one's id. Raises NotFound."""
        finder = await self._ready()
        found = await finder.session(agent, session_id) if finder is not None else None
        if found is None:
            message = f"{agent} has no session {session_id!r} on this machine; `pilothouse discover` lists them"
            raise NotFound(message, agent=agent, sessionId=session_id)
        return found

    async def of_record(self, record: SessionRecord) -> DiscoveredSession:
        """What is watched in one of the hub's sessions. Raises NotFound, IllegalCommand when it is not watched."""
        session_id = record.watched_id or record.agent_session_id
        if session_id is None:
            raise IllegalCommand(f"session {record.id} was not begun elsewhere", sessionId=record.id)
        return await self.find(record.agent, session_id)

    # -- watching and adopting --

    async def watch(self, found: DiscoveredSession, policy: dict[str, Any] | None = None) -> HubSession:
        """The hub's session that tells this one; again it is the same. What is told comes as events.

        Raises HubError when nothing can be found here.
        """
        async with self._alone(found):
            record = await self._counterparts.of(found)
            if record is not None:
                return await self._counterparts.shown(record)
            self._check_looks()
            return await self._counterparts.make(found, policy)

    def _check_looks(self) -> None:
        if self.finder is None:
            raise HubError("this hub does not look for sessions that were begun elsewhere")

    @contextlib.asynccontextmanager
    async def _alone(self, found: DiscoveredSession) -> AsyncIterator[None]:
        """One at a time does anything about one session."""
        key = key_of(found.agent, found.id)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            yield

    async def adopt(
        self,
        found: DiscoveredSession,
        how: How = "resume",
        *,
        by: str = "user",
        pid: int | None = None,
        policy: dict[str, Any] | None = None,
    ) -> HubSession:
        """Go on with a session under the hub: with itself, after its program has ended, or with a fork of it.

        `take_over` ends the program that has it; with `pid` only if it is that one, and one that is not sure to have it
        only with that. Raises Held when somebody else has
        it, with the choices there are; UnknownAgent, Unsupported, AgentFailed, HubError for its directory, NotStored.
        """
        await self._check_agent(found.agent)
        try:
            await self._check_directory(found.project_path)
        except HubError as exc:
            raise _unplaced(found) from exc
        if how == "fork":
            self._check_looks()
        return await asyncio.shield(self._keep(self._adopt(found, how, by=by, pid=pid, policy=policy)))

    async def _adopt(self, found: DiscoveredSession, how: How, **about: Any) -> HubSession:
        async with self._alone(found):
            session = await self._adoption.carry_out(found, how, **about)
            self.loaded(session)
            await session.read_on()
            return session


def _unplaced(found: DiscoveredSession) -> HubError:
    """Its agent cannot go on where it was; who adopts it did not name that directory, and cannot name another one."""
    where = (
        f"the session's directory {found.project_path!r} is gone" if found.project_path else "where it was is not told"
    )
    message = f"{where}, so its agent cannot go on there; make it again, or watch the session (`adopt --watch`)"
    return HubError(message, field="sessionId", cwd=found.project_path)
