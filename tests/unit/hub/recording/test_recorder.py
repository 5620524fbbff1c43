"""The pen: order, what is committed, what happens when the log refuses, and how it is taken up again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from pilothouse.hub.errors import NotStored
from pilothouse.hub.recording.recorder import Recorder
from pilothouse.log.errors import LogFull
from pilothouse.log.memory import MemoryLog
from pilothouse.log.records import Change
from pilothouse.model.events import Event
from pilothouse.model.session import Session


class HeldLog(MemoryLog):
    """Commits when it is let, or refuses."""

    held: list[tuple[asyncio.Future[int], Any]] | None = None
    full = False

    def append_nowait(
        self, session_id: str, expected: int, events: Sequence[Event], *, also: Sequence[Change] = ()
    ) -> asyncio.Future[int]:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.full:
            future.set_exception(LogFull())
        elif self.held is None:
            return super().append_nowait(session_id, expected, events, also=also)
        else:
            self.held.append((future, super().append_nowait(session_id, expected, events, also=also)))
        return future

    def let(self) -> None:
        for future, done in self.held or ():
            future.set_result(done.result())
        self.held = []


@pytest.fixture
async def log() -> AsyncIterator[HeldLog]:
    async with HeldLog() as log:
        await log.sessions.create("s", agent="a", cwd="/w", status="starting")
        yield log


async def pen(log: HeldLog, failures: list[BaseException] | None = None) -> Recorder:
    record = await log.sessions.get("s")
    return Recorder(log, record, Session(id="s"), (failures if failures is not None else []).append)


async def test_what_happens_in_one_turn_of_the_loop_is_one_batch(log: HeldLog) -> None:
    recorder = await pen(log)
    before = log.statistics()["commits"]
    for number in range(5):
        recorder.note("n", {"number": number})
    assert await recorder.commit() == 5
    assert log.statistics()["commits"] == before + 1
    assert recorder.session.seq == 5


async def test_the_session_is_what_is_committed(log: HeldLog) -> None:
    log.held = []
    recorder = await pen(log)
    told: list[str] = []
    recorder.record(recorder.translator.fact("n", {}, recorder.now()), then=lambda: told.append("then"))
    committing = asyncio.ensure_future(recorder.commit())
    await asyncio.sleep(0)
    assert (recorder.session.seq, told) == (0, [])
    log.let()
    assert await committing == 1
    assert (recorder.session.seq, told) == (1, ["then"])


async def test_commit_waits_for_what_was_recorded_before_it_and_no_more(log: HeldLog) -> None:
    log.held = []
    recorder = await pen(log)
    recorder.note("first", {})
    committing = asyncio.ensure_future(recorder.commit())
    await asyncio.sleep(0)
    first, log.held = log.held, []
    recorder.note("second", {})
    await asyncio.sleep(0)
    assert log.held == []  # it may grow while the first is on its way
    first[0][0].set_result(1)
    assert await committing == 1
    assert recorder.session.seq == 1
    assert len(log.held) == 1


async def test_whoever_records_too_fast_is_told_to_wait(log: HeldLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.hub.recording.recorder.BATCH", 1)
    log.held = []
    recorder = await pen(log)
    for _ in range(6):
        recorder.note("n", {})
        await asyncio.sleep(0)
    assert recorder.is_behind
    waiting = asyncio.ensure_future(recorder.catch_up())
    await asyncio.sleep(0)
    assert not waiting.done()
    log.let()
    await waiting
    assert not recorder.is_behind


async def test_after_a_failure_nothing_is_taken_until_it_is_mended(log: HeldLog) -> None:
    failures: list[BaseException] = []
    recorder = await pen(log, failures)
    recorder.record(recorder.translator.prompt("hi", recorder.now(), turn_id="t"))
    await recorder.commit()
    log.full = True
    recorder.note("lost", {})
    with pytest.raises(NotStored, match="no room left"):
        await recorder.commit()
    recorder.note("lost too", {})
    with pytest.raises(NotStored):
        await recorder.commit()
    with pytest.raises(NotStored):
        await recorder.mend()
    assert len(failures) == 1
    log.full = False
    await recorder.mend()
    assert recorder.failure is None
    assert recorder.session.turn is not None
    assert recorder.session.turn.stop_reason == "error"
    assert "no room left" in str(recorder.session.items[-1])
    recorder.note("kept", {})
    assert await recorder.commit() == await log.last_seq("s") == recorder.session.seq


async def test_a_closed_log_is_a_failure_and_no_crash(log: HeldLog) -> None:
    failures: list[BaseException] = []
    recorder = await pen(log, failures)
    await log.close()
    recorder.note("n", {})
    with pytest.raises(NotStored, match="closed"):
        await recorder.commit()
    assert len(failures) == 1


async def test_a_waiter_that_fails_keeps_nobody_else_waiting(log: HeldLog) -> None:
    recorder = await pen(log)
    told: list[int] = []
    recorder.record([], then=lambda: told.append(1 // 0))
    recorder.record([], then=lambda: told.append(2))
    async with asyncio.timeout(30):
        await recorder.commit()
    assert told == [2]
