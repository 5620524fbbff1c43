"""The page at `/`: pairs a device in its browser, and shows in plain words what goes on. It is static, three files.

It is a client of the hub like any other and has no operation of its own, so a user interface takes its place by other
files. Nothing may be written into the markup here: what the hub says is set as text by the script.
"""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..operations import Call, Operation

__all__ = ["OPERATIONS", "ROUTES"]

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE = (HERE / "page.html").read_bytes()
BESIDE = {"page.css": "text/css", "page.js": "text/javascript"}
"""The files that the page names, by links relative to it: the hub may be served below a path."""


async def page(call: Call) -> Response:
    return Response(PAGE, media_type="text/html", headers={"Content-Security-Policy": POLICY})


def _route(name: str, media_type: str) -> Route:
    content = (HERE / name).read_bytes()

    async def send(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return Route(f"/{name}", send, methods=["GET"], name=name)


OPERATIONS = (
    Operation(
        method="GET",
        path="/",
        handler=page,
        scope=None,
        answer=str,
        media_type="text/html",
        summary="The page that people see",
        tag="hub",
    ),
)
ROUTES: tuple[BaseRoute, ...] = tuple(_route(name, media_type) for name, media_type in BESIDE.items())
"""No part of the API: they come and go with the page."""
