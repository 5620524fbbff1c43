"""HTTP/1.1 requests to a hub, over its user's socket or TCP: one connection each, closed after the answer.

Only what a hub's own client needs. The answer to a request is its JSON; an error is raised. The end of an answer must
be stated once and clearly, or the answer is broken: half of one must never pass for the whole. The reading of heads,
chunks and server-sent events does no I/O.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from .errors import ConnectionLost, NoHub, refusal

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


TIMEOUT = 90.0
"""Seconds for an answer that is no stream. Cancelling a turn may take as long as an agent has to obey, and a new
session as long as its agent takes to start."""
CONNECT_TIMEOUT = 5.0
HEAD = 64 << 10
READ = 256 << 10


class Address(Struct, frozen=True, kw_only=True):
    """Where a hub listens, and the token that it wants there. A socket of the file system needs none."""

    socket: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    tls: bool = False
    root: str = ""

    def __str__(self) -> str:
        return self.socket or f"{'https' if self.tls else 'http'}://{self.authority}{self.root}"

    @property
    def authority(self) -> str:
        if self.socket is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def address_of_url(url: str, token: str | None) -> Address:
    """Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"expected http://… or https://…, got {url!r}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    root = parts.path.rstrip("/")
    return Address(host=parts.hostname, port=port, token=token, tls=parts.scheme == "https", root=root)


def segment(text: str) -> str:
    """A value as one part of a path."""
    return quote(text, safe="")


class Client:
    """Speaks to one hub. `name` is what decisions made over its owner's socket are signed with."""

    def __init__(self, address: Address, *, name: str = "") -> None:
        self.address = address
        self.name = name

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT,
    ) -> Any:
        """The JSON of the answer, None when it has no body. Raises NoHub, ConnectionLost, Refused."""
        try:
            async with asyncio.timeout(timeout):
                reply = await self.open(method, path, body, query=query, headers=headers)
                try:
                    data = await reply.read()
                finally:
                    await reply.close()
        except TimeoutError:
            raise ConnectionLost(f"the hub did not answer {method} {path} within {timeout:g} s") from None
        if not data:
            return None
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError as exc:
            raise ConnectionLost(f"the hub's answer to {method} {path} is no JSON: {exc}") from None

    async def open(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; its answer, to be read as it comes and then closed. Raises NoHub, ConnectionLost, Refused."""
        data = msgspec.json.encode(body) if body is not None else b""
        reader, writer = await self._connect()
        try:
            writer.write(self._head(method, path, query, headers, data) + data)
            head = await _read_head(reader, writer)
            reply = Reply(reader, writer, head)
            if head.status >= 400:
                raise refusal(head.status, await reply.read())
        except BrokenAnswer as exc:
            writer.close()
            raise ConnectionLost(f"the hub's answer is broken: {exc}") from None
        except BaseException:
            writer.close()
            raise
        return reply

    def _head(
        self, method: str, path: str, query: Mapping[str, Any] | None, more: Mapping[str, str] | None, data: bytes
    ) -> bytes:
        given = {key: _text(value) for key, value in (query or {}).items() if value is not None}
        target = self.address.root + path + (f"?{urlencode(given)}" if given else "")
        headers = {"Host": self.address.authority, "Accept": "application/json", "Connection": "close"}
        if self.address.token is not None:
            headers["Authorization"] = f"Bearer {self.address.token}"
        if self.name:
            headers["Pilothouse-Client"] = self.name
        if data:
            headers |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
        elif method not in ("GET", "HEAD"):
            headers["Content-Length"] = "0"
        return request_head(method, target, {**headers, **(more or {})})

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises NoHub."""
        address = self.address
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                if address.socket is not None:
                    return await asyncio.open_unix_connection(address.socket, limit=READ)
                secure = ssl.create_default_context() if address.tls else None
                return await asyncio.open_connection(address.host, address.port, ssl=secure, limit=READ)
        except (OSError, TimeoutError, AttributeError) as exc:
            why = getattr(exc, "strerror", None) or str(exc) or "it does not answer"
            raise NoHub(f"no hub answers at {address}: {why}") from exc


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _read_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Head:
    try:
        await writer.drain()
        while True:
            head = parse_head((await reader.readuntil(b"\r\n\r\n"))[:-4])
            if head.status >= 200:
                return head
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as exc:
        raise ConnectionLost("the hub closed the connection without an answer") from exc
    except BrokenAnswer as exc:
        raise ConnectionLost(f"this is no hub: {exc}") from None


class Reply:
    """An answer under way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: Head) -> None:
        self._reader = reader
        self._writer = writer
        self._body = Body(head)

    async def part(self) -> bytes:
        """The next bytes of the body; empty at its end. Raises ConnectionLost when the connection ends before that."""
        try:
            while not self._body.done:
                data = await self._reader.read(READ)
                if not data and self._body.needs_end:
                    break
                if not data:
                    raise ConnectionLost("the hub closed the connection in the middle of an answer")
                if part := self._body.feed(data):
                    return part
        except OSError as exc:
            raise ConnectionLost(f"the connection to the hub broke: {exc}") from exc
        except BrokenAnswer as exc:
            raise ConnectionLost(f"the hub's answer is broken: {exc}") from None
        return b""

    async def read(self) -> bytes:
        """The whole body. Raises ConnectionLost."""
        parts: list[bytes] = []
        while part := await self.part():
            parts.append(part)
        return b"".join(parts)

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
