"""A hub put on sockets: that of its home for its owner, and a port for browsers, phones and programs.

Whoever opens a hub on a home also serves it on the home's socket, so that commands in other processes find it. The
place is written when everything listens and taken back before anything closes, so who finds it can use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import secrets
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ..config import Config, ServerConfig
from ..hub.hub import Hub
from ..model.events import utc_now
from ..remote.place import HAS_SOCKETS, Place, clear_place, remove_place, socket_path, write_place
from .agents import AgentList

__all__ = ["Bound", "CannotListen", "Serving", "bind", "serving_aside"]

logger = logging.getLogger(__name__)

HEAD_START = 0.4
"""Seconds that a session has before its hub is served aside: the first words must not wait for the server to be
loaded, and a turn that is over by then needs none."""


class CannotListen(Exception):
    """The hub cannot be served there; the message says why and what would help."""


class Bound(Struct, frozen=True):
    """A port that is ours before the hub is opened, and how it is to be served."""

    socket: socket.socket
    settings: ServerConfig

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Where browsers go: what the settings say, else the address that was bound."""
        settings = self.settings
        if settings.public_url is not None:
            return settings.public_url.rstrip("/") + "/"
        host = _reachable(settings.host)
        host = f"[{host}]" if ":" in host else host
        scheme = "https" if settings.tls_cert is not None else "http"
        return f"{scheme}://{host}:{self.port}{settings.root_path.rstrip('/')}/"

    @property
    def is_private(self) -> bool:
        """Whether only this machine gets there."""
        if self.settings.public_url is not None:
            return False
        host = self.settings.host.strip("[]")
        return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def bind(settings: ServerConfig, *, insecure: bool = False) -> Bound:
    """Take the port, and look whether it may and can be served. Raises CannotListen."""
    from ..server.listener import BindRefused, check_bind, tcp_socket

    host, port = settings.host, settings.port
    try:
        check_bind(host, settings.tls_cert is not None, insecure)
        _check_certificate(settings)
        return Bound(tcp_socket(host, port), settings)
    except BindRefused as exc:
        raise CannotListen(str(exc)) from exc
    except OSError as exc:
        help_for = {
            errno.EADDRINUSE: (
                f"port {port} of {host} is taken by another program. Stop that, or choose another port by --port, "
                "PILOTHOUSE_PORT or `port` under [server] in config.toml; 0 takes a free one"
            ),
            errno.EACCES: f"this user may not listen on port {port}; choose one above 1023",
            errno.EADDRNOTAVAIL: f"this machine has no address {host}; 127.0.0.1 is always there",
        }
        raise CannotListen(help_for.get(exc.errno or 0, f"can't listen on {host} port {port}: {exc}")) from exc


def _check_certificate(settings: ServerConfig) -> None:
    cert, key = _path(settings.tls_cert), _path(settings.tls_key)
    if cert is None and key is None:
        return
    if cert is None or key is None:
        raise CannotListen("a certificate and its key are needed: --tls-cert and --tls-key")
    for path in (cert, key):
        if not path.is_file():
            raise CannotListen(f"{path}: there is no such file")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as exc:
        raise CannotListen(f"{cert} and {key} can't be used for TLS: {exc}") from exc


