"""HTTP as no polite client speaks it: too large, too slow, ambiguous, or no HTTP at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from pilothouse.hub.hub import Hub
from pilothouse.server.app import application
from pilothouse.server.http.protocols import Seldom
from pilothouse.server.limits import Limits
from pilothouse.server.listener import Listener, tcp_socket
from pilothouse.server.state import Server
from pilothouse.server.ws import sockets
from tests.support.attacks import AUTHORIZED, SCOPED, Attempts, Clock, paired, raw, state, status_of, target, until
from tests.support.http_client import PATIENCE, Client
from tests.support.servers import TOKEN, Served, serving


async def test_a_body_that_is_too_large_is_refused(served: Served, attempts: Attempts) -> None:
    answer = await served.client.request("POST", "/sessions", {"agent": "x" * 20_001, "cwd": "/"})
    attempts.refused(answer, 413)
    announced = (
        f"POST /sessions HTTP/1.1\r\n{AUTHORIZED}Content-Type: application/json\r\nContent-Length: {1 << 40}\r\n\r\n"
    )
    attempts.refused(status_of(await raw(served.port, announced.encode())), 413)
    chunked = (
        f"POST /sessions HTTP/1.1\r\n{AUTHORIZED}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    pieces = (b"1000\r\n" + b"x" * 0x1000 + b"\r\n") * 8
    attempts.refused(status_of(await raw(served.port, chunked.encode() + pieces)), 413)
    strangers = await Client(served.port).request("POST", "/pair", {"ticket": "x" * 5000, "code": "1"})
    attempts.refused(strangers, 413)


async def test_a_deep_or_odd_body_is_refused(served: Served, attempts: Attempts) -> None:
    for body in (
        b"[" * 10_000,
        b'{"a":' * 3000,
        b"\xff\xfe",
        b'{"agent":"\\ud800"}',
        b"NaN",
        b'{"__proto__":1}',
        b"1e999",
    ):
        answer = await served.client.request(
            "POST", "/sessions", body=body, headers={"Content-Type": "application/json"}
        )
        attempts.refused(answer, 400, 422)


async def test_headers_that_do_not_arrive_in_time_end_the_connection(served: Served, attempts: Attempts) -> None:
    for start in (b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "):
        answer = await raw(served.port, start)
        attempts.refused(status_of(answer) if answer else 408, 408)


async def test_headers_that_trickle_do_not_buy_time(served: Served, attempts: Attempts) -> None:
    async def trickle() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            reading = asyncio.ensure_future(reader.read())
            with contextlib.suppress(ConnectionError):
                while not reading.done():
                    writer.write(b"X-A: b\r\n")
                    await asyncio.sleep(0.02)
            try:
                attempts.refused(status_of(await reading), 408)
            except ConnectionError:  # closed while this was still sending, which can take the answer with it
                attempts.refused(408)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(trickle() for _ in range(20)))
        assert (await served.client.request("GET", "/agents")).status == 200


async def test_a_second_request_must_arrive_in_time_as_well(served: Served, attempts: Attempts) -> None:
    whole = f"GET /agents HTTP/1.1\r\n{AUTHORIZED}\r\n".encode()
    answer = await raw(served.port, whole + b"GET /agents HTTP/1.1\r\nHost: ")
    assert answer.startswith(b"HTTP/1.1 200")
    attempts.refused(408 if b"HTTP/1.1 408" in answer or answer.count(b"HTTP/1.1") == 1 else 200, 408)


async def test_a_body_that_nobody_waits_for_does_not_keep_a_connection(served: Served, attempts: Attempts) -> None:
    head = f"GET /agents HTTP/1.1\r\n{AUTHORIZED}Content-Length: 1000\r\n\r\n"
    answer = await raw(served.port, head.encode() + b"x")
    assert answer.startswith(b"HTTP/1.1 200")
    attempts.refused(408)


async def test_connections_that_ask_nothing_make_room_for_those_that_do(tmp_path: Path, attempts: Attempts) -> None:
    async with serving(tmp_path, limits=Limits(headers=60, sockets=10)) as served:
        idle = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(30)]
        try:
            assert (await served.client.request("GET", "/agents")).status == 200
            async with asyncio.timeout(PATIENCE):
                for reader, _ in idle[:20]:
                    with contextlib.suppress(ConnectionError):
                        assert await reader.read() == b""
                    attempts.refused(408)
        finally:
            for _, writer in idle:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()


async def test_connections_that_asked_once_and_are_kept_make_room_too(tmp_path: Path, attempts: Attempts) -> None:
    async with serving(tmp_path, limits=Limits(headers=60, sockets=10)) as served:
        kept = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(10)]
        try:
            for reader, writer in kept:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert b"200" in await reader.readuntil(b"}")
            assert (await served.client.request("GET", "/agents")).status == 200
            attempts.refused(408)
            kept[1][1].write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")  # only the first had to go
            assert b"200" in await kept[1][0].readuntil(b"}")
        finally:
            for _, writer in kept:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()


async def test_connections_of_every_kind_are_counted_while_they_last(tmp_path: Path) -> None:
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        port = bound.getsockname()[1]
        async with Listener(application(server), [bound], server.limits) as listener:
            client = Client(port, token=TOKEN)
            async with client.stream("GET", "/events"), connect(f"ws://127.0.0.1:{port}/ws"):
                assert listener.crowd.count == 2
            await raw(port, b"nonsense\r\n\r\n")
            handshake = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
            assert status_of(await raw(port, handshake)) >= 400
            await until(lambda: listener.crowd.count == 0)


async def test_an_idle_connection_may_be_used_again_but_half_a_request_has_its_time(tmp_path: Path) -> None:
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        async with Listener(application(server), [bound], server.limits) as listener:
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            (connection,) = await connections_of(listener)
            assert connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert connection._deadline is not None
            for rest, has_deadline in ((b"", False), (b"", False), (b"GET /hea", True)):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + rest)
                await reader.readuntil(b"}")
                await until(lambda: not connection._is_answering())
                assert (connection._deadline is not None) is has_deadline
            writer.write(b"lthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"}")
            await until(lambda: connection._deadline is None)
            writer.write(f"GET /events HTTP/1.1\r\n{AUTHORIZED}\r\nGET /hea".encode())
            await until(lambda: len(server.connections) == 1)
            connection._too_late()  # a stream goes on, whatever follows it
            assert not connection.transport.is_closing()
            writer.close()


@contextlib.contextmanager
def unread(port: int) -> Iterator[socket.socket]:
    """A connection with hardly any room for answers, which nobody reads."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", port))
        connection.setblocking(False)
        yield connection


