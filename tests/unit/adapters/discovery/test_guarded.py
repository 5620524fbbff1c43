"""Adapters of packages: they find, attach and are left behind when they hang, and disturb nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pilothouse.adapters.contract import AdapterError, AgentSession, OnDiscovery, Stop
from pilothouse.adapters.discovery.processes import Holder, find_holders
from pilothouse.adapters.discovery.store import Owner, Problem
from pilothouse.model.commands import CancelCommand
from pilothouse.model.discovery import DiscoveredSession
from pilothouse.model.events import Event, create_event
from tests.unit.adapters.discovery.shelves import (
    PATIENCE,
    Packaged,
    Shelf,
    finding,
    ids,
    session,
)


async def test_an_adapter_of_a_package_takes_part_under_its_own_name() -> None:
    adapter = Packaged()
    adapter.sessions += ["junk", None, session("claude", "p-2")]
    async with finding(Shelf("claude", session("claude", "a")), adapters=[adapter]) as finder:
        found = await finder.sessions()
        assert sorted(ids(found.sessions)) == [("claude", "a"), ("packaged", "p-1"), ("packaged", "p-2")]
        assert found.problems == [Problem(path="adapter packaged", message="2 of what it lists are no sessions")]


@pytest.mark.parametrize("error", [RuntimeError("no luck"), SystemExit(3)])
async def test_an_adapter_that_raises_in_discovery_disturbs_nobody(error: BaseException) -> None:
    async with finding(
        Shelf("good", session("good", "a")), adapters=[Packaged(discover=error), Packaged("fine")]
    ) as finder:
        found = await finder.sessions()
        assert sorted(ids(found.sessions)) == [("fine", "p-1"), ("good", "a")]
        assert [problem.path for problem in found.problems] == ["adapter packaged"]


async def test_nobody_waits_twice_for_an_adapter_that_hangs_and_what_it_finds_at_last_is_there() -> None:
    adapter, go, asked = Packaged(), threading.Event(), []
    answer = adapter.discover_sessions

    async def slow() -> list[DiscoveredSession]:
        asked.append(1)
        await asyncio.to_thread(go.wait)
        return await answer()

    adapter.discover_sessions = slow  # type: ignore[method-assign]
    async with finding(Shelf("good", session("good", "a")), adapters=[adapter], patience=0.05) as finder:
        for _ in range(3):
            found = await finder.sessions()
            assert ids(found.sessions) == [("good", "a")]
            assert found.problems == [Problem(path="adapter packaged", message="it takes too long")]
        assert len(asked) == 1
        go.set()
        async with asyncio.timeout(30):
            while len((found := await finder.sessions()).sessions) < 2:
                await asyncio.sleep(0)
        assert sorted(ids(found.sessions)) == [("good", "a"), ("packaged", "p-1")]
        assert len(asked) == 1


async def test_an_adapter_that_hangs_is_left_behind() -> None:
    adapter = Packaged()

    async def hang() -> list[DiscoveredSession]:
        await asyncio.Event().wait()
        return []

    adapter.discover_sessions = hang  # type: ignore[method-assign]
    async with finding(Shelf("good", session("good", "a")), adapters=[adapter], patience=0.05) as finder:
        found = await finder.sessions()
        assert ids(found.sessions) == [("good", "a")]
        assert found.problems == [Problem(path="adapter packaged", message="it takes too long")]


async def test_what_cannot_be_told_to_anybody_is_made_so_or_left_out_and_costs_no_other() -> None:
    """Texts with half a character, of which no JSON can be made, and things that are no sessions at all."""
    odd = replace(session("odd", "half \udcff"), session_name="\ud83d!")
    junk: list[Any] = [None, "text", replace(odd, last_activity=None), object()]  # type: ignore[arg-type]
    shelf = Shelf("odd", odd, session("odd", "good"), *junk)
    shelf.problems = [Problem(path="/p/\udcff", message="\udcfe"), "no problem"]  # type: ignore[list-item]
    adapter = Packaged()
    adapter.sessions = [session("x", "\udcff"), *junk]
    async with finding(shelf, Shelf("fine", session("fine", "a")), adapters=[adapter]) as finder:
        found = await finder.sessions()
        assert len(found.sessions) == 4
        assert set(found.problems) == {
            Problem(path="/p/\ufffd", message="\ufffd"),
            Problem(path="store odd", message="4 of what it lists are no sessions"),
            Problem(path="adapter packaged", message="4 of what it lists are no sessions"),
        }
        assert "half \ufffd" in msgspec.json.encode(found).decode()


@pytest.mark.parametrize(
    "wrong", [{"id": 5}, {"created_at": None}, {"project_name": 7}, {"model": 3}, {"status": "asleep"}, {"status": []}]
)
async def test_a_session_with_a_value_that_is_none_is_left_out_and_told(wrong: dict[str, Any]) -> None:
    odd = Shelf("odd", replace(session("odd", "x"), **wrong), session("odd", "b", ago=5))
    async with finding(odd, Shelf("good", session("good", "a"))) as finder:
        found = await finder.sessions()
        assert ids(found.sessions) == [("good", "a"), ("odd", "b")]
        assert found.problems == [Problem(path="store odd", message="1 of what it lists is no session")]
        assert await finder.session("good", "a") is not None


class Blinding(Shelf):
    """A store of a package that does this when it is asked for something about processes."""

    def __init__(self, asked: str, act: Callable[[], Any]) -> None:
        super().__init__("blinding", session("blinding", "z", ago=9))
        self._asked = asked
        self._act = act

    @property
    def programs(self) -> Any:
        return self._act() if self._asked == "programs" else ("python3", "python3.11", "python")

    def owners(self) -> Any:
        return self._act() if self._asked == "owners" else ()


def _raises() -> Any:
    raise RuntimeError("not today")


@pytest.mark.parametrize("asked", ["programs", "owners"])
@pytest.mark.parametrize("act", [_raises, lambda: 5, lambda: [[]], lambda: sys.exit(3)])
async def test_a_store_that_cannot_tell_of_processes_blinds_no_other(asked: str, act: Callable[[], Any]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", "s-1"], stdin=subprocess.PIPE) as process:
        shelf = Shelf(Path(sys.executable).name.lower(), session(Path(sys.executable).name.lower(), "s-1"))
        shelf.told = [Owner(session_id="s-1", pid=process.pid, since=time.time() + 60, status="running")]
        async with finding(Blinding(asked, act), shelf, holders=find_holders) as finder:
            found = await finder.sessions()
            process.communicate(b"\n")
            assert [(one.id, one.pid, one.status) for one in found.sessions] == [
                ("s-1", process.pid, "running"),
                ("z", None, "idle"),
            ]
            assert [one.path for one in found.problems] == ["store blinding"]
            with pytest.raises((Exception, SystemExit)):
                await finder.holder("blinding", "z")


async def test_a_store_that_never_tells_of_processes_keeps_no_other_from_being_found() -> None:
    over = threading.Event()

    def holders(listed: Any) -> dict[tuple[str, str], Holder]:
        if any(each.store.agent == "stuck" for each in listed):
            over.wait(PATIENCE)
        return {("good", "a"): Holder(pid=7, started=0.0, program="x", sign="told", status="running")}

    try:
        stuck, good = Shelf("stuck", session("stuck", "b", ago=9)), Shelf("good", session("good", "a"))
        async with finding(stuck, good, holders=holders, patience=0.1) as finder:
            for _ in range(2):
                found = await finder.sessions()
                assert [(one.id, one.pid) for one in found.sessions] == [("a", 7), ("b", None)]
                assert [problem.path for problem in found.problems] == ["store stuck"]
    finally:
        over.set()


async def test_an_adapter_that_is_given_up_is_cancelled_where_it_waits() -> None:
    adapter, cancelled, begun = Packaged(), threading.Event(), threading.Event()

    async def hang() -> list[DiscoveredSession]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return []

    adapter.discover_sessions = hang  # type: ignore[method-assign]
    async with finding(adapters=[adapter], patience=0.05) as finder:
        await finder.sessions()
        assert await asyncio.to_thread(begun.wait, 5)
        assert not cancelled.is_set()
    assert await asyncio.to_thread(cancelled.wait, 5)


async def test_only_adapter_errors_come_out_of_a_session_of_a_package() -> None:
    boom = RuntimeError("mid-stream")
    adapter = Packaged(follow=boom, execute=SystemExit(1), history=boom, detach=boom)
    async with finding(adapters=[adapter]) as finder:
        attached = await finder.attach("packaged", "p-1")
        assert attached.session_id == "p-1"
        with pytest.raises(AdapterError, match="cannot be followed: RuntimeError: mid-stream"):
            attached.on_event(lambda event: None)
        with pytest.raises(AdapterError, match="SystemExit"):
            await attached.execute(CancelCommand())
        with pytest.raises(AdapterError, match="mid-stream"):
            await attached.get_history()
        await attached.detach()
        adapter.errors = {"attach": boom}
        with pytest.raises(AdapterError, match="cannot attach to session 'p-1'"):
            await finder.attach("packaged", "p-1")
        with pytest.raises(AdapterError, match="no adapter"):
            await finder.attach("nobody", "p-1")


class Blocking(Packaged):
    """Blocks the thread that it is called in, where a test says."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self.go = threading.Event()
        self.threads: list[int] = []

    def _block(self, where: str) -> None:
        if where == self._where:
            self.threads.append(threading.get_ident())
            self.go.wait(5)

    def watch_sessions(self, callback: OnDiscovery) -> Stop:
        self._block("watch")
        return super().watch_sessions(callback)

    async def attach_to_session(self, session_id: str) -> AgentSession:
        self._block("attach")
        session: Any = await super().attach_to_session(session_id)
        follow = session.on_event

        def on_event(callback: Any) -> Stop:
            self._block("follow")
            stop: Stop = follow(callback)
            return stop

        session.on_event = on_event
        return session


