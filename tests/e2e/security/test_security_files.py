"""Paths that lead out, artifacts with scripts, names that would be headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.attacks import Attempts
from tests.support.servers import Served


async def test_no_path_leads_out_of_the_sessions_directory(served: Served, attempts: Attempts, project: Path) -> None:
    secret = project.parent / "secret.txt"
    secret.write_text("SECRET")
    (project / "inside.txt").write_text("fine")
    (project / "link").symlink_to(secret)
    (project / "up").symlink_to("..")
    session = await served.hub.start_session("demo", project)
    base = f"/sessions/{session.id}"
    ways = [
        *("../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt", "..%5csecret.txt"),
        *("x/../../secret.txt", "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "link", "up/secret.txt", "%00"),
        *("....//secret.txt", "..;/secret.txt", "%252e%252e%252fsecret.txt", "inside.txt%00.png", "..%c0%afsecret.txt"),
        *("file:///etc/passwd", "~/secret.txt", "up/project/../secret.txt", ".", "", "%ff", "a" * 5000),
        *("../pilothouse.db", "up/pilothouse.db", "up/token", "/proc/self/environ", "up/hub.sock"),
    ]
    for way in ways:
        answer = await served.client.request("GET", f"{base}/files/{way}")
        attempts.refused(answer, 400, 403, 404, 409, 422)
        assert b"SECRET" not in answer.body
        assert b"root:" not in answer.body
        answer = await served.client.request("PUT", f"{base}/files/{way}?overwrite=true", body=b"EVIL")
        if answer.status in (200, 201):  # an odd name may be a name, as long as it is inside
            path = answer.json()["path"]
            assert (project / path).resolve().is_relative_to(project)
            assert (project / path).read_bytes() == b"EVIL"
            (project / path).unlink()
        else:
            attempts.refused(answer, 400, 403, 404, 405, 409, 422)
        answer = await served.client.request("GET", f"{base}/files?path={way}")
        assert answer.status != 200 or b"secret.txt" not in answer.body, way
        attempts.refused(await served.client.request("GET", f"{base}/artifacts/{way}/preview"), 404, 422)
        attempts.refused(await served.client.request("GET", f"/sessions/{way}/events"), 404, 422)
    assert secret.read_text() == "SECRET"
    assert sorted(path.name for path in project.parent.iterdir() if path.suffix == ".txt") == ["secret.txt"]


SCRIPTS = {
    "evil.svg": '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>fetch("/sessions")</script></svg>',
    "evil.html": '<html><script>fetch("/sessions")</script><img src=x onerror=alert(1)></html>',
    "evil.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>',
    "evil.png": "<html><script>alert(1)</script></html>",
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_in_an_artifact_never_runs_in_our_origin(
    served: Served, attempts: Attempts, project: Path, name: str
) -> None:
    session = await served.hub.start_session("demo", project, policy={"autoApprove": {"writes": True}})
    await session.prompt(f"edit {name} {SCRIPTS[name]}")
    made = (await served.client.request("GET", f"/sessions/{session.id}/artifacts")).json()["artifacts"]
    assert [row["name"] for row in made] == [name]
    places = [made[0]["contentUrl"], made[0]["previewUrl"], f"/sessions/{session.id}/files/{name}"]
    for place in filter(None, places):
        answer = await served.client.request("GET", place)
        if answer.status != 200:
            attempts.refused(answer, 422)
            continue
        policy = answer.headers["content-security-policy"]
        rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
        attempts.refused(403 if "sandbox" in rules and rules["sandbox"] == [] else 200, 403)
        assert rules["default-src"] == ["'none'"]
        assert "script-src" not in rules
        assert answer.headers["x-content-type-options"] == "nosniff"
        is_shown = "inline" in answer.headers.get("content-disposition", "")
        kind = answer.headers["content-type"].partition(";")[0]
        assert is_shown or kind not in ("text/html", "image/svg+xml", "application/xhtml+xml", "text/xml")
        assert rules["frame-ancestors"] == (["'self'"] if is_shown else ["'none'"])


async def test_a_title_or_name_cannot_add_a_header_or_a_line_to_a_stream(
    served: Served, attempts: Attempts, project: Path
) -> None:
    evil = "x\r\nSet-Cookie: pwned=1\r\n\r\n<script>\nid: 99\ndata: {}\n\n\u2028\x00"
    wish = {"agent": "demo", "cwd": str(project), "title": evil}
    answer = await served.client.request("POST", "/sessions", wish)
    if answer.status == 201:
        session_id = answer.json()["id"]
    else:
        attempts.refused(answer, 422)
        session_id = (await served.hub.start_session("demo", project)).id
    await served.client.request("PATCH", f"/sessions/{session_id}", {"title": evil})
    (project / "a\r\nSet-Cookie: pwned=1\r\n.txt").write_text("x")
    name = "a%0d%0aSet-Cookie:%20pwned=1%0d%0a.txt"
    for path in (
        *("/sessions", f"/sessions/{session_id}", f"/sessions/{session_id}/files", "/nothing%0d%0aSet-Cookie:pwned=1"),
        *(f"/sessions/{session_id}/files/{name}", "/sessions/%0d%0aSet-Cookie:pwned=1/events", f"/search?q={name}"),
    ):
        answer = await served.client.request("GET", path)
        assert "set-cookie" not in answer.headers, path
        attempts.refused(403)
    async with served.client.stream("GET", f"/sessions/{session_id}/events") as stream:
        await served.client.request("PATCH", f"/sessions/{session_id}", {"title": "another"})
        async for frame in stream.frames():
            assert frame.id != "99"
            if frame.data and "another" in frame.data:
                break
