"""Server-sent events: the frames, and the answer that carries them for as long as somebody listens.

The answer notices at once when its consumer leaves, and lets go of one that takes nothing for too long; who cuts it,
cancels its task and ends it. It never queues: what it cannot send, it has not asked for. However a stream ends, its
cursor is good.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "text/event-stream"
RETRY = b"retry: 1000\n\n"
"""How many milliseconds a browser waits before it comes back."""
SLICE = 64 << 10
"""Bytes that a consumer must take within the time after which it counts as stalled."""
PARTING = 1.0
"""Seconds in which the loss of a connection that was dropped is known."""

_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"vary", b"accept, accept-encoding"),
)


# -- frames --------------------------------------------------------------------------------------------------------


def event_frame(number: int, data: bytes) -> bytes:
    """One event; `data` is JSON on one line."""
    return b"id: %d\ndata: %b\n\n" % (number, data)


def packet_frames(number: int, packets: list[bytes]) -> bytes:
    """The packets of one event. Only the last one has the number: a cursor must not stand in the middle of an event."""
    frames = [b"event: message\ndata: %b\n\n" % data for data in packets[:-1]]
    return b"".join([*frames, b"event: message\ndata: %b\nid: %d\n\n" % (packets[-1], number)])


def heartbeat(number: int | None = None) -> bytes:
    """A comment. With a number it also moves the consumer's cursor over events that it has no frames of."""
    return b": keep-alive\n\n" if number is None else b": keep-alive\nid: %d\n\n" % number


# -- compression ---------------------------------------------------------------------------------------------------


def wants_gzip(accept_encoding: str) -> bool:
    """Whether gzip is named, and not with a weight of nought."""
    for item in accept_encoding.lower().split(","):
        name, _, weight = item.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


class Packer:
    """Gzip whose every piece can be read when it arrives. Its window is small: there may be many of these."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(3, zlib.DEFLATED, 16 + 12, 6)

    def pack(self, data: bytes) -> bytes:
        return self._zlib.compress(data) + self._zlib.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._zlib.flush(zlib.Z_FINISH)


# -- the answer ----------------------------------------------------------------------------------------------------


class EventStream(Response):
    """Sends what a generator gives until that ends, the consumer leaves or stalls, or the task is cancelled.

    `held` is closed at the end, whatever that is.
    """

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        *,
        stall: float,
        held: contextlib.ExitStack,
        gzip: bool = False,
        headers: dict[str, str] | None = None,
    ) -> None:
        self._parts = parts
        self._stall = stall
        self._held = held
        self._packer = Packer() if gzip else None
        extra = [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in (headers or {}).items()]
        if gzip:
            extra.append((b"content-encoding", b"gzip"))
        self.status_code = 200
        self.raw_headers = [*_HEADERS, *extra]
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with listening(receive):
                try:
                    await self._serve(send)
                except TimeoutError:
                    await _drop(scope)
        except ClientDisconnect:
            pass
        finally:
            self._held.close()
            await self._parts.aclose()

    async def _serve(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for part in self._parts:
            start = 0
            while len(part) - start > SLICE:
                end = part.rfind(b"\n\n", start, start + SLICE) + 2  # whole frames, if there are any
                end = end if end > 1 else start + SLICE
                await self._send(send, part[start:end])
                start = end
            await self._send(send, part[start:] if start else part)
        await self._end(send)

    async def _send(self, send: Send, part: bytes) -> None:
        body = part if self._packer is None else self._packer.pack(part)
        await within(self._stall, send({"type": "http.response.body", "body": body, "more_body": True}))

    async def _end(self, send: Send) -> None:
        last = b"" if self._packer is None else self._packer.end()
        await within(self._stall, send({"type": "http.response.body", "body": last, "more_body": False}))


async def within(seconds: float, work: Awaitable[None]) -> None:
    """Await work that most often need not wait: a timer is set only when it does. Raises TimeoutError."""
    steps = work.__await__()
    try:
        waits_for = next(steps)
    except StopIteration:
        return
    async with asyncio.timeout(seconds):
        await _rest(steps, waits_for)


@types.coroutine
def _rest(steps: Generator[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """What is left of work that has begun to wait."""
    while True:
        step: Callable[[], Any]
        try:
            step = partial(steps.send, (yield waits_for))
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as exc:
            step = partial(steps.throw, exc)
        try:
            waits_for = step()
        except StopIteration:
            return


@contextlib.asynccontextmanager
async def listening(receive: Receive) -> AsyncIterator[None]:
    """Do what is in the block for as long as the consumer is there. Raises ClientDisconnect when it leaves."""
    serving = asyncio.current_task()
    assert serving is not None
    gone = asyncio.get_running_loop().create_task(_disconnected(receive), name="watching a consumer")
    leave = partial(_leave, serving)
    gone.add_done_callback(leave)
    try:
        yield
    except asyncio.CancelledError:
        if not gone.done():
            raise  # whoever cut it ends it
        serving.uncancel()
        raise ClientDisconnect from None
    finally:
        gone.remove_done_callback(leave)
        gone.cancel()


def _leave(serving: asyncio.Task[Any], gone: asyncio.Task[None]) -> None:
    if not gone.cancelled():
        serving.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _drop(scope: Scope) -> None:
    """Drop the connection, and whatever waits to be written to it: an end could not be written either."""
    abort: Callable[[], None] | None = scope.get("state", {}).get("abort")
    if abort is not None:
        abort()
        await asyncio.sleep(PARTING)  # until its loss is known, which ends this
