"""Queued jobs of several sessions take turns in order, and checkpoints bound the write-ahead log."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from pilothouse.log import Entry
from pilothouse.log.records import Remove, Setting
from pilothouse.log.sqlite import writer as checkpoint
from pilothouse.log.sqlite.commit import Job
from pilothouse.log.sqlite.database import open_for_writing
from pilothouse.log.sqlite.writer import ROUND_BYTES, SESSION_BYTES, Checkpointer, Waiting

from .test_commit import FUTURE

# -- queue ------------------------------------------------------------------------------------------------------------


def job(session_id: str, size: int = 100, seq: int = 1) -> Job:
    made = Job(FUTURE, (), session_id, seq - 1, [Entry(session_id, seq, seq, "custom", b"x" * size)])
    made.weigh()
    return made


def changes() -> Job:
    return Job(FUTURE, [Remove(Setting, ("x",))])


def test_a_small_job_goes_with_the_first_of_those_that_a_flood_has_waiting() -> None:
    waiting = Waiting()
    flood = [job("flood", SESSION_BYTES * 2) for _ in range(10)]
    quiet = job("quiet")
    for each in (*flood, quiet):
        waiting.add(each)
    assert waiting.round() == [flood[0], quiet]
    assert waiting.round() == [flood[1]]


def test_many_sessions_share_a_round_and_none_is_forgotten() -> None:
    waiting = Waiting()
    jobs = [job(f"s{index}", SESSION_BYTES) for index in range(20)]
    for each in jobs:
        waiting.add(each)
    taken = []
    while waiting:
        taken.append(waiting.round())
    assert [each for part in taken for each in part] == jobs
    assert max(sum(each.size for each in part) for part in taken) <= ROUND_BYTES + SESSION_BYTES


def test_a_large_job_is_passed_over_until_it_is_staged_and_its_session_waits_for_it() -> None:
    waiting = Waiting()
    large, behind, other = job("s", 5_000_000), job("s"), job("t")
    for each in (large, behind, other):
        waiting.add(each)
    assert waiting.next_large() is large
    assert waiting.round() == [other]
    assert waiting.round() == []
    large.is_staged = True
    assert waiting.next_large() is None
    assert [each for _ in range(2) for each in waiting.round()] == [large, behind]
    assert len(waiting) == 0


def test_changes_to_records_wait_for_all_before_them_and_not_for_what_comes_after() -> None:
    waiting = Waiting()
    large, first, later = job("s", 5_000_000), changes(), job("t")
    for each in (large, first, later):
        waiting.add(each)
    assert waiting.round() == [later]
    large.is_staged = True
    assert [each for _ in range(2) for each in waiting.round()] == [large, first]


@pytest.mark.parametrize("seed", range(20))
def test_every_job_is_taken_once_and_in_the_order_of_its_session(seed: int) -> None:
    dice = random.Random(seed)
    waiting = Waiting()
    given: dict[str, list[Job]] = {}
    taken: dict[str, list[Job]] = {}
    for _ in range(300):
        if dice.random() < 0.5:
            made = job(dice.choice("abc"), dice.choice([10, 1_000, SESSION_BYTES, 600_000]))
            given.setdefault(str(made.session_id), []).append(made)
            waiting.add(made)
        else:
            if (large := waiting.next_large()) is not None and dice.random() < 0.3:
                large.is_staged = True
            for each in waiting.round():
                taken.setdefault(str(each.session_id), []).append(each)
    for _ in range(1_000):
        if (large := waiting.next_large()) is not None:
            large.is_staged = True
        for each in waiting.round():
            taken.setdefault(str(each.session_id), []).append(each)
    assert not waiting
    assert taken == given


def test_who_gives_up_gets_all_that_waits_in_the_order_it_came() -> None:
    waiting = Waiting()
    jobs = [job("a"), changes(), job("b"), job("a")]
    for each in jobs:
        waiting.add(each)
    assert waiting.clear() == jobs
    assert waiting.round() == []


# -- checkpoints ------------------------------------------------------------------------------------------------------


def test_a_long_flood_leaves_a_short_write_ahead_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "CHECKPOINT_PAGES", 50)
    monkeypatch.setattr(checkpoint, "LONG_PAGES", 200)
    path = tmp_path / "x.db"
    db = open_for_writing(path, synchronous="NORMAL", max_bytes=None)
    folding = Checkpointer(db, path)
    for number in range(3000):
        db.execute("INSERT INTO settings VALUES (?, ?, 't')", (f"n{number}", "x" * 4000))
        folding.wrote(4000)
        if folding._running is not None and number % 100 == 0:
            folding._running.result(10)
    folding.close()
    pages = path.with_name("x.db-wal").stat().st_size / 4120
    db.close()
    assert pages < 2500, "3000 pages at least were written"
    assert path.stat().st_size > 3000 * 4000


def test_a_failed_checkpoint_is_not_the_writers_trouble(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    db = sqlite3.connect(tmp_path / "x.db")
    db.close()
    assert checkpoint._fold(db) == 0
    assert "checkpoint" in caplog.text
