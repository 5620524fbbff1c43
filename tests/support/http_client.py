"""A small HTTP client for tests: a connection per request, bodies whole or as they come, SSE frames by the book.

async with Client(port, token=TOKEN).stream("GET", "/events") as stream:
    async for frame in stream.frames():
        ...
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import zlib
from collections import deque
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 60
"""Seconds after which a test gives up waiting for bytes; far more than anything takes."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Frame(NamedTuple):
    """One SSE frame. A comment is a frame of its own here, so that heartbeats can be seen; `id` None: not given."""

    event: str = "message"
    data: str = ""
    id: str | None = None
    comment: str | None = None
    retry: int | None = None

    def json(self) -> Any:
        return json.loads(self.data)


class Client:
    """Talks to a server on a loopback port, or on a Unix socket (`path`)."""

    def __init__(self, port: int = 0, *, token: str | None = None, host: str = "127.0.0.1", path: Path | None = None):
        self.port = port
        self.token = token
        self._host = host
        self._path = path

    async def request(
        self,
        method: str,
        target: str,
        value: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """The whole answer. `value` is sent as JSON."""
        async with self.stream(method, target, value, headers=headers, body=body) as stream:
            return Answer(stream.status, stream.headers, b"".join([part async for part in stream.parts()]))

    @contextlib.asynccontextmanager
    async def stream(
        self,
        method: str,
        target: str,
        value: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> AsyncIterator[Stream]:
        """The answer as it comes; leaving the block closes the connection."""
        reader, writer = await self._connect()
        try:
            writer.write(self._written(method, target, value, headers or {}, body))
            async with asyncio.timeout(PATIENCE):
                await writer.drain()
                yield_to = Stream(reader, writer, *_head(await reader.readuntil(b"\r\n\r\n")))
            yield yield_to
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                await writer.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        limit = 1 << 24
        if self._path is not None:
            return await asyncio.open_unix_connection(str(self._path), limit=limit)
        return await asyncio.open_connection(self._host, self.port, limit=limit)

    def _written(self, method: str, target: str, value: Any, headers: Mapping[str, str], body: bytes) -> bytes:
        host = "localhost" if self._path is not None else f"{self._host}:{self.port}"
        fields = {"Host": host, "Connection": "close"}
        if self.token is not None:
            fields["Authorization"] = f"Bearer {self.token}"
        if value is not None:
            body = json.dumps(value).encode()
            fields["Content-Type"] = "application/json"
        if body or method not in ("GET", "HEAD"):
            fields["Content-Length"] = str(len(body))
        fields |= headers
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items()), "", ""]
        return "\r\n".join(lines).encode() + body


def _head(data: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = data.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(first.split()[1]), {name.strip().lower(): text.strip() for name, _, text in pairs}


class Stream:
    """An answer under way. `transport` is its socket's, for tests that stop reading."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int, headers: dict[str, str]
    ) -> None:
        self.status = status
        self.headers = headers
        self.transport = writer.transport
        self._reader = reader
        self._parts = self.parts()
        self._frames: deque[Frame] = deque()
        self._rest = b""

    async def parts(self) -> AsyncIterator[bytes]:
        """The body, unpacked, as it comes."""
        unpack = zlib.decompressobj(31) if self.headers.get("content-encoding") == "gzip" else None
        async for part in self._raw():
            if data := part if unpack is None else unpack.decompress(part):
                yield data

    async def body(self) -> bytes:
        return b"".join([part async for part in self.parts()])

    async def frames(self) -> AsyncIterator[Frame]:
        """SSE frames; ends with the stream. May be left and taken up again."""
        while True:
            while self._frames:
                yield self._frames.popleft()
            part = await anext(self._parts, None)
            if part is None:
                return
            *whole, self._rest = (self._rest + part).split(b"\n\n")
            self._frames += (parse_frame(text.decode()) for text in whole)

    async def _raw(self) -> AsyncIterator[bytes]:
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(await self._wait(self._reader.readuntil(b"\r\n")), 16):
                yield (await self._wait(self._reader.readexactly(size + 2)))[:-2]
        elif "content-length" in self.headers:
            if size := int(self.headers["content-length"]):
                yield await self._wait(self._reader.readexactly(size))
        else:
            while data := await self._wait(self._reader.read(1 << 16)):
                yield data

    async def _wait(self, reading: Any) -> bytes:
        async with asyncio.timeout(PATIENCE):
            data: bytes = await reading
            return data


def parse_frame(text: str) -> Frame:
    fields: dict[str, Any] = {}
    data: list[str] = []
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not name:
            fields["comment"] = value
        elif name == "data":
            data.append(value)
        elif name == "retry":
            fields["retry"] = int(value)
        else:
            fields[name] = value
    return Frame(data="\n".join(data), **fields)
