"""Subscriptions of the WebSocket stream: how events are joined, shared by clients and kept."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from pilothouse.log.entries import Entry
from pilothouse.server.frame_cache import FrameCache
from pilothouse.server.ws.sockets import frame
from pilothouse.server.ws.subscriptions import Form, Outlet, Subscription, events_message


def entry(seq: int, source: bytes | None = None, *, size: int = 0) -> Entry:
    data = json.dumps({"type": "custom", "seq": seq, "sessionId": "s", "pad": "x" * size}).encode()
    return Entry("s", seq, seq + 100, "custom", data, source)


# -- subscriptions ----------------------------------------------------------------------------------------------------
def test_events_are_joined_as_they_are_stored() -> None:
    entries = [entry(1), entry(2, b'{"a":1}'), entry(3, b"")]
    message = json.loads(events_message("s", entries))
    assert message == {"type": "events", "sessionId": "s", "seq": 3, "events": [json.loads(e.data) for e in entries]}
    assert all(one.data in events_message("s", entries) for one in entries)
    of_all = json.loads(events_message("", entries))
    assert (of_all["position"], "sessionId" in of_all) == (103, False)
    sources = [event.get("source", "none") for event in json.loads(events_message("s", entries, source=True))["events"]]
    assert sources == ["none", {"a": 1}, None]


def test_clients_at_one_cursor_share_the_same_bytes() -> None:
    cache, entries = FrameCache(), [entry(1), entry(2)]
    first = Form().encode("s", entries, cache)
    assert Form().encode("s", list(entries), cache) is first
    others = [
        Form(batch=False).encode("s", entries, cache),
        Form(source=True).encode("s", [entry(1, b"{}"), entry(2)], cache),
        Form().encode("", entries, cache),
        Form().encode("s", entries[1:], cache),
    ]
    assert len({first, *others}) == 5


def test_without_batches_each_event_is_a_frame_of_its_own() -> None:
    made = Form(batch=False).encode("s", [entry(1), entry(2)], FrameCache())
    bodies = [b'{"type":"event","position":%d,"event":%b}' % (e.position, e.data) for e in (entry(1), entry(2))]
    assert made == frame(bodies[0]) + frame(bodies[1])


class Unread:
    """A socket of somebody who takes nothing."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, frames: bytes) -> None:
        self.written.append(frames)

    async def drain(self) -> None:
        await asyncio.Event().wait()


class Endless:
    """A follower with always one event more."""

    cursor = 0

    async def next(self, *, count: int, size: int) -> list[Entry]:
        self.cursor += 1
        return [entry(self.cursor)]


async def test_a_cursor_stands_before_what_was_never_written() -> None:
    socket: Any = Unread()
    outlet, cache, followers = Outlet(socket), FrameCache(), (Endless(), Endless())
    both: list[Any] = [Subscription(name, cast(Any, one), 9, Form()) for name, one in zip("ab", followers, strict=True)]
    tasks = [asyncio.ensure_future(one.run(outlet, cache, lambda: 1 << 20)) for one in both]
    while not all(one.cursor for one in followers):
        await asyncio.sleep(0)
    assert len(socket.written) == 1
    assert [one.cursor for one in both] == [1, 0]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
