"""How frames move: the seam between the connection and bytes, messages or memory.

A link reads batches of lines and writes encoded frames. `send` never waits; when `congested` says so the sender
must await `drain` before it goes on, which is what bounds memory towards a slow peer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from .errors import ConnectionClosed
from .framing import DEFAULT_LINE_LIMIT, LineFramer, Oversize
from .model import encode

__all__ = ["Link", "MemoryLink", "MessageLink", "StreamLink", "Transport", "memory_pair", "memory_transport_pair"]

READ_SIZE = 256 * 1024
CLOSE_TIMEOUT = 1.0
HIGH_WATER = 1024
Line = bytes | Oversize


class Link(Protocol):
    """What a connection needs of its transport."""

    @property
    def congested(self) -> bool: ...

    async def read(self) -> Sequence[Line]:
        """The next lines; empty at the end of the stream."""
        ...

    def send(self, frame: bytes) -> None:
        """Hand over one frame. Raises ConnectionClosed when the peer can no longer be reached."""
        ...

    async def drain(self) -> None: ...

    async def close(self) -> None:
        """Give the link up. Always ends, also when the peer has stopped reading."""
        ...


@runtime_checkable
class Transport(Protocol):
    """A stream of decoded JSON-RPC messages; `receive` answers None at its end."""

    async def send(self, message: dict[str, Any]) -> None: ...

    async def receive(self) -> dict[str, Any] | None: ...

    async def close(self) -> None: ...


class StreamLink:
    """Newline-delimited JSON over an asyncio reader and writer."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, limit: int = DEFAULT_LINE_LIMIT
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._framer = LineFramer(limit)
        self._ended = False
        # StreamWriter.drain is only needed above the transport's own high-water mark
        self._buffered: Callable[[], int] = getattr(writer.transport, "get_write_buffer_size", lambda: 0)

    @property
    def congested(self) -> bool:
        return self._buffered() > 0

    async def read(self) -> Sequence[Line]:
        while not self._ended:
            try:
                data = await self._reader.read(READ_SIZE)
            except (ConnectionError, OSError):
                data = b""
            if not data:
                self._ended = True
                return self._framer.finish()
            lines = self._framer.feed(data)
            if lines:
                return lines
        return ()

    def send(self, frame: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionClosed("Connection closed: the peer no longer reads")
        try:
            self._writer.write(frame)
        except (OSError, RuntimeError) as exc:
            raise ConnectionClosed(f"Connection closed: {exc}") from exc

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except (OSError, RuntimeError) as exc:
            raise ConnectionClosed(f"Connection closed: {exc}") from exc

    async def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), CLOSE_TIMEOUT)
        except TimeoutError:
            # the peer does not read: what is still buffered can never arrive
            self._writer.transport.abort()
        except (OSError, RuntimeError):
            pass


class MemoryLink:
    """One end of an in-process pair: frames are handed over as they are."""

    def __init__(self) -> None:
        self._inbox: deque[bytes] = deque()
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = False
        self.other: MemoryLink

    @property
    def congested(self) -> bool:
        return len(self.other._inbox) > HIGH_WATER

    async def read(self) -> Sequence[Line]:
        while not self._inbox:
            if self._closed or self.other._closed:
                return ()
            self._readable.clear()
            await self._readable.wait()
        lines = list(self._inbox)
        self._inbox.clear()
        self._writable.set()
        return lines

    def send(self, frame: bytes) -> None:
        if self._closed or self.other._closed:
            raise ConnectionClosed
        self.other._inbox.append(frame)
        self.other._readable.set()

    async def drain(self) -> None:
        while self.congested and not (self._closed or self.other._closed):
            self.other._writable.clear()
            await self.other._writable.wait()

    async def close(self) -> None:
        self._closed = True
        for link in (self, self.other):
            link._readable.set()
            link._writable.set()


def memory_pair() -> tuple[MemoryLink, MemoryLink]:
    """Two linked ends; give one to an agent's connection and the other to a client's."""
    left, right = MemoryLink(), MemoryLink()
    left.other, right.other = right, left
    return left, right


class MessageLink:
    """A `Transport` of decoded messages as a link."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._outbox: deque[bytes] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None

    @property
    def congested(self) -> bool:
        return True  # every send of a message transport is awaited, so that its error reaches the caller

    async def read(self) -> Sequence[Line]:
        message = await self._transport.receive()
        return () if message is None else (encode(message),)

    def send(self, frame: bytes) -> None:
        if self._failure is not None:
            raise ConnectionClosed(f"Connection closed: {self._failure}") from self._failure
        self._outbox.append(frame)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._outbox:
            try:
                await self._transport.send(msgspec.json.decode(self._outbox[0]))
            except Exception as exc:
                self._failure = exc
                self._outbox.clear()
                return
            self._outbox.popleft()

    async def drain(self) -> None:
        if self._pump is not None:
            await asyncio.shield(self._pump)
        if self._failure is not None:
            raise ConnectionClosed(f"Connection closed: {self._failure}") from self._failure

    async def close(self) -> None:
        pump, self._pump = self._pump, None
        if pump is not None:
            await asyncio.wait((pump,), timeout=CLOSE_TIMEOUT)
            pump.cancel()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._transport.close(), CLOSE_TIMEOUT)


class _MemoryTransport:
    def __init__(
        self, outbox: asyncio.Queue[dict[str, Any] | None], inbox: asyncio.Queue[dict[str, Any] | None]
    ) -> None:
        self._outbox = outbox
        self._inbox = inbox
        self._closed = False

    async def send(self, message: dict[str, Any]) -> None:
        if self._closed:
            raise ConnectionClosed
        await self._outbox.put(dict(message))

    async def receive(self) -> dict[str, Any] | None:
        return await self._inbox.get()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._outbox.put(None)


def memory_transport_pair() -> tuple[Transport, Transport]:
    """Two linked message transports, for code that speaks decoded messages; `memory_pair` is the faster way."""
    one: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    two: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    return _MemoryTransport(one, two), _MemoryTransport(two, one)
