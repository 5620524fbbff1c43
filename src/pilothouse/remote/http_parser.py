"""HTTP/1.1 as a client reads it: heads, bodies in chunks, server-sent events. Bytes in, values out; no I/O.

The end of an answer must be stated once and clearly, or the answer is broken: half of one must not pass for the whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CHUNK_LINE = 1024
"""Bytes that the line before a chunk may have."""
FRAMING = ("content-length", "transfer-encoding")
_STATUS = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?")
_LENGTH = re.compile(r"[0-9]{1,15}")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\r\n]*)?")


class BrokenAnswer(Exception):
    """What came is no HTTP."""


class Head(NamedTuple):
    """Status and headers (names in lower case) of an answer."""

    status: int
    headers: dict[str, str]


class Frame(NamedTuple):
    """One server-sent event. `id` is empty where it had none."""

    id: str
    event: str
    data: bytes


def request_head(method: str, target: str, headers: dict[str, str]) -> bytes:
    """The beginning of a request. Raises ValueError for what would be another request inside of it."""
    for text in (method, target, *headers, *headers.values()):
        if not text.isprintable():
            raise ValueError(f"this can't be part of a request: {text!r}")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def parse_head(data: bytes) -> Head:
    """Raises BrokenAnswer."""
    lines = data.decode("latin-1").split("\r\n")
    begin = _STATUS.fullmatch(lines[0])
    if begin is None:
        raise BrokenAnswer(f"expected HTTP, got {lines[0][:80]!r}")
    headers: dict[str, str] = {}
    for line in filter(None, lines[1:]):
        name, colon, given = line.partition(":")
        if not colon or not _NAME.fullmatch(name) or "\n" in given or "\r" in given:
            raise BrokenAnswer(f"{line[:80]!r} is no header")
        key, value = name.lower(), given.strip(" \t")
        if key in FRAMING and headers.get(key, value) != value:
            raise BrokenAnswer(f"{name} is there twice: {headers[key][:40]!r} and {value[:40]!r}")
        headers[key] = value
    return Head(int(begin[1]), headers)


class Body:
    """The bytes of a body out of the bytes of the connection: in chunks, by length, or until the connection ends.

    `done` is True when all of it came; without a length only the end of the connection says so. `exceeded` is True
    when something came after it. Raises BrokenAnswer for a head that does not say which of them it is.
    """

    def __init__(self, head: Head) -> None:
        length, coding = (head.headers.get(name) for name in FRAMING)
        if length is not None and (coding is not None or not _LENGTH.fullmatch(length)):
            raise BrokenAnswer(
                f"{length[:40]!r}{' with chunks' if coding is not None else ''} is no length of an answer"
            )
        if coding is not None and coding.lower() != "chunked":
            raise BrokenAnswer(f"{coding[:40]!r} is no way in which answers come")
        self._chunked = coding is not None
        self._left: int | None = int(length) if length is not None else None
        if head.status in (204, 304):
            self._left, self._chunked = 0, False
        self._buffer = b""
        self._in_chunk = 0
        self._in_trailer = False
        self.done = self._left == 0
        self.exceeded = False

    @property
    def needs_end(self) -> bool:
        """Whether only the end of the connection can end it."""
        return not self._chunked and self._left is None

    def feed(self, data: bytes) -> bytes:
        """Raises BrokenAnswer."""
        if self._chunked:
            return self._chunks(data)
        if self._left is not None:
            self.exceeded |= len(data) > self._left
            data = data[: self._left]
            self._left -= len(data)
            self.done = self._left == 0
        return data

    def _chunks(self, data: bytes) -> bytes:
        buffer, parts, at = self._buffer + data, [], 0
        while not self.done and at < len(buffer):
            if self._in_chunk > 2:
                part = buffer[at : at + self._in_chunk - 2]
                parts.append(part)
                at += len(part)
                self._in_chunk -= len(part)
            elif self._in_chunk:  # the line end after a chunk
                step = min(self._in_chunk, len(buffer) - at)
                if buffer[at : at + step] != b"\r\n"[2 - self._in_chunk :][:step]:
                    raise BrokenAnswer("a chunk is longer than its size")
                at += step
                self._in_chunk -= step
            else:
                end = buffer.find(b"\r\n", at)
                if end < 0:
                    break
                line, at = buffer[at:end], end + 2
                if self._in_trailer:
                    self.done = not line
                    continue
                size = _size(line)
                self._in_trailer = size == 0
                self._in_chunk = size + 2 if size else 0
        self.exceeded |= self.done and at < len(buffer)
        self._buffer = buffer[at:] if not self.done else b""
        if len(self._buffer) > CHUNK_LINE:
            raise BrokenAnswer("a chunk has no size")
        return b"".join(parts)


def _size(line: bytes) -> int:
    found = _SIZE.fullmatch(line)
    if found is None:
        raise BrokenAnswer(f"{line[:40]!r} is no size of a chunk")
    return int(found[1], 16)


class Events:
    """Server-sent events out of the bytes of a stream. Comments pass unseen."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = ""
        self._event = ""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        frames: list[Frame] = []
        for whole in lines:
            line = whole.removesuffix(b"\r")
            if line:
                self._field(line)
                continue
            if self._data:
                frames.append(Frame(self._id, self._event or "message", b"\n".join(self._data)))
            self._id, self._event, self._data = "", "", []
        return frames

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id":
            self._id = value.decode(errors="replace")
        elif name == b"event":
            self._event = value.decode(errors="replace")
