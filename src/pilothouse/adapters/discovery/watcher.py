"""Notices that sessions change while they are kept by others: one watcher of files for all stores and all who listen.

A changed file often says by its name whose it is. Where it does not, or came or went, a store is looked at again and
compared with what it had; so nothing depends on names. Directories that do not exist yet, or were replaced, are looked
for every few seconds: to watch what is above them would mean to watch a whole home. What listeners and stores raise
stays here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ...model.discovery import DiscoveredSession, SessionDiscoveryEvent
from ..contract import Adapter, OnDiscovery, Stop
from .guarded import OwnLoop, aside, guarded_stop, reason_of
from .store import Owner, Store

logger = logging.getLogger(__name__)

LOOK = 2.0
"""Seconds between two looks whether the directories are still the same."""
PATIENCE = 60.0
"""Seconds that a look at a store may take."""
TOGETHER = 100
"""Milliseconds in which changes are put together."""

Kind: TypeAlias = Literal["session_created", "session_removed", "session_updated"]
Changes: TypeAlias = Iterable[tuple[int, str]]
MODIFIED = 2
"""The number that watchfiles has for a file that was neither made nor removed."""
Key: TypeAlias = tuple[str, str]
Identity: TypeAlias = dict[Path, tuple[int, int]]


class Snapshot(Struct, frozen=True):
    """What a store had at a look."""

    sessions: dict[str, DiscoveredSession]
    owners: frozenset[Owner]


class Watcher:
    """Watches while somebody listens; it begins after `delay` seconds, as the first look may take long."""

    def __init__(
        self,
        stores: Sequence[Store],
        adapters: Sequence[Adapter] = (),
        *,
        look: float = LOOK,
        delay: float = 0.0,
        patience: float = PATIENCE,
    ) -> None:
        self._stores = list(stores)
        self._patience = patience
        self._adapters = adapters
        self._look = look
        self._delay = delay
        self._listeners: dict[object, OnDiscovery] = {}
        self._task: asyncio.Task[None] | None = None
        self._following: list[asyncio.Task[None]] = []
        self._had: dict[int, Snapshot] = {}
        self.looked = asyncio.Event()
        """Set when there was a first look: what changes from then on is told, what changed before is not."""
        self.watching = asyncio.Event()
        """Set while changes are noticed: a moment after the first listener has come."""

    def subscribe(self, callback: OnDiscovery) -> Stop:
        """Call back in this loop for each change; the answer ends it."""
        key = object()
        self._listeners[key] = callback
        if self._task is None:
            self._begin(asyncio.get_running_loop())

        def stop() -> None:
            if self._listeners.pop(key, None) is not None and not self._listeners:
                self._end()

        return stop

    async def close(self) -> None:
        self._listeners.clear()
        task = self._task
        self._end()
        if task is not None:
            await asyncio.wait([task])

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._task = loop.create_task(self._run())
        self._following = [loop.create_task(self._follow(adapter, loop)) for adapter in self._adapters]

    def _end(self) -> None:
        for following in self._following:
            following.cancel()
        self._following.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.looked.clear()

    async def _follow(self, adapter: Adapter, loop: asyncio.AbstractEventLoop) -> None:
        """Listen to an adapter of a package, which may call from any thread, until this is cancelled."""

        def heard(event: SessionDiscoveryEvent) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._tell, event)

        own = OwnLoop()
        try:
            stop = await own.do(lambda: adapter.watch_sessions(heard), self._patience)
            try:
                await asyncio.Event().wait()
            finally:
                guarded_stop(stop, adapter.name, own)()
        except Exception as exc:
            logger.warning("the sessions of an adapter cannot be watched: %s", reason_of(exc))
        finally:
            own.end()

    def _tell(self, event: Any) -> None:
        if not isinstance(event, SessionDiscoveryEvent):
            return
        for listener in list(self._listeners.values()):
            try:
                listener(event)
            except Exception:  # the others are still to be told
                logger.exception("a change of session %s could not be handled", event.session_id)

    # -- files --

    async def _run(self) -> None:
        await asyncio.sleep(self._delay)
        while True:
            try:
                if not self.looked.is_set():
                    await self._news_of(self._stores)  # what there is already is no news
                    self.looked.set()
                await self._watch(await aside(self._present))
            except Exception:
                logger.exception("sessions of other programs were not watched for a moment")
                await asyncio.sleep(self._look)
            finally:
                self.watching.clear()

    async def _watch(self, places: Identity) -> None:
        """Tell changes for as long as the places are the same."""
        looked = 0.0
        async with aclosing(self._changes(places)) as batches:
            async for changes in batches:
                if not looked:  # whatever happened before it was watched
                    self._tell_all(await self._news_of(self._stores))
                    self.watching.set()
                events, unclear = await aside(self._events, changes)
                found = {(event.agent, event.session_id): event for event in await self._news_of(unclear)}
                self._tell_all((events | found).values())
                if time.monotonic() - looked >= self._look:
                    looked = time.monotonic()
                    if await aside(self._present) != places:
                        return

    def _tell_all(self, events: Iterable[SessionDiscoveryEvent]) -> None:
        for event in events:
            self._tell(event)

    async def _changes(self, places: Identity) -> AsyncGenerator[Changes, None]:
        """Changes below the places, and nothing now and then."""
        if places:
            from watchfiles import awatch

            for polling in (None, True):
                try:
                    watching = awatch(
                        *places,
                        watch_filter=None,
                        debounce=TOGETHER,
                        step=TOGETHER // 4,
                        rust_timeout=int(self._look * 1000),
                        yield_on_timeout=True,
                        force_polling=polling,
                        poll_delay_ms=int(self._look * 1000),
                        ignore_permission_denied=True,
                    )
                    async with aclosing(watching):
                        async for changes in watching:
                            yield changes
                    return
                except FileNotFoundError:
                    return
                except (OSError, RuntimeError) as exc:  # there are too many directories for the system
                    logger.warning("changes are looked for from time to time only: %s", exc)
        while True:
            yield ()
            await asyncio.sleep(self._look)

    def _present(self) -> Identity:
        """The places that exist, each with what tells it from another one of its name."""
        found: Identity = {}
        for store in self._stores:
            for place in self._places(store):
                with contextlib.suppress(OSError):
                    state = place.stat()
                    found[place] = (state.st_dev, state.st_ino)
        return found

    def _places(self, store: Store) -> Sequence[Path]:
        places: Sequence[Path] = self._asked(store, partial(getattr, store, "places"), ())
        return places

    # -- what changed --

    def _events(self, changes: Changes) -> tuple[dict[Key, SessionDiscoveryEvent], list[Store]]:
        """What changed files mean, and the stores that have to be looked at to know it. It blocks."""
        events: dict[Key, SessionDiscoveryEvent] = {}
        unclear: dict[Store, None] = {}
        for store in self._stores:
            places, had = self._places(store), self._had.get(id(store))
            for kind, name in changes:
                path = _below(Path(name), places)
                if path is None:
                    continue
                session_id = self._asked(store, partial(store.touched, path), None)
                if session_id is not None:
                    events[store.agent, session_id] = _event(store, session_id, "session_updated")
                if kind != MODIFIED or had is None or session_id not in had.sessions:
                    unclear[store] = None  # a session may have come or gone with it, or be one of many
        return events, list(unclear)

    async def _news_of(self, stores: Iterable[Store]) -> list[SessionDiscoveryEvent]:
        """What stores have now that they had not at the last look. One that does not come back is left out for good."""
        events: list[SessionDiscoveryEvent] = []
        for store in list(stores):
            try:
                async with asyncio.timeout(self._patience):
                    events += await aside(self._compared, store)
            except TimeoutError:
                logger.warning("the sessions of %s are not watched: a look at them takes too long", store.agent)
                self._stores = [one for one in self._stores if one is not store]
        return events

    def _compared(self, store: Store) -> list[SessionDiscoveryEvent]:
        """The same of one. It blocks."""
        now = self._asked(store, partial(_snapshot, store), None)
        if now is None:
            return []
        before, self._had[id(store)] = self._had.get(id(store)), now
        return [_event(store, *change) for change in _differences(before, now)] if before is not None else []

    def _asked(self, store: Store, question: Callable[[], Any], default: Any) -> Any:
        """What a store answers; the default if it raises, which the list of its sessions tells."""
        try:
            return question()
        except (Exception, SystemExit) as exc:
            logger.debug("store %s: %s", store.agent, reason_of(exc))
            return default


def _below(path: Path, places: Iterable[Path]) -> Path | None:
    """The path as one below a place; some systems tell it with all links followed."""
    for place in places:
        if path.is_relative_to(place):
            return path
        real = place.resolve()
        if path.is_relative_to(real):
            return place / path.relative_to(real)
    return None


def _event(store: Store, session_id: str, kind: Kind) -> SessionDiscoveryEvent:
    return SessionDiscoveryEvent(type=kind, session_id=session_id, agent=store.agent)


def _snapshot(store: Store) -> Snapshot:
    return Snapshot({one.id: one for one in store.scan().sessions}, frozenset(store.owners()))


def _differences(before: Snapshot, now: Snapshot) -> Iterator[tuple[str, Kind]]:
    owned = {owner.session_id for owner in before.owners ^ now.owners}
    for session_id, session in now.sessions.items():
        known = before.sessions.get(session_id)
        if known is None:
            yield session_id, "session_created"
        elif known != session or session_id in owned:
            yield session_id, "session_updated"
    for session_id in before.sessions.keys() - now.sessions.keys():
        yield session_id, "session_removed"
