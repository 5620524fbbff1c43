"""The watched sessions that are in memory, each fed from its record. How one is fed is in `feed`.

The rule a change must not break: a session has one feed at most, and none once it is adopted or has left memory.
"""

from __future__ import annotations

from collections.abc import Callable

from ..adapters.discovery.store import Reader
from .attached import attached_reader
from .errors import HubError
from .feed import Feed
from .finding import Finding, key_of
from .session import HubSession

__all__ = ["READING", "Feeds", "unread"]

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