async def test_who_asks_much_and_reads_nothing_of_it_does_not_keep_a_connection(
    tmp_path: Path, attempts: Attempts
) -> None:
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN, limits=Limits(stall=0.3))
        bound = tcp_socket("127.0.0.1", 0)
        async with Listener(application(server), [bound], server.limits) as listener:
            with unread(bound.getsockname()[1]) as connection:
                asking = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100_000
                with contextlib.suppress(ConnectionError):
                    await asyncio.get_running_loop().sock_sendall(connection, asking)
                await until(lambda: listener.crowd.count == 0)
            attempts.refused(408)


UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


async def test_pings_and_pieces_of_nothing_do_not_add_up(tmp_path: Path, attempts: Attempts) -> None:
    loop = asyncio.get_running_loop()
    ping = b"\x89\xfd\0\0\0\0" + b"x" * 125
    first, nothing, piece = b"\x01\x80\0\0\0\0", b"\x00\x80\0\0\0\0", b"\x00\x81\0\0\0\0!"
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        async with Listener(application(server), [bound], server.limits) as listener:
            with unread(bound.getsockname()[1]) as connection:
                await loop.sock_sendall(connection, UPGRADE)
                assert b"101" in await loop.sock_recv(connection, 100)
                (one,) = current(listener)
                await loop.sock_sendall(connection, ping * 50_000 + first + nothing * 50_000 + piece)
                await until(lambda: [bytes(part) for part in one.frames] == [b"!"])
                assert not one.writable.is_set()
                assert one.transport.get_write_buffer_size() < 1 << 20
            attempts.refused(429)


@pytest.mark.parametrize(
    "last",
    [b"\x88\x82\0\0\0\0\x03\xe8", b"\x83\x80\0\0\0\0", b"\x81\x81\0\0\0\0\xff"],
    ids=["a close", "no frame", "no text"],
)
async def test_who_ends_a_websocket_and_reads_nothing_does_not_keep_it(
    tmp_path: Path, attempts: Attempts, monkeypatch: pytest.MonkeyPatch, last: bytes
) -> None:
    monkeypatch.setattr(sockets, "CLOSE_TIMEOUT", 0.2)
    loop = asyncio.get_running_loop()
    ping = b"\x89\xfd\0\0\0\0" + b"x" * 125
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        async with Listener(application(server), [bound], server.limits) as listener:
            with unread(bound.getsockname()[1]) as connection:
                await loop.sock_sendall(connection, UPGRADE)
                assert b"101" in await loop.sock_recv(connection, 100)
                (one,) = current(listener)
                await loop.sock_sendall(connection, ping * 50_000 + last)
                await until(lambda: one.transport.is_closing())
                assert one.transport.get_write_buffer_size()
                await until(lambda: listener.crowd.count == 0)
            attempts.refused(408)