@pytest.mark.parametrize("where", ["watch", "attach", "follow"])
async def test_an_adapter_that_blocks_while_it_is_followed_holds_up_nobody_else(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.adapters.discovery.guarded.BRIEF", 0.05)
    adapter = Blocking(where)
    try:
        async with finding(adapters=[adapter]) as finder:
            finder._patience = 0.05
            stop = finder.watch(lambda event: None)
            for _ in range(2):
                with contextlib.suppress(AdapterError):
                    attached = await finder.attach("packaged", "p-1")
                    attached.on_event(lambda event: None)
            while not adapter.threads:
                await asyncio.sleep(0)
            stop()
    finally:
        adapter.go.set()
    assert threading.get_ident() not in adapter.threads
    assert len(adapter.threads) == (2 if where == "follow" else 1)  # nobody waits twice for the same


async def test_a_listener_that_raises_does_not_break_the_adapters_stream() -> None:
    adapter = Packaged(unfollow=RuntimeError("never"))
    async with finding(adapters=[adapter]) as finder:
        attached: Any = await finder.attach("packaged", "p-1")
        heard: list[Event] = []

        def listen(event: Event) -> None:
            heard.append(event)
            raise ValueError("no")

        stop = attached.on_event(listen)
        event = create_event("p-1", {"type": "session:paused"})
        for told in (event, "junk", event):
            attached._session.callbacks[0](told)
        threading.Thread(target=attached._session.callbacks[0], args=(event,)).start()
        while len(heard) < 3:
            await asyncio.sleep(0)
        stop()
        assert heard == [event] * 3
        assert await attached.get_history() == []