def _no_password() -> str:
    raise ValueError("the key has a password; give one without, readable by you only")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _reachable(host: str) -> str:
    """An address that leads to a host; for "all addresses" that by which this machine reaches others."""
    host = host.strip("[]")
    if host not in ("0.0.0.0", "::", ""):  # noqa: S104 - told what it is, not bound
        return host
    family = socket.AF_INET6 if host == "::" else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        # no packet is sent: this only asks which way one would go
        probe.connect(("2001:db8::1" if host == "::" else "192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "::1" if host == "::" else "127.0.0.1"


class Serving:
    """Serves a hub while it is open; open it by `async with`, inside of the hub. `bound` adds the port.

    Raises OSError when a socket cannot be made, TokenError.
    """

    def __init__(self, config: Config, hub: Hub, bound: Bound | None = None) -> None:
        self._config = config
        self._hub = hub
        self._bound = bound
        self._open = contextlib.AsyncExitStack()
        self.agents = AgentList(config, hub)
        self.server: Any = None
        self._listener: Any = None
        self.notices: tuple[str, ...] = ()
        """What the owner should be told."""

    async def __aenter__(self) -> Self:
        try:
            await self._listen()
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        remove_place(self._config.home)
        await self._open.aclose()

    async def wait(self) -> None:
        """Until it ends by itself, which it should not."""
        await self._listener.wait()

    async def _listen(self) -> None:
        await asyncio.to_thread(_load)  # importing all this takes a while, in which the agent can be started
        from ..server.application import application
        from ..server.context import Server
        from ..server.listener import Listener, local_socket, tcp_socket

        home, bound = self._config.home, self._bound
        # told of the hub before; who finds it now must not take it for this one
        await asyncio.to_thread(clear_place, home)
        settings = bound.settings if bound is not None else ServerConfig()
        await self.agents.refresh()
        self._open.push_async_callback(self.agents.close)
        self.server = Server(
            self._hub,
            token=self._token(),
            agents=self.agents,
            default_policy=self._config.policy,
            root_path=settings.root_path,
            url=bound.url if bound is not None else None,
            allowed_hosts=_hosts(settings),
            allowed_origins=frozenset(settings.allowed_origins),
        )
        app = application(self.server)
        place = Place(pid=os.getpid(), started=utc_now())
        if HAS_SOCKETS:
            path = await asyncio.to_thread(socket_path, home)
            own = local_socket(path)
            place = replace(place, socket=str(path))
        else:
            own = tcp_socket("127.0.0.1", 0)
            place = replace(place, host="127.0.0.1", port=own.getsockname()[1])
        listener = Listener(
            app,
            [own, bound.socket] if bound is not None else [own],
            self.server.limits,
            certificate=_path(settings.tls_cert),
            key=_path(settings.tls_key),
        )
        self._listener = await self._open.enter_async_context(listener)
        if bound is not None:
            place = replace(place, host=place.host or settings.host, port=place.port or bound.port, url=bound.url)
        await asyncio.to_thread(write_place, home, place)

    def _token(self) -> str:
        """The home's token where a port needs one; else one that nobody knows."""
        if self._bound is None and HAS_SOCKETS:
            return secrets.token_urlsafe(32)
        from ..server.tokens import load_token

        token = load_token(self._config.home)
        self.notices = token.notices
        return token.value


@contextlib.asynccontextmanager
async def serving_aside(config: Config, hub: Hub) -> AsyncIterator[None]:
    """Serve a hub on its home's socket without anybody waiting for it. That it cannot be served is only told."""
    serving = Serving(config, hub)
    begun = asyncio.Event()

    async def begin() -> None:
        await asyncio.sleep(HEAD_START)
        begun.set()
        await serving.__aenter__()

    opening = asyncio.get_running_loop().create_task(begin(), name="serving the hub")
    opening.add_done_callback(_told)
    try:
        yield
    finally:
        if not begun.is_set():
            opening.cancel()
        await asyncio.wait((opening,))
        if not opening.cancelled() and opening.exception() is None:
            await serving.__aexit__(None, None, None)


def _told(opening: asyncio.Task[None]) -> None:
    if not opening.cancelled() and (error := opening.exception()) is not None:
        logger.warning("other commands cannot reach this hub: %s", error, exc_info=not isinstance(error, OSError))


def _load() -> None:
    from ..server import application, listener  # noqa: F401


def _hosts(settings: ServerConfig) -> frozenset[str]:
    """Names to answer to: those that are allowed, and the one under which a proxy offers it."""
    public = urlsplit(settings.public_url).netloc if settings.public_url is not None else ""
    return frozenset(filter(None, (*settings.allowed_hosts, public)))


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text is not None else None
