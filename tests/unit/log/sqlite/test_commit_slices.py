"""What is too large for one commit is written ahead of it, and counts only with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilothouse.log import Entry, LogConflict, RecordExists
from pilothouse.log.entries import SLICE_BYTES, is_large, slices, sweep
from pilothouse.log.sqlite.commit import Job
from pilothouse.log.sqlite.tables import read_session

from .test_commit import FUTURE, Bench, setting

EVERYTHING = (10_000, 1 << 40)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "x.db")
    yield made
    made.db.close()


def large(seq: int, size: int = SLICE_BYTES * 2 + 1) -> Entry:
    data = b'{"type":"custom","seq":%d,"x":"%s"}' % (seq, b"x" * size)
    return Entry("s", seq, seq, "custom", data, b"y" * size)


def job(entry: Entry) -> Job:
    made = Job(FUTURE, (), "s", entry.seq - 1, [entry])
    made.weigh()
    return made


def count(db: sqlite3.Connection) -> int:
    (found,) = db.execute("SELECT count(*) FROM slices").fetchone()
    return int(found)


def stage(bench: Bench, made: Job, steps: int = 1_000) -> int:
    taken = 0
    while not made.is_staged and taken < steps:
        bench.work.stage(made)
        taken += 1
    return taken


def test_the_pieces_joined_are_the_whole_and_each_is_small() -> None:
    entry = large(1)
    assert is_large(entry)
    pieces = list(slices([entry]))
    assert max(len(piece.body) for piece in pieces) == SLICE_BYTES
    joined = {part: b"".join(p.body for p in pieces if p.part == part) for part in ("event", "source")}
    assert joined == {"event": entry.data, "source": entry.source}
    assert not is_large(large(1, 10))


def test_nothing_of_a_large_event_is_seen_before_its_commit_and_all_of_it_after(bench: Bench) -> None:
    entry = large(1)
    made = job(entry)
    assert made.is_large
    assert stage(bench, made) == 7  # three and three, and the look that finds no more
    assert read_session(bench.db, "s", 0, *EVERYTHING) == ([], 0)
    bench.work.commit([made])
    assert (made.error, made.result) == (None, 1)
    assert read_session(bench.db, "s", 0, *EVERYTHING) == ([entry], 1)


@pytest.mark.parametrize("steps", range(1, 8))
def test_what_a_writer_that_died_had_staged_is_swept_away_and_the_rest_is_not(bench: Bench, steps: int) -> None:
    first, second = large(1), large(2)
    done = job(first)
    stage(bench, done)
    bench.work.commit([done])
    kept = count(bench.db)
    stage(bench, job(second), steps)
    sweep(bench.db)
    assert count(bench.db) == kept
    assert read_session(bench.db, "s", 0, *EVERYTHING) == ([first], 1)


def test_a_refused_job_leaves_no_slices(bench: Bench) -> None:
    bench.work.commit([Job(FUTURE, [setting("x")])])
    made = job(large(1))
    made.changes = [setting("x")]
    stage(bench, made)
    assert count(bench.db) == 6
    bench.work.commit([made])
    assert isinstance(made.error, RecordExists)
    assert count(bench.db) == 0


def test_a_job_that_comes_too_late_stages_nothing(bench: Bench) -> None:
    bench.work.commit([bench.append("s", 0, 1)])
    made = job(large(1))
    stage(bench, made)
    assert count(bench.db) == 0
    bench.work.commit([made])
    assert isinstance(made.error, LogConflict)


def test_slices_of_an_earlier_try_do_not_mix_with_those_of_the_next(bench: Bench) -> None:
    stage(bench, job(large(1, SLICE_BYTES * 5)), 5)  # given up in the middle, and not cleared away
    shorter = large(1, SLICE_BYTES + 1)
    made = job(shorter)
    stage(bench, made)
    bench.work.commit([made])
    assert read_session(bench.db, "s", 0, *EVERYTHING) == ([shorter], 1)


def test_a_slice_that_cannot_be_written_is_the_error_of_its_job_alone(bench: Bench) -> None:
    (pages,) = bench.db.execute("PRAGMA page_count").fetchone()
    bench.db.execute(f"PRAGMA max_page_count = {pages + 200}")
    made, other = job(large(1)), bench.append("t", 0, 1)
    stage(bench, made)
    bench.work.commit([made, other])
    assert type(made.error).__name__ == "LogFull"
    assert (other.error, other.result) == (None, 1)
    assert count(bench.db) == 0
