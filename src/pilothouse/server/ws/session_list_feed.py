"""The rows of all sessions as they change: watched once, for every consumer that is connected.

A session that streams changes with every event. So the watch looks at the types of entries and nothing else, a row is
read and encoded once for all consumers, and while a session keeps changing its row is told about twice a second; what
somebody may wait for is told at once. A consumer is a number: it gets the rows that changed since, each as it is now,
so whoever is slow gets less, never a backlog. The watch runs only while somebody is there to be told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

import msgspec

from ...hub.hub import Hub
from ...log.entries import Entry
from ...log.errors import LogClosed, UnknownSession
from ..routes.sessions import session_row
from .sockets import frame

logger = logging.getLogger(__name__)

APART = 0.5
"""Seconds between two rows of a session that streams."""
ROUND = 0.05
"""Seconds between two rounds of reading rows, whatever happens."""
KEPT = 200
"""Changes that are kept, one of each session; a consumer that missed more gets the list anew."""
DISCOVERED = ""
"""In place of a session's id: those on this machine that no hub began. Their list is told to have changed, no more."""
CALM = 1.0
"""Seconds between two such changes."""
AT_ONCE = ("session:", "approval:", "interaction:question")

_encode = msgspec.json.Encoder().encode


class Roster:
    """Changed rows, by number. `version` is the last number that was given."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._users = 0
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._unlisten: Callable[[], None] | None = None
        self._starting = asyncio.Lock()
        self._changed = asyncio.Event()
        self._waiting = asyncio.Event()
        self._due: dict[str, float] = {}
        self._told: dict[str, float] = {}
        self._frames: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        self._forgotten = 0
        self.version = 0

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Within this block changes are noticed."""
        self._users += 1
        try:
            async with self._starting:
                if not self._tasks or any(task.done() for task in self._tasks):
                    await self._start()
            yield
        finally:
            self._users -= 1
            if not self._users:
                await self._stop()

    def since(self, version: int) -> list[bytes] | None:
        """Frames of the rows that changed after this number, the oldest change first; None when some are forgotten."""
        if version < self._forgotten:
            return None
        frames = []
        for number, made in reversed(self._frames.values()):
            if number <= version:
                break
            frames.append(made)
        return frames[::-1]

    async def changed(self, version: int) -> None:
        """Wait until there is more than this."""
        while self.version <= version:
            await self._changed.wait()

    # -- noticing --

    async def _start(self) -> None:
        await self._stop()
        self._due.clear()
        self._told.clear()
        self.version += 1  # what happened while nothing was watched is only in lists that are read from now on
        self._forgotten = self.version
        self._wake()
        position = await self._hub.log.last_position()
        self._hub.log.sessions.watchers.add(self._touched)
        self._unlisten = self._hub.discovery.listen(self._discovered)
        loop = asyncio.get_running_loop()
        self._tasks = (
            loop.create_task(self._run(lambda: self._watch(position)), name="watching sessions"),
            loop.create_task(self._run(self._tell), name="telling sessions"),
        )

    async def _stop(self) -> None:
        tasks, self._tasks = self._tasks, ()
        self._hub.log.sessions.watchers.discard(self._touched)
        if self._unlisten is not None:
            self._unlisten()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except LogClosed:
            pass
        except Exception:  # whoever connects next begins anew
            logger.exception("sessions can no longer be watched")

    async def _watch(self, position: int) -> None:
        async for batch in self._hub.log.follow_all(position):
            self._take(batch)

    def _take(self, batch: Sequence[Entry]) -> None:
        now = asyncio.get_running_loop().time()
        for session_id in {entry.session_id for entry in batch}:
            self._plan(session_id, max(now, self._told.get(session_id, 0.0) + APART))
        if any(kind.startswith(AT_ONCE) for kind in {entry.type for entry in batch}):
            for session_id in {entry.session_id for entry in batch if entry.type.startswith(AT_ONCE)}:
                self._plan(session_id, now)

    def _touched(self, session_id: str) -> None:
        """Its record changed without an event."""
        self._plan(session_id, asyncio.get_running_loop().time())

    def _discovered(self) -> None:
        now = asyncio.get_running_loop().time()
        self._plan(DISCOVERED, max(now, self._told.get(DISCOVERED, 0.0) + CALM))

    def _plan(self, session_id: str, at: float) -> None:
        if at < self._due.get(session_id, float("inf")):
            self._due[session_id] = at
            self._waiting.set()

    # -- telling --

    async def _tell(self) -> None:
        """Rounds: whatever is due by then is read together."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._due:
                await self._waiting.wait()
            self._waiting.clear()
            pause = min(self._due.values(), default=0.0) - loop.time()
            if pause > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._waiting.wait()
                continue
            now = loop.time()
            due = [session_id for session_id, at in self._due.items() if at <= now]
            for session_id in due:
                del self._due[session_id]
            await self._read(due, now)
            await asyncio.sleep(ROUND)

    async def _read(self, session_ids: Collection[str], now: float) -> None:
        pending = Counter(approval.session_id for approval in await self._hub.approvals())
        for session_id in session_ids:
            if session_id == DISCOVERED:
                self._told[DISCOVERED] = now
                self._put(DISCOVERED, {"type": "discovered_changed"})
                continue
            try:
                record = await self._hub.log.sessions.get(session_id)
            except UnknownSession:
                self._told.pop(session_id, None)
                self._put(session_id, {"type": "session_deleted", "sessionId": session_id})
                continue
            self._told[session_id] = now
            row = session_row(record, self._hub.live.get(session_id), pending[session_id])
            self._put(session_id, {"type": "session_changed", "session": row})
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _put(self, session_id: str, message: dict[str, object]) -> None:
        self.version += 1
        self._frames[session_id] = (self.version, frame(_encode(message)))
        self._frames.move_to_end(session_id)
        while len(self._frames) > KEPT:
            forgotten, (number, _) = self._frames.popitem(last=False)
            self._forgotten = number
            self._told.pop(forgotten, None)
