"""Frames, compression, and the answer that carries them, against an ASGI server that does as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from pilothouse.server.http.sse import (
    SLICE,
    EventStream,
    Packer,
    event_frame,
    heartbeat,
    listening,
    packet_frames,
    wants_gzip,
    within,
)


def test_an_event_is_a_frame_with_its_number() -> None:
    assert event_frame(7, b'{"a":1}') == b'id: 7\ndata: {"a":1}\n\n'


def test_only_the_last_packet_of_an_event_has_the_number() -> None:
    assert packet_frames(7, [b"1"]) == b"event: message\ndata: 1\nid: 7\n\n"
    assert packet_frames(7, [b"1", b"2"]) == b"event: message\ndata: 1\n\nevent: message\ndata: 2\nid: 7\n\n"


def test_a_heartbeat_is_a_comment_that_may_move_the_cursor() -> None:
    assert heartbeat() == b": keep-alive\n\n"
    assert heartbeat(9) == b": keep-alive\nid: 9\n\n"


@pytest.mark.parametrize(
    ("accepted", "wanted"),
    [
        ("", False),
        ("gzip", True),
        ("br, gzip;q=0.1", True),
        ("X-GZIP", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("deflate, br", False),
        ("*", False),
        ("gzipped", False),
    ],
)
def test_gzip_is_wanted_by_name(accepted: str, wanted: bool) -> None:
    assert wants_gzip(accepted) is wanted


def test_each_packed_piece_can_be_read_at_once() -> None:
    packer, reader = Packer(), zlib.decompressobj(31)
    pieces = [b"one", b"two" * 1000, b"", b"three"]
    assert [reader.decompress(packer.pack(piece)) for piece in pieces] == pieces
    assert reader.decompress(packer.end()) == b""
    assert reader.eof


class Server:
    """The other side of an answer. Beyond `room` messages it takes none."""

    def __init__(self, room: int = 1000) -> None:
        self.room = room
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self.aborted = False
        self.closed: list[str] = []

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if len(self.sent) >= self.room:
            await asyncio.Event().wait()
        self.sent.append(message)

    def abort(self) -> None:
        self.aborted = True
        self.gone.set()

    def answer(self, *parts: bytes, stall: float = 10, endless: bool = False, gzip: bool = False) -> EventStream:
        async def generate() -> AsyncGenerator[bytes, None]:
            try:
                for part in parts:
                    yield part
                if endless:
                    await asyncio.Event().wait()
            finally:
                self.closed.append("parts")

        held = contextlib.ExitStack()
        held.callback(self.closed.append, "held")
        return EventStream(generate(), stall=stall, held=held, gzip=gzip)

    async def run(self, answer: EventStream) -> None:
        async with asyncio.timeout(10):
            await answer({"type": "http", "state": {"abort": self.abort}}, self.receive, self.send)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


async def test_an_answer_sends_its_parts_and_ends() -> None:
    server = Server()
    await server.run(server.answer(b"one", b"two"))
    start, *bodies = server.sent
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-type"].startswith(b"text/event-stream")
    assert server.body == b"onetwo"
    assert [message["more_body"] for message in bodies] == [True, True, False]
    assert sorted(server.closed) == ["held", "parts"]


async def test_a_large_part_goes_in_slices() -> None:
    server = Server()
    part = bytes(range(256)) * (SLICE // 100)
    await server.run(server.answer(part))
    assert server.body == part
    assert max(len(message.get("body", b"")) for message in server.sent) == SLICE


async def test_slices_are_whole_frames_where_that_is_possible() -> None:
    server = Server()
    frames = [b"data: %b\n\n" % (b"x" * size) for size in (10_000,) * 20 + (3 * SLICE, 5)]
    await server.run(server.answer(b"".join(frames)))
    assert server.body == b"".join(frames)
    slices = [message["body"] for message in server.sent[1:-1]]
    assert max(map(len, slices)) <= SLICE
    assert [part.endswith(b"\n\n") for part in slices] == [True] * 4 + [False] * 3 + [True]


async def test_a_packed_answer_says_so() -> None:
    server = Server()
    await server.run(server.answer(b"one", b"two", gzip=True))
    assert (b"content-encoding", b"gzip") in server.sent[0]["headers"]
    assert zlib.decompress(server.body, 31) == b"onetwo"


async def test_a_consumer_that_leaves_ends_the_answer_quietly() -> None:
    server = Server()
    running = asyncio.ensure_future(server.run(server.answer(b"one", endless=True)))
    while server.body != b"one":
        await asyncio.sleep(0)
    server.gone.set()
    await running
    assert sorted(server.closed) == ["held", "parts"]
    assert server.sent[-1]["more_body"]


async def test_a_consumer_that_leaves_while_it_is_sent_to_is_noticed_too() -> None:
    server = Server(room=1)
    running = asyncio.ensure_future(server.run(server.answer(b"one", endless=True)))
    while not server.sent:
        await asyncio.sleep(0)
    server.gone.set()
    await running
    assert sorted(server.closed) == ["held", "parts"]


async def test_a_consumer_that_takes_nothing_is_dropped() -> None:
    server = Server(room=2)
    await server.run(server.answer(b"one", b"two", stall=0.05, endless=True))
    assert server.body == b"one"
    assert server.aborted
    assert sorted(server.closed) == ["held", "parts"]


async def test_whoever_cuts_an_answer_ends_it_himself() -> None:
    server = Server()
    running = asyncio.ensure_future(server.run(server.answer(b"one", endless=True)))
    while server.body != b"one":
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(server.closed) == ["held", "parts"]


async def test_work_ends_when_nobody_listens_any_more() -> None:
    server = Server()

    async def wait() -> None:
        async with listening(server.receive):
            await asyncio.Event().wait()

    running = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    server.gone.set()
    with pytest.raises(ClientDisconnect):
        await running


# -- work that seldom waits ----------------------------------------------------------------------------------------


async def test_work_that_waits_in_steps_is_done_to_its_end() -> None:
    seen = []

    async def work() -> None:
        for step in range(3):
            seen.append(await asyncio.sleep(0.001 * step, step))

    await within(10, work())
    assert seen == [0, 1, 2]


async def test_work_that_waits_too_long_is_cancelled() -> None:
    seen = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with pytest.raises(TimeoutError):
        await within(0.01, work())
    assert seen == ["cancelled"]
    await asyncio.sleep(0)  # nothing of it is left: this would be cancelled


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_what_work_raises_is_raised_whether_it_has_waited_or_not(steps: int) -> None:
    async def work() -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        await within(10, work())


async def test_work_whose_task_is_cancelled_may_take_leave_first() -> None:
    seen = []

    async def work() -> None:
        seen.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.001)
            seen.append("left")

    task = asyncio.create_task(within(10, work()))
    while not seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["begun", "left"]
