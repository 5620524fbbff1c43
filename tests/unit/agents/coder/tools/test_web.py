"""Pages of the web: fetched when the user allows it, from the site that was allowed and no other."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pilothouse.agents.coder.tools import web
from pilothouse.agents.coder.tools.web import page_text
from tests.support.coders import Client, Script, coder, results

PAGE = b"<html><head><title>t</title><style>p{}</style></head><body><h1>Big &amp; small</h1><p>One\n two</p>"
PAGE += b"<script>evil()</script><ul><li>a<li>b</ul></body></html>"


PACKED = {"/packed": gzip.compress(b"small"), "/bomb": gzip.compress(bytes(64 * 1024 * 1024)), "/broken": b"no gzip"}
PACKED["/strange"] = b"anything"
PACKED["/parts"] = gzip.compress(b"one, ") + gzip.compress(b"two, ") + gzip.compress(b"three") + bytes(8)
PACKED["/cut"] = PACKED["/parts"][:-20]


class Site(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []
    stopped: ClassVar[threading.Event] = threading.Event()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        port = self.server.server_address[1]
        moved = {"/near": "/page", "/far": f"http://localhost:{port}/page", "/round": "/round"}.get(self.path)
        kind = {"/picture": "image/png", "/data": "application/json"}.get(self.path, "text/html; charset=utf-8")
        body = {"/data": b'{"a": 1}', "/big": b"x" * (5 * 1024 * 1024)}.get(self.path, PAGE)
        if self.path == "/drip":
            return self.drip()
        if self.path in PACKED:
            kind, body = "text/plain", PACKED[self.path]
        self.send_response(302 if moved else 404 if self.path == "/gone" else 200)
        self.send_header("Content-Type", kind)
        if self.path in PACKED:
            self.send_header("Content-Encoding", "br" if self.path == "/strange" else "gzip")
        self.send_header("Content-Length", str(len(body)))
        if moved:
            self.send_header("Location", moved)
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            pass

    def drip(self) -> None:
        """A page without an end, a little at a time."""
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        try:
            while not self.stopped.wait(0.02):
                self.wfile.write(b"drop ")
        except ConnectionError:
            pass


@pytest.fixture
def site() -> Iterator[str]:
    Site.asked = []
    Site.stopped.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    Site.stopped.set()
    server.shutdown()
    server.server_close()
    thread.join()


async def fetched(tmp_path: Path, *urls: str, choose: str = "allow_once") -> tuple[list[str], Client]:
    script = Script([*([("web_fetch", {"url": url})] for url in urls), "Done."])
    async with coder(script, tmp_path) as client:
        client.choose(choose)
        await client.say("go")
        assert client.is_settled()
    return results(script.heard[-1]), client


async def test_a_page_is_fetched_as_text(tmp_path: Path, site: str) -> None:
    (text,), client = await fetched(tmp_path, f"{site}/page")
    assert text == "Big & small\n\nOne two\n\n- a\n- b"
    ((asked, options),) = client.asked
    assert (asked.title, asked.kind) == (f"Fetch {site}/page", "fetch")
    assert site in options[1].name


async def test_what_is_rejected_is_not_fetched(tmp_path: Path, site: str) -> None:
    (text,), _ = await fetched(tmp_path, f"{site}/page", choose="reject_once")
    assert "rejected" in text
    assert Site.asked == []


async def test_always_is_for_one_site(tmp_path: Path, site: str) -> None:
    urls = (f"{site}/page", f"{site}/data", f"{site.replace('127.0.0.1', 'localhost')}/page")
    texts, client = await fetched(tmp_path, *urls, choose="allow_always")
    assert texts[1] == '{"a": 1}'
    assert len(client.asked) == 2


async def test_a_redirect_is_followed_on_the_same_site_and_told_of_to_another(tmp_path: Path, site: str) -> None:
    texts, _ = await fetched(tmp_path, f"{site}/near", f"{site}/far", f"{site}/round")
    assert texts[0].startswith("Big")
    assert "another site" in texts[1]
    assert "redirected more than" in texts[2]
    assert Site.asked.count("/page") == 1


@pytest.mark.parametrize(("path", "reason"), [("/gone", "404"), ("/picture", "image/png"), ("/big", "larger than")])
async def test_what_cannot_be_shown_says_why(tmp_path: Path, site: str, path: str, reason: str) -> None:
    (text,), client = await fetched(tmp_path, site + path)
    assert reason in text
    assert client.call("web_fetch")["status"] == "failed"


async def test_a_page_without_an_end_is_given_up(tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "SECONDS", 0.5)
    (text,), client = await fetched(tmp_path, f"{site}/drip")
    assert text.startswith("It took longer than")
    assert client.call("web_fetch")["status"] == "failed"


async def test_what_is_packed_is_unpacked_to_a_measure(tmp_path: Path, site: str) -> None:
    texts, _ = await fetched(tmp_path, *(site + path for path in PACKED))
    assert texts[0] == "small"
    assert "larger than" in texts[1]
    assert "could not be fetched" in texts[2]
    assert "packed as br" in texts[3]


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x/y", "http://", "nonsense", "http://a:b@x.example/", "http://x:99999/"]
)
async def test_only_addresses_of_the_web_are_asked_about(tmp_path: Path, url: str) -> None:
    (_,), client = await fetched(tmp_path, url)
    assert client.asked == []
    assert client.call("web_fetch")["status"] == "failed"


async def test_a_site_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    (text,), _ = await fetched(tmp_path, "http://127.0.0.1:9/")
    assert "could not be fetched" in text


@pytest.mark.parametrize("html", ["", "<", "<p", "</script>", "<script>", "a < b & c", "<ul><li>" * 2000])
def test_broken_pages_are_read_as_far_as_they_go(html: str) -> None:
    assert isinstance(page_text(html), str)


@pytest.mark.parametrize("piece", ["<", "<!", "<!--", "<?", '<a b="', "</a ", "<script>", "<svg>", "&", "<a '\">"])
def test_a_page_that_is_written_to_be_slow_is_not(piece: str) -> None:
    """One that looks at the rest again with each piece would take an hour."""
    assert isinstance(page_text(piece * (1_000_000 // len(piece))), str)


@pytest.mark.parametrize("charset", ["punycode", "Unicode_Escape", "idna", "hex", "no-such"])
def test_what_is_no_charset_of_a_page_is_not_taken_for_one(charset: str) -> None:
    """A page of 4 MB in the first of them would hold the agent for minutes."""
    assert web._decoded(b"caf\xc3\xa9-" + b"\\x61a" * 1000, charset) == "café-" + "\\x61a" * 1000
    assert web._decoded("日本".encode("shift_jis"), "Shift_JIS") == "日本"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p title='a > b'>x</p>", "x"),
        ("a<!-- <p>no</p> -->b", "ab"),
        ("<SCRIPT>if (a < b) c()</Script>after", "after"),
        ("<svg/>shown<svg><text>not</text></svg>", "shown"),
        ("1 < 2 &lt; 3", "1 < 2 < 3"),
        ("<!doctype html><br>x", "x"),
    ],
)
def test_what_a_person_would_read(html: str, text: str) -> None:
    assert page_text(html) == text


async def test_a_page_that_is_packed_in_parts_is_unpacked_to_its_end(tmp_path: Path, site: str) -> None:
    texts, _ = await fetched(tmp_path, f"{site}/parts", f"{site}/cut")
    assert texts == ["one, two, three", "It was cut off on its way."]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_parts_are_unpacked_however_they_come(size: int) -> None:
    packed, data = web._Packed(), PACKED["/parts"]
    made = b"".join(packed.unpack(data[at : at + size], 1000) for at in range(0, len(data), size))
    assert (made, packed.is_whole) == (b"one, two, three", True)


def test_no_more_is_unpacked_than_is_wanted() -> None:
    packed = web._Packed()
    assert packed.unpack(PACKED["/parts"], 5) == b"one, "
    assert len(web._Packed().unpack(PACKED["/bomb"] + PACKED["/bomb"], 100)) == 100
