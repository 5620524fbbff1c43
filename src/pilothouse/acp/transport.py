"""How frames move: the seam between the connection and bytes, messages or memory.

A link pushes the lines it receives and takes encoded frames. `send` never waits; when `congested` says so the
sender must await `drain` before it goes on, which is what bounds memory towards a slow peer. `pause` stops the
pushing, which is what bounds memory on this side.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from .errors import ConnectionClosed
from .framing import DEFAULT_LINE_LIMIT, LARGE, LineFramer, Oversize, breath
from .model import encode

__all__ = [
    "Link",
    "MemoryLink",
    "MessageLink",
    "PipeLink",
    "PullLink",
    "QueuedLink",
    "StreamLink",
    "Transport",
    "memory_pair",
    "memory_transport_pair",
]

READ_SIZE = 32 * 1024
"""Taken from a stream at a time. Small enough that what is decoded has been handled and freed before the garbage
collector looks at it, which more than pays for the extra reads."""
PIPE_SIZE = 64 * 1024
CLOSE_TIMEOUT = 1.0
HIGH_WATER = 1024 * 1024
"""Bytes that may wait to be taken by the other side before its sender has to wait."""
Line = bytes | Oversize
OnLines = Callable[[Sequence[Line]], None]
OnEnd = Callable[[BaseException | None], None]


def _ignore(lines: Sequence[Line]) -> None:
    pass


def _ignore_end(error: BaseException | None) -> None:
    pass


class Link(Protocol):
    """What a connection needs of its transport."""

    @property
    def congested(self) -> bool: ...

    @property
    def unsent(self) -> int:
        """Bytes handed over that the other side has not taken yet."""
        ...

    def start(self, on_lines: OnLines, on_end: OnEnd) -> None:
        """Begin to push what is received; `on_end` is called once, when no more can come."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

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


