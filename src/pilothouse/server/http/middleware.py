"""What every request and answer passes: the security headers, and the path of a larger site that the hub is under.

An answer that sets one of the headers itself keeps it: previews of artifacts are framed and have a policy of their own.
Nothing here may allow inline scripts. A proxy may remove the prefix of the path before it passes a request on, or keep
it: `/pilothouse/sessions` and `/sessions` are the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

Pairs = list[tuple[bytes, bytes]]

POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
"""Of what does not run: should a browser ever show it as a page, it can do nothing."""
HTML_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; frame-src 'self'; media-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
FIXED: Pairs = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(self), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
]
PAGES = (b"text/html", b"application/xhtml", b"text/javascript", b"application/javascript")
"""What runs: pages, and workers, whose policy comes with their script."""
PAGE_POLICIES = {True: HTML_POLICY.encode(), False: POLICY.encode()}

EXPOSED = b"Retry-After, Location, Content-Disposition, Content-Range, ETag, X-Turn-Id, Preference-Applied"
ACCEPTED = (
    b"Authorization, Content-Type, Accept, Last-Event-ID, Prefer, If-None-Match, If-Match, Range, If-Range, "
    b"Cache-Control"
)
METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"


def secured(headers: Iterable[tuple[bytes, bytes]]) -> Pairs:
    """The headers of an answer, and those that it lacks."""
    given = [(name.lower(), value) for name, value in headers]
    names = dict(given)
    if b"content-security-policy" not in names:
        is_page = names.get(b"content-type", b"").lower().startswith(PAGES)
        given += [(b"content-security-policy", PAGE_POLICIES[is_page]), (b"x-frame-options", b"DENY")]
    return given + [(name, value) for name, value in FIXED if name not in names]


def cors(origin: str) -> Pairs:
    """For pages of another origin that is configured. They call with a token, never with the cookie."""
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", EXPOSED),
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", ACCEPTED),
        (b"access-control-max-age", b"600"),
        (b"vary", b"Origin"),
    ]


class SubPath:
    """Serves an application at a path and, for proxies that took it away, at the root."""

    def __init__(self, app: ASGIApp, root: str) -> None:
        self._app = app
        self._root = root.rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and f"{scope['path']}/".startswith(f"{self._root}/"):
            scope["root_path"] = self._root
            if scope["path"] == self._root:
                scope["path"] += "/"
        await self._app(scope, receive, send)
