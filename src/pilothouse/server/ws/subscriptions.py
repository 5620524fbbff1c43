"""The subscriptions of a WebSocket client: each is a cursor into the log and a loop that moves it.

Stored events are JSON already; a frame is made by joining them, once for all clients at the same cursor. A loop holds
one batch at a time, and the batches of all loops of a client together are bounded, so a slow client costs little and
loses nothing. `caught_up` is sent once, after everything that was stored when the client subscribed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...log.contract import EventLog
from ...log.entries import Entry
from ...log.errors import LogError
from ...log.follow import Follower
from ..errors import explain
from ..frame_cache import FrameCache
from .sockets import Socket, frame

BATCH_COUNT = 1000
BATCH_BYTES = 192 << 10
"""What one message of events holds at most, but for one event of any size: many clients refuse messages of 1 MiB."""

_encode = msgspec.json.Encoder().encode


class Form(msgspec.Struct, frozen=True):
    """How a consumer wants events: many to a message or one, with the verbatim updates they came from or without."""

    batch: bool = True
    source: bool = False

    def encode(self, session_id: str, entries: Sequence[Entry], cache: FrameCache) -> bytes:
        """The frames of a batch, encoded once for all clients that want it in this form."""
        key = (self, session_id, entries[0].position, entries[-1].position)
        frames: bytes | None = cache.get(key)
        if frames is None:
            if self.batch:
                frames = frame(events_message(session_id, entries, source=self.source))
            else:
                frames = b"".join([frame(_event_message(entry, self.source)) for entry in entries])
            cache.put(key, frames, len(frames))
        return frames


def events_message(session_id: str, entries: Sequence[Entry], *, source: bool = False) -> bytes:
    """Many events as one message; without a session they are of any, and the position is their cursor."""
    last = entries[-1]
    bodies = [_body(entry) for entry in entries] if source else [entry.data for entry in entries]
    head = b'"position":%d' % last.position
    if session_id:
        head = b'"sessionId":%b,"seq":%d' % (_encode(session_id), last.seq)
    return b'{"type":"events",%b,"events":[%b]}' % (head, b",".join(bodies))


def _event_message(entry: Entry, source: bool) -> bytes:
    body = _body(entry) if source else entry.data
    return b'{"type":"event","position":%d,"event":%b}' % (entry.position, body)


def _body(entry: Entry) -> bytes:
    if entry.source is None:
        return entry.data
    return entry.data[:-1] + b',"source":' + (entry.source or b"null") + b"}"


class Outlet:
    """A socket that several tasks write to, one message at a time, each waiting for room before the next one writes."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._turn = asyncio.Lock()

    async def write(self, frames: bytes, written: Callable[[], None] | None = None) -> None:
        """`written` is called when they have been handed over, whether or not they are taken then.

        Raises Disconnected, Stalled.
        """
        async with self._turn:
            self._socket.write(frames)
            if written is not None:
                written()
            await self._socket.drain()

    async def say(self, kind: str, **fields: Any) -> None:
        """Send a message of a type; fields that are None are left out. Raises Disconnected, Stalled."""
        message = {"type": kind, **{name: value for name, value in fields.items() if value is not None}}
        await self.write(frame(_encode(message)))


ALL = ""
LEAST_BYTES = 16 << 10


class Subscription:
    """One session, or all of them, from a cursor on."""

    def __init__(self, session_id: str, follower: Follower, end: int, form: Form, pause: float = 0.0) -> None:
        self.session_id = session_id
        self.follower = follower
        self.cursor = follower.cursor
        """Up to where it was written; the follower may hold a batch that waits for its turn."""
        self._end = end
        self._form = form
        self._pause = pause
        """Seconds between two live batches, at least."""

    async def run(self, outlet: Outlet, cache: FrameCache, size: Callable[[], int]) -> None:
        """Send what there is, then what comes. Raises LogError, Disconnected, Stalled."""
        follower, session_id, form = self.follower, self.session_id, self._form
        if follower.cursor >= self._end:
            await self._tell(outlet)
        while True:
            was_behind = follower.cursor < self._end
            batch = await follower.next(count=BATCH_COUNT, size=size())
            await outlet.write(form.encode(session_id, batch, cache), self._written)
            if was_behind and follower.cursor >= self._end:
                await self._tell(outlet)
            if self._pause and not was_behind and len(batch) < BATCH_COUNT:
                await asyncio.sleep(self._pause)

    def _written(self) -> None:
        self.cursor = self.follower.cursor

    async def _tell(self, outlet: Outlet) -> None:
        cursor = self.follower.cursor
        if self.session_id == ALL:
            await outlet.say("caught_up", position=cursor)
        else:
            await outlet.say("caught_up", sessionId=self.session_id, seq=cursor)


class Subscriptions:
    """All subscriptions of one consumer; at most one of each session, or one of all sessions.

    `spawn` runs a loop as a task that belongs to the consumer.
    """

    def __init__(self, log: EventLog, outlet: Outlet, cache: FrameCache, tasks: asyncio.TaskGroup) -> None:
        self._log = log
        self._outlet = outlet
        self._cache = cache
        self._tasks = tasks
        self._open: dict[str, tuple[Subscription, asyncio.Task[None]]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._open

    async def add(
        self, session_id: str, after: int, form: Form, request_id: str | int | None = None, pause: float = 0.0
    ) -> None:
        """Follow a session (or all) from a cursor on, in place of what was followed of it. Raises UnknownSession."""
        log = self._log
        last = await (log.last_position() if session_id == ALL else log.last_seq(session_id))
        reset = after > last
        start = 0 if reset else after
        follower = log.follow_all(start) if session_id == ALL else log.follow(session_id, start)
        await self.remove(session_id)
        for other in [*self._open] if session_id == ALL else [ALL]:
            await self.remove(other)
        place = {"position": last} if session_id == ALL else {"sessionId": session_id, "seq": last}
        why = (
            f"the cursor {after} is beyond the end, {last}: it is of another log; all is sent again" if reset else None
        )
        resume = "reset" if reset else "ok"
        await self._outlet.say("subscribed", requestId=request_id, **place, after=start, resume=resume, reason=why)
        subscription = Subscription(session_id, follower, last, form, pause)
        self._open[session_id] = subscription, self._tasks.create_task(self._run(subscription))

    async def remove(self, session_id: str) -> bool:
        """Follow it no longer; whether it was followed."""
        found = self._open.pop(session_id, None)
        if found is None:
            return False
        found[1].cancel()
        await asyncio.wait((found[1],))
        return True

    async def clear(self) -> None:
        for session_id in list(self._open):
            await self.remove(session_id)

    def cursors(self) -> int | dict[str, int]:
        """Where each stands, as `after` of a later subscription takes it."""
        found = {session_id: subscription.cursor for session_id, (subscription, _) in self._open.items()}
        return found.get(ALL, found)

    def _size(self) -> int:
        return max(LEAST_BYTES, BATCH_BYTES // max(1, len(self._open)))

    async def _run(self, subscription: Subscription) -> None:
        try:
            await subscription.run(self._outlet, self._cache, self._size)
        except LogError as exc:
            self._open.pop(subscription.session_id, None)
            _, error = explain(exc)
            await self._outlet.say("unsubscribed", sessionId=subscription.session_id or None, error=error)
