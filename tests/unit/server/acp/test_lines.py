"""ACP as lines on a socket: what is written together, what is shared, and who is let go."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.acp.errors import ConnectionClosed
from pilothouse.server.acp.lines import HIGH_WATER, LineLink, LineListener
from pilothouse.server.acp.update_frames import Run
from pilothouse.server.limits import Limits
from pilothouse.server.listener import local_socket
from tests.support.servers import serving


@pytest.fixture
async def ends() -> AsyncIterator[tuple[LineLink, socket.socket]]:
    """A link, and the other end of its stream, which reads only when it is told to."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    link = LineLink(reader, writer, stall=0.1)
    link.start(lambda lines: None, lambda error: None)
    yield link, theirs
    theirs.close()
    await link.close()


async def received(theirs: socket.socket, size: int) -> bytes:
    data = b""
    async with asyncio.timeout(10):
        while len(data) < size:
            data += await asyncio.get_running_loop().sock_recv(theirs, 1 << 20)
    return data


async def test_lines_and_runs_arrive_in_the_order_in_which_they_were_sent(ends: tuple[LineLink, socket.socket]) -> None:
    link, theirs = ends
    link.send(b"1\n")
    link.send(b"2\n")
    link.send_run(Run([b"3\n", b"4\n"]))
    link.send(b"5\n")
    assert await received(theirs, 10) == b"1\n2\n3\n4\n5\n"


def test_the_bytes_of_a_run_are_the_same_for_all_consumers() -> None:
    run = Run([b"1\n", b"2\n"])
    assert run.joined() == b"1\n2\n"
    assert run.joined() is run.joined()
    assert run.framed(lambda line: b"<%b>" % line) == b"<1><2>"


async def test_a_consumer_that_takes_nothing_is_let_go_and_one_that_is_slow_is_not(
    ends: tuple[LineLink, socket.socket],
) -> None:
    link, theirs = ends
    data = b"x" * (4 * HIGH_WATER) + b"\n"
    link.send(data)
    draining = asyncio.create_task(link.drain())
    for _ in range(5):  # a little at a time, over more time than one may take nothing
        await received(theirs, 64 << 10)
        await asyncio.sleep(0.04)
        assert not draining.done() or not draining.exception()
    draining.cancel()
    await asyncio.wait((draining,))
    link.send(data)
    with pytest.raises(ConnectionClosed, match="took nothing"):
        async with asyncio.timeout(10):
            await link.drain()
    assert link.stalled
    with pytest.raises(ConnectionClosed):
        link.send(b"more\n")


async def test_one_connection_too_many_is_told_so(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(per_caller=1)) as served:
        path = tmp_path / "acp.sock"
        async with LineListener(served.server, local_socket(path)):
            one = await asyncio.open_unix_connection(str(path))
            one[1].write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
            assert b'"agentInfo"' in await one[0].readline()
            two = await asyncio.open_unix_connection(str(path))
            assert b"too many open streams" in await two[0].readline()
            assert await two[0].read() == b""
            for _, writer in (one, two):
                writer.close()
                await writer.wait_closed()


async def test_a_listener_that_closes_ends_its_connections(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        path = tmp_path / "acp.sock"
        async with LineListener(served.server, local_socket(path)):
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
            assert b'"agentInfo"' in await reader.readline()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        with pytest.raises(OSError, match=r"refused|No such"):
            await asyncio.open_unix_connection(str(path))


@pytest.mark.parametrize("is_late", [False, True], ids=["before its first step", "afterwards"])
async def test_who_connects_while_a_listener_closes_is_not_left_waiting(tmp_path: Path, is_late: bool) -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    async with serving(tmp_path) as served:
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        listener = LineListener(served.server, local_socket(tmp_path / "acp.sock"))
        async with listener:
            if not is_late:
                listener._accept(reader, writer)
        if is_late:
            listener._accept(reader, writer)
        with theirs:
            async with asyncio.timeout(10):
                assert await asyncio.get_running_loop().sock_recv(theirs, 100) == b""
