"""Who presents this secret? The owner by token, a device by its credential, a browser by its cookie, or nobody.

A failure is counted (`rate_limit.py` has the rules), and so is one over a WebSocket's first frame: `authenticate` is
for those. Comparisons take constant time or look up a hash.
"""

from __future__ import annotations

import logging
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from ...log.errors import LogError, UnknownRecord
from ...log.records import Device
from ..errors import HttpError
from ..state import Server
from . import audit
from .browser_logins import Login, cookie_name, values
from .callers import ADMIN, Caller
from .secrets import digest, same

logger = logging.getLogger(__name__)

LOCAL = "local"
"""Who comes by the socket in the home directory, which only its owner can open."""
CLI = "cli"
CLIENT = "pilothouse-client"
LONGEST_NAME = 40
TOKEN = "token"  # noqa: S105
SEEN_EVERY = 60.0
"""Seconds between two notes that a device was here."""
LONGEST = 1024
"""Characters of a secret; none of ours is longer."""


def is_local(scope: Scope) -> bool:
    """Whether a connection came by a socket of the file system: those have no port."""
    server = scope.get("server")
    return server is not None and server[1] is None


def own_name(scope: Scope) -> str:
    """What the owner's programs call themselves (`Pilothouse-Client`), by the home's socket: it is in the log then."""
    given = Headers(scope=scope).get(CLIENT, "").strip()
    return given if 0 < len(given) <= LONGEST_NAME and given.isascii() and given.isprintable() else LOCAL


def address(scope: Scope) -> str | None:
    """Where a connection comes from; None by the home's socket."""
    client = scope.get("client")
    return str(client[0]) if client else None


async def authenticate(server: Server, secret: str, *, client: str | None = None) -> Caller | None:
    """The caller with this token or credential, or None, which is counted against `client`, an address.

    For a WebSocket: `await authenticate(server, secret, client=address(websocket.scope))`. Raises HttpError 429 while
    that address has to wait; close the connection then.
    """
    refuse_shut(server, client)
    if 0 < len(secret) <= LONGEST:
        if same(secret, server.token):
            return Caller(name=TOKEN, scopes=ADMIN)
        device = await server.hub.log.devices.by_credential(digest(secret))
        if device is not None:
            await _seen(server, device)
            return as_caller(device)
    failed(server, client, "secret")
    return None


async def by_cookie(server: Server, scope: Scope) -> Caller | None:
    """The caller whose browser sent a cookie that is still good."""
    login = await login_of(server, scope)
    if login is None:
        return None
    scope["login"] = login.key
    if login.device_id is None:
        return Caller(name=login.name, scopes=ADMIN)
    try:
        device = await server.hub.log.devices.get(login.device_id)
    except UnknownRecord:
        return None
    if device.revoked is not None:
        return None
    await _seen(server, device)
    return as_caller(device)


async def login_of(server: Server, scope: Scope) -> Login | None:
    headers = Headers(scope=scope)
    name = cookie_name(headers.get("host", ""))
    for value in values("; ".join(headers.getlist("cookie")), name):
        login = await server.logins.find(value[:LONGEST])
        if login is not None:
            return login
    return None


def as_caller(device: Device) -> Caller:
    return Caller(name=device.name, scopes=frozenset(device.scopes), device_id=device.id)


# -- failures -----------------------------------------------------------------------------------------------------


def refuse_shut(server: Server, client: str | None) -> None:
    """Raises HttpError 429 for an address that is not looked at."""
    if wait := server.failures.shut(client):
        raise _too_many(wait)


def failed(server: Server, client: str | None, what: str, **more: Any) -> None:
    """Count a wrong secret. Raises HttpError 429 when there were too many."""
    wait = server.failures.add(client)
    if server.failures.is_burst(client):
        audit.record("failures", level=logging.WARNING, address=client, what=what, **more)
    elif not wait:
        audit.record("failure", address=client, what=what, **more)
    if wait:
        raise _too_many(wait)


def _too_many(wait: int) -> HttpError:
    message = f"too many failed attempts; try again in {wait} s"
    return HttpError(429, "too_many_failures", message, headers={"Retry-After": str(wait)})


async def _seen(server: Server, device: Device) -> None:
    now = server.clock()
    last = server.seen.get(device.id)
    if last is not None and now - last < SEEN_EVERY:
        return
    server.seen[device.id] = now
    try:
        await server.hub.log.devices.seen(device.id)
    except LogError:
        logger.warning("that %s was here could not be written down", device.id, exc_info=True)
