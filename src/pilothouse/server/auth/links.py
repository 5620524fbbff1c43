"""Where a link to this hub leads, and what a browser is told: addresses, cookies."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import Request

from ..state import Server
from .browser_logins import cookie, cookie_name
from .guard import is_secure, normal_origin, own_origin
from .identity import is_local


def base_url(server: Server, request: Request) -> str:
    """The hub's address without a slash at its end; by the home's socket, and if none is known, just the path."""
    if server.url is not None:
        return server.url
    if is_local(request.scope):
        return server.root_path
    scheme = "https" if is_secure(server, request.scope) else "http"
    return f"{scheme}://{request.headers['host'].lower()}{server.root_path}"


def is_browser(request: Request) -> bool:
    """Whether a page that the hub serves makes this request. The guard has checked its origin."""
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    if origin is not None:
        return normal_origin(origin) in (own_origin("http", host), own_origin("https", host))
    return request.headers.get("sec-fetch-site") == "same-origin"


def set_cookie(server: Server, request: Request, value: str | None) -> dict[str, str]:
    """The header that logs a browser in, or out."""
    name = cookie_name(Headers(scope=request.scope).get("host", ""))
    secure = is_secure(server, request.scope)
    return {"Set-Cookie": cookie(name, value, path=server.root_path, secure=secure)}
