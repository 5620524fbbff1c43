from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from msgspec import Struct

from pilothouse.server.errors import HttpError
from pilothouse.server.http.idempotency import Repeats


class Counter:
    def __init__(self, *, fails: int = 0) -> None:
        self.calls = 0
        self.fails = fails
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> int:
        self.calls += 1
        await self.go.wait()
        if self.calls <= self.fails:
            raise ValueError("not yet")
        return self.calls


async def test_a_request_acts_once_however_often_it_comes() -> None:
    repeats, act = Repeats(), Counter()
    act.go.clear()
    waiting = [asyncio.create_task(repeats.once("key", {"a": 1}, act, field="id")) for _ in range(5)]
    await asyncio.sleep(0)
    act.go.set()
    assert await asyncio.gather(*waiting) == [1] * 5
    assert await repeats.once("key", {"a": 1}, act, field="id") == 1
    assert await repeats.once("other", {"a": 1}, act, field="id") == 2


async def test_another_request_under_the_same_id_is_refused() -> None:
    repeats, act = Repeats(), Counter()
    await repeats.once("key", {"a": 1}, act, field="id")
    with pytest.raises(HttpError) as caught:
        await repeats.once("key", {"a": 2}, act, field="id")
    assert (caught.value.status, act.calls) == (409, 1)


async def test_a_request_that_failed_may_be_tried_again() -> None:
    repeats, act = Repeats(), Counter(fails=1)
    with pytest.raises(ValueError, match="not yet"):
        await repeats.once("key", {"a": 1}, act, field="id")
    await asyncio.sleep(0)
    assert await repeats.once("key", {"a": 2}, act, field="id") == 2


async def test_who_leaves_does_not_stop_what_was_asked() -> None:
    repeats, act = Repeats(), Counter()
    act.go.clear()
    leaving = asyncio.create_task(repeats.once("key", 1, act, field="id"))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait((leaving,))
    act.go.set()
    assert (await repeats.once("key", 1, act, field="id"), act.calls) == (1, 1)


async def test_the_oldest_answers_are_forgotten_but_none_that_is_still_being_made() -> None:
    repeats, act, slow = Repeats(kept=3), Counter(), Counter()
    for key in range(10):
        await repeats.once(key, 1, act, field="id")
    assert len(repeats) == 3
    slow.go.clear()
    first = asyncio.create_task(repeats.once("slow", 1, slow, field="id"))
    for key in range(10, 20):
        await repeats.once(key, 1, act, field="id")
    second = asyncio.create_task(repeats.once("slow", 1, slow, field="id"))
    await asyncio.sleep(0)
    slow.go.set()
    assert (await first, await second, slow.calls) == (1, 1, 1)


class Request(Struct, weakref=True):
    picture: str


async def test_what_was_asked_is_not_kept_in_memory() -> None:
    repeats, act = Repeats(), Counter()
    request = Request("x" * 1_000_000)
    kept = weakref.ref(request)
    await repeats.once("key", request, act, field="id")
    del request
    gc.collect()
    assert kept() is None
    assert await repeats.once("key", Request("x" * 1_000_000), act, field="id") == 1
