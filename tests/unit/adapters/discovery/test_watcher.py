"""What changes in the places of agents is told, whatever one of the stores does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.contract import Adapter
from pilothouse.adapters.discovery import watcher as watcher_module
from pilothouse.adapters.discovery.store import Owner, Scan, Store
from pilothouse.adapters.discovery.watcher import Watcher
from pilothouse.model.discovery import SessionDiscoveryEvent
from tests.unit.adapters.discovery.shelves import (
    PATIENCE,
    Failing,
    Packaged,
    Shelf,
    finding,
    session,
)


class Heard:
    """What was told, and waiting for it."""

    def __init__(self) -> None:
        self.events: list[SessionDiscoveryEvent] = []
        self._more = asyncio.Event()

    def __call__(self, event: SessionDiscoveryEvent) -> None:
        self.events.append(event)
        self._more.set()

    async def until(self, kind: str, session_id: str) -> None:
        while (kind, session_id) not in [(event.type, event.session_id) for event in self.events]:
            self._more.clear()
            await self._more.wait()


@asynccontextmanager
async def watching(*stores: Store, adapters: Sequence[Adapter] = ()) -> AsyncIterator[tuple[Watcher, Heard]]:
    watcher, heard = Watcher(stores, adapters, look=0.1), Heard()
    watcher.subscribe(heard)
    try:
        async with asyncio.timeout(PATIENCE):
            await watcher.watching.wait()
            yield watcher, heard
    finally:
        await watcher.close()


async def test_files_that_come_change_and_go_are_told(tmp_path: Path) -> None:
    async with watching(Shelf("one", root=tmp_path)) as (_, heard):
        path = tmp_path / "below" / "a.jsonl"
        path.parent.mkdir()
        path.write_text("1\n")
        await heard.until("session_created", "a")
        with path.open("a") as file:
            file.write("2\n")
        await heard.until("session_updated", "a")
        path.unlink()
        await heard.until("session_removed", "a")
        assert {event.agent for event in heard.events} == {"one"}


async def test_a_place_that_does_not_exist_yet_is_noticed_when_it_appears(tmp_path: Path) -> None:
    shelf = Shelf("one", root=tmp_path / "later" / "much")
    async with watching(shelf) as (_, heard):
        shelf.root.mkdir(parents=True)
        (shelf.root / "early.jsonl").write_text("1\n")
        await heard.until("session_created", "early")
        (shelf.root / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")


async def test_a_place_that_was_replaced_is_watched_again(tmp_path: Path) -> None:
    shelf = Shelf("one", root=tmp_path / "place")
    shelf.root.mkdir()
    async with watching(shelf) as (_, heard):
        shelf.root.rename(tmp_path / "old")
        shelf.root.mkdir()
        written = 0
        while not any(event.session_id == "a" for event in heard.events):
            written += 1
            (shelf.root / "a.jsonl").write_text("x" * written)
            await asyncio.sleep(0.02)


async def test_a_store_that_never_comes_back_keeps_no_other_from_being_watched(tmp_path: Path) -> None:
    stuck, go = Shelf("stuck"), threading.Event()

    def scan() -> Scan:
        go.wait(PATIENCE)
        return Scan()

    stuck.scan = scan  # type: ignore[method-assign]
    watcher, heard = Watcher([stuck, Shelf("one", root=tmp_path)], look=0.1, patience=0.2), Heard()
    watcher.subscribe(heard)
    try:
        async with asyncio.timeout(PATIENCE):
            await watcher.watching.wait()
            (tmp_path / "a.jsonl").write_text("1\n")
            await heard.until("session_created", "a")
    finally:
        go.set()
        await watcher.close()


ENDLESS = """
import asyncio, threading
from pilothouse.adapters.discovery.finder import Finder
from tests.unit.adapters.discovery.shelves import Shelf, session
stuck = Shelf("stuck")
stuck.scan = threading.Event().wait
async def main():
    finder = Finder([stuck, Shelf("good", session("good", "a"))], patience=1.0, holders=lambda listed: {})
    print(len((await finder.sessions()).sessions), flush=True)
    await finder.close()
