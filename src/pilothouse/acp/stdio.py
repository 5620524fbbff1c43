"""ACP over standard input and output: of this process, or of a child."""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio_subprocess
import contextlib
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .agent.connection import AgentSideConnection
from .client.connection import ClientSideConnection
from .connection import Connection, MethodHandler, StreamObserver
from .framing import DEFAULT_LINE_LIMIT
from .interfaces import Agent, Client
from .process import READ_LIMIT, SHUTDOWN_TIMEOUT, StderrTail, describe_end, kill, kin, spawn, stop
from .transport import Link, PipeLink

__all__ = ["spawn_agent_process", "spawn_client_process", "spawn_stdio_connection", "stdio_link", "stdio_streams"]


async def stdio_link(line_limit: int = DEFAULT_LINE_LIMIT) -> Link:
    """This process's stdin and stdout as a link: like `stdio_streams`, with less between pipe and connection."""
    loop = asyncio.get_running_loop()
    link = PipeLink(limit=line_limit)
    blocking = _Blocking()
    source = await _read_stdin(loop, _Feed(link))
    link.attach(await _write_stdout(loop, blocking), source)
    sys.stdout = sys.stderr
    return link


class _Feed(asyncio.Protocol):
    """Feeds a link from the pipe it reads."""

    def __init__(self, link: PipeLink) -> None:
        self._link = link

    def data_received(self, data: bytes) -> None:
        self._link.data_received(data)

    def eof_received(self) -> None:
        self._link.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.eof_received()


async def stdio_streams(limit: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """This process's stdin and stdout as asyncio streams.

    From here on stdout carries protocol only: what `print` writes goes to stderr.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit or READ_LIMIT)
    blocking = _Blocking()
    await _read_stdin(loop, asyncio.StreamReaderProtocol(reader))
    writer = await _write_stdout(loop, blocking)
    sys.stdout = sys.stderr
    return reader, writer


class _Blocking:
    """Whether stdin and stdout block, as it was before asyncio changed it.

    The mode belongs to the open file, not to this process: a shell on the same terminal would be left with it.
    """

    def __init__(self) -> None:
        streams = [stream for stream in (sys.stdin, sys.stdout) if _is_watchable(stream)]
        self._modes = {stream.fileno(): os.get_blocking(stream.fileno()) for stream in streams}

    def restore(self) -> None:
        for fd, mode in self._modes.items():
            with contextlib.suppress(OSError):
                os.set_blocking(fd, mode)


async def _read_stdin(loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> asyncio.ReadTransport | None:
    if _is_watchable(sys.stdin):
        source, _ = await loop.connect_read_pipe(lambda: protocol, sys.stdin)
        return source
    source = _FileSource(loop, protocol)
    protocol.connection_made(source)
    return source


async def _write_stdout(loop: asyncio.AbstractEventLoop, blocking: _Blocking) -> asyncio.StreamWriter:
    if _is_watchable(sys.stdout):
        transport, protocol = await loop.connect_write_pipe(lambda: _FlowControl(loop, blocking), sys.stdout)
        return asyncio.StreamWriter(transport, protocol, None, loop)
    flow = _FlowControl(loop, blocking)
    return asyncio.StreamWriter(_DirectTransport(loop, flow), flow, None, loop)


def _is_watchable(stream: Any) -> bool:
    """Whether asyncio can wait for it: pipes, sockets and terminals; not files, nor the null device, nor on Windows."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(stream.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(stream.fileno())


class _FileSource(asyncio.ReadTransport):
    """Reads a stdin that asyncio cannot watch, in a thread, and only as fast as it is taken."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._go = threading.Event()
        self._go.set()
        self._closed = False
        threading.Thread(target=self._read, name="acp stdin", daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError, OSError):  # the loop or the file has been closed
            while data := os.read(sys.stdin.fileno(), READ_LIMIT):
                # one piece at a time: the next is read when this one has been handed over and reading is not paused
                asyncio.run_coroutine_threadsafe(self._hand_over(data), self._loop).result()
                self._go.wait()
                if self._closed:
                    return
            self._loop.call_soon_threadsafe(self._protocol.eof_received)

    async def _hand_over(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def pause_reading(self) -> None:
        self._go.clear()

    def resume_reading(self) -> None:
        self._go.set()

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._go.set()


class _FlowControl(asyncio.streams.FlowControlMixin):
    """What StreamWriter needs of a protocol: drain waiters and the end of the connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, blocking: _Blocking) -> None:
        super().__init__(loop=loop)
        self._blocking = blocking
        self._closed: asyncio.Future[None] = loop.create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._blocking.restore()
        if not self._closed.done():
            self._closed.set_result(None)

    def _get_close_waiter(self, stream: asyncio.StreamWriter) -> asyncio.Future[None]:
        return self._closed


