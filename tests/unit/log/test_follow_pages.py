"""History that many read at once is read from the file once."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.log import Entry
from pilothouse.log import follow as pages
from pilothouse.log.follow import PAGE_COUNT, Page, Pages

SIZE = 1 << 20


class Storage:
    def __init__(self, last: int, size: int = 10) -> None:
        self.last = last
        self.size = size
        self.reads: list[tuple[int, int]] = []

    async def read(self, session_id: str, cursor: int, count: int, size: int) -> Page:
        self.reads.append((cursor, count))
        await asyncio.sleep(0)
        numbers = range(cursor + 1, min(cursor + count, self.last) + 1)
        return [Entry(session_id, seq, seq, "t", b"x" * self.size) for seq in numbers], self.last


async def test_those_who_ask_together_share_one_read() -> None:
    storage = Storage(5 * PAGE_COUNT)
    shared = Pages(storage.read)
    results = await asyncio.gather(*(shared.fetch("s", 0, PAGE_COUNT, SIZE) for _ in range(50)))
    assert len(storage.reads) == 1
    assert all(result[0] is results[0][0] for result in results)
    assert await shared.fetch("s", 0, PAGE_COUNT, SIZE) == results[0]
    assert len(storage.reads) == 1


async def test_pages_end_at_common_places() -> None:
    storage = Storage(5 * PAGE_COUNT)
    shared = Pages(storage.read)
    for start in (0, 7, PAGE_COUNT - 1):
        entries, _ = await shared.fetch("s", start, PAGE_COUNT, SIZE)
        assert entries[-1].seq == PAGE_COUNT


async def test_what_may_still_grow_is_read_again() -> None:
    storage = Storage(5)
    shared = Pages(storage.read)
    assert len((await shared.fetch("s", 0, PAGE_COUNT, SIZE))[0]) == 5
    storage.last = 6
    assert len((await shared.fetch("s", 0, PAGE_COUNT, SIZE))[0]) == 6


async def test_one_who_gives_up_does_not_take_the_read_from_the_others() -> None:
    shared = Pages(Storage(5 * PAGE_COUNT).read)
    first, second = (asyncio.create_task(shared.fetch("s", 0, PAGE_COUNT, SIZE)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert len((await second)[0]) == PAGE_COUNT
    assert first.cancelled()


async def test_a_failed_read_fails_all_and_is_tried_anew() -> None:
    attempts = 0

    async def read(session_id: str, cursor: int, count: int, size: int) -> Page:
        nonlocal attempts
        attempts += 1
        await asyncio.sleep(0)
        raise OSError("no")

    shared = Pages(read)
    for _ in range(2):
        results = await asyncio.gather(
            *(shared.fetch("s", 0, PAGE_COUNT, SIZE) for _ in range(3)), return_exceptions=True
        )
        assert [type(result) for result in results] == [OSError] * 3
    assert attempts == 2


async def test_what_is_kept_is_bounded_and_forgotten_with_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGES_BYTES", 3 * PAGE_COUNT * 300)
    storage = Storage(100 * PAGE_COUNT)
    shared = Pages(storage.read)
    for page in range(10):
        await shared.fetch("s", page * PAGE_COUNT, PAGE_COUNT, SIZE)
    assert shared._used <= 3 * PAGE_COUNT * 300
    assert 1 <= len(shared._kept) <= 3
    reading = asyncio.create_task(shared.fetch("s", 50 * PAGE_COUNT, PAGE_COUNT, SIZE))
    await asyncio.sleep(0)
    shared.forget("s")
    await reading
    assert (shared._used, len(shared._kept)) == (0, 0)


async def test_a_small_wish_is_served_as_it_is() -> None:
    storage = Storage(100)
    assert len((await Pages(storage.read).fetch("s", 10, 3, SIZE))[0]) == 3
    assert storage.reads == [(10, 3)]
