"""All sessions on this machine that agents keep on their own: found, watched, read, and who has them.

Rules a change must not break: nothing that a store or an adapter of a package does, whatever it raises and however
long it takes, keeps the others from being found; nothing here blocks the loop; a problem is written down once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, get_args
from weakref import WeakSet

from msgspec import Struct, convert, to_builtins
from msgspec.msgpack import Encoder
from msgspec.structs import replace

from ...model.discovery import DiscoveredSession, DiscoveredStatus
from ...model.session import sound
from ..contract import Adapter, AdapterError, AgentSession, OnDiscovery, Stop
from .guarded import GuardedSession, OwnLoop, apart, aside, reason_of
from .processes import SLACK, Holder, Listed, end_process, find_holders, seconds_of, told_holder
from .store import Problem, Reader, Scan, Store
from .watcher import Watcher

logger = logging.getLogger(__name__)

PATIENCE = 20.0
"""Seconds that one store or one adapter may take; what it finds later is there the next time."""
ASKED = 5.0
"""The same for an adapter: it asks for a list, and has no disk to look through."""
LATE = 0.2
"""Seconds that one may take which has not come back from the look before: nobody waits twice for the same."""
QUIET = 60.0
"""Seconds after which a session that nobody is known to have, and of which nothing comes, is not at work any more."""

PROCESSES = "processes"
REQUIRED = ("id", "agent", "project_path", "project_name", "created_at", "last_activity")
OPTIONAL = ("last_message", "session_name", "model", "integration_method")
STATUSES = (None, *get_args(DiscoveredStatus))

_encode = Encoder().encode

BREATH = 1.0
"""Seconds before anything is watched: whoever starts a hub has other work at first."""


class Found(Struct, frozen=True, kw_only=True):
    """What there is: the sessions, the one last active first, and what cannot be read."""

    sessions: Sequence[DiscoveredSession] = ()
    problems: Sequence[Problem] = ()


class Finder:
    """Sessions of these stores and of these adapters, which packages have brought.

    `problems` are those of stores and adapters that could not even be loaded. `hub_id` is the mark of the hub that
    asks: processes that it started are its own. Whoever has made one must `close` it.
    """

    def __init__(
        self,
        stores: Iterable[Store] = (),
        adapters: Iterable[Adapter] = (),
        *,
        problems: Iterable[Problem] = (),
        hub_id: str | None = None,
        holders: Callable[[Iterable[Listed]], dict[tuple[str, str], Holder]] = find_holders,
        patience: float = PATIENCE,
    ) -> None:
        self.hub_id = hub_id
        self._stores = list(stores)
        self._adapters = {name: adapter for adapter in adapters if (name := _name_of(adapter))}
        self._broken = list(problems)
        self._holders = holders
        self._patience = patience
        self._told: set[Problem] = set()
        self._running: dict[object, asyncio.Future[Any]] = {}
        self._late: WeakSet[asyncio.Future[Any]] = WeakSet()
        self._left: dict[str, OwnLoop] = {}
        """Where adapters were last given up."""
        self._lock = asyncio.Lock()
        self._begun, self._began = 0, float("-inf")
        self._found = Found()
        self._watcher = Watcher(self._stores, list(self._adapters.values()), delay=BREATH)

    @property
    def agents(self) -> Collection[str]:
        """The agents whose records are known, under all their names."""
        return {name for store in self._stores for name in (store.agent, *store.also)} | set(self._adapters)

    async def close(self) -> None:
        """End watching, and what has not come back. Again is no harm."""
        for running in (left := list(self._running.values())):
            running.cancel()
        if left:
            await asyncio.wait(left, timeout=LATE)
        await self._watcher.close()

    # -- what there is --

    async def sessions(self, since: float | None = None) -> Found:
        """Everything, as it is now; with `since`, a time of the loop's clock, as it was then or later. Never raises."""
        called = self._begun
        async with self._lock:
            is_shared = self._begun > called or (since is not None and self._began >= since)
            if not is_shared:  # there is no look that began while we waited, or late enough
                await self._look_anew()
            return self._found

    async def _look_anew(self) -> None:
        began = asyncio.get_running_loop().time()
        self._begun += 1
        try:
            self._found = await self._look()
        except BaseException:  # whoever looked was cancelled: nobody is to take what was there before for it
            self._begun -= 1
            raise
        self._began = began

    async def session(self, agent: str, session_id: str, since: float | None = None) -> DiscoveredSession | None:
        """One of them; None when there is none of that id. `since` is as above."""
        store = self._store(agent)
        wanted = (store.agent if store is not None else agent, session_id)
        found = await self.sessions(since)
        return next((one for one in found.sessions if (one.agent, one.id) == wanted), None)

    async def _look(self) -> Found:
        problems = list(self._broken)
        asked = asyncio.gather(*(self._asked(*adapter, problems) for adapter in self._adapters.items()))
        scans = await asyncio.gather(*(self._scan(store, problems) for store in self._stores))
        listed = [Listed(store, scan.sessions) for store, scan in zip(self._stores, scans, strict=True)]
        holders = await self._who_has(listed, problems)
        sessions = [self._settled(one, holders) for each in listed for one in each.sessions]
        for more in await asked:
            sessions += more
        problems += (problem for scan in scans for problem in scan.problems)
        sessions.sort(key=lambda one: one.last_activity, reverse=True)
        self._write_down(problems)
        return Found(sessions=sessions, problems=problems)

    def _write_down(self, problems: Sequence[Problem]) -> None:
        """Each problem once, until it is gone."""
        for problem in dict.fromkeys(problems):
            if problem not in self._told:
                logger.info("%s: %s", problem.path, problem.message)
        self._told = set(problems)

    async def _scan(self, store: Store, problems: list[Problem]) -> Scan:
        try:
            return await self._scanned(store)
        except (Exception, SystemExit) as exc:  # whatever a store of a package does
            problems.append(Problem(path=_label(store), message=reason_of(exc)))
            return Scan()

    async def _scanned(self, store: Store) -> Scan:
        """Look at a store; a look that has not come back is waited for, and none begun beside it."""
        late = self._running.get(id(store))
        if late is not None and late.done():  # by now it is quick to look again, and what it found is old
            del self._running[id(store)]
        scan = await self._awaited(id(store), lambda: aside(_contained, partial(_checked, store)))
        assert isinstance(scan, Scan)
        return scan

    async def _awaited(self, key: object, begin: Callable[[], Coroutine[Any, Any, Any]], most: float = PATIENCE) -> Any:
        """What comes of some work; of work that has not come back since the last time, that. Raises TimeoutError."""
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.ensure_future(begin())
        patience = min(self._patience, LATE if running in self._late else most)
        await asyncio.wait((running,), timeout=patience)
        if not running.done():
            self._late.add(running)
            raise TimeoutError
        if self._running.get(key) is running:
            del self._running[key]
        outcome = running.result()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def _asked(self, name: str, adapter: Adapter, problems: list[Problem]) -> list[DiscoveredSession]:
        """The sessions that an adapter of a package knows."""
        try:
            found = list(await self._awaited(name, lambda: _asked_itself(adapter), ASKED))
            whole = _tellable(found)
            if len(whole) < len(found):
                problems.append(Problem(path=f"adapter {name}", message=_left_out(len(found) - len(whole))))
            return [replace(one, agent=name) for one in whole]
        except (Exception, SystemExit) as exc:
            problems.append(Problem(path=f"adapter {name}", message=reason_of(exc)))
            return []

    # -- who has them --

    async def _who_has(self, listed: Sequence[Listed], problems: list[Problem]) -> dict[tuple[str, str], Holder]:
        """Who has which session. Looked for together, as it is one look at all processes; if that fails by one of the
        stores, for each by itself: the others must not be blind for it."""
        try:
            return await self._holders_of(listed, PROCESSES, PATIENCE)
        except (Exception, SystemExit) as exc:
            logger.info("the processes of this machine could not be looked through at once: %s", reason_of(exc))
        found = await asyncio.gather(*(self._who_has_of(each, problems) for each in listed))
        return {key: holder for each in found for key, holder in each.items()}

    async def _who_has_of(self, listed: Listed, problems: list[Problem]) -> dict[tuple[str, str], Holder]:
        try:
            return await self._holders_of([listed], (PROCESSES, id(listed.store)), ASKED)
        except (Exception, SystemExit) as exc:
            message = f"who has its sessions cannot be found out: {reason_of(exc)}"
            problems.append(Problem(path=_label(listed.store), message=message))
            return {}

    async def _holders_of(self, listed: Sequence[Listed], key: object, most: float) -> dict[tuple[str, str], Holder]:
        late = self._running.get(key)
        if late is not None and late.done():  # who it found may be gone by now
            del self._running[key]
        found: dict[tuple[str, str], Holder] = await self._awaited(
            key, lambda: aside(_contained, partial(self._holders, listed)), most
        )
        return found

    async def holder(self, agent: str, session_id: str) -> Holder | None:
        """The foreign process that has a session now; None when none was found. Raises what went wrong: whoever asks
        must not take silence for an answer."""
        store = self._store(agent)
        if store is None:
            holder = await self._told_by(agent, session_id)
        else:
            scan = await self._scanned(store)
            found = await aside(self._holders, [Listed(store, scan.sessions)])
            holder = found.get((store.agent, session_id))
        return holder if holder is not None and self._is_foreign(holder) else None

    async def _told_by(self, agent: str, session_id: str) -> Holder | None:
        """The process that the adapter of a package names."""
        adapter = self._adapters.get(agent)
        if adapter is None:
            return None
        listed = _tellable(await self._awaited(agent, lambda: _asked_itself(adapter), ASKED))
        pid = next((one.pid for one in listed if one.id == session_id), None)
        return await aside(told_holder, pid, agent) if pid is not None else None

    async def end(self, holder: Holder) -> None:
        """End exactly this process, and wait for that. Raises OSError."""
        await asyncio.to_thread(end_process, holder.pid, holder.started)

    def _is_foreign(self, holder: Holder) -> bool:
        """Whether somebody else started it. Other hubs than ours have leases on what they run."""
        return not holder.is_ours and (holder.hub is None or self.hub_id not in (None, holder.hub))

    def _settled(self, session: DiscoveredSession, holders: dict[tuple[str, str], Holder]) -> DiscoveredSession:
        """A session with who has it, and with what it does if that is not known from its record."""
        holder = holders.get((session.agent, session.id))
        if holder is None and session.status in (None, "idle"):
            return session
        pid = holder.pid if holder is not None and holder.is_sure and self._is_foreign(holder) else None
        return replace(session, status=_status(session, holder), pid=pid)

    # -- one of them --

    async def reader(self, agent: str, session_id: str) -> Reader | None:
        """The record of a session; None when there is none, or the agent's sessions are not kept in records."""
        store = self._store(agent)
        return await aside(store.reader, session_id) if store is not None else None

    async def attach(self, agent: str, session_id: str) -> AgentSession:
        """Follow a session through the adapter of a package. Whatever that does, the session only ends.

        Raises AdapterError.
        """
        adapter = self._adapters.get(agent)
        if adapter is None:
            raise AdapterError(f"no adapter of a package has the name {agent!r}")
        left = self._left.get(agent)
        if left is not None and left.is_alive:  # else every try would leave one more that blocks
            raise AdapterError(f"{agent} has not come back from an attempt to attach to a session")
        own = OwnLoop()
        try:
            session = await own.do(lambda: adapter.attach_to_session(session_id), self._patience)
            return GuardedSession(agent, session, own)
        except BaseException as exc:
            own.end()
            if isinstance(exc, TimeoutError):
                self._left[agent] = own
            if isinstance(exc, AdapterError) or not isinstance(exc, Exception):
                raise
            raise AdapterError(f"{agent} cannot attach to session {session_id!r}: {reason_of(exc)}") from exc

    def watch(self, callback: OnDiscovery) -> Stop:
        """Call back in this loop when a session appears, changes or goes away; the answer ends it."""
        return self._watcher.subscribe(callback)

    async def noticing(self) -> None:
        """Wait until those who `watch` are told whatever changes. It takes a while after the first one came, and what
        changes meanwhile they are not told."""
        await self._watcher.looked.wait()

    def _store(self, agent: str) -> Store | None:
        return next((store for store in self._stores if agent == store.agent or agent in store.also), None)


