"""The seam between a connection and the handlers of its messages, and the requests of the peer in progress.

Each request runs as a task of its own and is answered exactly once: with its handler's result, its error, or the note
that it was cancelled. A `StreamObserver` sees every message that passes, a `Repair` every correction of one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from .errors import INVALID_REQUEST, ConnectionClosed, RequestError
from .jsonrpc import RequestId, encode_error, encode_result
from .lanes import Backlog, Handler, Lane, Updates


class StreamDirection(StrEnum):
    INCOMING = "incoming"
    OUTGOING = "outgoing"


@dataclass(frozen=True)
class StreamEvent:
    """One message as it passed; `message` is decoded only when asked for."""

    direction: StreamDirection
    raw: bytes

    @cached_property
    def message(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.raw)
        return decoded


StreamObserver = Callable[[StreamEvent], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something a peer did that had to be mended, skipped or refused; never fatal."""

    kind: str
    """malformed · repair · unmatched_response · unhandled_notification · handler_error · observer_error · stalled"""
    message: str
    method: str | None = None
    excerpt: str = ""

    def __str__(self) -> str:
        where = f" in {self.method}" if self.method else ""
        return f"{self.kind}{where}: {self.message}" + (f" | {self.excerpt}" if self.excerpt else "")


JsonValue = Any
MethodHandler = Callable[[str, JsonValue | None, bool], Awaitable[JsonValue | None]]


class Dispatcher(Protocol):
    """Turns received methods into handler calls."""

    decode_update: Callable[[bytes], Any] | None
    """Decodes a line that is a `session/update` and nothing else, raising for all others; None to not be asked.

    A dispatcher that also has `decode_updates` is given many lines at once as one JSON array, and answers a list.
    """

    def updates(self) -> Updates:
        """A new run of updates for the handler, to be filled with what `decode_update` answers."""
        ...

    def notification(self, method: str, params: Raw | None) -> tuple[str | None, Handler, dict[str, Any]] | None:
        """The session a notification belongs to and how to handle it; None when nobody wants it."""
        ...

    def request(
        self, method: str, params: Raw | None
    ) -> tuple[str | None, Handler, dict[str, Any], Callable[[Any], Any]]:
        """The same for a request, with what turns the handler's value into a result. Raises RequestError."""
        ...


class FunctionDispatcher:
    """Serves every method by one function of decoded values."""

    decode_update: Callable[[bytes], Any] | None = None

    def __init__(self, handler: MethodHandler) -> None:
        self._handler = handler

    def updates(self) -> Updates:
        raise AssertionError("not asked for without decode_update")

    def notification(self, method: str, params: Raw | None) -> tuple[str | None, Handler, dict[str, Any]]:
        values = _decoded(params)
        return session_of(values), self._call, {"method": method, "params": values, "is_notification": True}

    def request(
        self, method: str, params: Raw | None
    ) -> tuple[str | None, Handler, dict[str, Any], Callable[[Any], Any]]:
        values = _decoded(params)
        kwargs = {"method": method, "params": values, "is_notification": False}
        return session_of(values), self._call, kwargs, lambda value: value

    async def _call(self, method: str, params: Any, is_notification: bool) -> Any:
        return await self._handler(method, params, is_notification)


def _decoded(params: Raw | None) -> Any:
    try:
        return None if params is None else msgspec.json.decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RequestError.invalid_params({"reason": str(exc)}) from None


def session_of(params: Any) -> str | None:
    session = params.get("sessionId") if isinstance(params, dict) else getattr(params, "session_id", None)
    return session if isinstance(session, str) else None


logger = logging.getLogger("pilothouse.acp")


