"""A run of updates: those that can be handled together, and the others one at a time, in their order."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from pilothouse.acp.lanes import SLICE, Backlog, Lane, Several, Updates


class Notification(Struct):
    update: int
    session_id: str = "s"
    field_meta: None = None


class Heard:
    """What was handled, in order. Negative numbers can only be handled alone."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.alone: list[int] = []
        self.failures: list[BaseException] = []

    async def one(self, session_id: str, update: int) -> None:
        await asyncio.sleep(0)
        self.numbers.append(update)
        self.alone.append(update)

    def several(self, notifications: list[Notification]) -> int:
        fit = [each.update for each in notifications]
        taken = next((place for place, number in enumerate(fit) if number < 0), len(fit))
        self.numbers += fit[:taken]
        return taken

    def failed(self, fn: Any, error: BaseException) -> None:
        self.failures.append(error)


async def run(heard: Heard, numbers: list[int], several: Several | None) -> Lane:
    emptied = asyncio.Event()
    lane = Lane("s", Backlog(1 << 20), heard.failed, lambda lane: emptied.set())
    updates = Updates(heard.one, lambda notification: {}, several)
    updates.notifications += map(Notification, numbers)
    lane.put(updates)
    await emptied.wait()
    return lane


async def test_what_cannot_be_handled_together_is_handled_alone_in_its_place() -> None:
    heard = Heard()
    numbers = [*range(250), -1, -2, *range(250, 260), -3]
    await run(heard, numbers, heard.several)
    assert heard.numbers == numbers
    assert heard.alone == [-1, -2, -3]


async def test_without_such_a_handler_all_are_handled_alone() -> None:
    heard = Heard()
    await run(heard, list(range(250)), None)
    assert heard.alone == heard.numbers == list(range(250))


async def test_when_handling_together_fails_that_is_told_and_each_is_handled_alone() -> None:
    heard = Heard()

    def several(notifications: list[Notification]) -> int:
        raise RuntimeError("no")

    await run(heard, [1, 2, 3], several)
    assert heard.alone == [1, 2, 3]
    assert [str(error) for error in heard.failures] == ["no"]


async def test_others_get_their_turn_between_slices_of_a_long_run() -> None:
    heard = Heard()
    sizes: list[int] = []
    turns: list[int] = []

    def several(notifications: list[Notification]) -> int:
        sizes.append(len(notifications))
        asyncio.get_running_loop().call_soon(lambda: turns.append(len(sizes)))
        return heard.several(notifications)

    await run(heard, list(range(3 * SLICE)), several)
    assert sizes == [SLICE] * 3
    assert turns[:2] == [1, 2]


async def test_a_lane_that_is_stopped_in_a_run_handles_nothing_more() -> None:
    heard = Heard()
    lanes: list[Lane] = []

    def several(notifications: list[Notification]) -> int:
        lanes[0].stop(spare=None)
        return heard.several(notifications[:1])

    emptied = asyncio.Event()
    lane = Lane("s", Backlog(1 << 20), heard.failed, lambda lane: emptied.set())
    lanes.append(lane)
    updates = Updates(heard.one, lambda notification: {}, several)
    updates.notifications += map(Notification, range(10))
    lane.put(updates)
    await emptied.wait()
    assert heard.numbers == [0]
