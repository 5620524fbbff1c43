"""A stream of events from a cursor on: one connection after another, and each event once.

No generator: a step can be cancelled and taken again, and nothing is lost by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from .errors import ConnectionLost, NoHub, Refused
from .http import Client, Reply
from .wire import Events

__all__ = ["PATIENCE", "Stored", "Stream"]

PATIENCE = 10.0
"""Seconds that a stream waits for a hub that went away to come back."""
FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0
CLOSING = 503


class Stored(NamedTuple):
    """An event as the hub's log has it: `data` is its JSON."""

    seq: int
    data: bytes


class Stream:
    """Events beyond `cursor`, which moves with what is handed out. `close` it."""

    def __init__(
        self, client: Client, path: str, after: int, patience: float, lost: Callable[[], None] | None = None
    ) -> None:
        self.cursor = after
        self._lost = lost
        self._client = client
        self._path = path
        self._patience = patience
        self._reply: Reply | None = None
        self._events = Events()
        self._wait = FIRST_WAIT
        self._deadline: float | None = None

    async def next(self) -> list[Stored]:
        """The next events, never none. Raises ConnectionLost with the cursor, Refused."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                if batch := await self._part():
                    self.cursor = batch[-1].seq
                    return batch
            except (NoHub, ConnectionLost, Refused) as exc:
                await self.close()
                if isinstance(exc, Refused) and exc.status != CLOSING:
                    raise
                if self._deadline is None:
                    self._deadline = loop.time() + self._patience
                    if self._lost is not None:
                        self._lost()
                if loop.time() >= self._deadline:
                    raise ConnectionLost(f"the hub is gone; event {self.cursor} was the last", self.cursor) from exc
            if self._reply is None:
                await asyncio.sleep(self._wait)
                self._wait = min(self._wait * 2, LONGEST_WAIT)

    async def close(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.close()

    async def _part(self) -> list[Stored]:
        """What the next bytes hold; the connection is made if there is none, and let go at its end."""
        if self._reply is None:
            headers, query = {"Accept": "text/event-stream"}, {"after": self.cursor}
            self._reply = await self._client.open("GET", self._path, query=query, headers=headers)
            self._events, self._wait, self._deadline = Events(), FIRST_WAIT, None
        part = await self._reply.part()
        if not part:
            await self.close()
            self._deadline = asyncio.get_running_loop().time()  # it said goodbye: if nobody is there now, that was all
        found = [Stored(int(frame.id), frame.data) for frame in self._events.feed(part) if frame.id.isdecimal()]
        return [stored for stored in found if stored.seq > self.cursor]
