"""The WebSocket stream at `/ws`: authenticate, follow sessions, send commands; one connection for all sessions.

A consumer that has not said who it is is told nothing. What it follows is sent by one loop for each subscription;
whatever it asks is answered by a message that carries its `requestId` or `commandId`. A consumer that takes nothing
for too long is let go with its cursor as the reason, so that it can go on where it stood.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from ... import __version__
from ...log.errors import LogClosed
from ...model.commands import parse_command
from ...model.errors import ValidationError
from ..auth.callers import SCOPES, Caller, Scope
from ..auth.identity import address, authenticate
from ..errors import HttpError, explain
from ..http.operations import Call, checked, need
from ..routes import sessions
from ..routes.approvals import approval_row
from ..routes.commands import carry_out, checked_id
from ..state import Server
from .messages import (
    Authenticate,
    CommandMessage,
    History,
    ListSessions,
    Message,
    Ping,
    StartSession,
    Subscribe,
    Unsubscribe,
    parse_message,
    request_id_of,
)
from .pending_feed import Attention
from .session_list_feed import Roster
from .sockets import (
    FAILED,
    GOING_AWAY,
    STALLED,
    STRANGERS,
    TOO_MANY,
    UNAUTHORIZED,
    Disconnected,
    Socket,
    Stalled,
    frame,
    only_upgrades,
)
from .subscriptions import ALL, BATCH_BYTES, Form, Outlet, Subscriptions, events_message

logger = logging.getLogger(__name__)

AUTHENTICATION = 10.0
"""Seconds a consumer has to say who it is."""
UNDER_WAY = 32
"""Commands of one consumer that may be under way; further messages are not read meanwhile."""
IN_ORDER = frozenset({"send_message", "resume", "edit_queued", "cancel_queued", "move_queued"})
"""Commands about the queue, which mean something else when one overtakes another."""
NOBODY = Caller(name="nobody", scopes=frozenset())


class Lanes:
    """What all WebSockets of a server share."""

    def __init__(self, server: Server) -> None:
        self.attention = Attention(server.hub.log)
        self.roster = Roster(server.hub)


def lanes_of(websocket: WebSocket) -> tuple[Server, Lanes]:
    """The server of a connection, and what its WebSockets share, which the first of them makes."""
    state = websocket.app.state
    if not hasattr(state, "lanes"):
        state.lanes = Lanes(state.server)
    return state.server, state.lanes


async def lane(websocket: WebSocket) -> None:
    """Serve one consumer until it leaves, is let go, or is cut."""
    server, shared = lanes_of(websocket)
    socket = Socket(websocket, server.limits)
    try:
        await socket.accept()
        caller = websocket.scope.get("caller") or await _identified(server, socket, websocket)
        websocket.scope["caller"] = caller
        with server.connections.hold(caller):
            await Consumer(server, shared, caller, socket).serve()
    except Disconnected:
        pass
    except HttpError as exc:
        with contextlib.suppress(Disconnected):
            socket.write(frame(_encode({"type": "error", "error": exc.record})))
        socket.close(_CLOSED_FOR.get(exc.status, UNAUTHORIZED), exc.record.code)


_CLOSED_FOR = {401: UNAUTHORIZED, 429: TOO_MANY}
_encode = msgspec.json.Encoder().encode


async def _identified(server: Server, socket: Socket, websocket: WebSocket) -> Caller:
    """Who the first message says it is. Raises HttpError 401 and 429, Disconnected."""
    socket.limit(STRANGERS)
    with server.connections.hold(NOBODY):
        try:
            async with asyncio.timeout(AUTHENTICATION):
                text = await socket.receive()
        except TimeoutError:
            raise HttpError(401, "unauthorized", "no `authenticate` message came in time") from None
        try:
            message = parse_message(text)
        except Exception:  # whatever it is, it does not say who comes
            message = Ping()
        if not isinstance(message, Authenticate):
            raise HttpError(401, "unauthorized", "the first message must be `authenticate` with a `token`")
        caller = await authenticate(server, message.token, client=address(websocket.scope))
        if caller is None:
            raise HttpError(401, "unauthorized", "the token is not valid")
        socket.limit(server.limits.frame)
        return caller


class Consumer:
    """One authenticated connection."""

    def __init__(self, server: Server, shared: Lanes, caller: Caller, socket: Socket) -> None:
        self._server = server
        self._shared = shared
        self._caller = caller
        self._socket = socket
        self._outlet = Outlet(socket)
        self._room = asyncio.Semaphore(UNDER_WAY)
        self._order = asyncio.Lock()
        self._tasks = asyncio.TaskGroup()
        self._subscriptions = Subscriptions(server.hub.log, self._outlet, server.frame_cache, self._tasks)

    async def serve(self) -> None:
        """Until it leaves or is let go. Raises CancelledError when it is cut."""
        try:
            async with self._shared.attention.watched(), self._shared.roster.watched(), self._tasks:
                version = self._shared.roster.version  # before the list is read: a row may be told twice, never missed
                await self._greet()
                self._tasks.create_task(self._tell_approvals())
                self._tasks.create_task(self._tell_sessions(version))
                self._tasks.create_task(self._listen())
        except* Stalled:
            self._socket.close(STALLED, self._cursor())
        except* Disconnected:
            pass
        except* LogClosed:
            self._socket.close(GOING_AWAY, "the hub is closing")
        except* Exception:
            logger.exception("a WebSocket consumer could not be served")
            self._socket.close(FAILED, "something went wrong inside Pilothouse; its log has the trace")

    def _cursor(self) -> str:
        """Where to go on, in the few bytes that a close frame has."""
        text = _encode({"after": self._subscriptions.cursors()}).decode()
        return text if len(text) <= 123 else "nothing was taken for too long; go on after the last seq you have"

    async def _greet(self) -> None:
        caller = self._caller
        scopes = [scope for scope in SCOPES if caller.may(scope)]
        await self._outlet.say("authenticated", name=caller.name, scopes=scopes, version=__version__)
        if caller.may("read"):
            await self._list(ListSessions())

    async def _tell_approvals(self) -> None:
        """All that is pending now, then each change of that."""
        if not self._caller.may("read"):
            return
        attention, outlet = self._shared.attention, self._outlet
        told = attention.pending
        await outlet.say("approvals", approvals=[approval_row(record) for record in told.values()])
        while True:
            now = attention.pending
            for approval_id in now.keys() - told.keys():
                await outlet.say("approval_requested", approval=approval_row(now[approval_id]))
            for approval_id in told.keys() - now.keys():
                decided = attention.decided.get(approval_id) or told[approval_id]
                await outlet.say("approval_resolved", approval=approval_row(decided))
            told = now
            if now is attention.pending:
                await attention.changed()

    async def _tell_sessions(self, version: int) -> None:
        """Each row that changes, as it is by then."""
        if not self._caller.may("read"):
            return
        roster = self._shared.roster
        while True:
            await roster.changed(version)
            version, frames = roster.version, roster.since(version)
            if frames is None:
                await self._list(ListSessions())
            elif frames:
                await self._outlet.write(b"".join(frames))

    # -- what it says --

    async def _listen(self) -> None:
        while True:
            text = await self._socket.receive()
            try:
                message = parse_message(text)
            except Exception as exc:
                await self._refuse(exc, requestId=request_id_of(text))
                continue
            scope, handle = _HANDLERS[type(message)]
            try:
                if scope is not None:
                    need(self._caller, scope)
                await handle(self, message)
            except (Disconnected, Stalled):
                raise
            except Exception as exc:
                await self._refuse(exc, requestId=message.request_id)

    async def _refuse(self, exc: Exception, **ids: Any) -> None:
        _, error = explain(exc)
        await self._outlet.say("error", **ids, error=error)

    async def _again(self, message: Authenticate) -> None:
        raise HttpError(409, "conflict", f"this connection is {self._caller.name}'s already; open another one")

    async def _subscribe(self, message: Subscribe) -> None:
        form, after, limit = Form(message.batch, message.source), message.after, self._server.limits.subscriptions
        pause = message.every / 1000
        if message.session_ids is None:
            if not isinstance(after, int):
                raise HttpError(422, "invalid", "without `sessionIds` the cursor is one number", field="after")
            await self._subscriptions.add(ALL, after, form, message.request_id, pause)
            return
        if not message.session_ids:  # nothing would be said of it, and every message is answered
            raise HttpError(422, "invalid", "name the sessions, or leave this out for all", field="sessionIds")
        for session_id in dict.fromkeys(message.session_ids):
            try:
                if session_id not in self._subscriptions and len(self._subscriptions) >= limit:
                    raise HttpError(
                        429,
                        "too_many_subscriptions",
                        f"{limit} sessions can be followed; leave `sessionIds` out for all",
                    )
                start = after if isinstance(after, int) else after.get(session_id, 0)
                await self._subscriptions.add(session_id, start, form, message.request_id, pause)
            except (Disconnected, Stalled):
                raise
            except Exception as exc:
                await self._refuse(exc, requestId=message.request_id, sessionId=session_id)

    async def _unsubscribe(self, message: Unsubscribe) -> None:
        if message.session_ids is None:
            await self._subscriptions.clear()
        for session_id in message.session_ids or ():
            await self._subscriptions.remove(session_id)
        await self._outlet.say("unsubscribed", requestId=message.request_id, sessionIds=message.session_ids)

    async def _list(self, message: ListSessions) -> None:
        fields = msgspec.structs.asdict(message)
        request_id = fields.pop("request_id")
        page = await sessions.find(self._call(query=checked(fields, sessions.Listed)))
        await self._outlet.say("sessions_list", requestId=request_id, sessions=page.sessions, next=page.next)

    async def _history(self, message: History) -> None:
        log, session_id = self._server.hub.log, message.session_id
        entries = await log.read(session_id, message.after, message.limit, max_bytes=BATCH_BYTES)
        last = await log.last_seq(session_id)
        if not entries:
            fields = {"sessionId": session_id, "events": [], "seq": min(message.after, last), "more": False}
            await self._outlet.say("history", requestId=message.request_id, **fields)
            return
        more = entries[-1].seq < last
        asked = {"requestId": message.request_id} if message.request_id is not None else {}
        head = {"type": "history", **asked, "more": more}
        body = events_message(session_id, entries, source=message.source)
        await self._outlet.write(frame(_encode(head)[:-1] + b"," + body.partition(b",")[2]))

    async def _ping(self, message: Ping) -> None:
        await self._outlet.say("pong", requestId=message.request_id)

    # -- what it wants done --

    async def _command(self, message: CommandMessage) -> None:
        await self._room.acquire()
        self._tasks.create_task(self._act(message, lambda: self._run(message)))

    async def _start(self, message: StartSession) -> None:
        await self._room.acquire()
        self._tasks.create_task(self._act(message, lambda: self._open(message)))

    async def _act(self, message: Any, act: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """Do it, and answer. Who leaves meanwhile leaves it running: it was asked for."""
        ids = {"requestId": message.request_id, "commandId": message.command_id}
        try:
            result = await act()
        except Exception as exc:
            _, error = explain(exc)
            await self._outlet.say("command_result", **ids, ok=False, error=error)
        else:
            await self._outlet.say("command_result", **ids, ok=True, **result)
        finally:
            self._room.release()

    async def _run(self, message: CommandMessage) -> dict[str, Any]:
        fields = {**message.command, "commandId": message.command_id}
        ordered = message.command.get("command") in IN_ORDER
        async with self._order if ordered else contextlib.nullcontext():
            done = await carry_out(self._server, self._caller, message.session_id, fields)
        return {"sessionId": message.session_id, "result": done.result, "seq": done.seq}

    async def _open(self, message: StartSession) -> dict[str, Any]:
        given = {"agent": message.agent, "cwd": message.cwd, "title": message.title, "policy": message.policy}
        body = checked({**given, "client_request_id": checked_id(message.command_id)}, sessions.NewSession)
        command = {"command": "send_message", "message": message.prompt, "commandId": message.command_id}
        if message.prompt is not None:
            _check_prompt(message.prompt)  # before there is a session that nobody would hear of
        answer = await sessions.start(self._call(body=body), field="commandId")
        session = msgspec.json.decode(bytes(answer.body))
        if message.prompt is None:
            return {"sessionId": session["id"], "session": session}
        sent = await carry_out(self._server, self._caller, session["id"], command)
        return {"sessionId": session["id"], "session": session, "result": sent.result, "seq": sent.seq}

    def _call(self, *, query: Any = None, body: Any = None) -> Call:
        """An operation of HTTP by another road, so that both do the same."""
        request: Any = None  # none of these looks at it
        return Call(server=self._server, caller=self._caller, request=request, path={}, query=query, body=body)


def _check_prompt(prompt: Any) -> None:
    """Raises ValidationError that names it as the caller did."""
    try:
        parse_command({"command": "send_message", "message": prompt})
    except ValidationError as exc:
        raise ValidationError(exc.reason, exc.path.replace("message", "prompt", 1)) from None


Handle = Callable[[Consumer, Any], Awaitable[None]]
_HANDLERS: dict[type[Message], tuple[Scope | None, Handle]] = {
    Authenticate: (None, Consumer._again),
    Subscribe: ("read", Consumer._subscribe),
    Unsubscribe: ("read", Consumer._unsubscribe),
    ListSessions: ("read", Consumer._list),
    History: ("read", Consumer._history),
    CommandMessage: (None, Consumer._command),
    StartSession: ("prompt", Consumer._start),
    Ping: (None, Consumer._ping),
}

ROUTES: tuple[BaseRoute, ...] = (WebSocketRoute("/ws", lane), Route("/ws", only_upgrades, methods=["GET"]))
