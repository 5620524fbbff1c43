"""The page at `/`: what it consists of, and that what its script does works, request by request."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pilothouse.server.application import OPERATIONS
from pilothouse.server.callers import SCOPES
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

    async def fetch(self, method: str, path: str, value: Any = None) -> Answer:
        headers = {"Sec-Fetch-Site": "same-origin"} | ({"Origin": self._origin} if method != "GET" else {})
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


async def parts(browser: Browser) -> tuple[Markup, str]:
    page, script = await browser.fetch("GET", ""), await browser.fetch("GET", "page.js")
    return Markup(page.body.decode()), script.body.decode()


# -- its files --------------------------------------------------------------------------------------------------------


async def test_anybody_gets_the_page_and_its_files_with_their_types(browser: Browser) -> None:
    for path, kind in (("", "text/html"), ("page.css", "text/css"), ("page.js", "text/javascript")):
        answer = await browser.fetch("GET", path)
        assert (answer.status, answer.headers["content-type"]) == (200, f"{kind}; charset=utf-8")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await browser.fetch("POST", "page.js")).status == 405


async def test_only_scripts_and_styles_of_the_hub_itself_may_run_in_it(browser: Browser) -> None:
    answer = await browser.fetch("GET", "")
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    markup, script = await parts(browser)
    assert markup.inline == []
    assert {name for name in markup.attributes if name.startswith("on") or name == "style"} == set()
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", script) == []


async def test_every_link_of_it_is_relative_and_leads_somewhere(served: Served, browser: Browser) -> None:
    markup, _ = await parts(browser)
    found = [link for link in markup.links if not link.startswith("data:")]
    assert {"page.css", "page.js"} <= set(found)
    for link in found:
        assert (await served.client.request("GET", f"/{link}")).status == 200


async def test_what_the_script_names_is_there(browser: Browser) -> None:
    markup, script = await parts(browser)
    ids = set(re.findall(r'part\("([\w-]+)"\)', script))
    lists = set(re.findall(r'fill\("([\w-]+)"', script))
    assert len(ids) > 10
    assert ids | lists | {f"no-{name}" for name in lists} <= markup.ids
    called = set(re.findall(r'call\("([A-Z]+)", "([\w-]+)"', script))
    assert called == {
        ("GET", "whoami"),
        ("GET", "sessions"),
        ("GET", "approvals"),
        ("POST", "logout"),
        ("POST", "pair"),
    }
    assert {(method, f"/{path}") for method, path in called} <= {(one.method, one.path) for one in OPERATIONS}
    assert all(f"\n  {scope}: " in script for scope in SCOPES)


async def test_it_is_served_below_a_path_too(tmp_path: Path) -> None:
    async with serving(tmp_path, root_path="/hub") as served:
        stranger = Client(served.port)
        for path in ("/hub/", "/hub/page.css", "/hub/page.js"):
            assert (await stranger.request("GET", path)).status == 200


async def test_it_says_what_it_is(browser: Browser) -> None:
    text = " ".join((await browser.fetch("GET", "")).body.decode().split())
    assert "the full web interface is still to come" in text
    assert "<code>pilothouse serve</code> prints a login link" in text


# -- what its script does ---------------------------------------------------------------------------------------------


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
