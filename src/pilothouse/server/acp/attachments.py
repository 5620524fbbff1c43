"""Which sessions one client has open: a feed for each, made anew when the client opens it again.

What a client said itself stays its own over that, so a prompt that is under way is answered whichever feed tells of it.
A client that is an editor is one of each session that it has open, from when it opens it until it leaves.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence

from ...acp.errors import RequestError
from ...hub.client.editors import Editor
from ...hub.hub import Hub
from ...hub.session.session import HubSession
from ...model.events import CustomEvent, SessionErrorEvent, decode_event
from .answers import Ending, refusing
from .client_view import Dressing
from .feed import LEAN, Feed, Outlet
from .questions import Asking


class Attachments:
    """The feeds of one client. `asking` makes what puts a session's questions to it; `editor` is what it is to agents,
    if it may be that."""

    def __init__(
        self,
        hub: Hub,
        outlet: Outlet,
        asking: Callable[[str], Asking],
        editor: Callable[[], Editor | None],
        limit: int,
    ) -> None:
        self._hub = hub
        self._outlet = outlet
        self._asking = asking
        self._limit = limit
        self._feeds: dict[str, Feed] = {}
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._own: defaultdict[str, set[str]] = defaultdict(set)
        self._dressings: dict[str, Dressing] = {}
        self._edited: set[str] = set()
        self._editor = editor

    @property
    def editor(self) -> Editor | None:
        return self._editor()

    def check_room(self, session_id: str = "") -> None:
        """Raises RequestError when the client has too many sessions open."""
        if session_id not in self._feeds and len(self._feeds) >= self._limit:
            details = f"this connection has {self._limit} sessions open; close some"
            raise RequestError.invalid_request({"details": details})

    def begin(self, session: HubSession, after: int = 0) -> None:
        """Follow a session that has just been made: what its agent has sent beyond a seq, and what comes."""
        seq = session.state.seq
        self._feed(session, after=after, live_from=seq, quiet_until=seq).start()

    async def open(self, session: HubSession, after: int | None, own: Sequence[str] = ()) -> Feed:
        """Replay a session from a seq on (None: from now on), ready to be followed: whoever calls this starts it.

        `own` are the ids of requests that were this client's, so that their prompts are not said back to it.
        Raises RequestError, ConnectionClosed.
        """
        async with self._opening[session.id]:
            return await self._open(session, after, own)

    async def opened(self, session: HubSession) -> None:
        """Have it open; who prompts without having opened it gets what comes from now on."""
        async with self._opening[session.id]:
            if session.id not in self._feeds:
                (await self._open(session, None)).start()

    async def _open(self, session: HubSession, after: int | None, own: Sequence[str] = ()) -> Feed:
        self.check_room(session.id)
        await self._stop(session.id)
        state = session.state
        until = state.seq
        start = until if after is None else after
        if start > until:
            reason = f"{after} is beyond the end of the session, {until}"
            raise RequestError.invalid_params({"field": "_meta.pilothouse.after", "reason": reason})
        earlier = [one.seq for one in (*state.pending_approvals, *state.pending_questions) if one.seq <= start]
        feed = self._feed(session, after=start, live_from=until, extensions_after=start or until)
        for seq in earlier:
            await refusing(feed.recall(seq))
        await refusing(self._claim(feed, own))
        await refusing(feed.replay(until))
        for turn_id in self._own[session.id]:  # after the replay, which leaves nothing out
            feed.mine(turn_id)
        return feed

    async def _claim(self, feed: Feed, own: Sequence[str]) -> None:
        """The turns of these requests are the client's own, as if it had never been away."""
        for request_id in own:
            turn_id = await self._hub.log.turns.get(feed.session_id, request_id)
            if turn_id is not None:
                feed.mine(turn_id)
        if own:
            await feed.lean_back()

    def _feed(self, session: HubSession, **where: int) -> Feed:
        session_id = session.id
        asking, dressing = self._asking(session_id), self.dressing(session_id)
        asking.dress = dressing.call
        feed = Feed(self._hub.log, session_id, self._outlet, asking, dressing, **where)
        self._feeds[session_id] = feed
        if self.editor is not None:
            self._edited.add(session_id)
            session.attach_editor(self.editor)
        return feed

    def dressing(self, session_id: str) -> Dressing:
        """How the client is shown a session."""
        known = self._dressings.get(session_id)
        if known is None:
            known = Dressing(session_id, self._editor, lambda: self._hub.live.get(session_id))
            self._dressings[session_id] = known
        return known

    async def leave(self, session_id: str) -> None:
        """Have it open no longer."""
        await self._stop(session_id)
        self._dressings.pop(session_id, None)
        self._edited.discard(session_id)
        if self.editor is not None:
            self._hub.detach_editor(session_id, self.editor)

    async def _stop(self, session_id: str) -> None:
        feed = self._feeds.pop(session_id, None)
        if feed is not None:
            await feed.stop()

    async def leave_all(self) -> None:
        for session_id in [*self._feeds, *self._edited]:
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
        return ending if ending != Ending() else await self._stored_ending(session_id, seq)

    async def _stored_ending(self, session_id: str, seq: int) -> Ending:
        """How a turn ended, of whose end this client was told long ago, or never."""
        ending = Ending()
        for entry in await refusing(self._hub.log.read(session_id, max(0, seq - LEAN), min(seq, LEAN))):
            event = decode_event(entry.data)
            if isinstance(event, SessionErrorEvent):
                ending = Ending(None, event.error)
            elif isinstance(event, CustomEvent) and event.event_name == "turn_ended":
                ending = Ending(entry.source, ending.error) if entry.seq == seq else Ending()
        return ending
