"""The hub under a path of a larger site."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.server.http.middleware import SubPath


@pytest.mark.parametrize(
    ("path", "root", "seen"),
    [
        ("/hub/sessions", "/hub", "/hub/sessions"),
        ("/hub/", "/hub", "/hub/"),
        ("/hub", "/hub", "/hub/"),
        ("/sessions", "", "/sessions"),
        ("/hubris", "", "/hubris"),
        ("/", "", "/"),
        ("/x/hub/sessions", "", "/x/hub/sessions"),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_a_request_arrives_whether_its_path_was_taken_away_or_not(
    kind: str, path: str, root: str, seen: str
) -> None:
    arrived: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        arrived.append((scope.get("root_path", ""), scope["path"]))

    await SubPath(app, "/hub/")({"type": kind, "path": path}, None, None)  # type: ignore[arg-type]
    assert arrived == [(root, seen)]
