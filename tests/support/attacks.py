"""Attempts to get into a server, counted, and the raw bytes that no polite client would send."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .http_client import PATIENCE, Answer, Client

__all__ = ["REFUSED", "Attempts", "paired", "raw", "status_of"]

REFUSED = (400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 429, 431)


class Attempts:
    """How many were refused, by what they tried."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.what = ""

    def refused(self, answer: Answer | int, *statuses: int) -> None:
        status = answer if isinstance(answer, int) else answer.status
        assert status in (statuses or REFUSED), answer
        self.count[self.what] += 1

    @contextlib.contextmanager
    def refusing(self, *kinds: type[BaseException]) -> Iterator[None]:
        """The block must fail so."""
        try:
            yield
        except kinds:
            self.count[self.what] += 1
        else:
            raise AssertionError("it was let in")


async def raw(port: int, data: bytes, *, until_closed: bool = True, host: str = "127.0.0.1") -> bytes:
    """Send bytes as they are; all that comes back until the server closes, or the first piece of it."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(data)
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            try:
                return await (reader.read() if until_closed else reader.read(1 << 16))
            except ConnectionError:
                return b""
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def status_of(data: bytes) -> int:
    """The status of the first answer; 0 if there is none."""
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.1 ") else 0


async def paired(client: Client, *scopes: str, name: str = "phone") -> tuple[str, Client]:
    """A new device: its id, and a client with its credential."""
    offer = (await client.request("POST", "/pairings", {"scopes": list(scopes)})).json()
    wish: dict[str, Any] = {"ticket": offer["ticket"], "code": offer["code"], "name": name}
    answer = await Client(client.port).request("POST", "/pair", wish)
    assert answer.status == 201, answer
    return answer.json()["deviceId"], Client(client.port, token=answer.json()["credential"])