class PullLink:
    """Base of links over something that is read by awaiting: a task pulls and pushes on."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._on_lines: OnLines = _ignore
        self._on_end: OnEnd = _ignore_end
        self._open = asyncio.Event()
        self._open.set()

    async def read(self) -> Sequence[Line]:
        """The next lines; empty at the end of the stream."""
        raise NotImplementedError

    def start(self, on_lines: OnLines, on_end: OnEnd) -> None:
        self._on_lines, self._on_end = on_lines, on_end
        self._task = asyncio.get_running_loop().create_task(self._pull(), name="acp receive")

    async def _pull(self) -> None:
        try:
            while lines := await self.read():
                self._on_lines(lines)
                if self._open.is_set():
                    await asyncio.sleep(0)  # a full buffer is read without waiting; what was received comes first
                else:
                    await self._open.wait()
        except Exception as exc:
            self._on_end(exc)
        else:
            self._on_end(None)

    def pause(self) -> None:
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    async def _stop_pulling(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=CLOSE_TIMEOUT)


class _Writing:
    """The sending half over an asyncio stream writer."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._write_to(writer)

    def _write_to(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._transport = writer.transport
        # StreamWriter.drain is only worth its cost when something could not be written at once
        self._buffered: Callable[[], int] = self._transport.get_write_buffer_size

    @property
    def congested(self) -> bool:
        return self._buffered() > 0

    @property
    def unsent(self) -> int:
        return self._buffered()

    def send(self, frame: bytes) -> None:
        if self._transport.is_closing():
            raise ConnectionClosed("Connection closed: the peer no longer reads")
        try:
            self._transport.write(frame)
        except (OSError, RuntimeError) as exc:
            raise ConnectionClosed(f"Connection closed: {exc}") from exc

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except (OSError, RuntimeError) as exc:
            raise ConnectionClosed(f"Connection closed: {exc}") from exc

    async def _close_writer(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.close()
        # Waited for beside, never cancelled: what it awaits is asyncio's own future of the connection.
        closed = asyncio.ensure_future(self._writer.wait_closed())
        closed.add_done_callback(_retrieve)
        await asyncio.wait((closed,), timeout=CLOSE_TIMEOUT)
        if not closed.done():
            # the peer does not read: what is still buffered can never arrive
            self._transport.abort()
            await asyncio.wait((closed,), timeout=CLOSE_TIMEOUT)


def _retrieve(future: asyncio.Future[Any]) -> None:
    """How a connection ended has been told elsewhere; nobody needs a log entry for it."""
    if not future.cancelled():
        future.exception()


class StreamLink(_Writing, PullLink):
    """Newline-delimited JSON over an asyncio reader and writer."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, limit: int = DEFAULT_LINE_LIMIT
    ) -> None:
        _Writing.__init__(self, writer)
        PullLink.__init__(self)
        self._reader = reader
        self._framer = LineFramer(limit)
        self._ended = False

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

    async def close(self) -> None:
        # What still comes is read and thrown away: a pipe that nobody reads would keep its process from being reaped.
        self._on_lines = _ignore
        self._on_end = _ignore_end
        self.resume()
        await self._close_writer()


class PipeLink(_Writing):
    """Newline-delimited JSON read straight off a pipe transport, without a task or a second buffer in between.

    The owner of the pipe feeds `data_received` and `eof_received` and, by `attach`, lends its flow control. A large
    line is handed on a moment after it was put together; what follows waits for it.
    """

    def __init__(self, *, limit: int = DEFAULT_LINE_LIMIT) -> None:
        self._framer = LineFramer(limit)
        self._early: list[bytes] = []
        self._held: Sequence[Line] = ()
        self._ended = False
        self._on_lines: OnLines | None = None
        self._on_end: OnEnd | None = None
        self._source: asyncio.ReadTransport | None = None
        self.is_paused = False
        self.received = 0

    def attach(self, writer: asyncio.StreamWriter, source: asyncio.ReadTransport | None) -> None:
        """Say where to send to and which transport to pause and, in the end, to close."""
        self._write_to(writer)
        self._source = source
        if getattr(source, "max_size", 0) > PIPE_SIZE:
            # asyncio allocates this much for each read, four times what a pipe can hold, which costs more than the read
            source.max_size = PIPE_SIZE  # type: ignore[union-attr]

    def start(self, on_lines: OnLines, on_end: OnEnd) -> None:
        # What has arrived already waits for the loop's next turn, so that whoever starts the link can finish first.
        asyncio.get_running_loop().call_soon(self._begin, on_lines, on_end)

    def _begin(self, on_lines: OnLines, on_end: OnEnd) -> None:
        if self._on_lines is not None:
            return  # closed before it began
        self._on_lines, self._on_end = on_lines, on_end
        self._catch_up()

    def _catch_up(self) -> None:
        """Take what came while it could not be handed on."""
        early, self._early = self._early, []
        for data in early:
            self._take(data)
        if self._ended:
            self._finish()

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        self._take(data)

    def _take(self, data: bytes) -> None:
        if self._on_lines is None or self._held:
            self._early.append(data)
            return
        lines = self._framer.feed(data)
        if not lines:
            return
        if len(lines[0]) > LARGE:  # only the first can have begun before this chunk
            self._hold(lines)
        else:
            self._on_lines(lines)

    def _hold(self, lines: Sequence[Line]) -> None:
        self._held = lines
        self._set_reading(False)
        asyncio.get_running_loop().call_later(breath(len(lines[0])), self._let_go)

    def _let_go(self) -> None:
        lines, self._held = self._held, ()
        if self._on_lines is not None:
            self._on_lines(lines)
        self._catch_up()
        if not self.is_paused and not self._held:
            self._set_reading(True)

    def eof_received(self) -> None:
        if not self._ended:
            self._ended = True
            self._finish()

    def _finish(self) -> None:
        if self._on_lines is None or self._on_end is None or self._held:
            return
        on_end, self._on_end = self._on_end, None
        lines = self._framer.finish()
        if lines:
            self._on_lines(lines)
        on_end(None)

    def pause(self) -> None:
        self.is_paused = True
        self._set_reading(False)

    def resume(self) -> None:
        self.is_paused = False
        if not self._held:
            self._set_reading(True)

    def _set_reading(self, reading: bool) -> None:
        if self._source is not None and not self._ended:
            with contextlib.suppress(RuntimeError):
                (self._source.resume_reading if reading else self._source.pause_reading)()

    async def close(self) -> None:
        self._on_lines = _ignore
        self._on_end = None
        self._held, self._early = (), []
        self.resume()  # a paused pipe would never see its end
        await self._close_writer()
        if self._source is not None:
            self._source.close()


class MemoryLink:
    """One end of an in-process pair: frames are handed over as they are."""

    def __init__(self) -> None:
        self._inbox: list[bytes] = []
        self._inbox_size = 0
        self._on_lines: OnLines | None = None
        self._on_end: OnEnd | None = None
        self._paused = False
        self._scheduled = False
        self._writable = asyncio.Event()
        self._closed = False
        self.other: MemoryLink

    @property
    def congested(self) -> bool:
        return self.other._inbox_size > HIGH_WATER

    @property
    def unsent(self) -> int:
        return self.other._inbox_size

    def start(self, on_lines: OnLines, on_end: OnEnd) -> None:
        self._on_lines, self._on_end = on_lines, on_end
        self._schedule()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._schedule()

    def send(self, frame: bytes) -> None:
        if self._closed or self.other._closed:
            raise ConnectionClosed
        self.other._inbox.append(frame)
        self.other._inbox_size += len(frame)
        self.other._schedule()

    async def drain(self) -> None:
        while self.congested and not (self._closed or self.other._closed):
            self.other._writable.clear()
            await self.other._writable.wait()

    async def close(self) -> None:
        self._closed = True
        self._on_end = None
        for link in (self, self.other):
            link._writable.set()
            link._schedule()

    def _schedule(self) -> None:
        if not self._scheduled and self._on_lines is not None:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        if self._closed or self._paused or self._on_lines is None:
            return
        if self._inbox:
            lines, self._inbox, self._inbox_size = self._inbox, [], 0
            self._writable.set()
            self._on_lines(lines)
        if self.other._closed and not self._inbox and self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(None)


def memory_pair() -> tuple[MemoryLink, MemoryLink]:
    """Two linked ends; give one to an agent's connection and the other to a client's."""
    left, right = MemoryLink(), MemoryLink()
    left.other, right.other = right, left
    return left, right


class QueuedLink(PullLink):
    """Base of links whose sending is a coroutine: frames queue and a task delivers them in order."""

    def __init__(self) -> None:
        super().__init__()
        self._outbox: deque[bytes] = deque()
        self._outbox_size = 0
        self._delivery: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None

    async def deliver(self, frame: bytes) -> None:
        """Send one frame; whatever it raises ends the link."""
        raise NotImplementedError

    async def release(self) -> None:
        """Close what the link is made of."""
        raise NotImplementedError

    @property
    def congested(self) -> bool:
        return self._outbox_size > HIGH_WATER

    @property
    def unsent(self) -> int:
        return self._outbox_size

    def send(self, frame: bytes) -> None:
        self._raise_failure()
        self._outbox.append(frame)
        self._outbox_size += len(frame)
        if self._delivery is None or self._delivery.done():
            self._delivery = asyncio.get_running_loop().create_task(self._deliver_all(), name="acp send")

    async def _deliver_all(self) -> None:
        while self._outbox:
            try:
                await self.deliver(self._outbox[0])
            except Exception as exc:
                self._failure = exc
                self._outbox.clear()
                return
            self._outbox_size -= len(self._outbox.popleft())

    async def drain(self) -> None:
        if self._delivery is not None:
            await asyncio.shield(self._delivery)
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise ConnectionClosed(f"Connection closed: {self._failure}") from self._failure

    async def close(self) -> None:
        await self._stop_pulling()
        if self._delivery is not None:
            await asyncio.wait((self._delivery,), timeout=CLOSE_TIMEOUT)
            self._delivery.cancel()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.release(), CLOSE_TIMEOUT)


class MessageLink(QueuedLink):
    """A `Transport` of decoded messages as a link."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self._transport = transport

    @property
    def congested(self) -> bool:
        return True  # every send is awaited, so that its error reaches the caller

    async def read(self) -> Sequence[Line]:
        message = await self._transport.receive()
        return () if message is None else (encode(message),)

    async def deliver(self, frame: bytes) -> None:
        await self._transport.send(msgspec.json.decode(frame))

    async def release(self) -> None:
        await self._transport.close()


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
