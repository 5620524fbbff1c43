"""uvicorn's protocols with the limits it lacks: how long and how large a request's head may be, how many connect.

A connection that has not asked for anything costs little, but not nothing: its head must arrive in time, one address
may have so many, and when there are too many in all the one that has kept us waiting longest is dropped, be it for its
first request or the next. Nor does one last that takes nothing of its answer. What follows a body (trailers) is
dropped: it must not count as a header.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ..auth.rate_limit import is_loopback, network
from ..limits import Limits
from .middleware import secured

DRAIN = 2.0
"""Seconds for the rest of a body that was answered before it came: to close at once could lose the answer."""
FIELD = 32
"""Bytes that a header costs beside its text."""


class Crowd:
    """All connections of a listener: how many there are, from where, and which do not ask for anything now."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._places: dict[str, int] = {}
        self._waiting: dict[HttpProtocol, None] = {}
        self.count = 0

    def enter(self, connection: HttpProtocol, address: str | None) -> bool:
        """Whether there is room for it. Whoever enters leaves."""
        place = self._place(address)
        if place is not None and self._places.get(place, 0) >= self.limits.per_address:
            return False
        if self.count >= self.limits.sockets:
            longest = next(iter(self._waiting), None)
            if longest is None:
                return False
            longest.drop()
        self.count += 1
        if place is not None:
            self._places[place] = self._places.get(place, 0) + 1
        return True

    def leave(self, address: str | None) -> None:
        self.count -= 1
        place = self._place(address)
        if place is not None:
            self._places[place] -= 1
            if not self._places[place]:
                del self._places[place]

    def waits(self, connection: HttpProtocol) -> None:
        self._waiting[connection] = None

    def asked(self, connection: HttpProtocol) -> None:
        self._waiting.pop(connection, None)

    def _place(self, address: str | None) -> str | None:
        return None if address is None or is_loopback(address) else network(address)


