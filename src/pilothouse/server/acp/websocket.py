"""Remote ACP at `/acp`: each connection is an ACP client of the hub; one JSON-RPC message is one text frame.

The methods are in `server`; here a WebSocket becomes the link beneath them. Who has shown no token with the
upgrade authenticates by the protocol's own `authenticate`, and is let go if that does not come in time.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from ...acp.errors import ConnectionClosed
from ...acp.transport import PullLink
from ..auth.callers import Caller
from ..auth.identity import address, authenticate
from ..errors import HttpError
from ..state import Server
from ..ws.sockets import (
    STALLED,
    STRANGERS,
    TOO_MANY,
    UNAUTHORIZED,
    Disconnected,
    Gathering,
    Socket,
    Stalled,
    frame,
    only_upgrades,
)
from .server import AcpFace
from .update_frames import Run

AUTHENTICATION = 60.0
"""Seconds a client has to authenticate; a person may have to be asked for the token."""
NOBODY = Caller(name="nobody", scopes=frozenset())


class SocketLink(Gathering, PullLink):
    """A WebSocket as a link. Frames of one turn of the loop are written together. `stalled`: nothing was taken."""

    def __init__(self, socket: Socket) -> None:
        Gathering.__init__(self)
        PullLink.__init__(self)
        self._socket = socket

    async def read(self) -> Sequence[bytes]:
        while True:
            try:
                text = await self._socket.receive()
            except Disconnected:
                return ()
            if isinstance(text, str):
                return (text.encode(),)

    @property
    def congested(self) -> bool:
        return self._socket.congested

    @property
    def unsent(self) -> int:
        return self._socket.unsent + self._gathered

    def send(self, line: bytes) -> None:
        self._gather(frame(line[:-1]))

    def send_run(self, run: Run) -> None:
        """Updates that other clients get as well: their frames are made once."""
        self._flush()
        self._write(run.framed(frame))

    def _write(self, data: bytes) -> None:
        if self._is_closed:
            raise ConnectionClosed
        try:
            self._socket.write(data)
        except Disconnected:
            self._is_closed = True
            raise ConnectionClosed from None

    async def drain(self) -> None:
        self._flush()
        try:
            await self._socket.drain()
        except Stalled:
            end = self._give_up()
            self._on_end(end)  # whoever else waits for the client need not wait for it to notice
            raise end from None

    async def close(self) -> None:
        """Give the link up; the socket is for its owner to close, who knows why."""
        self._flush_later()
        self._is_closed = True
        await self._stop_pulling()


async def remote(websocket: WebSocket) -> None:
    """Serve one ACP client until it leaves, is let go, or is cut."""
    server: Server = websocket.app.state.server
    socket = Socket(websocket, server.limits)
    try:
        await socket.accept({"Acp-Connection-Id": secrets.token_hex(16)})
        await _serve(server, websocket, socket)
    except Disconnected:
        pass
    except HttpError as exc:
        socket.close({401: UNAUTHORIZED, 429: TOO_MANY}.get(exc.status, UNAUTHORIZED), exc.record.message)


async def _serve(server: Server, websocket: WebSocket, socket: Socket) -> None:
    link = SocketLink(socket)
    refused: list[HttpError] = []

    async def identify(token: str) -> Caller | None:
        try:
            return await authenticate(server, token, client=address(websocket.scope))
        except HttpError as exc:
            refused[:] = [exc]
            return None

    face = AcpFace(
        server.hub,
        link,
        caller=websocket.scope.get("caller"),
        authenticate=identify,
        policy=server.default_policy,
        limit=server.limits.subscriptions,
        cache=server.frame_cache,
    )
    try:
        caller = websocket.scope.get("caller")
        if caller is None:
            socket.limit(STRANGERS)
            with server.connections.hold(NOBODY):
                caller = await _known(face)
            socket.limit(server.limits.frame)
            websocket.scope["caller"] = caller
        if caller is not None:
            with server.connections.hold(caller):
                await face.wait_closed()
    finally:
        await face.close()
    if refused:
        raise refused[0]
    if link.stalled:
        socket.close(STALLED, "nothing was taken for too long; go on by session/resume after the last seq you have")
    else:
        socket.close()


async def _known(face: AcpFace) -> Caller | None:
    """Who the client is; None when it is gone before it has said so. Raises HttpError 401."""
    closed = asyncio.ensure_future(face.wait_closed())
    try:
        done, _ = await asyncio.wait(
            (face.authenticated, closed), timeout=AUTHENTICATION, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        closed.cancel()
    if face.authenticated in done:
        return face.authenticated.result()
    if not done:
        raise HttpError(401, "unauthorized", "the client did not authenticate in time")
    return None


ROUTES: tuple[BaseRoute, ...] = (WebSocketRoute("/acp", remote), Route("/acp", only_upgrades, methods=["GET"]))