def _status(session: DiscoveredSession, holder: Holder | None) -> DiscoveredStatus | None:
    if holder is not None and (holder.is_sure or seconds_of(session.last_activity) >= holder.started - SLACK):
        return holder.status or session.status  # one that only may have it, and came after it changed, does nothing
    quiet = time.time() - seconds_of(session.last_activity) > QUIET
    return "idle" if quiet else session.status


def _checked(store: Store) -> Scan:
    """What a store has, in a form that can be told to anybody. It blocks. Raises TypeError, and what the store does."""
    scan = store.scan()
    if not isinstance(scan, Scan):
        raise TypeError(f"scan gives {type(scan).__name__}")
    problems = [
        Problem(path=sound(str(one.path)), message=sound(str(one.message)))
        for one in scan.problems
        if isinstance(one, Problem)
    ]
    given = list(scan.sessions)
    sessions = _tellable(given)
    if len(sessions) < len(given):
        problems.append(Problem(path=f"store {store.agent}", message=_left_out(len(given) - len(sessions))))
    return Scan(sessions=sessions, problems=problems)


def _tellable(sessions: Iterable[Any]) -> list[DiscoveredSession]:
    """Those that are sessions, each with texts that UTF-8 can carry: one that is not must not cost the others."""
    whole = [one for one in sessions if _is_whole(one)]
    try:
        _encode(whole)
        return whole
    except Exception:  # by one of them, and which one it is is found out only now
        return [told for one in whole if (told := _sound(one)) is not None]


