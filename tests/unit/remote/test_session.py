"""A client against a server that answers as it is told: streams that break go on, and nothing is seen twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.remote.errors import Conflict, ConnectionLost, NoHub, NotFound, Refused
from pilothouse.remote.http import Address, Client, address_of_url
from pilothouse.remote.hub import RemoteHub, connect
from pilothouse.remote.session import RemoteSession


class Fake:
    """A server on a socket of the file system. `asked` is what came; `answers` are used up one by one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.answers: list[bytes | None] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()
        self.path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append((lines[0], headers, json.loads(body) if body else None))
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            writer.write(answer)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    @property
    def client(self) -> Client:
        return Client(Address(socket=str(self.path)), name="tester")

    @property
    def session(self) -> RemoteSession:
        return RemoteSession(self.client, "ses_1")


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[Fake]:
    server = Fake(tmp_path / "s")
    await server.start()
    yield server
    await server.stop()


def reply(status: int, value: Any = None) -> bytes:
    body = json.dumps(value).encode() if value is not None else b""
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def error(status: int, code: str, message: str, **details: Any) -> bytes:
    return reply(status, {"error": {"code": code, "message": message, "recoverable": True, "details": details}})


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def stream(*seqs: int, ended: bool = False, torn: bytes = b"") -> bytes:
    frames = [chunk(f'id: {seq}\ndata: {{"seq":{seq}}}\n\n'.encode()) for seq in seqs]
    end = b"0\r\n\r\n" if ended else b""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(frames) + (chunk(torn) if torn else b"") + end


async def test_a_request_gives_its_json_and_names_its_sender(fake: Fake) -> None:
    fake.answers = [reply(200, {"sessions": [{"id": "ses_1"}]})]
    assert await RemoteHub(fake.client).sessions(limit=5, status=None, archived=True) == [{"id": "ses_1"}]
    line, headers, _ = fake.asked[0]
    assert line == "GET /sessions?limit=5&archived=true HTTP/1.1"
    assert (headers["pilothouse-client"], headers["host"], "authorization" in headers) == ("tester", "localhost", False)


@pytest.mark.parametrize(("status", "kind"), [(404, NotFound), (409, Conflict), (422, Refused), (500, Refused)])
async def test_an_error_of_the_hub_is_raised_as_what_it_is(fake: Fake, status: int, kind: type[Refused]) -> None:
    fake.answers = [error(status, "some_code", "this is why", field="x")]
    with pytest.raises(kind, match="this is why") as caught:
        await fake.session.snapshot()
    assert (caught.value.status, caught.value.code, caught.value.details) == (status, "some_code", {"field": "x"})


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"error": 1}', b""])
async def test_an_error_in_a_foreign_shape_is_told_by_its_status(fake: Fake, body: bytes) -> None:
    fake.answers = [f"HTTP/1.1 502 X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body]
    with pytest.raises(Refused, match="the hub answered 502"):
        await fake.session.snapshot()


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b"SSH-2.0\r\n\r\n"])
async def test_an_answer_that_breaks_off_is_a_lost_connection(fake: Fake, answer: bytes | None) -> None:
    fake.answers = [answer]
    with pytest.raises(ConnectionLost):
        await fake.session.snapshot()


async def test_nobody_there_is_no_hub(tmp_path: Path) -> None:
    with pytest.raises(NoHub):
        await Client(Address(socket=str(tmp_path / "none"))).request("GET", "/")
    (tmp_path / "file").touch()
    with pytest.raises(NoHub):
        await Client(Address(socket=str(tmp_path / "file"))).request("GET", "/")
    with pytest.raises(NoHub):
        async with connect(tmp_path):
            pass


