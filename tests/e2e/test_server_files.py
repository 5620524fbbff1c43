"""Files and artifacts over a real socket: what is inside can be had, what is outside cannot, and nothing of it runs."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilothouse.dialects.packets import artifact_id
from pilothouse.model.events import create_event
from pilothouse.server.limits import Limits
from tests.support.http_client import Answer
from tests.support.servers import Served, serving
from tests.support.world import PAGE, world

SECRET = b"the secret of the hub"


@asynccontextmanager
async def served_files(place: Path, **options: Any) -> AsyncIterator[tuple[Served, str, Path]]:
    """A session in a directory of its own, beside a secret: the server, the path of its files, the directory."""
    workspace = place / "workspace"
    (workspace / "sub").mkdir(parents=True)
    (workspace / "notes.txt").write_text("0123456789")
    (workspace / "sub" / "deep.md").write_text("# deep")
    (place / "secret.txt").write_bytes(SECRET)
    async with serving(place / "home", **options) as served:
        session = await served.hub.start_session("demo", workspace)
        yield served, f"/sessions/{session.id}/files", workspace


def error(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


# -- listing --------------------------------------------------------------------------------------------------------


async def test_a_directory_is_listed_with_kinds_and_sizes(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        (workspace / "link").symlink_to("/etc")
        os.mkfifo(workspace / "pipe")
        listing = (await served.client.request("GET", place)).json()
        assert [(one["name"], one["kind"], one.get("size")) for one in listing["entries"]] == [
            ("link", "link", None),
            ("notes.txt", "file", 10),
            ("pipe", "other", None),
            ("sub", "directory", None),
        ]
        inner = (await served.client.request("GET", f"{place}?path=sub")).json()
        assert [one["path"] for one in inner["entries"]] == ["sub/deep.md"]


async def test_a_large_directory_comes_in_pages_also_with_names_that_are_no_text(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        for index in range(5):
            (workspace / "sub" / f"{index} &?%.txt").touch()
        Path(os.fsdecode(bytes(workspace / "sub") + b"/\xff\xfe")).touch()
        seen: list[str] = []
        after = ""
        while True:
            page = (await served.client.request("GET", f"{place}?path=sub&limit=2{after}")).json()
            seen += [one["name"] for one in page["entries"]]
            if page["next"] is None:
                break
            after = "&after=" + page["next"].replace("%", "%25").replace("&", "%26")
        assert seen == [*(f"{index} &?%.txt" for index in range(5)), "deep.md", "\\udcff\\udcfe"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("path=..", (403, "outside_workspace")),
        ("path=/etc", (403, "outside_workspace")),
        ("path=sub/../..", (403, "outside_workspace")),
        ("path=link", (403, "outside_workspace")),
        ("path=/proc/self", (422, "bad_path")),
        ("path=none", (404, "no_such_file")),
        ("path=notes.txt", (422, "bad_path")),
        ("path=a%00b", (422, "bad_path")),
        ("limit=0", (422, "invalid")),
    ],
)
async def test_what_is_no_directory_inside_is_not_listed(tmp_path: Path, query: str, expected: tuple[int, str]) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        (workspace / "link").symlink_to("/etc")
        assert error(await served.client.request("GET", f"{place}?{query}")) == expected


# -- reading --------------------------------------------------------------------------------------------------------

OUTSIDE = [
    "../secret.txt",
    "../../../../../../../../etc/passwd",
    "%2e%2e/secret.txt",
    "..%2fsecret.txt",
    "sub/../../secret.txt",
    "sub/%2e%2e/%2e%2e/secret.txt",
    "//etc/passwd",
    "%2Fetc%2Fpasswd",
    "link-out",
    "link-dir/secret.txt",
    "link-chain",
    "link-home/pilothouse.db",
    "/proc/self/environ",
    "link-proc",
    "../home/pilothouse.db",
    "pipe",
    "socket",
    "link-device",
    "sub",
    "",
    "%00",
    "notes.txt%00.png",
    "notes.txt/",
    "notes.txt/more",
    "none",
    "..%5csecret.txt",
    "%ff%fe",
    "x" * 300,
]


def traps(workspace: Path) -> socket.socket:
    (workspace / "link-out").symlink_to("../secret.txt")
    (workspace / "link-dir").symlink_to("..")
    (workspace / "link-chain").symlink_to("link-out")
    (workspace / "link-home").symlink_to("../home")
    (workspace / "link-proc").symlink_to("/proc/self/environ")
    (workspace / "link-device").symlink_to("/dev/zero")
    os.mkfifo(workspace / "pipe")
    bound = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(workspace)  # the name of a socket must be short
    try:
        bound.bind("socket")
    finally:
        os.chdir(here)
    return bound


async def test_nothing_outside_is_read_and_nothing_that_is_no_file(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        with traps(workspace):
            for name in OUTSIDE:
                answer = await served.client.request("GET", f"{place}/{name}")
                assert answer.status in (403, 404, 422), (name, answer)
                assert SECRET not in answer.body
                assert b"root:" not in answer.body


async def test_nothing_outside_is_written_and_nothing_that_is_no_file(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        with traps(workspace):
            for name in OUTSIDE:
                if name in ("none", "..%5csecret.txt", "%ff%fe"):
                    continue  # a fine name for a new file
                answer = await served.client.request("PUT", f"{place}/{name}?overwrite=true", body=b"evil")
                assert answer.status in (403, 404, 405, 422), (name, answer)
        assert (tmp_path / "secret.txt").read_bytes() == SECRET
        assert not list(tmp_path.rglob(".pilothouse-*"))


async def test_a_session_around_the_home_does_not_give_the_hubs_own_files_away(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as served:
        session = await served.hub.start_session("demo", tmp_path)
        place = f"/sessions/{session.id}/files"
        assert error(await served.client.request("GET", f"{place}/home/pilothouse.db")) == (403, "outside_workspace")
        assert error(await served.client.request("GET", f"{place}?path=home")) == (403, "outside_workspace")
        assert error(await served.client.request("PUT", f"{place}/home/token", body=b"x")) == (403, "outside_workspace")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("page.html", b"<script>alert(1)</script>", "text/plain; charset=utf-8"),
        ("drawing.svg", b"<svg onload='alert(1)'/>", "text/plain; charset=utf-8"),
        ("code.js", b"alert(1)", "text/plain; charset=utf-8"),
        ("style.css", b"* {}", "text/plain; charset=utf-8"),
        ("feed.xml", b"<x/>", "text/plain; charset=utf-8"),
        ("program.wasm", b"\0asm", "application/octet-stream"),
        ("picture.png", b"\x89PNG", "image/png"),
        ("none", b"\xff\xfe\0", "application/octet-stream"),
        ("notes.md", "é".encode() * 5000, "text/plain; charset=utf-8"),
    ],
)
async def test_a_download_is_never_of_a_type_that_runs(tmp_path: Path, name: str, content: bytes, kind: str) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        (workspace / name).write_bytes(content)
        answer = await served.client.request("GET", f"{place}/{name}")
        assert (answer.status, answer.body) == (200, content)
        assert answer.headers["content-type"] == kind
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a\rSet-Cookie: evil=1.txt", "a_Set-Cookie_ evil_1.txt"),
        ('quote".txt', "quote_.txt"),
        ("back\\slash", "back_slash"),
        ("naïve ☃.txt", "na_ve _.txt"),
        ("\x7f\x01;filename=x", "___filename_x"),
    ],
)
async def test_no_name_of_a_file_breaks_out_of_its_header(tmp_path: Path, name: str, told: str) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        (workspace / name).write_text("content")
        target = "".join(f"%{byte:02x}" for byte in name.encode())
        answer = await served.client.request("GET", f"{place}/{target}")
        assert (answer.status, answer.body) == (200, b"content")
        assert answer.headers["content-disposition"].startswith(f"attachment; filename=\"{told}\"; filename*=UTF-8''")
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("wanted", "status", "body", "told"),
    [
        ("bytes=2-5", 206, b"2345", "bytes 2-5/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=0-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=5-2", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=-", 200, b"0123456789", None),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
    ],
)
async def test_a_range_of_a_file(
    tmp_path: Path, wanted: str, status: int, body: bytes | None, told: str | None
) -> None:
    async with served_files(tmp_path) as (served, place, _):
        answer = await served.client.request("GET", f"{place}/notes.txt", headers={"Range": wanted})
        assert (answer.status, answer.headers.get("content-range")) == (status, told)
        if body is not None:
            assert answer.body == body


async def test_a_file_that_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        first = await served.client.request("GET", f"{place}/notes.txt")
        same = {"If-None-Match": first.headers["etag"]}
        again = await served.client.request("GET", f"{place}/notes.txt", headers=same)
        assert (again.status, again.body) == (304, b"")
        (workspace / "notes.txt").write_text("different")
        assert (await served.client.request("GET", f"{place}/notes.txt", headers=same)).status == 200
        stale = {"Range": "bytes=0-1", "If-Range": first.headers["etag"]}
        assert (await served.client.request("GET", f"{place}/notes.txt", headers=stale)).body == b"different"


async def test_a_file_larger_than_any_piece_arrives_whole_and_no_descriptor_stays_open(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        content = os.urandom(3_000_001)
        (workspace / "big.bin").write_bytes(content)
        (workspace / "empty").touch()
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            assert (await served.client.request("GET", f"{place}/big.bin")).body == content
            assert (await served.client.request("GET", f"{place}/empty")).body == b""
            async with served.client.stream("HEAD", f"{place}/big.bin") as head:
                assert head.headers["content-length"] == "3000001"
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


async def test_who_does_not_take_a_download_is_let_go(tmp_path: Path) -> None:
    async with served_files(tmp_path, limits=Limits(stall=0.2)) as (served, place, workspace):
        with (workspace / "huge.bin").open("wb") as file:
            file.truncate(256 << 20)

        def held() -> list[str]:
            links = [entry for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
            return [str(link.readlink()) for link in links if link.exists() and "huge.bin" in str(link.readlink())]

        async with served.client.stream("GET", f"{place}/huge.bin") as stream:
            assert stream.status == 200
            async with asyncio.timeout(10):
                while held() or len(served.server.connections):
                    await asyncio.sleep(0.02)


# -- writing --------------------------------------------------------------------------------------------------------


async def test_an_upload_makes_a_file_and_its_directories(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        answer = await served.client.request("PUT", f"{place}/a/b/%C3%B1%20ew.bin", body=b"\0\1\2")
        assert answer.status == 201
        assert (workspace / "a" / "b" / "ñ ew.bin").read_bytes() == b"\0\1\2"
        assert answer.json()["path"] == "a/b/ñ ew.bin"
        again = await served.client.request("GET", answer.headers["location"])
        assert (again.body, again.headers["etag"]) == (b"\0\1\2", answer.headers["etag"])


async def test_a_file_is_replaced_only_by_who_says_so(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        target, file = f"{place}/notes.txt", workspace / "notes.txt"
        file.chmod(0o640)
        there = await served.client.request("PUT", target, body=b"1")
        assert error(there) == (409, "exists")
        assert "`?overwrite=true`" in there.json()["error"]["message"]
        stale = {"If-Match": '"stale"'}
        assert error(await served.client.request("PUT", target, body=b"1", headers=stale)) == (412, "changed")
        assert error(await served.client.request("PUT", f"{place}/new", body=b"1", headers=stale)) == (412, "changed")
        assert file.read_text() == "0123456789"
        etag = (await served.client.request("GET", target)).headers["etag"]
        first = await served.client.request("PUT", target, body=b"first", headers={"If-Match": etag})
        assert (first.status, file.read_text()) == (200, "first")
        second = await served.client.request("PUT", f"{target}?overwrite=true", body=b"second")
        assert (second.status, file.read_text(), file.stat().st_mode & 0o777) == (200, "second", 0o640)
        assert sorted(one.name for one in workspace.iterdir()) == ["notes.txt", "sub"]


async def test_of_many_who_make_the_same_file_one_does(tmp_path: Path) -> None:
    async with served_files(tmp_path) as (served, place, workspace):
        puts = (served.client.request("PUT", f"{place}/race", body=b"%d" % index) for index in range(12))
        answers = await asyncio.gather(*puts)
        winners = [index for index, answer in enumerate(answers) if answer.status == 201]
        assert sorted(answer.status for answer in answers) == [201] + [409] * 11
        assert (workspace / "race").read_bytes() == b"%d" % winners[0]
        assert sorted(one.name for one in workspace.iterdir()) == ["notes.txt", "race", "sub"]


async def test_an_upload_has_a_limit_whether_it_is_announced_or_not(tmp_path: Path) -> None:
    async with served_files(tmp_path, limits=Limits(upload=1000)) as (served, place, workspace):
        whole = await served.client.request("PUT", f"{place}/fits", body=b"x" * 1000)
        announced = await served.client.request("PUT", f"{place}/large", body=b"x" * 1001)
        chunked = await served.client.request(
            *("PUT", f"{place}/large"),
            headers={"Transfer-Encoding": "chunked", "Content-Length": ""},
            body=b"7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n",
        )
        assert whole.status == 201
        assert error(announced) == (413, "too_large")
        assert chunked.status in (400, 413)
        assert not (workspace / "large").exists()


# -- artifacts ------------------------------------------------------------------------------------------------------


async def test_a_page_that_an_agent_made_is_shown_without_an_origin_and_without_scripts(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        (made,) = (await served.client.request("GET", f"/sessions/{ids.session}/artifacts")).json()["artifacts"]
        assert (made["id"], made["type"], made["name"], made["mimeType"]) == (
            *(ids.artifact, "web_app", "page.html", "text/html"),
        )
        shown = await served.client.request("GET", made["previewUrl"])
        policy = shown.headers["content-security-policy"]
        assert (shown.status, shown.body.decode().strip()) == (200, PAGE)
        assert shown.headers["content-type"].startswith("text/html")
        assert shown.headers["x-content-type-options"] == "nosniff"
        assert policy.startswith("sandbox; default-src 'none';")
        assert "allow-" not in policy
        assert "script-src" not in policy
        whole = await served.client.request("GET", made["contentUrl"])
        assert whole.headers["content-type"] == "text/plain; charset=utf-8"
        assert whole.headers["content-disposition"].startswith('attachment; filename="page.html"')
        assert "sandbox" in whole.headers["content-security-policy"]


ARTIFACTS = {
    "drawing": "drawing.svg",
    "picture": "picture.png",
    "text": "notes.md",
    "binary": "data.bin",
    "outside": "../secret.txt",
    "root": "/etc/passwd",
    "link": "link",
    "gone": "gone.txt",
    "odd id/\r\n": "notes.md",
    "odd name": "a\r\nSet-Cookie: evil=1.txt",
}


@asynccontextmanager
async def told_of(place: Path) -> AsyncIterator[tuple[Served, str]]:
    """A session whose agent told of artifacts, true and false ones."""
    workspace = place / "workspace"
    workspace.mkdir()
    (place / "secret.txt").write_bytes(SECRET)
    (workspace / "link").symlink_to("../secret.txt")
    (workspace / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    (workspace / "picture.png").write_bytes(b"\x89PNG")
    (workspace / "notes.md").write_text("<script>alert(1)</script>")
    (workspace / "data.bin").write_bytes(b"\0\xff")
    (workspace / ARTIFACTS["odd name"]).write_text("content")
    async with serving(place / "home") as served:
        await served.hub.log.sessions.create("ses_told", agent="demo", cwd=str(workspace))
        told = [{"artifact": {"id": key, "path": path}} for key, path in ARTIFACTS.items()]
        told += [{"artifact": 7}, {"artifact": {"id": 3, "path": "x"}}, {}]
        events = [
            create_event("ses_told", type="custom", namespace="pilothouse", eventName="artifact_created", data=data)
            for data in told
        ]
        await served.hub.log.append("ses_told", 0, events)
        yield served, "/sessions/ses_told/artifacts"


@pytest.mark.parametrize(
    ("key", "status", "kind"),
    [
        ("drawing", 200, "image/svg+xml"),
        ("picture", 200, "image/png"),
        ("text", 200, "text/plain; charset=utf-8"),
        ("binary", 422, None),
        ("outside", 403, None),
        ("root", 403, None),
        ("link", 403, None),
        ("gone", 404, None),
        ("none", 404, None),
        ("../../../etc/passwd", 404, None),
    ],
)
async def test_a_preview_shows_what_is_inside_and_always_in_the_sandbox(
    tmp_path: Path, key: str, status: int, kind: str | None
) -> None:
    async with told_of(tmp_path) as (served, place):
        answer = await served.client.request("GET", f"{place}/{key}/preview")
        assert answer.status == status, answer.body
        assert SECRET not in answer.body
        if kind is not None:
            assert answer.headers["content-type"] == kind
            assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_what_the_hub_announced_is_listed_once_and_no_longer_when_it_is_gone(tmp_path: Path) -> None:
    def change(path: str, how: str) -> dict[str, Any]:
        return {"type": "file:change", "path": path, "changeType": how, "diff": ""}

    def announced(path: str) -> dict[str, Any]:
        artifact = {"id": artifact_id(path), "type": "file", "name": path, "path": path, "size_bytes": 1}
        fact = {"type": "custom", "namespace": "pilothouse", "eventName": "artifact_created"}
        return {**fact, "data": {"artifact": artifact}}

    events = [
        *(change("kept.md", "created"), announced("kept.md"), change("gone.md", "created"), announced("gone.md")),
        *(change("gone.md", "deleted"), change("web/a.ts", "created"), announced("web/a.ts")),
        *(change("web/next.config.js", "created"), announced("web")),
    ]
    async with serving(tmp_path / "home") as served:
        await served.hub.log.sessions.create("ses_made", agent="demo", cwd=str(tmp_path))
        await served.hub.log.append("ses_made", 0, [create_event("ses_made", event) for event in events])
        listed = (await served.client.request("GET", "/sessions/ses_made/artifacts")).json()["artifacts"]
    assert [(one["path"], one["type"]) for one in listed] == [("kept.md", "file"), ("web", "nextjs_app")]


async def test_artifacts_are_listed_as_far_as_they_make_sense(tmp_path: Path) -> None:
    async with told_of(tmp_path) as (served, place):
        listed = (await served.client.request("GET", place)).json()["artifacts"]
        assert [one["id"] for one in listed] == list(ARTIFACTS)
        odd = next(one for one in listed if one["id"] == "odd id/\r\n")
        assert odd["contentUrl"].endswith("/odd%20id%2F%0D%0A")
        named = await served.client.request("GET", f"{place}/odd%20name")
        assert (named.status, named.body, "set-cookie" in named.headers) == (200, b"content", False)
        assert named.headers["content-disposition"].startswith('attachment; filename="a__Set-Cookie_ evil_1.txt"')
        for key in ("outside", "root", "link"):
            answer = await served.client.request("GET", f"{place}/{key}")
            assert error(answer) == (403, "outside_workspace")