def _left_out(count: int) -> str:
    return f"{count} of what it lists {'is no session' if count == 1 else 'are no sessions'}"


def _sound(session: DiscoveredSession) -> DiscoveredSession | None:
    try:
        return convert(sound(to_builtins(session)), DiscoveredSession)
    except Exception:
        return None


def _contained(work: Callable[[], Any]) -> Any:
    """The outcome of work in a thread: a SystemExit must not get into the loop as one."""
    try:
        return work()
    except (Exception, SystemExit) as exc:
        return exc


async def _asked_itself(adapter: Adapter) -> Any:
    """The same of an adapter: of a package nobody knows whether it blocks, and for how long."""
    try:
        return await apart(lambda: adapter.discover_sessions())  # noqa: PLW0108 - to look it up may raise as well
    except (Exception, SystemExit) as exc:
        return exc


def _label(store: Store) -> str:
    """What a store is called where it went wrong, which may be in its name as well."""
    try:
        return f"store {store.agent}"
    except Exception:
        return f"store {type(store).__name__}"


def _name_of(adapter: Adapter) -> str:
    try:
        return adapter.name
    except Exception:
        return ""


def _is_whole(session: Any) -> bool:
    """Whether it is a session that says what each one has to say: a package is not held to the types by anybody."""
    return (
        isinstance(session, DiscoveredSession)
        and all(isinstance(getattr(session, name), str) for name in REQUIRED)
        and all(isinstance(getattr(session, name), str | None) for name in OPTIONAL)
        and session.status in STATUSES
        and (session.pid is None or (isinstance(session.pid, int) and not isinstance(session.pid, bool)))
    )
