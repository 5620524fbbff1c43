"""What the WebSockets of a hub share: frames of events, made once for all who stand at the same cursor.

Stored events are JSON already; a frame is made by joining them. Consumers that keep up ask for the same frame in the
same turn of the loop, so the few that were made last are all that is kept.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ..log.entries import Entry
from .sockets import Socket, frame

__all__ = ["BATCH_BYTES", "BATCH_COUNT", "Form", "Frames", "Outlet", "events_message"]

BATCH_COUNT = 1000
BATCH_BYTES = 192 << 10
"""What one message of events holds at most, but for one event of any size: many clients refuse messages of 1 MiB."""
KEPT_BYTES = 4 << 20
KEPT = 64

_encode = msgspec.json.Encoder().encode


class Frames:
    """The last frames that were made, by what is in them."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[Form, str, int, int], bytes] = OrderedDict()
        self._size = 0
        self.made = 0
        self.shared = 0

    def of(self, form: Form, session_id: str, entries: Sequence[Entry]) -> bytes:
        """The frames of a batch in a form, made only when nobody has asked for the same before."""
        key = (form, session_id, entries[0].position, entries[-1].position)
        known = self._made.get(key)
        if known is not None:
            self.shared += 1
            return known
        self.made += 1
        made = self._made[key] = form.make(session_id, entries)
        self._size += len(made)
        while self._size > KEPT_BYTES or len(self._made) > KEPT:
            _, dropped = self._made.popitem(last=False)
            self._size -= len(dropped)
        return made


class Form(msgspec.Struct, frozen=True):
    """How a consumer wants events: many to a message or one, with the verbatim updates they came from or without."""

    batch: bool = True
    source: bool = False

    def make(self, session_id: str, entries: Sequence[Entry]) -> bytes:
        if self.batch:
            return frame(events_message(session_id, entries, source=self.source))
        return b"".join([frame(_event_message(entry, self.source)) for entry in entries])


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
