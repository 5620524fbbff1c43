"""Which sessions one client has open: a feed for each, made anew when the client opens it again.

What a client said itself stays its own over that, so a prompt that is under way is answered whichever feed tells of it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from ...acp.errors import RequestError
from ...hub.hub import Hub
from ...hub.session import HubSession
from .answers import Ending, refusing
from .asking import Asking
from .feed import Feed, Outlet

__all__ = ["Attachments"]


class Attachments:
    """The feeds of one client. `asking` makes what puts a session's questions to it."""

    def __init__(self, hub: Hub, outlet: Outlet, asking: Callable[[str], Asking], limit: int) -> None:
        self._hub = hub
        self._outlet = outlet
        self._asking = asking
        self._limit = limit
        self._feeds: dict[str, Feed] = {}
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._own: defaultdict[str, set[str]] = defaultdict(set)

    def check_room(self, session_id: str = "") -> None:
        """Raises RequestError when the client has too many sessions open."""
        if session_id not in self._feeds and len(self._feeds) >= self._limit:
            details = f"this connection has {self._limit} sessions open; close some"
            raise RequestError.invalid_request({"details": details})

    def begin(self, session: HubSession) -> None:
        """Follow a session that has just been made: what its agent has sent, and what comes."""
        seq = session.state.seq
        self._feed(session.id, live_from=seq, quiet_until=seq).start()

    async def open(self, session: HubSession, after: int | None) -> Feed:
        """Replay a session from a seq on (None: from now on), ready to be followed: whoever calls this starts it.

        Raises RequestError, ConnectionClosed.
        """
        async with self._opening[session.id]:
            return await self._open(session, after)

    async def opened(self, session: HubSession) -> None:
        """Have it open; who prompts without having opened it gets what comes from now on."""
        async with self._opening[session.id]:
            if session.id not in self._feeds:
                (await self._open(session, None)).start()

    async def _open(self, session: HubSession, after: int | None) -> Feed:
        self.check_room(session.id)
        await self.leave(session.id)
        state = session.state
        until = state.seq
        start = until if after is None else after
        if start > until:
            reason = f"{after} is beyond the end of the session, {until}"
            raise RequestError.invalid_params({"field": "_meta.pilothouse.after", "reason": reason})
        earlier = [one.seq for one in (*state.pending_approvals, *state.pending_questions) if one.seq <= start]
        feed = self._feed(session.id, after=start, live_from=until)
        for seq in earlier:
            await refusing(feed.recall(seq))
        await refusing(feed.replay(until))
        for turn_id in self._own[session.id]:  # after the replay, which leaves nothing out
            feed.mine(turn_id)
        return feed

    def _feed(self, session_id: str, **where: int) -> Feed:
        asking = self._asking(session_id)
        feed = Feed(self._hub.log, session_id, self._outlet, asking, asking.capabilities, **where)
        self._feeds[session_id] = feed
        return feed

    async def leave(self, session_id: str) -> None:
        feed = self._feeds.pop(session_id, None)
        if feed is not None:
            await feed.stop()

    async def leave_all(self) -> None:
        for session_id in list(self._feeds):
            await self.leave(session_id)

    # -- prompts of this client --

    def mine(self, session_id: str, turn_id: str) -> None:
        """This turn is the client's own: what it said is not said back to it."""
        self._own[session_id].add(turn_id)
        feed = self._feeds.get(session_id)
        if feed is not None:
            feed.mine(turn_id)

    async def told(self, session_id: str, turn_id: str, seq: int) -> Ending:
        """Wait until everything up to a seq was sent; what was told of the end of that turn.

        Who has left the session meanwhile is not waited for.
        """
        ending = Ending()
        feed = self._feeds.get(session_id)
        while feed is not None and not await feed.sent_through(seq):
            replaced = self._feeds.get(session_id)
            feed = replaced if replaced is not feed else None
        if feed is not None:
            ending = feed.ending(turn_id)
        self._own[session_id].discard(turn_id)
        return ending
