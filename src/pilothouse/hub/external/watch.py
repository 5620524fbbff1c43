"""Watched sessions in memory: the record of each is read to its end, then followed.

Rules a change must not break: a record is read by one feed at a time; an error in it ends neither the feed nor the hub,
and the record is read again; a session has one feed at most, and none once it is adopted or has left memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ...adapters.discovery.guarded import aside
from ...adapters.discovery.store import Reader
from ...log.errors import LogClosed, UnknownSession
from ..errors import HubError, NotStored
from ..mirror.importer import Watched
from ..session.session import HubSession
from .records import Finding, attached_reader, key_of

logger = logging.getLogger(__name__)

POLL = 5.0
SLOWEST = 60.0
"""Seconds between two looks at a record of which nobody has said that it changed; more and more while nothing is open
in it, as there may be hundreds of such."""
AGAIN = 5.0
"""Seconds before a record is read anew that is not there, or could not be read or stored; more and more, up to the
slowest, while that stays so and nobody says that it changed."""
BREATH = 0.1
"""Seconds between two such tries at least: whoever says all the time that it changed must not make the feed spin."""


class Feed:
    """The task that reads one session's record and has it told: what there is, then what comes.

    `open_reader` gives a reader, which blocks, or None when there is no record. `look` tells, while nothing comes,
    what the agent does by other signs than its record, as it was at a time of the loop's clock or later: a look goes
    through all processes, so many feeds share one, but one from before a record was read says nothing of what it has.
    `session` stays in memory with it: there must never be two.
    """

    def __init__(
        self,
        session: object,
        watched: Watched,
        open_reader: Callable[[], Awaitable[Reader | None]],
        look: Callable[[float], Awaitable[str | None]],
    ) -> None:
        self._session = session
        self.watched = watched
        self._open_reader = open_reader
        self._look = look
        self._quiets = 0
        self._misses = 0
        self._has_looked = False
        self._read_at = 0.0
        self._changed = asyncio.Event()
        self._waiting: list[asyncio.Future[bool]] = []
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"watching {watched.session_id}")

    def wake(self) -> None:
        """The record may have changed."""
        self._changed.set()

    async def caught_up(self, timeout: float) -> bool:
        """Read to the end, beginning now; whether all was told in time."""
        waiting: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self.wake()
        await asyncio.wait((waiting, self._task), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if waiting in self._waiting:
            self._waiting.remove(waiting)
        return waiting.done() and waiting.result()

    async def stop(self) -> None:
        """Again is no harm."""
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def _run(self) -> None:
        while not self.watched.is_over:
            self._changed.clear()  # before it is opened: what is said from here on may be new
            try:
                await self._read()
            except (LogClosed, UnknownSession):
                return
            except HubError as exc:
                if isinstance(exc, NotStored) and exc.is_deleted:
                    return
                logger.info("session %s cannot be told: %s", self.watched.session_id, exc)
            except Exception:  # a reader of a package may raise anything
                logger.exception("session %s cannot be read", self.watched.session_id)
            await self._pause()

    async def _pause(self) -> None:
        """Wait for another try, whatever became of the last one."""
        await asyncio.sleep(BREATH)
        is_news = await self._wait(min(AGAIN * 2**self._misses, SLOWEST))
        self._misses = 0 if is_news else min(self._misses + 1, 10)

    async def _read(self) -> None:
        now = asyncio.get_running_loop().time
        self._read_at = now()
        waiting = list(self._waiting)
        reader = await self._open_reader()
        if reader is None:
            await self._missing(waiting)
            return
        try:
            await self.watched.begin()
            while True:
                self._changed.clear()
                waiting = list(self._waiting)  # who comes while it is read may know of more
                self._read_at = now()
                step = await aside(reader.read)
                if self.watched.is_over:
                    return
                self._misses = self._misses if step.failed else 0
                if await self.watched.take(step):
                    self._is_at_end(waiting)
                    await self._quiet()
                elif step.failed and await self._is_lost(waiting):
                    return
        finally:
            await aside(reader.close)

    async def _missing(self, waiting: list[asyncio.Future[bool]]) -> None:
        """There is no record, or none any more: then nobody goes on with a turn that it told of."""
        self._is_at_end(waiting)
        if self.watched.is_open and await self._look(self._read_at) == "idle":
            await self.watched.begin()
            self.watched.leave()

    async def _is_lost(self, waiting: list[asyncio.Future[bool]]) -> bool:
        """Whether a record that cannot be read stays so, and is to be looked for anew: it may be elsewhere by now. Who
        waits for its end hears that it was not reached."""
        if not self._misses:
            await self._pause()
            return False
        self._is_at_end(waiting, is_told=False)
        if self.watched.is_open and await self._look(self._read_at) == "idle":
            self.watched.leave()
        return True

    def _is_at_end(self, waiting: list[asyncio.Future[bool]], *, is_told: bool = True) -> None:
        for one in waiting:
            if not one.done():
                one.set_result(is_told)

    async def _quiet(self) -> None:
        """Nothing is new: wait. An agent that is said to work and was killed says nothing any more."""
        is_open = self.watched.is_open
        if self._has_looked and await self._wait(POLL if is_open else min(POLL * 2**self._quiets, SLOWEST)):
            self._quiets = 0
            return
        self._quiets = min(self._quiets + 1, 10)
        self._has_looked = True
        if is_open and self.watched.is_open and await self._look(self._read_at) == "idle":
            self.watched.leave()

    async def _wait(self, seconds: float) -> bool:
        """Whether somebody said that it changed."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True


