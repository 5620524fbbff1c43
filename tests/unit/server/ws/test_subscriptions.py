"""Subscriptions of the WebSocket stream: how events are joined, shared by clients and kept."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from pilothouse.log.entries import Entry
from pilothouse.server.ws.sockets import frame
from pilothouse.server.ws.subscriptions import KEPT, KEPT_BYTES, Form, Frames, Outlet, Subscription, events_message


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


def test_consumers_at_one_cursor_share_the_very_same_bytes() -> None:
    frames, entries = Frames(), [entry(1), entry(2)]
    first = frames.of(Form(), "s", entries)
    assert frames.of(Form(), "s", list(entries)) is first
    assert (frames.made, frames.shared) == (1, 1)
    others = [
        frames.of(Form(batch=False), "s", entries),
        frames.of(Form(source=True), "s", [entry(1, b"{}"), entry(2)]),
        frames.of(Form(), "", entries),
        frames.of(Form(), "s", entries[1:]),
    ]
    assert len({first, *others}) == 5
    assert frames.made == 5


def test_few_frames_are_kept_and_few_bytes() -> None:
    frames = Frames()
    for seq in range(1, 3 * KEPT):
        frames.of(Form(), "s", [entry(seq)])
    assert len(frames._made) == KEPT
    for seq in range(1000, 1020):
        frames.of(Form(), "s", [entry(seq, size=KEPT_BYTES // 4)])
    assert sum(map(len, frames._made.values())) == frames._size <= KEPT_BYTES


def test_without_batches_each_event_is_a_frame_of_its_own() -> None:
    made = Form(batch=False).make("s", [entry(1), entry(2)])
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
    outlet, frames, followers = Outlet(socket), Frames(), (Endless(), Endless())
    both: list[Any] = [Subscription(name, cast(Any, one), 9, Form()) for name, one in zip("ab", followers, strict=True)]
    tasks = [asyncio.ensure_future(one.run(outlet, frames, lambda: 1 << 20)) for one in both]
    while not all(one.cursor for one in followers):
        await asyncio.sleep(0)
    assert len(socket.written) == 1
    assert [one.cursor for one in both] == [1, 0]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
