"""HTTP requests to a hub, over its user's socket or TCP: one connection each, closed after the answer.

Only what a hub's own client needs. The answer to a request is its JSON; an error is raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from .errors import ConnectionLost, NoHub, refusal
from .http_parser import Body, BrokenAnswer, Head, parse_head, request_head

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