async def test_text_that_is_none_ends_a_websocket_and_fills_no_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("/ws", "/acp"):
        for pieces in (b"\x81\x81\0\0\0\0\xff", b"\x01\x81\0\0\0\0\xc3\x80\x81\0\0\0\0!"):
            async with connect(f"ws://127.0.0.1:{served.port}{path}") as lane:
                lane.transport.write(pieces)
                await lane.wait_closed()
            assert (lane.close_code, lane.close_reason) == (1007, "text messages are UTF-8")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_message_may_come_in_pieces(served: Served) -> None:
    async with connect(f"ws://127.0.0.1:{served.port}/ws") as lane:
        await lane.send(iter(json.dumps({"type": "authenticate", "token": TOKEN})))
        assert json.loads(await lane.recv())["type"] == "authenticated"
        await lane.send(iter([b'{"type"', b':"ping"}']))
        while (answer := json.loads(await lane.recv()))["type"] != "error":
            pass
        assert "binary" in answer["error"]["message"]


def current(listener: Listener) -> list[Any]:
    return list(listener._server.server_state.connections)


async def connections_of(listener: Listener) -> list[Any]:
    await until(lambda: listener.crowd.count > 0)
    return current(listener)


async def test_one_address_beyond_this_machine_has_only_so_many_connections(attempts: Attempts) -> None:
    from pilothouse.server.http.protocols import Crowd, HttpProtocol

    crowd = Crowd(Limits(per_address=3, sockets=100))
    connection: Any = HttpProtocol.__new__(HttpProtocol)
    assert [crowd.enter(connection, "203.0.113.9") for _ in range(3)] == [True] * 3
    assert not crowd.enter(connection, "203.0.113.9")
    attempts.refused(429)
    assert crowd.enter(connection, "198.51.100.7")
    assert all(crowd.enter(connection, "127.0.0.1") for _ in range(10))
    assert all(crowd.enter(connection, None) for _ in range(10))
    crowd.leave("203.0.113.9")
    assert crowd.enter(connection, "203.0.113.9")


@pytest.mark.parametrize(
    "head",
    [
        "GET /agents HTTP/1.1\r\n{auth}X: " + "a" * 70_000,
        "GET /agents HTTP/1.1\r\n{auth}" + "\r\n".join(f"X-{number}: a" for number in range(2500)),
        "GET /" + "a" * 70_000 + " HTTP/1.1\r\n{auth}X: y",
        "GET /agents HTTP/1.1\r\n{auth}" + "a" * 70_000 + ": x",
    ],
)
async def test_a_head_that_is_too_large_is_refused(served: Served, attempts: Attempts, head: str) -> None:
    data = head.replace("{auth}", AUTHORIZED).encode() + b"\r\nConnection: close\r\n\r\n"
    attempts.refused(status_of(await raw(served.port, data)), 400, 431)


async def test_a_head_that_never_ends_is_cut_off(served: Served, attempts: Attempts) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    sent = 0
    try:
        writer.write(b"GET /agents HTTP/1.1\r\nX: ")
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"a" * 8192)
                    sent += 8192
                    await writer.drain()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1000), 0.001)
        assert sent < 50_000_000
        attempts.refused(431)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


BODY = '{"agent":"demo","cwd":"/"}'


SMUGGLED = "GET /agents HTTP/1.1\r\n" + AUTHORIZED + "\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: -5",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked, chunked\r\nContent-Length: 5",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\n folded: yes",
        "Content-Length : 5",
        "X: a\nContent-Length: 5",
        "X: a\rb",
        "X: a\0b",
        "X y: z",
        ": no name",
    ],
)
async def test_a_request_that_two_servers_could_read_in_two_ways_is_refused(
    served: Served, attempts: Attempts, lines: str
) -> None:
    before = await state(served.hub)
    head = f"POST /sessions HTTP/1.1\r\n{AUTHORIZED}Content-Type: application/json\r\n{lines}\r\n\r\n"
    answer = await raw(served.port, (head + f"0\r\n\r\n{SMUGGLED}").encode())
    attempts.refused(status_of(answer), 400)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert await state(served.hub) == before


async def test_what_comes_behind_a_body_is_no_header(served: Served, attempts: Attempts) -> None:
    head = "POST /login-links HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    trailer = f"0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    attempts.refused(status_of(await raw(served.port, (head + trailer).encode())), 401)


