"""The hub under a path of a larger site: `/pilothouse/sessions` is `/sessions`.

A proxy may take the path away before it passes a request on, or leave it; both arrive at the same place.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["SubPath"]


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
