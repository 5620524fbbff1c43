"""ACP as lines on a socket of the home: for the bridges of its owner's editors, one JSON-RPC message a line.

The methods are in `server`; here a stream becomes the link beneath them. Nobody but the owner can open the socket,
so who comes by it is known. A consumer that takes nothing is let go as everywhere: its bridge goes on by its cursor.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from types import TracebackType
from typing import Self

from ...acp.errors import INTERNAL_ERROR, ConnectionClosed, RequestError
from ...acp.jsonrpc import encode_error
from ...acp.transport import READ_SIZE, StreamLink
from ..auth.callers import ADMIN, Caller
from ..errors import HttpError
from ..state import Server
from ..ws.sockets import Gathering
from .server import AcpFace
from .update_frames import Run

logger = logging.getLogger(__name__)

EDITOR = Caller(name="editor", scopes=ADMIN)
HIGH_WATER = 256 << 10
"""Bytes that may wait in a transport before its writer has to wait."""
CLOSE_TIMEOUT = 5.0
"""Seconds that connections have to end when the listener closes."""


class LineLink(Gathering, StreamLink):
    """A stream of lines as a link. Lines of one turn of the loop are written together."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, stall: float) -> None:
        Gathering.__init__(self)
        StreamLink.__init__(self, reader, writer)
        self._stall = stall
        writer.transport.set_write_buffer_limits(high=HIGH_WATER)

    @property
    def congested(self) -> bool:
        return self._buffered() > HIGH_WATER

    @property
    def unsent(self) -> int:
        return self._buffered() + self._gathered

    def send(self, frame: bytes) -> None:
        self._gather(frame)

    def send_run(self, run: Run) -> None:
        """Updates that other clients get as well: their bytes are the same for all."""
        self._flush()
        self._write(run.joined())

    def _write(self, data: bytes) -> None:
        StreamLink.send(self, data)

    async def drain(self) -> None:
        """Wait until there is room. Raises ConnectionClosed, also when nothing was taken for the allowed time."""
        self._flush()
        while self.congested:
            before = self._buffered()
            try:
                async with asyncio.timeout(self._stall):
                    await StreamLink.drain(self)
            except TimeoutError:
                if self._buffered() >= before:
                    end = self._give_up()
                    self._on_end(end)  # whoever else waits for the client need not wait for it to notice
                    raise end from None

    async def close(self) -> None:
        self._flush_later()
        self._is_closed = True
        if self.stalled:
            self._transport.abort()
        await StreamLink.close(self)
        await self._stop_pulling()


class LineListener:
    """Serves a hub on a bound socket. Open it by `async with`; an agent that nobody names is `default_agent`."""

    def __init__(self, server: Server, bound: socket.socket, *, default_agent: str | None = None) -> None:
        self._server = server
        self._bound = bound
        self._default_agent = default_agent
        self._listening: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_unix_server(self._accept, sock=self._bound, limit=READ_SIZE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        if self._listening is not None:
            self._listening.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_TIMEOUT)
        self._bound.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closing:  # taken from the queue just before; nobody would end it
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="an editor")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # a task that is cancelled before its first step has closed nothing
        task.add_done_callback(lambda task: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One editor, until it leaves, is let go, or is cut."""
        link = LineLink(reader, writer, stall=self._server.limits.stall)
        try:
            with self._server.connections.hold(EDITOR):
                await self._face(link)
        except HttpError as exc:
            with contextlib.suppress(ConnectionClosed):
                link.send(encode_error(None, RequestError(INTERNAL_ERROR, exc.record.message)))
        except asyncio.CancelledError:
            pass  # cut, or the listener closes
        except Exception:
            logger.exception("serving an editor failed")
        finally:
            await link.close()

    async def _face(self, link: LineLink) -> None:
        server = self._server
        face = AcpFace(
            server.hub,
            link,
            caller=EDITOR,
            default_agent=self._default_agent,
            policy=server.default_policy,
            limit=server.limits.subscriptions,
            cache=server.frame_cache,
        )
        try:
            await face.wait_closed()
        finally:
            await face.close()
