"""Pages of history, shared: a hundred consumers that come back at once read the file once.

Followers that lag ask for the events after their cursor. Pages end at multiples of PAGE_COUNT, so that followers who
fell behind at different places soon ask for the same ones; those who ask together wait for one read.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from .entries import Entry, weights_of
from .follow import BATCH_COUNT

PAGE_COUNT = BATCH_COUNT
PAGES_BYTES = 8 << 20
"""What is kept of pages lately read, all sessions together."""

Page: TypeAlias = tuple[list[Entry], int]
Key: TypeAlias = tuple[str, int]


class Pages:
    def __init__(self, read: Callable[[str, int, int, int], Awaitable[Page]]) -> None:
        self._read = read
        self._kept: OrderedDict[Key, tuple[Page, int]] = OrderedDict()
        self._used = 0
        self._reading: dict[Key, asyncio.Task[Page]] = {}
        self._gone: set[str] = set()

    async def fetch(self, session_id: str, cursor: int, count: int, size: int) -> Page:
        """Entries beyond a seq, and the session's last seq."""
        if count < PAGE_COUNT:  # a wish of its own
            return await self._read(session_id, cursor, count, size)
        key = (session_id, cursor)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept[0]
        task = self._reading.get(key)
        if task is None:
            task = asyncio.create_task(self._read_page(key, size))
            self._reading[key] = task
        return await asyncio.shield(task)  # others wait for it too

    def forget(self, session_id: str) -> None:
        """The session was deleted; a page that is still being read is not kept either."""
        self._gone.add(session_id)
        for key in [key for key in self._kept if key[0] == session_id]:
            self._used -= self._kept.pop(key)[1]

    async def _read_page(self, key: Key, size: int) -> Page:
        session_id, cursor = key
        count = PAGE_COUNT - cursor % PAGE_COUNT
        try:
            page = await self._read(session_id, cursor, count, size)
        finally:
            del self._reading[key]
        entries, last = page
        final = entries and (len(entries) == count or entries[-1].seq < last)
        if final and session_id not in self._gone:
            self._keep(key, page)
        return page

    def _keep(self, key: Key, page: Page) -> None:
        entries = page[0]
        size = sum(weights_of(entries))
        self._kept[key] = (page, size)
        self._used += size
        while self._used > PAGES_BYTES:
            self._used -= self._kept.popitem(last=False)[1][1]
