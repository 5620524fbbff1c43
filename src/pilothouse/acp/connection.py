"""The asyncio driver: moves lines between a link and the peer, and work to its handlers.

Notifications are handled in receive order, one at a time per session, before the answer that follows them is
given to its caller. Requests run as tasks of their own. Reading stops while too much is unhandled. Whatever the
peer does, `close` ends, and every open call gets an answer or an error.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

import msgspec
from msgspec import Raw, UnsetType

from .dispatch import (
    Diagnostic,
    Dispatcher,
    FunctionDispatcher,
    Job,
    JsonValue,
    MethodHandler,
    Serving,
    StreamDirection,
    StreamEvent,
    StreamObserver,
    internal_error,
    session_of,
)
from .errors import ConnectionClosed, RequestError, ValidationError
from .framing import DEFAULT_LINE_LIMIT, LARGE, Oversize
from .jsonrpc import RequestId
from .lanes import Backlog, Call, Handler, Lane, Updates, handling
from .methods import CANCEL_REQUEST
from .peer import Malformed, Message, Peer, Response, Unmatched
from .transport import Link, MessageLink, StreamLink, Transport

__all__ = [
    "Connection",
    "Diagnostic",
    "Dispatcher",
    "JsonValue",
    "MethodHandler",
    "StreamDirection",
    "StreamEvent",
    "StreamObserver",
]

logger = logging.getLogger("pilothouse.acp")

DEFAULT_BACKLOG = 4 * 1024 * 1024
"""Bytes received and not yet handled before reading stops."""
MESSAGE_OVERHEAD = 512
"""What a small message costs in memory besides its bytes, so that a flood of tiny ones is bounded too."""
MAX_INFLIGHT = 4096
"""Requests of the peer that may be under way at once; more are refused, not queued."""
MAX_UNSENT = 8 * 1024 * 1024
"""Bytes of answers that a peer may leave unread before it is no longer read from."""
STALL = 10.0
"""Seconds after which a handler that others wait for is reported."""
SENDS_IN_A_ROW = 64
"""Frames sent without a pause before the rest of the program gets its turn."""
UPDATE = b'"session/update"'
UPDATE_HEADS = (b'{"jsonrpc":"2.0","method":"session/update"', b'{"jsonrpc": "2.0", "method": "session/update"')
"""Tell which lines are worth the decoder of updates; the usual beginnings cost less than a search."""
FEW = 8
"""Lines that are worth the attempt to decode them all at once."""
LINGER = 1.0
"""How long requests under way may still finish after the peer has closed its end."""


class Pending:
    """A call of this side that waits for its answer."""

    __slots__ = ("future", "lane", "session")

    def __init__(self, future: asyncio.Future[Raw | None], session: str | None, lane: Lane | None) -> None:
        self.future = future
        self.session = session
        self.lane = lane  # the lane whose handler makes this call

    def resolve(self, response: Response[Pending]) -> None:
        if self.future.done():
            return
        if response.error is not None:
            self.future.set_exception(response.error)
        else:
            self.future.set_result(response.result)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # a caller that is gone already must not cause a log entry


class Answer:
    """The answer to a call, to be given when the updates before it have been handled."""

    __slots__ = ("pending", "response")

    overtakes = False

    def __init__(self, pending: Pending, response: Response[Pending]) -> None:
        self.pending = pending
        self.response = response

    def act(self) -> bool:
        self.pending.resolve(self.response)
        return False

    def abandon(self) -> None:
        self.act()  # it has been received: that some updates will not be handled does not make it less of an answer


class Connection:
    """A JSON-RPC 2.0 connection.

    `handler` is called as `handler(method, params, is_notification)`; a `Dispatcher` can be given instead. The link
    is a `Link`, a message `Transport`, or a stream writer with its reader.
    """

    def __init__(
        self,
        handler: MethodHandler | Dispatcher,
        writer: asyncio.StreamWriter | Transport | Link,
        reader: asyncio.StreamReader | None = None,
        *,
        observers: Sequence[StreamObserver] | None = None,
        listening: bool = True,
        receive_timeout: float | None = None,
        line_limit: int = DEFAULT_LINE_LIMIT,
        backlog_limit: int = DEFAULT_BACKLOG,
        max_inflight: int = MAX_INFLIGHT,
        reply_to_malformed: bool = False,
        on_diagnostic: Callable[[Diagnostic], None] | None = None,
        describe_end: Callable[[], Awaitable[ConnectionClosed]] | None = None,
    ) -> None:
        self._dispatcher: Dispatcher = handler if not callable(handler) else FunctionDispatcher(handler)
        self._decode_update = getattr(self._dispatcher, "decode_update", None)
        self._decode_updates: Callable[[bytes], list[Any]] | None = getattr(self._dispatcher, "decode_updates", None)
        self._link = _as_link(writer, reader, line_limit)
        self._peer: Peer[Pending] = Peer()
        self._backlog = Backlog(backlog_limit)
        self._lanes: dict[str, Lane] = {}
        self._serving = Serving(self._send, self._answer_aside, self._backlog, max_inflight)
        self._aside: set[asyncio.Future[Any]] = set()
        self._observers: list[StreamObserver] = list(observers or ())
        self._receive_timeout = receive_timeout
        self._reply_to_malformed = reply_to_malformed
        self._on_diagnostic = on_diagnostic or _log_diagnostic
        self._describe_end = describe_end
        self._end: ConnectionClosed | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._sent_in_a_row = 0
        self._silence: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._unread_answers = False
        self._started = False
        if listening:
            self._start()

    # -- public: life cycle --

    @property
    def is_closed(self) -> bool:
        return self._end is not None

    async def wait_closed(self) -> ConnectionClosed:
        """Wait until no more messages can arrive; the answer says why."""
        await self._ended.wait()
        assert self._end is not None
        return self._end

    async def main_loop(self) -> None:
        """Receive until the peer closes its end. For connections made with `listening=False`."""
        if self._started:
            raise RuntimeError("the connection is already receiving")
        self._start()
        await self._ended.wait()
        await self._linger()

    async def close(self) -> None:
        """Fail open calls, end handlers, give up the link. Safe to call twice and from a handler."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(asyncio.current_task()))
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def add_observer(self, observer: StreamObserver) -> None:
        """Call `observer` with every message that passes, in both directions."""
        self._observers.append(observer)

    # -- public: calls --

    async def send_request(self, method: str, params: JsonValue | None = None) -> Any:
        """Call the peer and answer the result as plain values. Raises RequestError and ConnectionClosed."""
        raw = await self.request(method, params, session=session_of(params))
        return None if raw is None else msgspec.json.decode(raw)

    async def request(self, method: str, params: Any = None, *, session: str | None = None) -> Raw | None:
        """Call the peer and answer the result as raw JSON.

        With `session` the answer is held back until all updates of that session received before it are handled.
        Cancelling the awaiting task tells the peer by `$/cancel_request`.
        """
        self._raise_if_closed()
        notification = handling.get()
        lane = None if notification is None else self._lanes.get(notification.session_id)
        if lane is not None and lane.current is not notification:
            lane = None  # made by a task that its handler left behind, or on another connection
        pending = Pending(asyncio.get_running_loop().create_future(), session, lane)
        request_id, frame = self._peer.request(method, params, pending)
        if lane is not None:
            lane.enter_nested()
        try:
            await self._send(frame)
            return await pending.future
        except asyncio.CancelledError:
            cancel = self._peer.cancel(request_id)
            if cancel is not None and self._end is None:
                try:
                    self._write(cancel)
                except ConnectionClosed as exc:
                    self._finish(exc)
            raise
        finally:
            self._peer.abandon(request_id)
            if lane is not None:
                lane.leave_nested()

    async def send_notification(self, method: str, params: JsonValue | None = None) -> None:
        """Tell the peer something; returns when it has been handed to the operating system or its buffer.

        A peer that has closed its own sending half may still listen, so this is tried until the link refuses.
        """
        if self._closing is not None:
            self._raise_if_closed()
        await self._send(self._peer.notify(method, params))

    # -- sending --

    async def _send(self, frame: bytes) -> None:
        try:
            self._write(frame)
            if self._link.congested:
                await self._link.drain()
            elif self._sent_in_a_row > SENDS_IN_A_ROW:
                # Sending that never waits would keep everything else from running, a cancellation among it.
                self._sent_in_a_row = 0
                await asyncio.sleep(0)
            else:
                self._sent_in_a_row += 1
        except ConnectionClosed as exc:
            # A peer that takes nothing any more answers nothing any more: the other calls fail with this one.
            await self._lost(exc)
            raise self._end or exc from None

    def _write(self, frame: bytes) -> None:
        self._link.send(frame)
        if self._observers:
            self._observe(StreamDirection.OUTGOING, frame)

    def _raise_if_closed(self) -> None:
        if self._end is not None:
            raise ConnectionClosed(self._end.reason, exit_code=self._end.exit_code, stderr_tail=self._end.stderr_tail)

    # -- receiving --

    def _start(self) -> None:
        self._started = True
        self._backlog.on_room = self._link.resume
        self._watch_silence()
        self._link.start(self._received, self._source_ended)

    def _received(self, lines: Sequence[bytes | Oversize]) -> None:
        self._handle_all(lines)
        if self._backlog.full:
            self._backlog.waiting = True
            self._link.pause()
            self._watch_stall()
        elif self._unread_answers and self._link.unsent > MAX_UNSENT:
            # a peer that sends and does not read what it is told for it: it has to read before it is read from
            self._link.pause()
            self._spawn_aside(self._resume_when_drained())
        if self._silence is not None:
            self._watch_silence()

    def _source_ended(self, error: BaseException | None) -> None:
        end = None if error is None else ConnectionClosed(f"Connection closed: {error!r}")
        if self._describe_end is None:
            self._finish(end or ConnectionClosed())
        else:
            self._spawn_aside(self._lost(end))

    def _watch_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
        if self._receive_timeout is not None and self._end is None:
            self._silence = asyncio.get_running_loop().call_later(self._receive_timeout, self._silent)

    def _silent(self) -> None:
        if self._backlog.waiting:
            self._watch_silence()  # it is this side that does not listen
            return
        self._finish(ConnectionClosed(f"Connection closed: nothing received for {self._receive_timeout} s"))

    async def _resume_when_drained(self) -> None:
        self._unread_answers = False
        try:
            await self._link.drain()
        except ConnectionClosed as exc:
            self._finish(exc)
        self._link.resume()

    def _watch_stall(self) -> None:
        """Something waits for a handler; say so when it takes suspiciously long."""
        if self._stall is None:
            busy = {key: lane.current for key, lane in self._lanes.items() if lane.current is not None}
            self._stall = asyncio.get_running_loop().call_later(STALL, self._stalled, busy)

    def _stalled(self, busy: dict[str, Any]) -> None:
        self._stall = None
        for key, notification in busy.items():
            lane = self._lanes.get(key)
            if lane is not None and lane.current is notification and not lane.nested:
                text = f"a handler of session {key!r} has not returned for {STALL:g} s, and others wait for it"
                self._diagnose("stalled", text)

    def _handle_all(self, lines: Sequence[bytes | Oversize]) -> None:
        decode_update = self._decode_update
        if decode_update is None or self._observers:
            for line in lines:
                self._handle(line)
            return
        if together := self._decode_together(lines):
            whole = self._dispatcher.updates()
            whole.notifications = together
            self._lane(together[0].session_id).put(whole)
            self._weigh([whole], sum(map(len, lines)) // len(lines) + MESSAGE_OVERHEAD)
            return
        run: Updates | None = None
        runs: list[Updates] = []
        session = None
        for line in lines:
            try:
                if not line.startswith(UPDATE_HEADS) and UPDATE not in line:
                    run = session = None
                    self._handle(line)
                    continue
                notification = decode_update(line).params
            except (msgspec.DecodeError, ValidationError, ValueError, TypeError, RecursionError):
                # not quite as it should be: the long way can tell what it is and mend it
                run = session = None
                self._handle(line)
                continue
            if notification.session_id != session:
                session = notification.session_id
                run = self._dispatcher.updates()
                runs.append(run)
                add = run.notifications.append
                self._lane(session).put(run)
            add(notification)
        if runs:
            self._weigh(runs, sum(map(len, lines)) // len(lines) + MESSAGE_OVERHEAD)

    def _decode_together(self, lines: Sequence[bytes | Oversize]) -> list[Any]:
        """Lines that are updates of one session, all of them, as an agent that talks sends them; nothing otherwise."""
        if self._decode_updates is None or len(lines) < FEW or len(lines[0]) > LARGE:
            return []
        try:
            messages = self._decode_updates(b"[%b]" % b",".join(lines))  # type: ignore[arg-type]  # see the except
        except (msgspec.DecodeError, ValidationError, ValueError, TypeError, RecursionError):
            return []
        notifications = [message.params for message in messages]
        one_each = len(notifications) == len(lines)
        is_one = len({notification.session_id for notification in notifications}) == 1
        return notifications if one_each and is_one else []

    def _weigh(self, runs: list[Updates], average: int) -> None:
        """Count runs towards the backlog, by the average size of what came with them."""
        for run in runs:
            run.weight = average * len(run.notifications)
            self._backlog.size += run.weight

    def _handle(self, line: bytes | Oversize) -> None:
        try:
            self._handle_line(line)
        except Exception as exc:
            # Whatever one line has brought about, the next one is handled.
            logger.exception("handling a line failed")
            self._diagnose("malformed", f"handling it failed: {exc!r}", excerpt=str(line[:500]))

    def _handle_line(self, line: bytes | Oversize) -> None:
        incoming = self._peer.receive(line)
        if isinstance(incoming, Message):
            if self._observers and isinstance(line, bytes):
                self._observe(StreamDirection.INCOMING, line)
            assert isinstance(line, bytes)
            if isinstance(incoming.id, UnsetType):
                self._notified(incoming, len(line))
            else:
                self._requested(incoming, incoming.id, len(line))
        elif isinstance(incoming, Malformed):
            self._diagnose("malformed", incoming.reason, excerpt=incoming.excerpt)
            if self._reply_to_malformed and incoming.reply is not None:
                self._answer_aside(incoming.reply)
        else:
            if self._observers and isinstance(line, bytes):
                self._observe(StreamDirection.INCOMING, line)
            if isinstance(incoming, Response):
                self._answered(incoming)
            else:
                self._unmatched(incoming)

    def _notified(self, message: Message, size: int) -> None:
        method = message.method
        assert isinstance(method, str)
        params = None if isinstance(message.params, UnsetType) else message.params
        if method == CANCEL_REQUEST:
            self._cancel_requested(params)
            return
        try:
            route = self._dispatcher.notification(method, params)
        except (ValidationError, RequestError) as exc:
            self._diagnose("malformed", _describe(exc), method, _excerpt(params))
            return
        if route is None:
            self._diagnose("unhandled_notification", "no handler", method)
            return
        session, fn, kwargs = route
        weight = size + MESSAGE_OVERHEAD
        self._backlog.size += weight
        self._lane(session or "").put(Call(session or "", fn, kwargs, weight))

    def _requested(self, message: Message, request_id: RequestId, size: int) -> None:
        method = message.method
        assert isinstance(method, str)
        params = None if isinstance(message.params, UnsetType) else message.params
        error = self._serving.refusal(request_id)
        if error is None:
            try:
                session, fn, kwargs, finish = self._dispatcher.request(method, params)
            except RequestError as exc:
                error = exc
            except Exception as exc:
                logger.exception("dispatching %s failed", method)
                error = internal_error(exc)
        if error is not None:
            self._serving.refuse(request_id, error)
            return
        job = Job(self._serving, request_id, method, fn, kwargs, finish, size + MESSAGE_OVERHEAD)
        self._serving.take(job, self._lanes.get(session or ""))

    def _answered(self, response: Response[Pending]) -> None:
        pending = response.token
        if pending.session is not None and pending.lane is None:
            lane = self._lanes.get(pending.session)
            if lane is not None and lane.task is not None:
                lane.put(Answer(pending, response))
                self._watch_stall()
                return
        # also a call made by a handler: held back for another session's handler, the two could wait for each other
        pending.resolve(response)

    def _unmatched(self, incoming: Unmatched) -> None:
        if not incoming.late:
            text = f"response to {incoming.id!r}, which is not open"
            self._diagnose("unmatched_response", f"{text}: {incoming.error}" if incoming.error else text)

    def _lane(self, session: str) -> Lane:
        lane = self._lanes.get(session)
        if lane is None:
            lane = self._lanes[session] = Lane(session, self._backlog, self._handler_failed, self._lane_done)
        return lane

    def _lane_done(self, lane: Lane) -> None:
        if self._lanes.get(lane.key) is lane:
            del self._lanes[lane.key]

    def _handler_failed(self, fn: Handler, exc: BaseException) -> None:
        name = getattr(fn, "__qualname__", repr(fn))
        logger.error("notification handler %s failed", name, exc_info=exc)
        self._diagnose("handler_error", f"{name}: {exc!r}")

    def _cancel_requested(self, params: Raw | None) -> None:
        try:
            request_id = msgspec.json.decode(params or b"", type=CancelParams).requestId
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            self._diagnose("malformed", str(exc), CANCEL_REQUEST, _excerpt(params))
            return
        self._serving.cancel(request_id)

    def _answer_aside(self, frame: bytes) -> None:
        """Answer from the reader, which must not wait for the peer to read."""
        self._unread_answers = True
        try:
            self._write(frame)
        except ConnectionClosed as exc:
            self._finish(exc)

    # -- observing --

    def _observe(self, direction: StreamDirection, line: bytes) -> None:
        event = StreamEvent(direction, line.rstrip(b"\n"))
        for observer in tuple(self._observers):
            try:
                result = observer(event)
            except Exception as exc:
                logger.exception("observer failed")
                self._diagnose("observer_error", repr(exc))
                continue
            if inspect.isawaitable(result):
                self._spawn_aside(result)

    def _spawn_aside(self, work: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(work)
        self._aside.add(task)
        task.add_done_callback(self._done_aside)

    def _done_aside(self, task: asyncio.Future[Any]) -> None:
        self._aside.discard(task)
        if not task.cancelled() and (exc := task.exception()) is not None:
            logger.error("an observer failed", exc_info=exc)
            self._diagnose("observer_error", repr(exc))

    def _diagnose(self, kind: str, message: str, method: str | None = None, excerpt: str = "") -> None:
        try:
            self._on_diagnostic(Diagnostic(kind, message, method, excerpt))
        except Exception:
            logger.exception("on_diagnostic failed")

    def report_repair(self, method: str, repairs: Sequence[object]) -> None:
        """Called by dispatchers for what they had to mend."""
        for item in repairs:
            self._diagnose("repair", str(item), method)

    # -- ending --

    async def _lost(self, end: ConnectionClosed | None) -> None:
        """The peer is gone: say as much as can be found out, then fail every open call."""
        if self._end is not None:
            return
        if self._describe_end is not None:
            known = await self._describe_end()
            reason = known.reason if end is None else end.reason
            end = ConnectionClosed(reason, exit_code=known.exit_code, stderr_tail=known.stderr_tail)
        self._finish(end or ConnectionClosed())

    def _finish(self, end: ConnectionClosed) -> None:
        if self._end is None:
            self._end = end
        for pending in self._peer.close():
            pending.fail(self._end)
        for timer in (self._silence, self._stall):
            if timer is not None:
                timer.cancel()
        self._ended.set()

    async def _linger(self) -> None:
        """The peer has closed its end; let what it asked for before that finish, but not for long."""
        work = self._serving.tasks | {lane.task for lane in self._lanes.values() if lane.task is not None}
        work.discard(asyncio.current_task())
        if work:
            await asyncio.wait(work, timeout=LINGER)

    async def _close(self, caller: asyncio.Task[Any] | None) -> None:
        self._serving.close()
        self._finish(ConnectionClosed())
        lanes = list(self._lanes.values())
        tasks: set[asyncio.Future[Any]] = {*self._serving.tasks, *self._aside}
        tasks |= {lane.task for lane in lanes if lane.task is not None}
        tasks.discard(caller)
        for lane in lanes:
            lane.stop(spare=caller)
        for task in tasks:
            task.cancel()
        await self._link.close()
        if tasks:
            # a handler that refuses to be cancelled must not keep `close` from ending
            await asyncio.wait(tasks, timeout=LINGER)


class CancelParams(msgspec.Struct):
    requestId: int | float | str | None  # noqa: N815


def _as_link(writer: Any, reader: Any, line_limit: int) -> Link:
    if reader is not None:
        if isinstance(reader, asyncio.StreamReader) and isinstance(writer, asyncio.StreamWriter):
            return StreamLink(reader, writer, limit=line_limit)
        raise TypeError(f"expected a StreamWriter and a StreamReader, got {writer!r} and {reader!r}")
    if isinstance(writer, Transport):
        return MessageLink(writer)
    if hasattr(writer, "start") and hasattr(writer, "drain"):
        link: Link = writer
        return link
    raise TypeError(f"expected a StreamWriter with its StreamReader, a Transport or a Link, got {writer!r}")


def _describe(exc: Exception) -> str:
    return f"{exc.message} {exc.data}" if isinstance(exc, RequestError) and exc.data else str(exc)


def _excerpt(params: Raw | None) -> str:
    return "" if params is None else bytes(params)[:500].decode(errors="replace")


def _log_diagnostic(diagnostic: Diagnostic) -> None:
    if diagnostic.kind not in ("handler_error", "observer_error"):  # logged with their traceback already
        logger.warning("%s", diagnostic)
