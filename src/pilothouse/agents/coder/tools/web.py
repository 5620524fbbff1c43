"""Pages of the web, as text.

The user sees the address and is asked. A redirect to another site is reported instead of followed, so that only the
allowed site is read. Nothing but the address is sent: no cookie, no key. A server may send endlessly, slowly, or
compressed so that little becomes much; neither may block the agent. HTML is read in one pass, so that its size bounds
the work.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import zlib
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2
from pydantic_ai import RunContext

from ....acp import text_block, tool_content
from ...commands import Failure
from ..host import Grant
from ..work import Work
from .texts import cut

RAW = frozenset({"script", "style"})
"""What is in them is no HTML."""
HIDDEN = frozenset({"noscript", "template", "svg", "head"})
BLOCKS = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article"})
BLOCKS |= {"pre", "table", "ul", "ol", "header", "footer"}
MARKUP = re.compile(r"<(?=/?[a-zA-Z]|[!?])")
NAME = re.compile(r"/?[a-zA-Z][^\s/>]{0,40}")
QUOTED = re.compile(r"""["'>]""")


def page_text(html: str) -> str:
    reader = _Reader(html)
    reader.read()
    lines = [re.sub(r"[ \t]+", " ", line).strip() for line in "".join(reader.texts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Reader:
    """Goes once over a page."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._lower = html.lower() if len(html.lower()) == len(html) else html
        self._at = 0
        self._hidden: list[str] = []
        self.texts: list[str] = []

    def read(self) -> None:
        while found := MARKUP.search(self._html, self._at):
            self._text(self._html[self._at : found.start()])
            self._at = found.start() + 1
            if self._html.startswith("!--", self._at):
                self._skip("-->")
            elif name := NAME.match(self._html, self._at):
                self._tag(name[0].lower(), name.end())
            else:
                self._skip(">")
        self._text(self._html[self._at :])

    def _skip(self, end: str) -> None:
        found = self._html.find(end, self._at)
        self._at = found + len(end) if found >= 0 else len(self._html)

    def _tag(self, name: str, at: int) -> None:
        """Pass over a tag, whose values may have a `>` in them."""
        while True:
            found = QUOTED.search(self._html, at)
            close = found and (found.start() if found[0] == ">" else self._html.find(found[0], found.end()))
            if found is None or close is None or close < 0:
                self._at = len(self._html)
                return
            at = self._at = close + 1
            if found[0] == ">":
                break
        self._shown(name, closed=self._html[at - 2] == "/")

    def _shown(self, name: str, *, closed: bool) -> None:
        if name in RAW:
            end = self._lower.find(f"</{name}", self._at)
            self._at = end if end >= 0 else len(self._html)
        elif name in HIDDEN:
            self._hidden += () if closed else (name,)
        elif self._hidden and name == f"/{self._hidden[-1]}":
            self._hidden.pop()
        elif name.removeprefix("/") in BLOCKS:
            self._text("\n- " if name == "li" else "\n", is_markup=True)

    def _text(self, text: str, *, is_markup: bool = False) -> None:
        if text and not self._hidden:
            self.texts.append(text if is_markup else re.sub(r"\s+", " ", unescape(text)))


SECONDS = 30.0
"""For all of it, redirects included."""
LARGEST = 4 * 1024 * 1024
CHARACTERS = 50_000
REDIRECTS = 5
GZIP = b"\x1f\x8b"
"""What a part of gzip begins with."""
NO_CHARSETS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined"})
"""What Python takes for charsets and no page is written in. The first takes the square of a page's length in time."""
HEADERS = {"User-Agent": "pilothouse", "Accept-Encoding": "gzip"}
TEXTUAL = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|javascript|yaml|toml|x-sh)\b")


async def web_fetch(ctx: RunContext[Work], url: str) -> str:
    """Get a page of the web as text.

    Args:
        url: Its address, with http:// or https://.
    """
    work = ctx.deps
    async with work.call("web_fetch", f"Fetch {url}", "fetch", of=ctx.tool_call_id, raw_input={"url": url}) as call:
        site = _site(url)
        await call.permit(Grant(("fetch", site), f"fetching from {site}", changes=False))
        await call.start()
        text = cut(await _fetch(url, site), CHARACTERS)
        await call.end(content=[tool_content(text_block(text))])
        return text


def _site(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise Failure(f"{url!r} is no address: {exc}") from exc
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Failure(f"{url!r} is no address that begins with http:// or https://.")
    if parts.username is not None or parts.password is not None:
        raise Failure("An address with a name or a password in it is not fetched.")
    return f"{parts.scheme}://{parts.hostname}{f':{port}' if port else ''}"


async def _fetch(url: str, site: str) -> str:
    try:
        async with asyncio.timeout(SECONDS), httpx2.AsyncClient(timeout=SECONDS, follow_redirects=False) as client:
            for _ in range(REDIRECTS + 1):
                async with client.stream("GET", url, headers=HEADERS) as response:
                    if not response.is_redirect:
                        return await _read(response)
                    url = urljoin(url, response.headers.get("location", ""))
                if _site(url) != site:
                    return f"It has moved to {url}, which is another site. Fetch that address if it is wanted."
    except TimeoutError:
        raise Failure(f"It took longer than {SECONDS:.0f} seconds.") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, zlib.error) as exc:
        raise Failure(f"It could not be fetched: {str(exc) or type(exc).__name__}") from exc
    raise Failure(f"It was redirected more than {REDIRECTS} times.")


async def _read(response: httpx2.Response) -> str:
    kind = response.headers.get("content-type", "text/plain").lower()
    if not response.is_success:
        raise Failure(f"The server answered {response.status_code} {response.reason_phrase}.")
    if not TEXTUAL.match(kind):
        raise Failure(f"It is {kind.partition(';')[0]}, which is no text.")
    packed = _packed(response.headers.get("content-encoding", "identity").strip().lower())
    data = bytearray()
    async for chunk in response.aiter_raw():
        data.extend(packed.unpack(chunk, LARGEST + 1 - len(data)) if packed else chunk)
        if len(data) > LARGEST:
            raise Failure(f"It is larger than {LARGEST} bytes.")
    if packed and not packed.is_whole:
        raise Failure("It was cut off on its way.")
    text = _decoded(bytes(data), response.charset_encoding)
    return await asyncio.to_thread(page_text, text) if "html" in kind else text


def _packed(encoding: str) -> _Packed | None:
    """How a page is unpacked; None for one that is not packed."""
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip"):
        raise Failure(f"It is packed as {encoding}, which was not asked for.")
    return _Packed()


class _Packed:
    """Bytes packed as gzip, which may be several parts one after the other."""

    def __init__(self) -> None:
        self._part = _part()
        self._rest = b""
        """What came after a part and is too short to tell whether another one begins."""
        self.is_whole = True

    def unpack(self, chunk: bytes, most: int) -> bytes:
        """The next bytes of the page, no more than are wanted."""
        made = bytearray()
        data = self._rest + chunk
        while data and len(made) < most:
            if self._part.eof:
                if not data.startswith(GZIP[: len(data)]):
                    data = data[: len(GZIP)]  # what some servers fill up with, and all that follows it
                    break
                if len(data) < len(GZIP):
                    break
                self._part = _part()
            made += self._part.decompress(data, most - len(made))
            data = self._part.unused_data
            self.is_whole = self._part.eof
        self._rest = data if self._part.eof else b""
        return bytes(made)


def _part() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


def _decoded(data: bytes, charset: str | None) -> str:
    try:
        if charset and codecs.lookup(charset).name in NO_CHARSETS:
            charset = None
        return data.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):  # no charset that is known
        return data.decode("utf-8", "replace")
