"""Markdown that other people's text cannot break out of.

Three means, and all text goes through one of them: `fenced` for output (a fence longer than any in the text), `code`
and `plain` for words inside a line, `prose` for what is Markdown itself. Prose that might leave something open, such as
a fence or an HTML tag, is quoted: the end of a quotation closes whatever was opened inside of it.
"""

from __future__ import annotations

import re

__all__ = ["code", "fenced", "plain", "prose", "quoted"]

_LINE_END = re.compile(r"\r\n?")
_TICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~&$^])")
_FENCE = re.compile(r"(`{3,}|~{3,})([^\n]*)")
_INDENTED_FENCE = re.compile(r"^[\s>*+\-\d.)]+(?:```|~~~)", re.MULTILINE)
_HTML = re.compile(r"<[A-Za-z/!?]")
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")


def fenced(text: str, language: str = "") -> str:
    """A code block."""
    text = _LINE_END.sub("\n", text)
    fence = "`" * max(3, _longest(text) + 1)
    language = re.sub(r"[^\w+#.-]", "", language)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{fence}"


def code(text: str) -> str:
    """Code inside a line."""
    text = " ".join(text.split())
    if not text:
        return ""
    ticks = "`" * (_longest(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def plain(text: str) -> str:
    """Words inside a line, that mean nothing but themselves."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def prose(text: str) -> str:
    """Markdown as its author wrote it, quoted where it might not end by itself.

    Headings go down two levels: those above are the document's, and nobody else's words may look like them.
    """
    text = _LINE_END.sub("\n", text).strip("\n")
    return _demoted(text) if _ends_by_itself(text) else quoted(text)


def _demoted(text: str) -> str:
    lines, fence, before = [], "", ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is not None and not fence:
            fence = found[1]
        elif found is not None and found[1].startswith(fence):
            fence = ""
        elif not fence and (heading := _HEADING.match(line)):
            line = heading[1] + "#" * min(6, len(heading[2]) + 2) + line[heading.end(2) :]  # noqa: PLW2901
        elif not fence and before.strip() and _UNDERLINE.fullmatch(line):
            line = "\\" + line.lstrip(" ")  # noqa: PLW2901
        lines.append(line)
        before = line
    return "\n".join(lines)


def quoted(text: str) -> str:
    """A quotation."""
    text = _LINE_END.sub("\n", text)
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def _ends_by_itself(text: str) -> bool:
    """Whether every fence is closed. Only fences at the very left are followed: those inside of lists and quotations
    end with these, and which of the two a line belongs to is more than this reader wants to know."""
    if _HTML.search(text) or _INDENTED_FENCE.search(text):
        return False
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is None:
            continue
        marks, rest = found[1], found[2]
        if not fence:
            fence = "" if marks[0] == "`" and "`" in rest else marks
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip(" \t"):
            fence = ""
    return not fence
