"""All stores and adapters together: what one of them does wrong is told once, and the rest is found all the same."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from pilothouse.adapters.discovery.processes import Holder
from pilothouse.adapters.discovery.store import Problem, Scan
from pilothouse.model.discovery import DiscoveredStatus
from tests.unit.adapters.discovery.shelves import (
    NOBODY,
    NOW,
    PATIENCE,
    Failing,
    Packaged,
    Shelf,
    finding,
    ids,
    session,
)

# -- what is found --


async def test_sessions_of_all_stores_are_found_the_one_last_active_first() -> None:
    one, two = Shelf("one", session("one", "a", ago=50), session("one", "b", ago=5)), Shelf("two", session("two", "c"))
    async with finding(one, two) as finder:
        found = await finder.sessions()
        assert ids(found.sessions) == [("two", "c"), ("one", "b"), ("one", "a")]
        assert await finder.session("one", "a") == found.sessions[2]
        assert await finder.session("two", "a") is None
        assert finder.agents == {"one", "two"}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("no luck"), "RuntimeError: no luck"),
        (SystemExit("left"), "SystemExit: left"),
        (KeyError(), "KeyError"),
    ],
)
async def test_a_store_that_raises_is_one_problem_and_the_others_are_found(error: BaseException, words: str) -> None:
    async with finding(Failing("bad", error), Shelf("good", session("good", "a"))) as finder:
        for _ in range(2):
            found = await finder.sessions()
            assert ids(found.sessions) == [("good", "a")]
            assert found.problems == [Problem(path="store bad", message=words)]


async def test_a_store_that_answers_nonsense_is_a_problem() -> None:
    shelf = Shelf("odd")
    shelf.scan = lambda: [1, 2]  # type: ignore[method-assign,assignment,return-value]
    async with finding(shelf, Shelf("good", session("good", "a"))) as finder:
        found = await finder.sessions()
        assert ids(found.sessions) == [("good", "a")]
        assert [problem.message for problem in found.problems] == ["TypeError: scan gives list"]


async def test_a_store_that_does_not_come_back_is_left_and_not_asked_twice() -> None:
    shelf, go, asked = Shelf("slow", session("slow", "s")), threading.Event(), []

    def scan() -> Scan:
        asked.append(1)
        go.wait(PATIENCE)
        return Scan(sessions=shelf.sessions)

    shelf.scan = scan  # type: ignore[method-assign]
    async with finding(shelf, Shelf("good", session("good", "a")), patience=0.05) as finder:
        try:
            for _ in range(3):
                found = await finder.sessions()
                assert ids(found.sessions) == [("good", "a")]
                assert [problem.message for problem in found.problems] == ["it takes too long"]
            assert len(asked) == 1
        finally:
            go.set()
        while len((await finder.sessions()).sessions) < 2:
            await asyncio.sleep(0)


async def test_a_problem_is_written_down_once_and_again_when_it_was_gone_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="pilothouse.adapters.discovery.finder")
    shelf, problem = Shelf("one"), Problem(path="/a", message="it is gone")
    async with finding(shelf) as finder:
        written = []
        for problems in ([problem], [problem], [], [problem]):
            shelf.problems = problems
            caplog.clear()
            await finder.sessions()
            written.append(caplog.messages)
        assert written == [["/a: it is gone"], [], [], ["/a: it is gone"]]


async def test_those_who_ask_at_once_share_a_look_that_began_after_they_asked() -> None:
    shelf, looks = Shelf("one"), []
    shelf.scan = lambda: looks.append(1) or Scan()  # type: ignore[method-assign,func-returns-value]
    async with finding(shelf) as finder:
        await asyncio.gather(*(finder.sessions() for _ in range(50)))
        assert len(looks) == 2


async def test_who_is_content_with_a_look_since_a_time_is_told_the_last_one_if_it_began_then() -> None:
    shelf, looks, now = Shelf("one", session("one", "a")), [], asyncio.get_running_loop().time
    shelf.scan = lambda: looks.append(1) or Scan(sessions=shelf.sessions)  # type: ignore[method-assign,func-returns-value]
    async with finding(shelf) as finder:
        before = now()
        for _ in range(3):
            assert await finder.session("one", "a", before) is not None
        assert len(looks) == 1
        shelf.sessions = []
        assert await finder.session("one", "a", before) is not None  # that look is late enough
        after = now()
        assert await finder.session("one", "a", after) is None
        assert await finder.session("one", "a", after) is None
        assert len(looks) == 2
        await finder.session("one", "a")
        assert len(looks) == 3


async def test_a_look_that_was_cancelled_is_nobody_elses() -> None:
    shelf, begun, go = Shelf("one", session("one", "a")), threading.Event(), threading.Event()

    def scan() -> Scan:
        begun.set()
        go.wait(PATIENCE)
        return Scan(sessions=shelf.sessions)

    shelf.scan = scan  # type: ignore[method-assign]
    async with finding(shelf) as finder:
        since = asyncio.get_running_loop().time()
        first = asyncio.ensure_future(finder.session("one", "a", since))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        second = asyncio.ensure_future(finder.session("one", "a", since))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        go.set()
        assert await second is not None
        assert await finder.session("one", "a", since) is not None


# -- who has what --


def held(**options: Any) -> Callable[..., dict[tuple[str, str], Holder]]:
    known = {"pid": 77, "started": 1.0, "program": "x", "sign": "told", **options}
    return lambda listed: {("one", "a"): Holder(**known)}


@pytest.mark.parametrize(
    ("said", "ago", "holder", "status"),
    [
        ("running", 5, None, "running"),
        ("running", 500, None, "idle"),
        ("waiting", 500, None, "idle"),
        ("idle", 500, None, "idle"),
        (None, 500, None, None),
        ("running", 500, {}, "running"),
        ("running", 500, {"sign": "directory"}, "running"),
        ("running", 500, {"sign": "directory", "started": NOW + 86_400}, "idle"),
        ("running", 5, {"status": "waiting"}, "waiting"),
        ("idle", 5, {"status": "running"}, "running"),
    ],
)
async def test_what_a_session_does_is_known_from_its_process_its_record_and_its_age(
    said: DiscoveredStatus | None, ago: float, holder: dict[str, Any] | None, status: str | None
) -> None:
    shelf = Shelf("one", session("one", "a", ago=ago, status=said))
    async with finding(shelf, holders=NOBODY if holder is None else held(**holder)) as finder:
        (found,) = (await finder.sessions()).sessions
        is_sure = holder is not None and "sign" not in holder
        assert (found.status, found.pid) == (status, 77 if is_sure else None)


@pytest.mark.parametrize(
    ("options", "hub_id", "is_foreign"),
    [
        ({}, "mine", True),
        ({"hub": "mine"}, "mine", False),
        ({"hub": "mine"}, None, False),
        ({"hub": "other"}, "mine", True),
        ({"is_ours": True}, "mine", False),
    ],
)
async def test_what_the_hub_started_is_not_foreign(options: Any, hub_id: str | None, is_foreign: bool) -> None:
    async with finding(Shelf("one", session("one", "a")), holders=held(**options), hub_id=hub_id) as finder:
        found = await finder.holder("one", "a")
        assert (found is not None) == is_foreign
        assert [one.pid for one in (await finder.sessions()).sessions] == [77 if is_foreign else None]
        assert await finder.holder("one", "b") is None
        assert await finder.holder("unknown", "a") is None


async def test_the_process_that_an_adapter_of_a_package_names_has_the_session() -> None:
    adapter = Packaged()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        adapter.sessions = [
            replace(session("x", "held"), pid=process.pid),
            replace(session("x", "ours"), pid=os.getpid()),
            replace(session("x", "odd"), pid="7"),
            session("x", "free"),
        ]
        async with finding(adapters=[adapter]) as finder:
            found = await finder.holder("packaged", "held")
            assert found is not None
            assert (found.pid, found.is_sure) == (process.pid, True)
            assert found.started == psutil.Process(process.pid).create_time()
            for free in ("ours", "odd", "free", "unknown"):
                assert await finder.holder("packaged", free) is None
        process.communicate(b"\n")
    async with finding(adapters=[adapter]) as finder:
        assert await finder.holder("packaged", "held") is None


async def test_whoever_asks_who_has_a_session_hears_that_it_is_not_known() -> None:
    def broken(listed: Any) -> dict[tuple[str, str], Holder]:
        raise OSError("no processes today")

    async with finding(Shelf("one", session("one", "a")), holders=broken) as finder:
        assert ids((await finder.sessions()).sessions) == [("one", "a")]
        with pytest.raises(OSError, match="no processes today"):
            await finder.holder("one", "a")


async def test_an_agent_is_known_by_its_other_names() -> None:
    shelf = Shelf("one", session("one", "a"))
    shelf.also = ("uno",)
    async with finding(shelf, holders=held()) as finder:
        assert await finder.session("uno", "a") is not None
        assert await finder.holder("uno", "a") is not None
        assert "uno" in finder.agents
