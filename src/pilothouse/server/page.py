"""The page at `/`: static files, built from `web/`, shipped with the package, and held in memory ready to be sent.

The page is a client of the hub like any other and has no operation of its own. The files hold nothing of the hub's, so
they need no credential; what the hub knows reaches the page by requests. There is a file for each name in the table and
no other way to one, whatever a path says. Names of assets contain a hash of their content, so browsers may cache them;
all others are revalidated each time.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .errors import HttpError, error_response
from .http.operations import Call, Operation
from .http.sse import wants_gzip

PLACE = Path(__file__).parents[1] / "web"
INDEX = "index.html"
ASSETS = "assets/"
BESIDE = (
    *("manifest.webmanifest", "sw.js", "licences.txt"),
    *("icon.svg", "icon-192.png", "icon-512.png", "maskable-512.png", "touch-192.png"),
)
"""The files that are not assets, by links relative to the page: the hub may be served below a path."""
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
}
PACKED_ALREADY = frozenset((".png",))
FOR_EVER = "public, max-age=31536000, immutable"
EACH_TIME = "no-cache"


class PageFile:
    """One file; it is packed when it is first wanted so."""

    def __init__(self, name: str, content: bytes) -> None:
        suffix = PurePosixPath(name).suffix
        self.content = content
        self.media_type = TYPES[suffix]
        self.etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        self.caching = FOR_EVER if name.startswith(ASSETS) else EACH_TIME
        self._is_packable = suffix not in PACKED_ALREADY

    @cached_property
    def packed(self) -> bytes | None:
        """None where packing does not pay."""
        made = gzip.compress(self.content, 9, mtime=0) if self._is_packable else self.content
        return made if len(made) < len(self.content) else None


@cache
def page_files() -> dict[str, PageFile]:
    """All that are served, by their path relative to the page."""
    assets = sorted(f"{ASSETS}{path.name}" for path in (PLACE / ASSETS).iterdir() if path.suffix in TYPES)
    return {name: PageFile(name, (PLACE / name).read_bytes()) for name in (INDEX, *BESIDE, *assets)}


def stylesheet() -> str:
    """The path of the page's styles, for what else is shown to people."""
    return next(name for name in page_files() if name.startswith(ASSETS) and name.endswith(".css"))


def send(request: Request, file: PageFile, policy: str | None = None) -> Response:
    """The file as its caller wants it: packed or plain, or only that it is the one they have."""
    headers = {"ETag": file.etag, "Cache-Control": file.caching, "Vary": "Accept-Encoding"}
    if policy is not None:
        headers["Content-Security-Policy"] = policy
    if _has(request, file.etag):
        return Response(status_code=304, headers=headers)
    packed = file.packed if wants_gzip(request.headers.get("accept-encoding", "")) else None
    if packed is not None:
        # both forms are the same file; a tag that says so is a weak one
        headers |= {"Content-Encoding": "gzip", "ETag": f"W/{file.etag}"}
    return Response(packed or file.content, media_type=file.media_type, headers=headers)


def _has(request: Request, etag: str) -> bool:
    given = request.headers.get("if-none-match", "")
    return given.strip() == "*" or etag in (tag.strip().removeprefix("W/") for tag in given.split(","))


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
