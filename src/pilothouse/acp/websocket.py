"""ACP over a WebSocket: one JSON-RPC message per text frame, binary frames ignored.

The link works with any connection object that has the coroutines `recv`, `send` and `close`, as those of the
`websockets` package do on both sides; nothing is imported here. Opening the socket, authentication and reconnecting
belong to whoever makes that object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .framing import DEFAULT_LINE_LIMIT, Oversize
from .transport import QueuedLink

__all__ = ["WebSocket", "WebSocketLink"]


class WebSocket(Protocol):
    """What is needed of a WebSocket connection. `recv` raises when it has ended."""

    async def recv(self) -> str | bytes: ...

    async def send(self, message: str) -> None: ...

    async def close(self) -> None: ...


class WebSocketLink(QueuedLink):
    """A WebSocket as a link: give it to `connect_to_agent` or `AgentSideConnection`.

    The socket's own size limit comes first; with the `websockets` package set `max_size`, whose default of 1 MiB is
    less than some agents send.
    """

    def __init__(self, socket: WebSocket, *, limit: int = DEFAULT_LINE_LIMIT) -> None:
        super().__init__()
        self._socket = socket
        self._limit = limit

    async def read(self) -> Sequence[bytes | Oversize]:
        while True:
            try:
                frame = await self._socket.recv()
            except Exception as exc:
                if _is_end(exc):
                    return ()
                raise
            if isinstance(frame, str):
                data = frame.encode()
                return (data,) if len(data) <= self._limit else (Oversize(len(data), data[:200]),)

    async def deliver(self, frame: bytes) -> None:
        await self._socket.send(frame[:-1].decode())

    async def release(self) -> None:
        await self._socket.close()


def _is_end(exc: BaseException) -> bool:
    """Every WebSocket package names the end in its own way."""
    names: set[Any] = {cls.__name__ for cls in type(exc).__mro__}
    return bool(
        names & {"ConnectionClosed", "ConnectionClosedOK", "WebSocketDisconnect", "EOFError", "ConnectionError"}
    )
