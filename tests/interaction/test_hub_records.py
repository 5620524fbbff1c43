"""Records of other programs that are rewritten, cut, moved, unreadable or wrong: each update is told once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.adapters.discovery.store import Problem, Reader, Step
from pilothouse.hub.errors import HubError
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from tests.support.hubs import PATIENCE, check, fact, facts, history, said, until
from tests.support.records import DemoReader, Holders, append, says, write_record
from tests.support.watching import ID, TOUR, found, idle, open_hub, prompts, told


class Scripted(Reader):
    """Steps that a test gives, then nothing."""

    def __init__(self, *steps: Step | Exception) -> None:
        self.steps = list(steps)
        self.is_closed = False

    def read(self) -> Step:
        step = self.steps.pop(0) if self.steps else Step()
        if isinstance(step, Exception):
            raise step
        return step

    def close(self) -> None:
        self.is_closed = True


class Stale(Scripted):
    """The record of a program that was killed in the middle: it says for ever that work is going on."""

    looks = 0

    def read(self) -> Step:
        self.looks += 1
        step = super().read()
        return step if step.updates else Step(status="running")


async def scripted(hub: Hub, monkeypatch: pytest.MonkeyPatch, *readers: Scripted) -> HubSession:
    waiting = list(readers)

    async def reader(agent: str, session_id: str) -> Reader:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    monkeypatch.setattr(hub.discovery.finder, "reader", reader)
    return await hub.watch_session(await found(hub))


async def test_what_a_record_says_of_a_program_that_is_gone_is_not_believed_until_it_goes_on(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.watch.POLL", 0.02)
    open_turn = [*TOUR, says("Go on", "u2", user=True)]
    write_record(place, ID, tmp_path, open_turn)
    reader = Stale(Step(updates=open_turn, status="running"))
    async with open_hub(tmp_path, place) as hub:
        session = await scripted(hub, monkeypatch, reader)
        await until(session, lambda event: fact("turn_ended")(event) and event.data["stopReason"] == "interrupted")  # type: ignore[attr-defined]
        seen = reader.looks
        async with asyncio.timeout(PATIENCE):
            while reader.looks < seen + 3:
                await asyncio.sleep(0.01)
        assert session.status == "idle"
        reader.steps += [Step(updates=[says("Here I am.", "a8")], status="running")]
        await told(session, "Here I am.")
        starts = facts(await history(hub.log, session.id), "turn_started")
        assert len(starts) == 3  # the tour, the one that broke off, and what goes on


async def test_a_record_that_was_rewritten_is_told_once_and_that_it_was(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_record(place, ID, tmp_path)
    steps = (Step(updates=TOUR, status="idle"), Step(), Step(updates=[*TOUR, says("New.", "a7")], restarted=True))
    async with open_hub(tmp_path, place) as hub:
        monkeypatch.setattr("pilothouse.hub.external.watch.POLL", 0.05)
        session = await scripted(hub, monkeypatch, Scripted(*steps, Step(status="idle")))
        await told(session, "New.")
        await idle(session)
        events = await history(hub.log, session.id)
        check(events)
        assert said(events) == "I look. Done.New."
        assert len(facts(events, "record_restarted")) == 1


async def test_a_record_that_was_cut_and_grows_back_is_told_once(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_record(place, ID, tmp_path)
    steps = (Step(updates=TOUR, status="idle"), Step(), Step(updates=TOUR[:2], restarted=True), Step(status="running"))
    back = (Step(updates=TOUR[2:4]), Step(), Step(updates=[TOUR[4], says("New.", "a7")]), Step(status="idle"))
    async with open_hub(tmp_path, place) as hub:
        monkeypatch.setattr("pilothouse.hub.external.watch.POLL", 0.02)
        session = await scripted(hub, monkeypatch, Scripted(*steps, *back))
        await told(session, "New.")
        await idle(session)
        events = await history(hub.log, session.id)
        check(events)
        assert said(events) == "I look. Done.New."
        assert prompts(events) == ["Fix it"]


async def test_what_changes_before_changes_are_noticed_is_told_soon(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.watch.POLL", 600.0)  # nobody looks by himself
    monkeypatch.setattr("pilothouse.hub.external.watch.SLOWEST", 600.0)
    path = write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await hub.discovery.told(session.id)
        watcher: Any = hub.discovery.finder
        assert not watcher._watcher.looked.is_set()
        append(path, {"update": says("Early.", "a7")})
        await told(session, "Early.")


async def test_a_reader_that_raises_is_read_anew_and_nothing_is_told_twice(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.watch.AGAIN", 0.01)
    write_record(place, ID, tmp_path)
    first = Scripted(Step(updates=TOUR[:3]), RuntimeError("the disk is gone"))
    second = Scripted(Step(updates=TOUR), Step(status="idle"))
    async with open_hub(tmp_path, place) as hub:
        session = await scripted(hub, monkeypatch, first, second)
        await told(session, "Done.")
        await idle(session)
        assert said(await history(hub.log, session.id)) == "I look. Done."
        assert first.is_closed


async def test_a_record_that_cannot_be_read_for_a_moment_is_not_told_again(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.watch.AGAIN", 0.01)
    path = write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await hub.discovery.told(session.id)
    append(path, {"update": says("More.", "a7")})
    read, locked = DemoReader.read, [Problem(path="/x", message="it cannot be read: database is locked")]
    failures = [Step(problems=locked, status="idle", failed=True)] * 2

    def reading(self: DemoReader) -> Step:
        return failures.pop() if failures else read(self)

    monkeypatch.setattr(DemoReader, "read", reading)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.session(session.id)
        await told(session, "More.")
        await hub.discovery.told(session.id)
        events = await history(hub.log, session.id)
        check(events)
        assert said(events) == "I look. Done.More."
        assert prompts(events) == ["Fix it"]
        assert len(facts(events, "record_unreadable")) == 1


async def test_a_record_that_went_elsewhere_is_found_there_and_nothing_is_told_twice(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.watch.AGAIN", 0.01)
    monkeypatch.setattr("pilothouse.hub.external.watch.POLL", 0.01)
    write_record(place, ID, tmp_path)
    gone = [Step(problems=[Problem(path="/x", message="it is gone")], failed=True)] * 9
    first = Scripted(Step(updates=TOUR), Step(status="idle"), *gone)
    second = Scripted(Step(updates=TOUR), Step(updates=[says("New.", "a7")]), Step(status="idle"))
    async with open_hub(tmp_path, place) as hub:
        session = await scripted(hub, monkeypatch, first, second)
        await told(session, "New.")
        await idle(session)
        assert said(await history(hub.log, session.id)) == "I look. Done.New."
        assert first.is_closed


async def test_a_record_that_stays_unreadable_is_not_adopted_and_ends_no_feed(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.watch.AGAIN", 0.01)
    write_record(place, ID, tmp_path, TOUR)
    read = DemoReader.read
    async with open_hub(tmp_path, place) as hub:
        monkeypatch.setattr(DemoReader, "read", lambda self: Step(failed=True))
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(HubError, match="could not be read to its end"):
                await hub.adopt_session(await found(hub))
        monkeypatch.setattr(DemoReader, "read", read)
        session = await hub.adopt_session(await found(hub))
        assert said(await history(hub.log, session.id)) == "I look. Done."


async def test_records_that_never_come_back_keep_no_other_from_being_told_and_no_hub_from_ending(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a disk that is gone: more of them than a loop has threads for what blocks."""
    go, begun = threading.Event(), threading.Semaphore(0)
    read, hanging = DemoReader.read, [f"demo-1-{number:08x}" for number in range(40)]

    def reading(self: DemoReader) -> Step:
        if self._path.stem in hanging:
            begun.release()
            go.wait(PATIENCE)
        return read(self)

    monkeypatch.setattr(DemoReader, "read", reading)
    for session_id in (*hanging, ID):
        write_record(place, session_id, tmp_path, TOUR)
    try:
        async with asyncio.timeout(PATIENCE), open_hub(tmp_path, place) as hub:
            for session_id in hanging:
                await hub.watch_session(await found(hub, session_id))
            session = await hub.watch_session(await found(hub))
            await told(session, "Done.")
            while not begun.acquire(blocking=False):
                await asyncio.sleep(0.01)
        assert not go.is_set()
    finally:
        go.set()


