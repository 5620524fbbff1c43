"""Following: history, then live, without gap or duplicate, from any cursor.

A follower is a cursor, not a queue: it holds one batch at a time, so a slow one lags and costs nothing. Live entries
come from the tail, which all followers of a session share; a follower that lags behind the tail reads storage, in pages
that end at multiples of PAGE_COUNT, so that followers who fell behind at different places share one read.

The rule that prevents gaps: between looking at the tail and waiting on it there is no `await`. The rule that prevents
duplicates: a batch holds only entries beyond the cursor, wherever they came from.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from itertools import accumulate, islice
from typing import TypeAlias
from weakref import WeakSet, WeakValueDictionary

from .entries import ENTRY_OVERHEAD, Entry, weights_of
from .errors import CursorAhead, LogClosed, LogError, UnknownSession

BATCH_COUNT = 1024
BATCH_BYTES = 1 << 20
"""What one batch of a follower holds at most; one entry is always allowed, of any size."""

TAIL_COUNT = 4096
TAIL_BYTES = 2 << 20
"""What the tail of one session keeps in memory."""

ALL_TAILS_BYTES = 32 << 20
"""What all tails keep together; the one that was quiet for longest is emptied first."""

Fetch: TypeAlias = Callable[[int, int, int], Awaitable[tuple[list[Entry], int]]]
"""Read from storage: (after, count, bytes) → entries and the last key there is."""


class Tail:
    """The newest entries of one session, or of all: a shared window with the waiters at its end.

    `last` is the last key known to be committed, -1 before anything is known; the window may end before it.
    """

    __slots__ = ("__weakref__", "_base", "_bytes", "_ends", "_entries", "_keys", "_waiters", "ended", "floor", "last")

    def __init__(self, max_bytes: int = TAIL_BYTES) -> None:
        self._bytes = max_bytes
        self.last = -1
        self.floor = -1  # the window holds all that is beyond this key
        self.ended: Callable[[], LogError] | None = None
        self._keys: list[int] = []
        self._ends: list[int] = []  # running total of bytes, to cut batches without summing
        self._entries: list[Entry] = []
        self._base = 0
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def size(self) -> int:
        return self._ends[-1] - self._base if self._ends else 0

    def learn(self, last: int) -> None:
        self.last = max(self.last, last)

    def extend(self, keys: range, entries: list[Entry], weights: list[int], *, contiguous: bool) -> None:
        """Add committed entries. `contiguous`: a key that does not follow the window's last one means a gap."""
        if contiguous and (not self._keys or self._keys[-1] != keys.start - 1):
            self.clear()
            self.floor = keys.start - 1
        total = self._ends[-1] if self._ends else self._base
        self._ends += islice(accumulate(weights, initial=total), 1, None)
        self._keys += keys
        self._entries += entries
        self.last = max(self.last, self._keys[-1])
        if len(self._keys) > TAIL_COUNT or self.size > self._bytes:
            self._trim()

    def _trim(self) -> None:
        """Keep the newer part: half of the bounds, so that trimming is rare, but one entry of any size."""
        cut = max(
            len(self._keys) - TAIL_COUNT // 2,
            bisect_left(self._ends, self._ends[-1] - self._bytes // 2),
        )
        cut = min(cut, len(self._keys) - 1) if self._bytes else len(self._keys)
        if cut > 0:
            self.floor, self._base = self._keys[cut - 1], self._ends[cut - 1]
            del self._keys[:cut], self._ends[:cut], self._entries[:cut]

    def pass_over(self, key: int) -> None:
        """Something was committed that nobody looks at: whoever comes later finds it in storage."""
        if self._keys:
            self.clear()
        self.floor = self.last = key

    def clear(self) -> None:
        self._keys, self._ends, self._entries, self._base = [], [], [], 0

    def after(self, cursor: int, count: int, size: int) -> list[Entry]:
        """The next batch beyond the cursor; empty when the window does not have it."""
        keys = self._keys
        if not keys or cursor >= keys[-1] or cursor < self.floor:
            return []
        start = bisect_right(keys, cursor)
        room = (self._ends[start - 1] if start else self._base) + size + ENTRY_OVERHEAD * count
        stop = max(start + 1, min(start + count, bisect_right(self._ends, room)))
        return self._entries[start:stop]

    def wake(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def end(self, error: Callable[[], LogError]) -> None:
        """No more entries will come: whoever waits, or asks later, gets the error."""
        self.ended = error
        self.wake()

    async def wait(self, deadline: float | None = None) -> None:
        """Until something is committed, the tail ends, or the loop's clock passes the deadline."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = None if deadline is None else loop.call_at(deadline, _release, waiter)
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Tails:
    """All tails of a log. A tail lives as long as someone follows it or it is among those worth keeping."""

    def __init__(self, tail_bytes: int = TAIL_BYTES, budget: int = ALL_TAILS_BYTES) -> None:
        self.all = Tail(tail_bytes)
        self._tail_bytes = tail_bytes
        self._budget = budget
        self._used = 0
        self._by_session: WeakValueDictionary[str, Tail] = WeakValueDictionary()
        self._kept: OrderedDict[str, Tail] = OrderedDict()
        self._followers: WeakSet[Follower] = WeakSet()
        self._followers_of_all: WeakSet[Follower] = WeakSet()
        self._closed = False

    def start(self, position: int) -> None:
        """The log is open: what is committed from now on lies beyond this position."""
        self.all.floor = self.all.last = position

    def of(self, session_id: str) -> Tail:
        tail = self._by_session.get(session_id)
        if tail is None:
            tail = self._by_session[session_id] = Tail(self._tail_bytes)
            if self._closed:
                tail.ended = LogClosed
        return tail

    def last(self, session_id: str) -> int:
        """The last committed seq as far as known here; -1 when it is not."""
        tail = self._by_session.get(session_id)
        return -1 if tail is None else tail.last

    def near(self, session_id: str, after: int, count: int, size: int) -> list[Entry]:
        """What the tail has beyond a seq; empty when storage must be asked."""
        tail = self._by_session.get(session_id)
        return [] if tail is None or count <= 0 else tail.after(after, count, size)

    def committed(self, session_id: str, entries: list[Entry], weights: list[int]) -> Tail:
        """Take over entries that are now durable, with their weights. The caller wakes, after the last of a commit."""
        tail = self.of(session_id)
        before = tail.size
        first, last = entries[0], entries[-1]
        tail.extend(range(first.seq, last.seq + 1), entries, weights, contiguous=True)
        if self._followers_of_all:
            self.all.extend(range(first.position, last.position + 1), entries, weights, contiguous=False)
        else:
            self.all.pass_over(last.position)
        self._used += tail.size - (before if session_id in self._kept else 0)
        self._kept[session_id] = tail
        self._kept.move_to_end(session_id)
        while self._used > self._budget and len(self._kept) > 1:
            _, quiet = self._kept.popitem(last=False)
            self._used -= quiet.size
            quiet.clear()
        return tail

    def forget(self, session_id: str) -> None:
        """The session was deleted: its followers end."""
        kept = self._kept.pop(session_id, None)
        if kept is not None:
            self._used -= kept.size
        tail = self._by_session.pop(session_id, None)
        if tail is not None:
            tail.end(lambda: UnknownSession(session_id))

    def close(self) -> None:
        self._closed = True
        for tail in [self.all, *self._by_session.values()]:
            tail.end(LogClosed)

    def follower(self, tail: Tail, fetch: Fetch, after: int, key: str) -> Follower:
        follower = Follower(tail, fetch, after, key)
        self._followers.add(follower)
        if tail is self.all:
            self._followers_of_all.add(follower)
        return follower

    @property
    def followers(self) -> int:
        return len(self._followers)

    @property
    def used(self) -> int:
        return self._used


class Follower:
    """An async iterator of batches (lists of entries) beyond a cursor, in order, without end.

    Iterate it from one task at a time. `cursor` is where it stands: the seq (or, over all sessions, the position) of
    the last entry handed out. Cancelling a step loses nothing. Raises UnknownSession, CursorAhead, LogClosed.
    """

    __slots__ = ("__weakref__", "_fetch", "_key", "_tail", "cursor")

    def __init__(self, tail: Tail, fetch: Fetch, after: int, key: str) -> None:
        if after < 0:
            raise ValueError(f"a cursor is 0 or a number the log gave; got {after!r}")
        self.cursor = after
        self._tail = tail
        self._fetch = fetch
        self._key = key

    @property
    def caught_up(self) -> bool:
        """Whether everything known to be committed has been handed out."""
        return 0 <= self._tail.last <= self.cursor

    def __aiter__(self) -> Follower:
        return self

    async def __anext__(self) -> list[Entry]:
        return await self.next()

    async def next(
        self, timeout: float | None = None, *, count: int = BATCH_COUNT, size: int = BATCH_BYTES
    ) -> list[Entry]:
        """The next batch, of at most so many entries and about so many bytes; empty when none came in time."""
        tail = self._tail
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while True:
            if tail.ended is not None:
                raise tail.ended()
            batch = tail.after(self.cursor, count, size)
            if not batch and self.cursor != tail.last:
                batch, last = await self._fetch(self.cursor, count, size)
                tail.learn(last)
                if not batch and self.cursor > tail.last:
                    raise CursorAhead(self.cursor, tail.last)
            if batch:
                self.cursor = getattr(batch[-1], self._key)
                return batch
            if self.cursor == tail.last and tail.ended is None:
                if deadline is not None and asyncio.get_running_loop().time() >= deadline:
                    return []
                await tail.wait(deadline)


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
