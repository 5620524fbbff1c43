"""A page of HTML as a person would read it, without its looks.

The page may have been written to be slow to read, so this looks at each of its characters a bounded number of times: a
piece that has no end is the last one.
"""

from __future__ import annotations

import re
from html import unescape

__all__ = ["page_text"]

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
