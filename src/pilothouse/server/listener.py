"""The application on sockets: loopback or further by TCP, with or without TLS, and the socket of the home directory.

uvicorn speaks HTTP; the loop and the signals belong to whoever opens the listener. The home's socket never has TLS:
nobody but its owner can listen there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import uvicorn
from starlette.types import ASGIApp

from .auth.guard import Guard
from .auth.rate_limit import is_loopback
from .http.protocols import Crowd, HttpProtocol
from .limits import Limits
from .ws.sockets import SocketProtocol

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT = 3.0
"""Seconds that answers under way have when the listener closes."""
ABANDON_TIMEOUT = 2.0
"""Seconds that those have which were cancelled after that."""
HANDSHAKE_TIMEOUT = 10.0
"""Seconds for a TLS handshake."""


class BindRefused(Exception):
    """The hub will not listen there; the message says what would change that."""


def check_bind(host: str, tls: bool, insecure: bool) -> None:
    """Raises BindRefused for an address that others can reach while what they send could be read on the way."""
    if tls or insecure or host == "localhost" or is_loopback(host.strip("[]")):
        return
    raise BindRefused(
        f"{host or 'every address'!r} can be reached from other machines, and without TLS anybody between could read "
        "the token. Give a certificate and its key, keep to 127.0.0.1 behind a proxy or an SSH tunnel, "
        "or say --insecure-bind if the network is yours"
    )


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the program's business."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, but each socket has TLS or not by what it is, and a handshake has its time."""
        await self.lifespan.startup()
        loop = asyncio.get_running_loop()
        self.servers = []
        for bound in sockets or []:
            tls: dict[str, Any] = {}
            if self.config.ssl is not None and bound.family != socket.AF_UNIX:
                tls = {"ssl": self.config.ssl, "ssl_handshake_timeout": HANDSHAKE_TIMEOUT}
            server = await loop.create_server(self._protocol, sock=bound, backlog=self.config.backlog, **tls)
            self.servers.append(server)
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        state: dict[str, Any] = {}
        kind: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = kind(config=self.config, server_state=self.server_state, app_state=state)
        return protocol


class Listener:
    """Serves an application on sockets that are already bound. Open it by `async with`.

    At the end streams are cut, then answers under way have a few seconds, then what is left is cancelled.
    """

    def __init__(
        self,
        app: ASGIApp,
        sockets: Sequence[socket.socket],
        limits: Limits,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        self._app = app
        self._sockets = list(sockets)
        self.crowd = Crowd(msgspec.structs.replace(limits, sockets=min(limits.sockets, _descriptors())))
        config = uvicorn.Config(
            app,
            loop="none",
            lifespan="off",
            http=type("Protocol", (HttpProtocol,), {"crowd": self.crowd}),
            ws=SocketProtocol,
            ws_ping_interval=limits.heartbeat,
            ws_ping_timeout=limits.stall,
            ws_max_size=limits.frame,
            ws_per_message_deflate=False,
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            timeout_graceful_shutdown=None,  # the steps are ours, see `__aexit__`
            timeout_keep_alive=30,
        )
        self._server = _Uvicorn(config)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._server.serve(sockets=self._sockets), name="http server")
        while not self._server.started:
            if self._task.done():
                await self._task
                raise RuntimeError("the HTTP server ended before it began")
            await asyncio.sleep(0.001)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        guard = self._app if isinstance(self._app, Guard) else None
        if guard is not None:
            guard.close()
        if self._task is not None and not await self._ended(CLOSE_TIMEOUT):
            if guard is not None and (left := guard.abandon()):
                logger.warning("%d requests were still under way and have been cancelled", left)
            await self._ended(ABANDON_TIMEOUT / 2)
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
            if not await self._ended(ABANDON_TIMEOUT):
                self._server.force_exit = True
            await self._task
        for listening in self._sockets:
            listening.close()

    async def _ended(self, seconds: float) -> bool:
        assert self._task is not None
        done, _ = await asyncio.wait((self._task,), timeout=seconds)
        return bool(done)

    async def wait(self) -> None:
        """Until it ends by itself, which it should not."""
        if self._task is not None:
            await asyncio.shield(self._task)


def _descriptors() -> int:
    """Connections that this process can have and still open files and start agents."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if soft == resource.RLIM_INFINITY else max(16, soft * 3 // 4)


def tcp_socket(host: str, port: int) -> socket.socket:
    """A socket bound to an address. Raises OSError."""
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only on sockets that say they are TCP
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def local_socket(path: Path) -> socket.socket:
    """The home directory's own socket, open to its owner only. Whoever calls this holds the home's lock.

    Raises OSError. A socket left by a hub that died is replaced.
    """
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        bound.bind(str(path))
    except BaseException:
        bound.close()
        raise
    finally:
        os.umask(before)
    bound.setblocking(False)
    return bound