asyncio.run(main())
"""


def test_a_store_that_never_comes_back_does_not_keep_the_process_from_ending() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=PATIENCE, cwd=Path(__file__).parents[4]
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


async def test_a_change_that_does_not_say_whose_it_is_is_found_by_comparing(tmp_path: Path) -> None:
    shelf = Shelf("one", session("one", "a"), session("one", "b"), session("one", "c"), root=tmp_path)
    async with watching(shelf) as (_, heard):
        shelf.sessions = [shelf.sessions[0], session("one", "b", status="running"), session("one", "d")]
        shelf.told = [Owner(session_id="a", pid=1, since=1.0)]
        (tmp_path / "all.db").write_text("changed")
        for kind, name in (("created", "d"), ("updated", "b"), ("removed", "c"), ("updated", "a")):
            await heard.until(f"session_{kind}", name)


async def test_a_store_or_a_listener_that_raises_stops_no_news(tmp_path: Path) -> None:
    class Odd(Failing):
        def touched(self, path: Path) -> str | None:
            raise self.error

        def owners(self) -> Sequence[Owner]:
            raise self.error

    bad, good = Odd("bad", RuntimeError("no")), Shelf("good", root=tmp_path / "good")
    bad.root = tmp_path / "good"
    good.root.mkdir()
    async with watching(bad, good) as (watcher, heard):
        watcher.subscribe(lambda event: 1 / 0)  # type: ignore[arg-type,return-value]
        late = Heard()
        watcher.subscribe(late)
        (good.root / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")
        await late.until("session_created", "a")


async def test_adapters_of_packages_are_heard_from_any_thread_and_may_raise() -> None:
    good, bad = Packaged("good", stop=RuntimeError("never")), Packaged("bad", watch=RuntimeError("no"))
    async with watching(adapters=[bad, good]) as (_, heard):
        event = SessionDiscoveryEvent(type="session_updated", session_id="p-1", agent="good")
        while not good.listeners:  # adapters are watched in the background
            await asyncio.sleep(0.01)
        for told in (None, event):
            threading.Thread(target=good.listeners[0], args=(told,)).start()
        await heard.until("session_updated", "p-1")


async def test_a_place_behind_a_link_is_watched(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with watching(Shelf("one", root=tmp_path / "link")) as (_, heard):
        (tmp_path / "real" / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")


async def test_a_first_look_that_fails_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside, failures = watcher_module.aside, [RuntimeError("can't start new thread")]

    async def once(*work: Any) -> Any:
        if failures:
            raise failures.pop()
        return await aside(*work)

    monkeypatch.setattr(watcher_module, "aside", once)
    async with watching(Shelf("one", root=tmp_path)) as (watcher, heard):
        assert watcher.looked.is_set()
        (tmp_path / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")


async def test_watching_ends_with_the_last_listener_and_begins_again(tmp_path: Path) -> None:
    watcher, first, second = Watcher([Shelf("one", root=tmp_path)], look=0.1), Heard(), Heard()
    stops = [watcher.subscribe(first), watcher.subscribe(second)]
    task = watcher._task
    assert task is not None
    stops[0]()
    stops[0]()
    assert not task.cancelling()
    stops[1]()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([task])
        assert watcher._task is None
        watcher.subscribe(first)
        await watcher.watching.wait()
        (tmp_path / "a.jsonl").write_text("1\n")
        await first.until("session_created", "a")
        await watcher.close()
        await watcher.close()
    assert second.events == []


async def test_the_finder_tells_what_its_watcher_notices(tmp_path: Path) -> None:
    async with finding(Shelf("one", root=tmp_path)) as finder:
        heard = Heard()
        stop = finder.watch(heard)
        await finder._watcher.watching.wait()
        (tmp_path / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")
        stop()
