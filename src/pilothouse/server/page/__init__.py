"""The page at `/` that people see in a browser: static files, built from `web/` and shipped with the package.

It is a client of the hub like any other and has no operation of its own. Nothing is written into its markup here: what
the hub says reaches it by requests, and is set as text.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..errors import HttpError, error_response
from ..operations import Call, Operation
from .files import ASSETS, BESIDE, INDEX, page_files, send, stylesheet

__all__ = ["OPERATIONS", "POLICY", "ROUTES", "stylesheet"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; frame-src 'self'; worker-src 'self'; manifest-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types pilothouse dompurify"
)
"""Nothing runs that is not a file of ours, nothing is sent elsewhere, and text becomes markup in one place only."""


async def page(call: Call) -> Response:
    root = call.server.root_path
    if root and call.request.scope.get("raw_path") == root.encode():
        return Response(status_code=307, headers={"Location": f"{root}/"})  # where its relative links lead somewhere
    return send(call.request, page_files()[INDEX], POLICY)


def _beside(name: str) -> Route:
    async def answer(request: Request) -> Response:
        return send(request, page_files()[name])

    return Route(f"/{name}", answer, methods=["GET"], name=name)


async def _asset(request: Request) -> Response:
    file = page_files().get(f"{ASSETS}{request.path_params['name']}")
    if file is None:
        return error_response(HttpError(404, "not_found", f"there is nothing at {request.url.path}"))
    return send(request, file)


OPERATIONS = (
    Operation(
        method="GET",
        path="/",
        handler=page,
        scope=None,
        any_query=True,
        answer=str,
        media_type="text/html",
        headers={"If-None-Match": "The ETag of what the caller has."},
        also={304: None, 307: None},
        summary="The page that people see",
        tag="hub",
    ),
)
ROUTES: tuple[BaseRoute, ...] = (
    *map(_beside, BESIDE),
    Route("/assets/{name}", _asset, methods=["GET"], name="assets"),
)
"""No part of the API: they come and go with the page."""
