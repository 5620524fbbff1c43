"""The guard: every request and upgrade passes it before anything else reads it.

The order is: the host name it was sent to (`Host`), the page it comes from (`Origin`), the caller. A page whose name
was made to resolve to this machine sends that name, and is refused by it; an address of this machine is not such a
name. The `Caller` is put into the scope; each operation checks the caller's rights. Every answer gets its headers here.
Streams that are cut from here, because a device was revoked or the hub closes, end in an orderly way. All fails closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import HttpError, error_response
from ..http.middleware import cors, secured
from ..state import Exchange, Server
from . import audit
from .browser_logins import cookie, cookie_name, values
from .callers import ADMIN, Caller
from .identity import address, authenticate, by_cookie, is_local, own_name

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
PORTS = {"http": "80", "https": "443"}
_PLAIN = {"ws": "http", "wss": "https"}
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_-])?)(?::([0-9]{1,5}))?", re.ASCII)
_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)")


def host_allowed(host: str, local_address: str | None, allowed: Iterable[str] = ()) -> bool:
    """Whether the hub answers to a `Host`. `local_address` is where the connection arrived.

    A name that is allowed without a port is allowed with any: tunnels and containers have others than ours.
    """
    found = _AUTHORITY.fullmatch(host.lower())
    if found is None:
        return False
    name = found[1]
    if name in LOOPBACK or name == _literal(local_address):
        return True
    return any(entry.lower() in (name, found[0]) for entry in allowed)


def origin_allowed(origin: str, own: str | None, allowed: Iterable[str] = ()) -> bool:
    """Whether pages of an origin may call: those that the hub itself serves, and those that are configured."""
    given = normal_origin(origin)
    if given is None:
        return False
    return given == own or given in {normal_origin(entry) for entry in allowed}


def own_origin(scheme: str, host: str, url: str | None = None) -> str | None:
    """The origin of the pages that the hub serves under a `Host`.

    With TLS in a proxy before us the scheme of the connection is not that of the page; the hub's public `url` tells.
    """
    given = normal_origin("/".join((url or "").split("/", 3)[:3]))
    if given is not None and given == normal_origin(f"{given.partition(':')[0]}://{host}"):
        return given
    return normal_origin(f"{_PLAIN.get(scheme, scheme)}://{host}")


def normal_origin(text: str) -> str | None:
    """An origin with its port unless that is the usual one; None for what is none, such as `null`."""
    found = _ORIGIN.fullmatch(text.lower())
    authority = _AUTHORITY.fullmatch(found[2]) if found else None
    if found is None or authority is None:
        return None
    scheme, (name, port) = found[1], authority.groups()
    return f"{scheme}://{name}" if port in (None, PORTS[scheme]) else f"{scheme}://{name}:{port}"


def _literal(address: str | None) -> str:
    text = (address or "").lower().partition("%")[0].removeprefix("::ffff:")
    return f"[{text}]" if ":" in text else text


END_TIMEOUT = 1.0
"""Seconds that a consumer has to take the end of a stream that was cut; one that was revoked has none."""
CLOSE_CODES = {"revoked": 1008, "changed": 1008, "closed": 1001, "closing": 1012}
SAFE = ("GET", "HEAD", "OPTIONS")


class Guard:
    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server
        self._exchanges: set[Exchange] = set()
        self._is_closing = False

    def close(self) -> None:
        """Cut all streams and take no more requests. What else is under way goes on."""
        self._is_closing = True
        self._server.connections.cut(reason="closing")

    def abandon(self) -> int:
        """Cut whatever is still under way; answers how much that was."""
        for exchange in self._exchanges:
            exchange.cut = exchange.cut or "closing"
            if exchange.task is not None:
                exchange.task.cancel()
        return len(self._exchanges)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        exchange = Exchange()
        answer = _Answer(scope, send, exchange, self._extra(scope))
        self._exchanges.add(exchange)
        try:
            await self._serve(scope, receive, answer)
        except (Exception, asyncio.CancelledError):
            if exchange.cut is None:
                raise
        finally:
            self._exchanges.discard(exchange)
        if exchange.cut is not None:
            await answer.end()

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            if self._is_closing:
                raise HttpError(503, "closing", "the hub is closing", headers={"Connection": "close"})
            preflight = self._check(scope)
            scope["caller"] = None if preflight else await self._identify(scope)
            answer.exchange.login = scope.get("login")
        except Exception as exc:
            await error_response(exc)(scope, receive, answer)
            return
        if preflight:
            await Response(status_code=204)(scope, receive, answer)
            return
        try:
            await self._app(scope, receive, answer)
        finally:
            self._write_down(scope, answer)

    # -- on the way in --

    def _check(self, scope: Scope) -> bool:
        """Whether this is the question of a configured page if it may call. Raises HttpError for whoever may not."""
        headers = Headers(scope=scope)
        origins = headers.getlist("origin")
        if is_local(scope):
            if origins:
                raise HttpError(403, "foreign_origin", "no web page comes by this socket")
            return False
        hosts = headers.getlist("host")
        local = scope["server"][0] if scope.get("server") else None
        if len(hosts) != 1 or not host_allowed(hosts[0], local, self._server.allowed_hosts):
            message = "the hub does not answer to this name; allow it in the configuration (`allowed_hosts`)"
            raise HttpError(421, "wrong_host", message, host=", ".join(hosts)[:200])
        if not origins:
            return False
        own = own_origin(scope["scheme"], hosts[0], self._server.url)
        if len(origins) != 1 or not origin_allowed(origins[0], own, self._server.allowed_origins):
            message = "pages of this origin may not call the hub; allow it in the configuration (`allowed_origins`)"
            raise HttpError(403, "foreign_origin", message, origin=", ".join(origins)[:200])
        asked = "access-control-request-method" in headers
        return asked and scope.get("method") == "OPTIONS" and self._is_guest(scope, headers)

    async def _identify(self, scope: Scope) -> Caller | None:
        if is_local(scope):
            return Caller(name=own_name(scope), scopes=ADMIN)
        headers = Headers(scope=scope)
        given = headers.getlist("authorization")
        if given:
            scheme, _, secret = given[0].partition(" ")
            if len(given) > 1 or scheme.lower() != "bearer":
                return None
            caller = await authenticate(self._server, secret.strip(), client=address(scope))
            scope["refused"] = caller is None
            return caller
        if "cookie" not in headers or _is_elsewhere(scope, headers) or self._is_guest(scope, headers):
            return None
        caller = await by_cookie(self._server, scope)
        scope["stale"] = caller is None and any(values(headers["cookie"], cookie_name(headers["host"])))
        return caller

    def _is_guest(self, scope: Scope, headers: Headers) -> bool:
        """Whether it comes from a page of a configured origin, which is not our own."""
        origin = headers.get("origin")
        own = own_origin(scope["scheme"], headers.get("host", ""), self._server.url)
        return origin is not None and not origin_allowed(origin, own)

    # -- on the way out --

    def _extra(self, scope: Scope) -> Callable[[int], list[tuple[bytes, bytes]]]:
        """Headers that depend on the request and the status."""
        headers = Headers(scope=scope)

        def extra(status: int) -> list[tuple[bytes, bytes]]:
            found: list[tuple[bytes, bytes]] = []
            origin = headers.get("origin")
            if origin is not None and origin_allowed(origin, None, self._server.allowed_origins):
                found += cors(origin)
            if status == 401 and scope.get("stale"):
                name = cookie_name(headers.get("host", ""))
                gone = cookie(name, None, path=self._server.root_path, secure=is_secure(self._server, scope))
                found.append((b"set-cookie", gone.encode("latin-1")))
            return found

        return extra

    def _write_down(self, scope: Scope, answer: _Answer) -> None:
        if scope["type"] == "http" and scope["method"] in SAFE:
            return
        method = scope.get("method", "WEBSOCKET")
        # a WebSocket may have said only in its first message who it is
        audit.record("request", scope.get("caller"), method=method, path=scope["path"], status=answer.status)


def is_secure(server: Server, scope: Scope) -> bool:
    """Whether the browser speaks TLS to us, or to a proxy before us that is configured as our URL or an origin."""
    host = Headers(scope=scope).get("host", "")
    own = own_origin(scope["scheme"], host, server.url) or ""
    return own.startswith("https:") or origin_allowed(f"https://{host}", None, server.allowed_origins)


def _is_elsewhere(scope: Scope, headers: Headers) -> bool:
    """Whether the browser itself says that another site asks. A link that is followed is fine: it only reads."""
    elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    is_followed = headers.get("sec-fetch-mode") == "navigate" and scope.get("method") in ("GET", "HEAD")
    return elsewhere and not is_followed


class _Answer:
    """Sends what the application sends, with the headers of every answer, and knows how far it is."""

    def __init__(
        self, scope: Scope, send: Send, exchange: Exchange, extra: Callable[[int], list[tuple[bytes, bytes]]]
    ) -> None:
        self._scope = scope
        self._send = send
        self.exchange = exchange
        self._extra = extra
        self._is_begun = False
        self._is_over = False
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        kind = message["type"]
        if kind.endswith("response.start"):
            self._is_begun = True
            self.status = message["status"]
            headers = [*message.get("headers", []), *self._extra(message["status"])]
            await self._send({**message, "headers": secured(headers)})
        elif kind.endswith("response.body"):
            await self._body(message)
        else:
            self._is_begun = self._is_begun or kind == "websocket.accept"
            self._is_over = self._is_over or kind == "websocket.close"
            await self._send(message)

    async def _body(self, message: Message) -> None:
        if self._scope.get("method") == "HEAD" and message.get("more_body"):
            self.exchange.cut = "head"  # an endless answer to somebody who wants none
            raise asyncio.CancelledError
        await self._send(message)
        self._is_over = not message.get("more_body", False)

    async def end(self) -> None:
        """End an answer that was cut. A consumer that takes nothing any more is cut off."""
        task = asyncio.current_task()
        while task is not None and task.cancelling():
            task.uncancel()
        if self._is_over:
            return
        reason = self.exchange.cut or "closed"
        try:
            async with asyncio.timeout(0 if reason == "revoked" else END_TIMEOUT):
                await self._last(reason)
        except (TimeoutError, OSError):
            await self._cut_off()
        except RuntimeError:  # uvicorn: an announced length was not reached, or a WebSocket has been closed already
            if self._scope["type"] == "http":
                await self._cut_off()

    async def _last(self, reason: str) -> None:
        if self._scope["type"] == "websocket":
            await self._send({"type": "websocket.close", "code": CLOSE_CODES.get(reason, 1001), "reason": reason})
        elif self._is_begun:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            exc = HttpError(401 if reason in ("revoked", "changed") else 503, reason, f"the connection was {reason}")
            await error_response(exc)(self._scope, _nothing, self)

    async def _cut_off(self) -> None:
        abort = self._scope.get("state", {}).get("abort")
        if abort is not None:
            abort()
            with contextlib.suppress(Exception):
                await asyncio.sleep(0)  # so that the loss of the connection is known when this returns
                await asyncio.sleep(0)


async def _nothing() -> dict[str, Any]:
    return {"type": "http.disconnect"}