READING = 120.0
"""Seconds for a record to be told up to its end before the session is adopted."""


class Feeds:
    """Of one hub. `finder` gives who reads records; None when none does."""

    def __init__(self, finder: Callable[[], Finding | None]) -> None:
        self._finder = finder
        self._feeds: dict[str, Feed] = {}

    def begin(self, session: HubSession) -> bool:
        """Tell a session from now on, if it is watched; whether that is new."""
        watched = session.watched
        if watched is None or session.id in self._feeds or (finder := self._finder()) is None:
            return False
        agent, session_id = watched.agent, watched.session_id

        async def look(since: float) -> str | None:
            found = await finder.session(agent, session_id, since)
            return found.status if found is not None else "idle"

        async def open_reader() -> Reader | None:
            reader = await finder.reader(agent, session_id)
            return reader if reader is not None else await attached_reader(finder, agent, session_id, wake)

        def wake() -> None:
            if session.id in self._feeds:
                self._feeds[session.id].wake()

        self._feeds[session.id] = Feed(session, watched, open_reader, look)
        return True

    def wake(self, agent: str, session_id: str) -> None:
        """The record of an agent's session has changed."""
        for feed in self._feeds.values():
            if key_of(feed.watched.agent, feed.watched.session_id) == key_of(agent, session_id):
                feed.wake()

    def wake_all(self) -> None:
        """Any record may have changed."""
        for feed in self._feeds.values():
            feed.wake()

    async def told(self, session_id: str, timeout: float) -> None:
        """Wait until a session is told up to the end of its record. Raises HubError when that takes long, or it is
        deleted meanwhile."""
        feed = self._feeds.get(session_id)
        if feed is not None and not await feed.caught_up(timeout):
            raise unread(session_id)

    async def finish(self, session: HubSession) -> None:
        """All of its record is told, and no more will be. Raises HubError when that takes too long; then more will."""
        await self.told(session.id, READING)
        await self.end(session.id)

    async def end(self, session_id: str) -> None:
        """Nothing more is told of a session."""
        feed = self._feeds.pop(session_id, None)
        if feed is not None:
            await feed.stop()

    async def close(self) -> None:
        for session_id in list(self._feeds):
            await self.end(session_id)


def unread(session_id: str) -> HubError:
    return HubError(f"the record of session {session_id} could not be read to its end; try again", sessionId=session_id)
