"""The page at `/` of a hub that has no user interface installed: it says that the hub runs, and where to go on.

A user interface takes its place by putting its own operations here; nothing else knows of this page.
"""

from __future__ import annotations

from starlette.responses import Response

from .operations import Call, Operation

__all__ = ["OPERATIONS"]

# relative links: the hub may be served below a path
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pilothouse</title>
<h1>Pilothouse</h1>
<p>The hub is running.</p>
<p>What it can do is described in <a href="openapi.json">openapi.json</a> (needs a login or a token).
Whether it is well: <a href="healthz">healthz</a>.</p>
</html>
"""


async def page(call: Call) -> Response:
    return Response(_PAGE, media_type="text/html", headers={"Content-Security-Policy": _POLICY})


_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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