class _DirectTransport(asyncio.WriteTransport):
    """Writes straight to a stdout that asyncio cannot watch."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._stream = sys.stdout.buffer
        self._closing = False

    def write(self, data: Any) -> None:
        self._stream.write(data)
        self._stream.flush()

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()


@asynccontextmanager
async def _spawned(
    connect: Callable[..., Any],
    command: str,
    args: tuple[str, ...],
    env: Mapping[str, str] | None,
    cwd: str | Path | None,
    transport_kwargs: Mapping[str, Any] | None,
    connection_kwargs: Mapping[str, Any],
) -> AsyncIterator[tuple[Any, aio_subprocess.Process]]:
    options = dict(transport_kwargs or {})
    timeout = options.pop("shutdown_timeout", SHUTDOWN_TIMEOUT)
    settings = dict(connection_kwargs)
    link = PipeLink(limit=settings.pop("line_limit", DEFAULT_LINE_LIMIT))
    process = await spawn(command, *args, env=env, cwd=cwd, link=link, **options)
    tail = StderrTail(process)
    try:
        connection = connect(link, describe_end=partial(describe_end, process, tail), **settings)
        try:
            yield connection, process
        finally:
            # The child is stopped first: a peer that does not read would only delay closing its pipe.
            stopping = asyncio.ensure_future(stop(process, timeout=timeout, known=kin(process)))
            try:
                await connection.close()
            finally:
                await stopping
    finally:
        # reached with the child alive only when this was cancelled while it was being stopped
        kill(process)
        tail.task.cancel()


@asynccontextmanager
async def spawn_agent_process(
    to_client: Callable[[Agent], Client] | Client,
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    transport_kwargs: Mapping[str, Any] | None = None,
    **connection_kwargs: Any,
) -> AsyncIterator[tuple[ClientSideConnection, aio_subprocess.Process]]:
    """Start an agent and connect a client to it for the length of a block.

    Raises SpawnError when it cannot be started; calls raise ConnectionClosed with its exit code and the tail of its
    stderr when it dies.
    """
    connect = partial(ClientSideConnection, to_client)
    async with _spawned(connect, command, args, env, cwd, transport_kwargs, connection_kwargs) as pair:
        yield pair


@asynccontextmanager
async def spawn_client_process(
    to_agent: Callable[[Client], Agent] | Agent,
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    transport_kwargs: Mapping[str, Any] | None = None,
    **connection_kwargs: Any,
) -> AsyncIterator[tuple[AgentSideConnection, aio_subprocess.Process]]:
    """Start a client program and serve an agent to it for the length of a block."""
    connect = partial(AgentSideConnection, to_agent)
    async with _spawned(connect, command, args, env, cwd, transport_kwargs, connection_kwargs) as pair:
        yield pair


@asynccontextmanager
async def spawn_stdio_connection(
    handler: MethodHandler,
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    observers: list[StreamObserver] | None = None,
    **transport_kwargs: Any,
) -> AsyncIterator[tuple[Connection, aio_subprocess.Process]]:
    """Start a program and give its stdio to a bare connection for the length of a block."""
    connect = partial(Connection, handler)
    async with _spawned(connect, command, args, env, cwd, transport_kwargs, {"observers": observers}) as pair:
        yield pair
