"""The page at `/`: the files it consists of, how they are sent, and that it can pair, look around and log out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pilothouse.server.auth.callers import SCOPES
from pilothouse.server.page import page_files, stylesheet
from tests.support.http_client import PATIENCE, Answer, Client
from tests.support.servers import Served, serving


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


@pytest.fixture
def browser(served: Served) -> Browser:
    return Browser(served)


class Browser:
    """Sends what a browser sends for the page, and keeps its cookie."""

    def __init__(self, served: Served) -> None:
        self._client = Client(served.port)
        self._origin = f"http://127.0.0.1:{served.port}"
        self.cookie: str | None = None

    async def fetch(
        self, method: str, path: str, value: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        headers = {"Sec-Fetch-Site": "same-origin", **(headers or {})}
        if method != "GET":
            headers["Origin"] = self._origin
        if self.cookie is not None:
            headers["Cookie"] = self.cookie
        answer = await self._client.request(method, f"/{path}", value, headers=headers)
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer


class Markup(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.inline: list[str] = []
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within = tag
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.add(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within in ("script", "style") and data.strip():
            self.inline.append(data)


# -- its files --------------------------------------------------------------------------------------------------------

BESIDE = {
    "": "text/html; charset=utf-8",
    "sw.js": "text/javascript; charset=utf-8",
    "manifest.webmanifest": "application/manifest+json",
    "licences.txt": "text/plain; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "icon-192.png": "image/png",
    "icon-512.png": "image/png",
    "maskable-512.png": "image/png",
    "touch-192.png": "image/png",
}


async def markup_of(browser: Browser) -> Markup:
    return Markup((await browser.fetch("GET", "")).body.decode())


async def test_anybody_gets_the_page_and_its_files_with_their_types(browser: Browser) -> None:
    for path, kind in BESIDE.items():
        answer = await browser.fetch("GET", path)
        assert (answer.status, answer.headers["content-type"]) == (200, kind), path
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-cache")
        assert (await browser.fetch("POST", path)).status == 405, path
    for path in page_files():
        assert (await browser.fetch("GET", path.removesuffix("index.html"))).body == page_files()[path].content


async def test_assets_are_kept_for_ever_and_all_else_is_asked_for_again(browser: Browser) -> None:
    for path in (name for name in page_files() if name.startswith("assets/")):
        assert re.fullmatch(r"assets/[\w-]+-[A-Za-z0-9]{8}\.(js|css)", path)
        answer = await browser.fetch("GET", path)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    for path in ("", "sw.js", stylesheet()):
        tag = (await browser.fetch("GET", path)).headers["etag"]
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = await browser.fetch("GET", path, headers={"If-None-Match": known})
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert (await browser.fetch("GET", path, headers={"If-None-Match": '"other"'})).status == 200


async def test_files_are_packed_for_who_takes_that(browser: Browser) -> None:
    for path in ("", "sw.js", stylesheet()):
        plain = await browser.fetch("GET", path, headers={"Accept-Encoding": "br, gzip;q=0"})
        assert "content-encoding" not in plain.headers
        packed = await browser.fetch("GET", path, headers={"Accept-Encoding": "br, gzip"})
        assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
        assert packed.body == plain.body
        assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
    png = await browser.fetch("GET", "icon-512.png", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in png.headers


async def test_who_asks_for_the_head_gets_no_body(served: Served, browser: Browser) -> None:
    for path in ("", "sw.js", stylesheet()):
        whole = await browser.fetch("GET", path)
        async with Client(served.port).stream("HEAD", f"/{path}") as head:
            assert (head.status, head.headers["etag"]) == (200, whole.headers["etag"])


@pytest.mark.parametrize(
    "path",
    [
        *("assets/", "assets/none.js", "assets/../sw.js", "assets/..%2fsw.js", "assets/%2e%2e/%2e%2e/files.py"),
        *(
            "assets//etc/passwd",
            "assets/x/y.js",
            "index.html",
            "export.html",
            "page.js",
            "web/index.html",
            "sw.js/",
            "__init__.py",
        ),
    ],
)
async def test_nothing_else_is_served(browser: Browser, path: str) -> None:
    answer = await browser.fetch("GET", path)
    assert (answer.status, answer.json()["error"]["code"]) == (404, "not_found")


async def test_only_scripts_and_styles_of_the_hub_itself_may_run_in_it(browser: Browser) -> None:
    answer = await browser.fetch("GET", "")
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    for name in ("default-src", "object-src", "base-uri", "form-action", "frame-ancestors"):
        assert policy[name] == "'none'"
    for name in ("script-src", "style-src", "connect-src", "frame-src", "worker-src", "manifest-src"):
        assert policy[name] == "'self'"
    assert policy["img-src"] == "'self' data: blob:"
    markup = await markup_of(browser)
    assert markup.inline == []
    assert {name for name in markup.attributes if name.startswith("on") or name == "style"} == set()


async def test_every_link_of_it_is_relative_and_leads_somewhere(browser: Browser) -> None:
    manifest = (await browser.fetch("GET", "manifest.webmanifest")).json()
    links = [*(await markup_of(browser)).links, *(icon["src"] for icon in manifest["icons"])]
    assert {stylesheet(), "manifest.webmanifest", "icon.svg"} <= set(links)
    for link in links:
        assert not link.startswith("/")
        assert (await browser.fetch("GET", link)).status == 200
    assert (manifest["start_url"], manifest["scope"], manifest["display"]) == (".", ".", "standalone")
    assert {icon["purpose"] for icon in manifest["icons"]} == {"any", "maskable"}


async def test_it_is_served_below_a_path_too(tmp_path: Path) -> None:
    async with serving(tmp_path, root_path="/hub") as served:
        stranger = Client(served.port)
        for path in ("/hub/", "/hub/sw.js", f"/hub/{stylesheet()}", "/", "/sw.js"):
            assert (await stranger.request("GET", path)).status == 200
        bare = await stranger.request("GET", "/hub")
        assert (bare.status, bare.headers["location"]) == (307, "/hub/")


async def test_what_comes_first_is_small(browser: Browser) -> None:
    markup = await markup_of(browser)
    first = ["", *(link for link in markup.links if link.startswith("assets/"))]
    answers = [await browser.fetch("GET", path, headers={"Accept-Encoding": "gzip"}) for path in first]
    assert sum(int(answer.headers["content-length"]) for answer in answers) <= 80 * 1024


async def test_who_follows_a_link_too_late_is_told_so_in_the_same_looks(browser: Browser) -> None:
    answer = await browser.fetch("GET", "login?ticket=old", headers={"Accept": "text/html"})
    markup = Markup(answer.body.decode())
    assert (answer.status, markup.inline) == (403, [])
    assert stylesheet() in markup.links
    assert "This link does not work any more" in answer.body.decode()
    for link in markup.links:
        assert (await browser.fetch("GET", link.removeprefix("."))).status == 200


# -- what it can do ----------------------------------------------------------------------------------------------------


async def test_a_device_is_paired_looks_around_and_logs_out(served: Served, browser: Browser, tmp_path: Path) -> None:
    assert (await browser.fetch("GET", "whoami")).status == 401
    offer = (await served.client.request("POST", "/pairings", {"scopes": ["read", "approve"]})).json()
    page, _, ticket = offer["url"].partition("#pair=")
    assert page == f"http://127.0.0.1:{served.port}/"

    wrong = await browser.fetch("POST", "pair", {"ticket": ticket, "code": "no code", "name": "Phone"})
    assert (wrong.status, wrong.json()["error"]["code"]) == (403, "code_refused")
    assert wrong.json()["error"]["details"] == {"triesLeft": 4}
    paired = await browser.fetch("POST", "pair", {"ticket": ticket, "code": offer["code"], "name": "Phone"})
    assert (paired.json()["name"], paired.json()["scopes"]) == ("Phone", ["read", "approve"])
    assert "httponly" in paired.headers["set-cookie"].lower()

    told = (await browser.fetch("GET", "whoami")).json()
    assert (told["name"], told["scopes"]) == ("Phone", ["read", "approve"])
    session = await served.hub.start_session("demo", tmp_path, title="A title")
    prompt, aside = {"content": "bash rm -rf build"}, {"Prefer": "respond-async"}
    await served.client.request("POST", f"/sessions/{session.id}/send-message", prompt, headers=aside)
    approval = await first_approval(browser)
    asked = approval["request"]
    assert (approval["sessionId"], asked["riskLevel"], asked["preview"]["command"]) == (
        session.id,
        "high",
        "rm -rf build",
    )
    assert asked["description"]
    assert asked["riskReasons"]
    assert approval["created"]
    listed = (await browser.fetch("GET", "sessions")).json()
    (row,) = listed["sessions"]
    assert (row["title"], row["agent"], row["pendingApprovals"], listed["next"]) == ("A title", "demo", 1, None)

    assert (await browser.fetch("POST", "logout")).status == 200
    assert (await browser.fetch("GET", "whoami")).status == 401


async def first_approval(browser: Browser) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            waiting: list[dict[str, Any]] = (await browser.fetch("GET", "approvals")).json()["approvals"]
            if waiting:
                return waiting[0]


async def test_a_login_link_leads_to_the_page(served: Served, browser: Browser) -> None:
    link = (await served.client.request("POST", "/login-links")).json()["url"]
    answer = await browser.fetch("GET", link.partition(f":{served.port}/")[2])
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert (await browser.fetch("GET", "whoami")).json()["scopes"] == list(SCOPES)