async def test_a_problem_of_a_record_is_told_once(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_record(place, ID, tmp_path)
    bad = [Problem(path="/x", message="line 3 is no JSON")]
    steps = (Step(updates=TOUR[:2], problems=bad), Step(updates=TOUR[2:], problems=bad), Step(status="idle"))
    async with open_hub(tmp_path, place) as hub:
        session = await scripted(hub, monkeypatch, Scripted(*steps))
        await told(session, "Done.")
        await idle(session)
        assert facts(await history(hub.log, session.id), "record_unreadable") == [
            {"path": "/x", "reason": "line 3 is no JSON"}
        ]


async def test_an_agent_that_waits_in_its_own_terminal_is_waiting_here(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.watch.POLL", 0.02)
    write_record(place, ID, tmp_path)
    steps = [Step(updates=TOUR[:2], status="running"), Step(), Step(status="waiting")]
    async with open_hub(tmp_path, place, Holders()) as hub:
        monkeypatch.setattr(hub.discovery.finder, "session", lambda *_: asyncio.sleep(0, result=waiting))
        waiting = msgspec.structs.replace((await hub.discovery.finder.sessions()).sessions[0], status="waiting")  # type: ignore[union-attr, call-overload]
        reader = Scripted(*steps)
        session = await scripted(hub, monkeypatch, reader)
        async with asyncio.timeout(PATIENCE):
            while session.status != "waiting_for_input":
                await asyncio.sleep(0.01)
        reader.steps += [Step(updates=TOUR[2:], status="idle")]
        await told(session, "Done.")
        await idle(session)
        check(await history(hub.log, session.id))
