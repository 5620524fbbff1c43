"""WebSockets of the server: frames encoded once and written as they are, and an end to clients that do not read.

uvicorn speaks the protocol; `SocketProtocol` is its implementation with the writing side opened up, because a server's
frames are not masked: the bytes for one client are the bytes for all. What is written waits in the transport, so a
writer must `drain` before it continues: that bounds the memory of a slow client. `Gathering` writes the small frames of
one turn of the loop in one system call.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from ...acp.errors import ConnectionClosed
from ..errors import HttpError, error_response
from ..http.protocols import WebSocketProtocol
from ..limits import Limits

CHUNK = 64 << 10
"""Bytes that are gathered at most before they are written."""


class Gathering:
    """The sending half of a link. `_write` is where it goes; it raises ConnectionClosed when nobody is there."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._gathered = 0
        self._is_scheduled = False
        self._is_closed = False
        self.stalled = False
        """Whether the consumer was given up because it took nothing."""

    def _write(self, data: bytes) -> None:
        raise NotImplementedError

    def _gather(self, frame: bytes) -> None:
        """Raises ConnectionClosed."""
        if self._is_closed:
            raise ConnectionClosed
        self._frames.append(frame)
        self._gathered += len(frame)
        if self._gathered > CHUNK:
            self._flush()
        elif not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._is_scheduled = False
        try:
            self._flush()
        except ConnectionClosed:
            pass  # whoever sends next is told

    def _flush(self) -> None:
        frames, self._frames, self._gathered = self._frames, [], 0
        if frames:
            self._write(b"".join(frames))

    def _give_up(self) -> ConnectionClosed:
        """The consumer took nothing for too long. What to end the link with."""
        self.stalled = self._is_closed = True
        return ConnectionClosed("Connection closed: the client took nothing for too long")


EXTENSION = "pilothouse.socket"
HIGH_WATER = 256 << 10
"""Bytes that may wait in a transport before its writer has to wait."""
CLOSE_TIMEOUT = 10.0
"""Seconds that a consumer has to read what was written before the end, and to answer it."""

STRANGERS = 64 << 10
"""Bytes of a message from somebody who has not said who it is."""

GOING_AWAY = 1001
FAILED = 1011
UNAUTHORIZED = 4401
STALLED = 4408
TOO_MANY = 4429


async def only_upgrades(request: Request) -> Response:
    """For who asks in plain HTTP where a WebSocket is."""
    headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
    message = f"{request.url.path} is a WebSocket; connect with one"
    return error_response(HttpError(426, "upgrade_required", message, headers=headers))


class Disconnected(Exception):
    """The consumer is gone, or the connection is closing."""


class Stalled(Exception):
    """The consumer has taken nothing for too long."""


class SocketProtocol(WebSocketProtocol):
    """Gives the application its own hands on the connection, as an extension in the scope."""

    _left: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=HIGH_WATER)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        scope: Any = getattr(self, "scope", None)  # none when the handshake was refused
        if scope is not None:
            scope["extensions"][EXTENSION] = self

    @property
    def is_closing(self) -> bool:
        return self.close_sent or self.disconnected or self.transport.is_closing()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._abort_later()

    async def run_asgi(self) -> None:
        """However it ended, also by the consumer's own close or by what it may not send: it does not linger."""
        await super().run_asgi()
        if not self.disconnected:
            self._left = self.loop.call_later(CLOSE_TIMEOUT, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._left is not None:
            self._left.cancel()

    def end(self, code: int, reason: str) -> None:
        """Send the close frame behind all that was written, and give the consumer a while to read that."""
        if self.is_closing:
            return
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self._abort_later()

    def _abort_later(self) -> None:
        """Closing a transport waits until all is sent, and to somebody who does not read nothing ever is."""
        if self.close_timer is None and not self.disconnected:
            self.close_timer = self.loop.call_later(CLOSE_TIMEOUT, self.transport.abort)


class Socket:
    """One accepted WebSocket. Written to by one task at a time; closing twice is fine."""

    def __init__(self, websocket: WebSocket, limits: Limits) -> None:
        self._websocket = websocket
        self._wire: SocketProtocol = websocket.scope["extensions"][EXTENSION]
        self._stall = limits.stall

    async def accept(self, headers: dict[str, str] | None = None) -> None:
        """Raises Disconnected."""
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
        try:
            await self._websocket.accept(headers=pairs)
        except Exception as exc:
            raise Disconnected from exc

    async def receive(self) -> str | bytes:
        """The next message: text, or bytes for a binary one. Raises Disconnected."""
        message = await self._websocket.receive()
        if message["type"] != "websocket.receive":
            raise Disconnected
        text = message.get("text")
        return text if text is not None else message.get("bytes") or b""

    @property
    def congested(self) -> bool:
        """Whether the writer must `drain` before it goes on."""
        return not self._wire.writable.is_set()

    @property
    def unsent(self) -> int:
        return self._wire.transport.get_write_buffer_size()

    def write(self, frames: bytes) -> None:
        """Hand over one or more frames, made by `frame`. Raises Disconnected."""
        if self._wire.is_closing:
            raise Disconnected
        self._wire.transport.write(frames)

    async def drain(self) -> None:
        """Wait until there is room. Raises Stalled when nothing at all was taken for the allowed time."""
        wire = self._wire
        while not wire.writable.is_set():
            before = self.unsent
            try:
                async with asyncio.timeout(self._stall):
                    await wire.writable.wait()
            except TimeoutError:
                if self.unsent >= before:
                    raise Stalled from None

    async def send(self, message: bytes) -> None:
        """One text message, and wait for room. Raises Disconnected, Stalled."""
        self.write(frame(message))
        await self.drain()

    def limit(self, size: int) -> None:
        """What a message may have at most, from the next one on."""
        self._wire.conn.max_message_size = size

    def close(self, code: int = 1000, reason: str = "") -> None:
        self._wire.end(code, _fitting(reason))


def frame(message: bytes) -> bytes:
    """A text message as the bytes of a WebSocket frame from a server."""
    size = len(message)
    if size < 126:
        return b"\x81%c%b" % (size, message)
    if size < 1 << 16:
        return b"\x81\x7e%b%b" % (size.to_bytes(2, "big"), message)
    return b"\x81\x7f%b%b" % (size.to_bytes(8, "big"), message)


def _fitting(reason: str) -> str:
    """The protocol has room for 123 bytes."""
    return reason if len(reason.encode()) <= 123 else reason.encode()[:120].decode(errors="ignore") + "..."
