"""The end of the server, and of connections that take nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from websockets.asyncio.client import connect

from pilothouse.server.limits import Limits
from pilothouse.server.listener import tcp_socket
from tests.support import servers
from tests.support.attacks import Attempts, bearer, paired, rest, routes, until
from tests.support.http_client import PATIENCE, Client
from tests.support.servers import Served, serving


async def test_the_server_ends_at_once_whoever_is_connected_and_without_noise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with contextlib.AsyncExitStack() as clients:
        async with serving(tmp_path, limits=Limits(headers=60)) as served:
            session = await served.hub.start_session("demo", tmp_path)
            streams = [
                await clients.enter_async_context(served.client.stream("GET", path))
                for path in (f"/sessions/{session.id}/events", "/events", f"/sessions/{session.id}/packets")
            ]
            sockets = [
                await clients.enter_async_context(
                    connect(f"ws://127.0.0.1:{served.port}{path}", additional_headers=bearer(served.client))
                )
                for path in routes()
            ]
            _, idle = await asyncio.open_connection("127.0.0.1", served.port)
            await until(lambda: len(served.server.connections) >= len(streams) + len(sockets))
            loop = asyncio.get_running_loop()
            begun = loop.time()
        assert loop.time() - begun < 5
        for stream in streams:
            await stream.body()
        for lane in sockets:
            await lane.wait_closed()
            assert lane.close_code in (1001, 1012)
        idle.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@contextlib.contextmanager
def stalled(port: int, client: Client, path: str) -> Iterator[socket.socket]:
    """A consumer that asks and then takes nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {client.token}\r\n\r\n"
        connection.sendall(head.encode())
        yield connection


@pytest.fixture
def is_stalled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether a connection takes nothing for long enough that it is not just slow.

    Ask for it before the server: its sockets then hold little.
    """
    paused: set[FlowControl] = set()
    looked = 0

    def small(host: str, port: int) -> socket.socket:
        bound = tcp_socket(host, port)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        return bound

    def pause(flow: FlowControl) -> None:
        paused.add(flow)
        pause_writing(flow)

    def resume(flow: FlowControl) -> None:
        paused.discard(flow)
        resume_writing(flow)

    def is_stalled() -> bool:
        nonlocal looked
        looked = looked + 1 if paused else 0
        return looked > 50

    pause_writing, resume_writing = FlowControl.pause_writing, FlowControl.resume_writing
    monkeypatch.setattr(servers, "tcp_socket", small)
    monkeypatch.setattr(FlowControl, "pause_writing", pause)
    monkeypatch.setattr(FlowControl, "resume_writing", resume)
    return is_stalled


async def flooded(served: Served, project: Path) -> str:
    """The path of more events than any buffer holds."""
    session = await served.hub.start_session("demo", project)
    for _ in range(4):
        await session.prompt("big 2000000")
    return f"/sessions/{session.id}/events"


async def test_a_device_that_takes_nothing_is_cut_off_as_well(
    is_stalled: Callable[[], bool], served: Served, attempts: Attempts, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    path = await flooded(served, project)
    device_id, device = await paired(served.client, "read")
    with stalled(served.port, device, path) as connection:
        await until(is_stalled)
        assert (await served.client.request("DELETE", f"/devices/{device_id}")).json()["connections"] == 1
        await until(lambda: len(served.server.connections) == 0)
        attempts.refused(await device.request("GET", "/agents"), 401)
        assert not (await asyncio.to_thread(rest, connection)).endswith(b"0\r\n\r\n")
    assert caplog.records == []


async def test_the_server_ends_though_somebody_takes_nothing(
    is_stalled: Callable[[], bool], tmp_path: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with contextlib.ExitStack() as clients:
        async with asyncio.timeout(PATIENCE), serving(tmp_path) as served:
            path = await flooded(served, project)
            connection = clients.enter_context(stalled(served.port, served.client, path))
            await until(is_stalled)
        assert not (await asyncio.to_thread(rest, connection)).endswith(b"0\r\n\r\n")
    assert caplog.records == []
