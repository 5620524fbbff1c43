"""Attempts to get into a server, counted, and the raw bytes that no polite client would send."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Iterator
from typing import Any

from pilothouse.hub.hub import Hub
from pilothouse.server.app import OPERATIONS

from .http_client import PATIENCE, Answer, Client
from .servers import TOKEN, Served

__all__ = [
    "AUTHORIZED",
    "FOREIGN",
    "REFUSED",
    "SCOPED",
    "Attempts",
    "Clock",
    "bearer",
    "log_in",
    "login_link",
    "paired",
    "raw",
    "rest",
    "routes",
    "state",
    "status_of",
    "target",
    "until",
]

REFUSED = (400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 429, 431)


class Attempts:
    """How many were refused."""

    def __init__(self) -> None:
        self.count = 0

    def refused(self, answer: Answer | int, *statuses: int) -> None:
        status = answer if isinstance(answer, int) else answer.status
        assert status in (statuses or REFUSED), answer
        self.count += 1

    @contextlib.contextmanager
    def refusing(self, *kinds: type[BaseException]) -> Iterator[None]:
        """The block must fail so."""
        try:
            yield
        except kinds:
            self.count += 1
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


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def state(hub: Hub) -> tuple[Any, ...]:
    """All that a request could have changed."""
    log = hub.log
    sessions = (await log.sessions.list(archived=None)).sessions
    settings = await log.settings.all()
    devices = [(device.id, device.name, device.scopes, device.revoked) for device in await log.devices.list()]
    return sessions, settings, devices, await log.rules.list(), await log.approvals.list()


def target(path: str, session_id: str = "s", **names: str) -> str:
    names = {"id": session_id, "path": "notes.txt", "artifactId": "a", "promptId": "p", **names}
    return re.sub(r"\{(\w+)(:path)?\}", lambda found: names[found[1]], path)


SCOPED = [operation for operation in OPERATIONS if operation.scope is not None]


FOREIGN = ("https://evil.example", "null", "http://localhost:3000", "file://", "http://127.0.0.1", "")


async def login_link(served: Served) -> str:
    url = (await served.client.request("POST", "/login-links")).json()["url"]
    return str(url.partition(f":{served.port}")[2])


async def log_in(served: Served) -> dict[str, str]:
    """The cookie of a browser that followed a link."""
    answer = await Client(served.port).request("GET", await login_link(served))
    assert answer.status == 303, answer
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


def routes() -> list[str]:
    from pilothouse.server.acp import websocket as acp
    from pilothouse.server.ws import stream as websocket

    return [route.path for route in (*websocket.ROUTES, *acp.ROUTES)]  # type: ignore[attr-defined]


def bearer(client: Client) -> dict[str, str]:
    return {"Authorization": f"Bearer {client.token}"}


async def until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.005)


AUTHORIZED = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"


def rest(connection: socket.socket) -> bytes:
    """What had been sent when the connection was cut off."""
    connection.settimeout(PATIENCE)
    taken = b""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(1 << 20):
            taken += data
    return taken