async def test_a_stream_that_breaks_goes_on_from_its_cursor(fake: Fake) -> None:
    # broken in the middle of event 3; the next one repeats an event, and says goodbye; the hub goes on after that
    fake.answers = [stream(1, 2, torn=b'id: 3\ndata: {"se'), stream(2, 3, ended=True), stream(4)]
    seen: list[int] = []
    async with asyncio.timeout(10):
        async for batch in fake.session.follow(0):
            seen += [stored.seq for stored in batch]
            if 4 in seen:
                break
    assert seen == [1, 2, 3, 4]
    assert [line.split()[1] for line, _, _ in fake.asked] == [
        f"/sessions/ses_1/events?after={after}" for after in (0, 2, 3)
    ]


async def test_a_hub_that_comes_back_in_time_is_waited_for(fake: Fake) -> None:
    fake.answers = [stream(1)]
    batches = fake.session.follow(0, patience=10)
    async with asyncio.timeout(10):
        assert [stored.seq for stored in await anext(batches)] == [1]
        await fake.stop()
        coming = asyncio.ensure_future(anext(batches))
        await asyncio.wait((coming,), timeout=0.2)
        assert not coming.done()
        fake.answers = [stream(2)]
        await fake.start()
        assert [stored.seq for stored in await coming] == [2]
    await batches.aclose()


async def test_a_hub_that_stays_away_is_lost_with_the_cursor(fake: Fake) -> None:
    fake.answers = [stream(5)]
    batches = fake.session.follow(4, patience=0.1)
    await anext(batches)
    await fake.stop()
    with pytest.raises(ConnectionLost) as caught:
        async with asyncio.timeout(10):
            await anext(batches)
    assert caught.value.cursor == 5
    await fake.start()


async def test_a_hub_that_said_goodbye_is_not_waited_for(fake: Fake) -> None:
    fake.answers = [stream(1, ended=True)]
    batches = fake.session.follow(0, patience=3600)
    await anext(batches)
    await fake.stop()
    with pytest.raises(ConnectionLost):
        async with asyncio.timeout(10):
            await anext(batches)
    await fake.start()


async def test_a_refusal_ends_a_stream_but_a_closing_hub_does_not(fake: Fake) -> None:
    fake.answers = [error(503, "closing", "the hub is closing"), stream(1), error(404, "unknown_session", "it is gone")]
    batches = fake.session.follow(0)
    async with asyncio.timeout(10):
        assert [stored.seq for stored in await anext(batches)] == [1]
        with pytest.raises(NotFound, match="it is gone"):
            await anext(batches)


async def test_a_decision_is_sent_as_it_was_meant(fake: Fake) -> None:
    fake.answers = [reply(200, {})] * 5
    session = fake.session
    await session.decide("apr_1", approved=True, remember="project")
    await session.decide("apr_1", approved=False, reason="no", by="--approve-reads")
    await session.decide("apr/1?", option_id="x")
    await session.decide("apr_1", approved=True, answers={"call:0": "red", "call:1": ["a", "b"]})
    await RemoteHub(fake.client).decide("apr_1", approved=True, remember="session", rule="any_arguments")
    assert [body for _, _, body in fake.asked] == [
        {"decision": "allow", "remember": "project"},
        {"decision": "deny", "reason": "no"},
        {"optionId": "x"},
        {"decision": "allow", "answers": {"call:0": "red", "call:1": ["a", "b"]}},
        {"decision": "allow", "remember": "session", "rule": "any_arguments"},
    ]
    assert fake.asked[1][1]["pilothouse-client"] == "--approve-reads"
    assert fake.asked[2][0] == "POST /approvals/apr%2F1%3F HTTP/1.1"


def test_addresses_are_read_from_urls() -> None:
    address = address_of_url("https://hub.example/pilothouse/", "t")
    assert (address.host, address.port, address.tls, address.root) == ("hub.example", 443, True, "/pilothouse")
    assert address_of_url("http://[::1]:7717", None).authority == "[::1]:7717"
    for wrong in ("ftp://x", "hub.example", "http://"):
        with pytest.raises(ValueError, match="expected http"):
            address_of_url(wrong, None)
