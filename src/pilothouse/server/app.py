"""All operations as one ASGI application, behind the guard."""

from __future__ import annotations

from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from . import page
from .acp import websocket as acp
from .auth.guard import Guard
from .errors import HttpError, error_response
from .http import openapi
from .http.middleware import SubPath
from .http.operations import Operation, route
from .routes import (
    approvals,
    artifacts,
    commands,
    devices,
    directories,
    external,
    files,
    health,
    hooks,
    login,
    metrics,
    pairing,
    prompts,
    rules,
    search,
    sessions,
    streams,
)
from .state import Server
from .ws import stream as ws

OPERATIONS: tuple[Operation, ...] = (
    *health.OPERATIONS,
    *sessions.OPERATIONS,
    *prompts.QUEUE_OPERATIONS,
    *prompts.OPERATIONS,
    *streams.OPERATIONS,
    *commands.OPERATIONS,
    *approvals.OPERATIONS,
    *rules.OPERATIONS,
    *hooks.OPERATIONS,
    *files.OPERATIONS,
    *artifacts.OPERATIONS,
    *directories.OPERATIONS,
    *search.OPERATIONS,
    *external.OPERATIONS,
    *metrics.OPERATIONS,
    *login.OPERATIONS,
    *pairing.OPERATIONS,
    *devices.OPERATIONS,
    *openapi.OPERATIONS,
    *page.OPERATIONS,
)


def application(server: Server) -> ASGIApp:
    """The application that serves this hub."""
    routes: list[BaseRoute] = [*map(route, OPERATIONS), *page.ROUTES, *ws.ROUTES, *acp.ROUTES]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused})
    app.router.redirect_slashes = False  # a redirect would name the scheme that a proxy speaks to us
    app.router.default = partial(_nothing_there, app.router.not_found)
    app.state.server = server
    app.state.operations = OPERATIONS
    return Guard(SubPath(app, server.root_path) if server.root_path else app, server)


async def _nothing_there(not_found: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Who wants a WebSocket where there is none is told in our shape as well."""
    if scope["type"] != "websocket":
        return await not_found(scope, receive, send)
    exc = HttpError(404, "not_found", f"there is no WebSocket at {scope['path']}")
    return await error_response(exc)(scope, receive, send)


async def _refused(request: Request, exc: Exception) -> Response:
    """What the router refuses, in our shape."""
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    code, message = {
        404: ("not_found", f"there is nothing at {request.url.path}"),
        405: ("method_not_allowed", f"{request.method} is not possible at {request.url.path}"),
    }.get(status, ("refused", str(exc)))
    headers = dict(exc.headers or {}) if isinstance(exc, HTTPException) else {}
    return error_response(HttpError(status, code, message, headers=headers))
