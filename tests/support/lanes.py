"""A consumer of the WebSocket lane, for tests.

async with lane(served.port) as consumer:                    # authenticated by its first message
    await consumer.say("subscribe", sessionIds=[session.id])
    await consumer.until("caught_up")
    consumer.events                                          # all events it got, in order
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from .servers import TOKEN

PATIENCE = 60
NEWS = ("session_changed", "session_deleted", "discovered_changed")


class Consumer:
    """One WebSocket. `messages` are all that came, `events` what was in those that carry events.

    Rows of sessions come whenever they like, so they are kept apart, in `news`.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.messages: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.news: list[dict[str, Any]] = []

    async def say(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while (message := await self._receive())["type"] in NEWS:
                self.news.append(message)
        self.messages.append(message)
        if message["type"] == "events":
            self.events += message["events"]
        elif message["type"] == "event":
            self.events.append(message["event"])
        return message

    async def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.socket.recv())
        return message

    async def until_news(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first news of a session that fits, among those that came or that come; nothing else may come meanwhile
        that a test wants."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for message in self.news:
                    if fits(message):
                        return message
                message = await self._receive()
                (self.news if message["type"] in NEWS else self.messages).append(message)

    async def until(self, wanted: str | Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message of a type, or that fits."""
        fits = wanted if callable(wanted) else lambda message: message["type"] == wanted
        while not fits(message := await self.next()):
            pass
        return message

    async def until_event(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first event that fits, among those that came or that come."""
        while True:
            for event in self.events:
                if fits(event):
                    return event
            await self.next()

    async def command(self, session_id: str, command_id: str, **command: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer."""
        await self.say("command", sessionId=session_id, commandId=command_id, command=command)
        return await self.until(lambda m: m["type"] == "command_result" and m.get("commandId") == command_id)

    @property
    def seqs(self) -> list[int]:
        return [event["seq"] for event in self.events]


def ended(count: int = 1) -> Callable[[dict[str, Any]], bool]:
    """Fits the end of the so-manieth turn that is looked at."""
    seen: set[tuple[str, int]] = set()

    def fits(event: dict[str, Any]) -> bool:
        if event.get("eventName") == "turn_ended":
            seen.add((event["sessionId"], event["seq"]))
        return len(seen) >= count

    return fits


@contextlib.asynccontextmanager
async def lane(
    port: int, token: str | None = TOKEN, *, greeted: bool = True, **options: Any
) -> AsyncIterator[Consumer]:
    """A consumer that says who it is and, with `greeted`, has heard all that it is told first."""
    async with connect(f"ws://127.0.0.1:{port}/ws", **{"max_size": None, "compression": None, **options}) as socket:
        consumer = Consumer(socket)
        if token is not None:
            await consumer.say("authenticate", token=token)
        if greeted:
            await consumer.until("approvals")
        yield consumer
