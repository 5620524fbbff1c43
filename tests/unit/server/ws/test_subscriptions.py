"""The parts of the WebSocket lane: frames, messages, and what is shared by consumers."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode

from pilothouse.log.entries import Entry
from pilothouse.model.errors import ValidationError
from pilothouse.server.errors import HttpError
from pilothouse.server.ws.messages import MESSAGES, CommandMessage, Subscribe, parse_message, request_id_of
from pilothouse.server.ws.sockets import frame
from pilothouse.server.ws.subscriptions import KEPT, KEPT_BYTES, Form, Frames, Outlet, Subscription, events_message


def entry(seq: int, source: bytes | None = None, *, size: int = 0) -> Entry:
    data = json.dumps({"type": "custom", "seq": seq, "sessionId": "s", "pad": "x" * size}).encode()
    return Entry("s", seq, seq + 100, "custom", data, source)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 200_000])
def test_a_frame_is_what_the_protocol_says(size: int) -> None:
    message = b"x" * size
    assert frame(message) == WireFrame(Opcode.TEXT, message).serialize(mask=False)


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


def test_every_message_is_read_by_its_type() -> None:
    assert isinstance(parse_message('{"type":"subscribe"}'), Subscribe)
    message = parse_message('{"type":"command","sessionId":"s","commandId":"c","command":{"command":"cancel"}}')
    assert isinstance(message, CommandMessage)
    assert message.command == {"command": "cancel"}
    cursors = parse_message('{"type":"subscribe","sessionIds":["a"],"after":{"a":7}}')
    assert isinstance(cursors, Subscribe)
    assert cursors.after == {"a": 7}


@pytest.mark.parametrize(
    ("text", "code", "names"),
    [
        ("{", "malformed", "no JSON"),
        ("[]", "malformed", "object"),
        ("null", "malformed", "object"),
        (b"\x00", "malformed", "binary"),
        ('{"type":"dance"}', "unknown_type", "dance"),
        ('{"type":7}', "unknown_type", "7"),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(text: Any, code: str, names: str) -> None:
    with pytest.raises(HttpError) as caught:
        parse_message(text)
    assert caught.value.record.code == code
    assert names in caught.value.record.message


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{}", "type"),
        ("[" * 5000, "message"),
        ("[" * 200 + "]" * 200, "message"),
        ('{"type":"subscribe","sessionId":"a"}', "sessionId"),
        ('{"type":"subscribe","after":-1}', "after"),
        ('{"type":"subscribe","after":"7"}', "after"),
        (json.dumps({"type": "subscribe", "sessionIds": ["a"] * 1001}), "sessionIds"),
        ('{"type":"history","sessionId":"a","limit":5000}', "limit"),
        ('{"type":"command","sessionId":"a","command":{}}', "commandId"),
        ('{"type":"authenticate"}', "token"),
    ],
)
def test_a_wrong_field_is_named(text: str, names: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parse_message(text)
    assert names in str(caught.value)


def test_an_error_can_name_the_request_that_could_not_be_read() -> None:
    assert request_id_of('{"type":"dance","requestId":5}') == 5
    assert request_id_of('{"requestId":["x"]}') is None
    assert request_id_of("{") is None
    assert request_id_of(b"x") is None


def test_the_page_names_every_message(request: pytest.FixtureRequest) -> None:
    page = (request.config.rootpath / "docs" / "reference" / "websocket.md").read_text()
    assert [kind for kind in MESSAGES if f"`{kind}" not in page] == []