class Job:
    """One request. As an action of a lane it starts in its turn."""

    __slots__ = ("finish", "fn", "id", "kwargs", "method", "serving", "task", "weight")

    overtakes = True

    def __init__(
        self,
        serving: Serving,
        request_id: RequestId,
        method: str,
        fn: Handler,
        kwargs: dict[str, Any],
        finish: Callable[[Any], Any],
        weight: int,
    ) -> None:
        self.serving = serving
        self.id = request_id
        self.method = method
        self.fn = fn
        self.kwargs = kwargs
        self.finish = finish
        self.weight = weight
        self.task: asyncio.Task[None] | None = None

    def act(self) -> bool:
        return self.serving.start_queued(self)

    def abandon(self) -> None:
        self.serving.drop_queued(self)


class Serving:
    """What is under way on one connection.

    `send` sends an answer and may wait; `send_nowait` is for what must be answered from the reader.
    """

    def __init__(
        self,
        send: Callable[[bytes], Awaitable[None]],
        send_nowait: Callable[[bytes], None],
        backlog: Backlog,
        limit: int,
    ) -> None:
        self._send = send
        self._send_nowait = send_nowait
        self._backlog = backlog
        self._limit = limit
        self._open: dict[RequestId, Job] = {}
        self._closing = False

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        return {job.task for job in self._open.values() if job.task is not None}

    def refusal(self, request_id: RequestId) -> RequestError | None:
        """Why a request cannot be taken, before anything else is known of it."""
        if request_id in self._open:
            return RequestError(INVALID_REQUEST, "Invalid request", {"reason": f"id {request_id!r} is already in use"})
        if len(self._open) >= self._limit:
            return RequestError.internal_error({"details": f"more than {self._limit} requests are under way"})
        return None

    def refuse(self, request_id: RequestId, error: RequestError) -> None:
        self._send_nowait(encode_error(request_id, error))

    def take(self, job: Job, lane: Lane | None) -> None:
        """Start a request, after what its session still has to handle."""
        self._open[job.id] = job
        if lane is not None and lane.busy:
            self._backlog.size += job.weight
            lane.put(job)
        else:
            self._start(job)

    def start_queued(self, job: Job) -> bool:
        self._backlog.shrink(job.weight)
        if self._open.get(job.id) is not job:
            return False  # cancelled, and answered, while it was waiting
        self._start(job)
        return True

    def drop_queued(self, job: Job) -> None:
        self._backlog.shrink(job.weight)
        self._open.pop(job.id, None)

    def cancel(self, request_id: RequestId) -> None:
        """The peer no longer wants an answer to this, but it gets one."""
        job = self._open.get(request_id)
        if job is None:
            return
        if job.task is None:
            del self._open[request_id]
            self.refuse(request_id, RequestError.request_cancelled())
        else:
            # in the loop's next turn: a task cancelled before its first step would never get to answer
            asyncio.get_running_loop().call_soon(job.task.cancel)

    def close(self) -> None:
        """From now on handlers are ended, not answered for."""
        self._closing = True

    def _start(self, job: Job) -> None:
        # named by the loop: a name of our own would cost more than the task
        job.task = asyncio.get_running_loop().create_task(self._run(job))

    async def _run(self, job: Job) -> None:
        try:
            frame = encode_result(job.id, job.finish(await job.fn(**job.kwargs)))
        except asyncio.CancelledError:
            if self._closing:
                raise
            frame = encode_error(job.id, RequestError.request_cancelled())
        except RequestError as exc:
            frame = encode_error(job.id, exc)
        except NotImplementedError:
            frame = encode_error(job.id, RequestError.method_not_found(job.method))
        except Exception as exc:
            logger.exception("handler of %s failed", job.method)
            frame = encode_error(job.id, internal_error(exc))
        finally:
            # inside the task, because a callback would cost every request another turn of the loop
            del self._open[job.id]
        if not self._closing:
            try:
                await self._send(frame)
            except ConnectionClosed:
                pass  # nobody is left to hear the answer; whoever waits on the connection has been told


def internal_error(exc: BaseException) -> RequestError:
    return RequestError.internal_error({"details": str(exc) or repr(exc)})