class Seldom(logging.Filter):
    """Of warnings that anybody can cause, by sending what is no HTTP, each is said once in a while, with how often."""

    def __init__(self, every: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._every = every
        self._clock = clock
        self._said: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING or record.exc_info:
            return True
        now = self._clock()
        since, unsaid = self._said.get(record.msg, (-math.inf, 0))
        if now - since < self._every:
            self._said[record.msg] = (since, unsaid + 1)
            return False
        self._said[record.msg] = (now, 0)
        if unsaid:
            record.msg = f"{record.msg} ({unsaid} more since the last of these lines)"
        return True


_seldom = Seldom()


class HttpProtocol(HttpToolsProtocol):
    """One connection. Its head is being read from the first byte of a request, or the connection's start."""

    crowd: Crowd

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.logger.addFilter(_seldom)
        self.access_log = False  # whatever logging is set up: a line of it would hold the ticket of a login link
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._in_head = True  # no body is due
        self._is_partial = False  # a head has begun and is not whole
        self._head_bytes = 0
        self._heads = 0
        self._refusal: tuple[int, str] = (400, "this is not a valid HTTP request")
        self._address = self.client[0] if self.client else None
        self._is_counted = self.crowd.enter(self, self._address)
        if not self._is_counted:
            transport.abort()
            return
        self.crowd.waits(self)
        self._arm(self.crowd.limits.headers)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._unwatch()
        self.leave()
        super().connection_lost(exc)

    def leave(self) -> None:
        """No longer in the crowd; once."""
        self.crowd.asked(self)
        if self._is_counted:
            self._is_counted = False
            self.crowd.leave(self._address)

    def drop(self) -> None:
        self.leave()
        self.transport.abort()

    # -- time --

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(seconds, self._too_late)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self.transport.is_closing() or self._is_answering():
            return
        if self._is_partial:
            self._refusal = (408, "the request did not arrive in time")
            self.send_400_response("")
            self.loop.call_later(DRAIN, self.transport.abort)
        else:
            self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # -- who takes nothing --

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unwatch()
        self._watch_end()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_end()

    def _watch_end(self) -> None:
        """Closing a transport waits until all is sent, and to somebody who does not read nothing ever is."""
        if self.transport.is_closing():
            self._watch()

    def _watch(self) -> None:
        """Only while nobody writes: what waits to be sent becomes less then, or is not taken."""
        waiting = self.transport.get_write_buffer_size()
        if waiting and self._unread is None:
            self._unread = self.loop.call_later(self.crowd.limits.stall, self._look, waiting)

    def _unwatch(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _look(self, before: int) -> None:
        self._unread = None
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch()

    # -- size --

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_head and self._deadline is None and not self._is_answering():
            self._arm(self.crowd.limits.headers)
        heads = self._heads
        super().data_received(data)
        if self._is_partial and self._heads == heads and not self.transport.is_closing():
            self._head_bytes += len(data)  # a long line is reported only when it is whole
            if self._head_bytes > 2 * self.crowd.limits.header_bytes:
                self._refusal = _TOO_LARGE
                self.send_400_response("")

    def on_message_begin(self) -> None:
        self._is_partial = self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()
        self.scope["state"]["abort"] = self.transport.abort

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_partial:
            self._count(len(name) + len(value) + FIELD)
            super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.crowd.limits.header_bytes:
            self._refusal = _TOO_LARGE
            raise ValueError("the head of the request is too large")

    def on_headers_complete(self) -> None:
        self._is_partial = self._in_head = False
        self._heads += 1
        self._disarm()
        self.crowd.asked(self)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_end()
        if self.transport.is_closing() or self.pipeline:
            return
        if not self._in_head:
            self._arm(min(DRAIN, self.crowd.limits.headers))
            return
        self.crowd.waits(self)  # one that has asked once keeps no place for that
        if self._is_partial:  # the next request has begun meanwhile
            self._arm(self.crowd.limits.headers)

    def handle_websocket_upgrade(self) -> None:
        self._disarm()
        self._unwatch()
        self.crowd.asked(self)
        super().handle_websocket_upgrade()
        upgraded = self.transport.get_protocol()
        if isinstance(upgraded, WebSocketProtocol):
            upgraded.on_lost = self.leave
        else:
            self.leave()

    def send_400_response(self, msg: str) -> None:
        """Any refusal of what is not, or not yet, a request."""
        status, reason = self._refusal
        body = b'{"error":{"code":"malformed","message":"%s","recoverable":true,"details":{}}}' % reason.encode()
        given = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        lines = [name + b": " + value + b"\r\n" for name, value in secured([*given, (b"connection", b"close")])]
        if not self._is_answering() or not self.cycle.response_started:  # else it would land amidst another answer
            self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", body]))
        if self._is_answering():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        self._watch_end()


_TOO_LARGE = (431, "the request line and headers are too large")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket; it leaves the crowd when it ends.

    What it sends without end, but in frames that are no message, must not add up: pings, and pieces of nothing.
    """

    on_lost: Any = None

    def handle_ping(self) -> None:
        """The protocol lets us answer only the latest of several; one who reads no answers gets no more of them."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_text(self, event: Any) -> None:
        super().handle_text(event)
        self._gather()

    def handle_bytes(self, event: Any) -> None:
        super().handle_bytes(event)
        self._gather()

    def _gather(self) -> None:
        if self.frames:  # more is to come
            self.frames = [bytearray(self.frames[0])]  # type: ignore[list-item]  # it grows in place

    def send_receive_event_to_app(self) -> None:
        """Text that is none ends the connection, as the protocol has it; uvicorn would log each as a fault of ours."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not _is_text(b"".join(self.frames)):
            self.frames = []
            self.conn.send_close(1007, "text messages are UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def handle_cont(self, event: Any) -> None:
        self.frames[0] += event.data
        if event.fin:
            self.frames = [bytes(self.frames[0])]
            self.send_receive_event_to_app()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True  # a refusal is an answer too; else each would be logged as a fault of ours

    def connection_lost(self, exc: Exception | None) -> None:
        if self.on_lost is not None:
            self.on_lost()
        super().connection_lost(exc)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["state"]["abort"] = self.transport.abort
