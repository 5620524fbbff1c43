"""Bytes of a file as text, and text as the bytes of that same file. Pure.

Rule: what is written back in the form it was read has the same bytes (but a doubled mark becomes one). So a form
remembers the encoding, the byte order mark and whether every line ended with CRLF. How the encoding is told, in this
order:

1. a byte order mark: UTF-8, UTF-16 or UTF-32;
2. a NUL byte: not text;
3. valid UTF-8;
4. some of it is UTF-8 and some is not: damaged, not text (read as anything else it would be spoilt on writing);
5. control bytes that no text has: not text;
6. the rest is an old single-byte encoding: Windows-1252, or Latin-1 where a byte means nothing in that.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
from dataclasses import dataclass
from itertools import islice

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LEGACY = ("cp1252", "latin-1")
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_CONTROLS = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True)
class Form:
    """How a file holds its text. The default is that of a new file."""

    codec: str = "utf-8"
    mark: bytes = b""
    crlf: bool = False

    @property
    def is_unicode(self) -> bool:
        return self.codec not in _LEGACY

    @property
    def name(self) -> str:
        return {"cp1252": "Windows-1252", "latin-1": "Latin-1"}.get(self.codec, self.codec.upper())


def decode(data: bytes) -> tuple[str, Form]:
    """The text and its form, the mark left out and line ends untouched. Raises ValueError with why it is no text."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            try:
                text = data[len(mark) :].decode(codec)
            except UnicodeDecodeError as exc:
                raise ValueError(
                    f"it is marked as {codec.upper()}, but is not ({exc.reason} at byte {exc.start})"
                ) from exc
            return text, Form(codec, mark, _is_crlf(text))
    if (place := data.find(b"\0")) >= 0:
        raise ValueError(f"it is binary (a NUL at byte {place})")
    text, codec = _unmarked(data)
    return text, Form(codec, b"", _is_crlf(text))


def encode(text: str, form: Form) -> bytes:
    """The bytes of a text in a form. Raises UnicodeEncodeError for what the encoding lacks.

    A file of CRLF lines stays one, also where the text brings plain line feeds.
    """
    if form.mark:
        text = text.removeprefix("\ufeff")
    if form.crlf:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return form.mark + text.encode(form.codec)


def cut_lines(text: str, line: int | None, limit: int | None) -> str:
    """`limit` lines from the 1-based `line` on; beyond the end there is nothing. LF, CRLF and CR end a line."""
    if line is None and limit is None:
        return text
    start = min(max(line or 1, 1) - 1, sys.maxsize)
    stop = None if limit is None else min(start + max(limit, 0), sys.maxsize)
    # not splitlines: it also splits at form feeds and other characters that no editor counts as the end of a line
    lines = io.StringIO(text, newline="")
    return "".join(islice(lines, start, stop))


def _unmarked(data: bytes) -> tuple[str, str]:
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as exc:
        reason = f"it is not valid UTF-8 ({exc.reason} at byte {exc.start})"
    if _MULTIBYTE.search(data):
        raise ValueError(reason)
    if found := _CONTROLS.search(data):
        raise ValueError(f"it is binary (byte {data[found.start()]:#04x} at {found.start()})")
    try:
        return data.decode(_LEGACY[0]), _LEGACY[0]
    except UnicodeDecodeError:
        return data.decode(_LEGACY[1]), _LEGACY[1]


def _is_crlf(text: str) -> bool:
    pairs = text.count("\r\n")
    return pairs > 0 and pairs == text.count("\n")