async def test_bytes_that_are_no_http_are_refused(served: Served, attempts: Attempts) -> None:
    hello = bytes.fromhex("16030100a5010000a10303") + b"x" * 160
    for data in (hello, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        attempts.refused(status_of(await raw(served.port, data)), 400, 408, 421)


async def test_an_upgrade_to_something_else_is_no_way_around(served: Served, attempts: Attempts) -> None:
    for kind in ("h2c", "TLS/1.0", "websocket2", "foo, websocket"):
        head = f"GET /agents HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: {kind}\r\n\r\n"
        answer = await raw(served.port, (head + head).encode(), until_closed=False)
        attempts.refused(status_of(answer), 400, 401)


async def test_no_header_changes_the_method_the_path_or_where_one_comes_from(
    served: Served, attempts: Attempts, project: Path
) -> None:
    session = await served.hub.start_session("demo", project)
    before = await state(served.hub)
    path = f"/sessions/{session.id}"
    for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        assert (await served.client.request("GET", path, headers={name: "DELETE"})).status == 200
        _, device = await paired(served.client, "prompt", name=name)
        attempts.refused(await device.request("POST", f"{path}?_method=DELETE", {}, headers={name: "DELETE"}), 405)
        before = await state(served.hub)
    for name, value in (
        *(("X-Original-URL", "/healthz"), ("X-Rewrite-URL", "/healthz"), ("X-Forwarded-For", "127.0.0.1")),
        *(("Forwarded", "for=127.0.0.1;host=localhost"), ("X-Forwarded-Host", "localhost"), ("X-Real-IP", "::1")),
        *(("X-Forwarded-User", "local"), ("Remote-User", "local"), ("X-Forwarded-Prefix", "/healthz")),
    ):
        attempts.refused(await Client(served.port).request("GET", "/sessions", headers={name: value}), 401)
    assert await state(served.hub) == before


async def test_head_and_options_tell_a_stranger_nothing_and_start_nothing(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    for operation in SCOPED:
        path = target(operation.path)
        attempts.refused(await nobody.request("OPTIONS", path), 405)
        for method in ("TRACE", "PROPFIND", "SEARCH"):
            attempts.refused(await nobody.request(method, path), 400, 405)
        if operation.method == "GET":
            async with nobody.stream("HEAD", path) as answer:
                attempts.refused(answer.status, 401)
    async with served.client.stream("HEAD", "/events") as answer:
        assert answer.status == 200
        await until(lambda: len(served.server.connections) == 0)


async def test_every_answer_has_the_headers_that_keep_it_harmless(served: Served, nobody: Client) -> None:
    answers = [
        await nobody.request("GET", "/healthz"),
        await nobody.request("GET", "/sessions"),
        await nobody.request("GET", "/nothing"),
        await nobody.request("GET", "/healthz", headers={"Host": "evil.example"}),
        await served.client.request("GET", "/sessions"),
        await served.client.request("POST", "/sessions", {}),
        await served.client.request("GET", "/openapi.json"),
    ]
    page = await nobody.request("GET", "/")
    for answer in (*answers, page):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == ("no-cache" if answer is page else "no-store")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
    assert b"x-content-type-options: nosniff" in await raw(served.port, b"nonsense\r\n\r\n")


async def test_nonsense_fills_no_log(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        assert status_of(await raw(served.port, b"\x16\x03\x01 nonsense\r\n\r\n")) == 400
    lines = [record for record in caplog.records if "Invalid HTTP request" in record.getMessage()]
    assert len(lines) <= 1


def test_what_is_said_seldom_is_said_with_how_often_it_was() -> None:
    clock = Clock()
    seldom = Seldom(every=60, clock=clock)

    def said(text: str, level: int = logging.WARNING) -> str | None:
        record = logging.LogRecord("x", level, "", 0, text, (), None)
        return record.getMessage() if seldom.filter(record) else None

    assert [said("odd"), said("odd"), said("odd"), said("else")] == ["odd", None, None, "else"]
    assert [said("bad", logging.ERROR), said("bad", logging.ERROR)] == ["bad", "bad"]
    clock.now += 61
    assert [said("odd"), said("odd")] == ["odd (2 more since the last of these lines)", None]


async def test_plain_http_where_a_websocket_is_is_told_so(served: Served) -> None:
    for path in ("/ws", "/acp"):
        answer = await served.client.request("GET", path)
        assert (answer.status, answer.json()["error"]["code"]) == (426, "upgrade_required")
        assert answer.headers["upgrade"] == "websocket"
        assert (await served.client.request("POST", path)).status == 405
