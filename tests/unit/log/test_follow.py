"""Followers: the shared window of newest entries, and pages of history that concurrent readers share."""

from __future__ import annotations

import asyncio
import gc

import pytest

from pilothouse.log import Entry, LogClosed, MemoryLog, UnknownSession
from pilothouse.log import follow as pages
from pilothouse.log.entries import weights_of
from pilothouse.log.follow import PAGE_COUNT, TAIL_COUNT, Page, Pages, Tail, Tails

# -- newest entries ---------------------------------------------------------------------------------------------------


def entries(first: int, last: int, session_id: str = "s", size: int = 10, shift: int = 0) -> list[Entry]:
    return [Entry(session_id, seq, seq + shift, "t", b"x" * size) for seq in range(first, last + 1)]


def extend(tail: Tail, batch: list[Entry]) -> None:
    tail.extend(range(batch[0].seq, batch[-1].seq + 1), batch, weights_of(batch), contiguous=True)


def seqs(batch: list[Entry]) -> list[int]:
    return [entry.seq for entry in batch]


def test_a_window_gives_what_is_beyond_the_cursor_and_nothing_when_it_does_not_reach_back() -> None:
    tail = Tail()
    extend(tail, entries(5, 9))
    assert seqs(tail.after(4, 100, 1 << 20)) == [5, 6, 7, 8, 9]
    assert seqs(tail.after(7, 1, 1 << 20)) == [8]
    assert tail.after(9, 100, 1 << 20) == []
    assert tail.after(3, 100, 1 << 20) == []
    assert tail.last == 9


def test_a_batch_is_cut_at_its_bytes_but_has_one_entry() -> None:
    tail = Tail()
    extend(tail, entries(1, 10, size=10_000))
    assert seqs(tail.after(0, 10, 1)) == [1]
    assert len(tail.after(0, 10, 35_000)) in (3, 4)


def test_a_gap_empties_the_window() -> None:
    tail = Tail()
    extend(tail, entries(1, 3))
    extend(tail, entries(7, 8))
    assert tail.after(2, 10, 1 << 20) == []
    assert seqs(tail.after(6, 10, 1 << 20)) == [7, 8]


@pytest.mark.parametrize(("size", "step"), [(10, 1), (10, 700), (100_000, 3)])
def test_a_window_is_bounded_and_stays_exact(size: int, step: int) -> None:
    tail = Tail()
    last = 0
    while last < (TAIL_COUNT * 3 if size == 10 else 200):
        extend(tail, entries(last + 1, last + step, size=size))
        last += step
        assert tail.size <= 2 << 20
        newest = tail.after(last - 1, 10, 1 << 20)
        assert seqs(newest) == [last]
    assert seqs(tail.after(tail.floor, 5000, 1 << 40)) == list(range(tail.floor + 1, last + 1))
    assert last - tail.floor <= TAIL_COUNT


def test_one_entry_of_any_size_is_kept_for_those_who_follow_live() -> None:
    tail = Tail()
    extend(tail, entries(1, 1, size=5 << 20))
    assert seqs(tail.after(0, 10, 1)) == [1]
    none = Tail(0)
    extend(none, entries(1, 1))
    assert none.after(0, 10, 1) == []
    assert (none.floor, none.last, none.size) == (1, 1, 0)


def test_all_tails_together_are_bounded_and_the_quiet_one_goes_first() -> None:
    tails = Tails(budget=100_000)
    for name in "abcdef":
        for batch in (entries(1, 3, name, size=10_000), entries(ord(name), ord(name), "busy", size=100)):
            tails.committed(batch[0].session_id, batch, weights_of(batch))
    assert tails.used <= 100_000
    assert tails.near("a", 0, 10, 1 << 20) == []
    assert seqs(tails.near("f", 0, 10, 1 << 20)) == [1, 2, 3]
    assert tails.near("busy", ord("f") - 1, 10, 1 << 20) != []


def test_a_tail_that_nobody_needs_is_gone() -> None:
    tails = Tails()
    tail = tails.of("s")
    assert tails.of("s") is tail
    assert tails.last("s") == -1
    tail.learn(7)
    assert tails.last("s") == 7
    del tail
    gc.collect()
    assert tails.last("s") == -1


async def test_waiters_that_give_up_leave_nothing_behind() -> None:
    tail = Tail()
    waiting = [asyncio.create_task(tail.wait()) for _ in range(5)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert not tail._waiters


async def test_what_ended_stays_ended() -> None:
    tails = Tails()
    tail = tails.of("s")
    tails.forget("s")
    assert tail.ended is not None
    assert isinstance(tail.ended(), UnknownSession)
    tails.close()
    late = tails.of("t").ended
    assert late is not None
    assert isinstance(late(), LogClosed)


async def test_live_followers_share_the_bytes_that_were_encoded_once() -> None:
    from pilothouse.model.events import MessageStartEvent

    async with MemoryLog() as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        followers = [log.follow("s") for _ in range(3)]
        assert [await follower.next(0) for follower in followers] == [[], [], []]
        await log.append("s", 0, [MessageStartEvent(seq=0, session_id="s", timestamp="t", message_id="m", role="user")])
        first, second, third = [await anext(follower) for follower in followers]
        assert first[0].data is second[0].data is third[0].data
        assert log.statistics()["followers"] == 3
        assert log.statistics()["tail_bytes"] > 0


def test_what_nobody_follows_is_not_held_and_whoever_comes_asks_storage_for_it() -> None:
    async def fetch(cursor: int, count: int, size: int) -> tuple[list[Entry], int]:
        raise AssertionError("not asked here")

    tails = Tails()

    def commit(first: int, last: int) -> None:
        batch = entries(first, last)
        tails.committed("s", batch, weights_of(batch))

    commit(1, 3)
    assert (tails.all.last, tails.all.size) == (3, 0)
    follower = tails.follower(tails.all, fetch, 3, "position")
    commit(4, 6)
    assert seqs(tails.all.after(3, 10, 1 << 20)) == [4, 5, 6]
    assert tails.all.after(2, 10, 1 << 20) == []
    del follower
    commit(7, 7)
    assert (tails.all.last, tails.all.size) == (7, 0)


# -- pages ------------------------------------------------------------------------------------------------------------

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
