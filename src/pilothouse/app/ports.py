"""The port that a hub is served on: whether it may be, whether it can be, and what it is called from outside.

It is taken before the hub is opened, so that a start which cannot succeed changes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import ssl
from pathlib import Path

from msgspec import Struct

from ..config import ServerConfig


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

    def close(self) -> None:
        self.socket.close()


def bind(settings: ServerConfig, *, insecure: bool = False) -> Bound:
    """Take the port, and look whether it may and can be served. Raises CannotListen."""
    from ..server.listener import BindRefused, check_bind, tcp_socket

    try:
        check_bind(settings.host, settings.tls_cert is not None, insecure)
        _check_certificate(settings)
        return Bound(tcp_socket(settings.host, settings.port), settings)
    except BindRefused as exc:
        raise CannotListen(str(exc)) from exc
    except OSError as exc:
        raise unusable(settings, exc) from exc


def unusable(settings: ServerConfig, exc: OSError) -> CannotListen:
    """Why a port cannot be had, and what would help."""
    host, port = settings.host, settings.port
    known = {
        errno.EADDRINUSE: (
            f"port {port} of {host} is taken by another program. Stop that, or choose another port by --port, "
            "PILOTHOUSE_PORT or `port` under [server] in config.toml; 0 takes a free one"
        ),
        errno.EACCES: f"this user may not listen on port {port}; choose one above 1023",
        errno.EADDRNOTAVAIL: f"this machine has no address {host}; 127.0.0.1 is always there",
    }
    return CannotListen(known.get(exc.errno or 0, f"can't listen on {host} port {port}: {exc}"))


def _check_certificate(settings: ServerConfig) -> None:
    cert, key = file_path(settings.tls_cert), file_path(settings.tls_key)
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


def file_path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text is not None else None
