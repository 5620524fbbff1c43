"""Group commit: the jobs of one transaction, their failures, and large entries that are written ahead in slices."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.log import Entry, LogConflict, LogCorrupt, RecordExists, UnknownSession
from pilothouse.log.entries import SLICE_BYTES, is_large, number, slices, sweep
from pilothouse.log.records import Change, DeleteSession, Insert, SessionRecord, Setting
from pilothouse.log.sqlite.commit import GroupCommit, Job
from pilothouse.log.sqlite.database import open_for_writing, prepare_search
from pilothouse.log.sqlite.tables import head, read_session
from pilothouse.model.events import MessageStartEvent

# -- transactions -----------------------------------------------------------------------------------------------------

FUTURE: Any = asyncio.Future.__new__(asyncio.Future)  # nobody waits here


class Bench:
    """Jobs as the loop would hand them over."""

    def __init__(self, path: Path) -> None:
        self.db = open_for_writing(path, synchronous="NORMAL", max_bytes=None)
        prepare_search(self.db, wanted=True)
        self.work = GroupCommit(self.db, path, lambda: "now", indexed=True)
        self.position = 0
        self.work.commit([Job(FUTURE, [session("s"), session("t")])])

    def append(self, session_id: str, expected: int, count: int, *also: Change) -> Job:
        events = [
            MessageStartEvent(seq=0, session_id=session_id, timestamp="t", message_id="m", role="user")
            for _ in range(count)
        ]
        entries = number(session_id, expected, events, self.position)
        self.position += count
        return Job(FUTURE, also, session_id, expected, entries)

    def rows(self) -> list[tuple[int, int, int]]:
        return self.db.execute("SELECT position, seq, count FROM batches ORDER BY position").fetchall()


def session(name: str) -> Insert[SessionRecord]:
    return Insert(SessionRecord(id=name, agent="a", cwd="/", created="t", updated="t"))


def setting(name: str) -> Insert[Setting]:
    return Insert(Setting(name=name, value=1, updated="t"))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "x.db")
    yield made
    made.db.close()


def outcomes(jobs: list[Job]) -> list[Any]:
    return [type(job.error) if job.error else job.result for job in jobs]


def test_batches_of_one_session_that_follow_each_other_become_one_row(bench: Bench) -> None:
    jobs = [bench.append("s", 0, 2), bench.append("s", 2, 3), bench.append("t", 0, 1), bench.append("s", 5, 1)]
    bench.work.commit(jobs)
    assert outcomes(jobs) == [2, 5, 1, 6]
    assert bench.rows() == [(5, 5, 5), (6, 1, 1), (7, 6, 1)]


def test_a_conflict_fails_alone_and_its_positions_are_left_out(bench: Bench) -> None:
    jobs = [bench.append("s", 0, 2), bench.append("s", 9, 2), bench.append("s", 2, 1), bench.append("nobody", 0, 1)]
    bench.work.commit(jobs)
    assert outcomes(jobs) == [2, LogConflict, 3, UnknownSession]
    assert bench.rows() == [(2, 2, 2), (5, 3, 1)]


def test_a_refused_change_takes_back_its_whole_job_and_no_other(bench: Bench) -> None:
    jobs = [
        bench.append("s", 0, 1, setting("a")),
        bench.append("s", 1, 1, setting("b"), setting("a")),
        bench.append("s", 1, 1, setting("c")),
        Job(FUTURE, [setting("d"), setting("c")]),
    ]
    bench.work.commit(jobs)
    assert outcomes(jobs) == [1, RecordExists, 2, RecordExists]
    assert bench.db.execute("SELECT name FROM settings ORDER BY name").fetchall() == [("a",), ("c",)]
    assert bench.db.execute("SELECT last_seq FROM sessions WHERE id = 's'").fetchone() == (2,)


def test_a_session_made_in_a_job_that_is_taken_back_is_not_there(bench: Bench) -> None:
    jobs = [
        bench.append("new", 0, 1, session("new"), session("s")),
        bench.append("new", 0, 1),
        bench.append("new", 0, 1, session("new")),
        bench.append("new", 1, 1),
    ]
    bench.work.commit(jobs)
    assert outcomes(jobs) == [RecordExists, UnknownSession, 1, 2]


def test_a_deletion_that_is_taken_back_leaves_the_session_as_it_was(bench: Bench) -> None:
    jobs = [
        bench.append("s", 0, 1, setting("a")),
        Job(FUTURE, [DeleteSession("s", "now"), setting("a")]),
        bench.append("s", 1, 1),
        bench.append("new", 5, 1, session("new")),
        bench.append("new", 0, 1),
    ]
    bench.work.commit(jobs)
    assert outcomes(jobs) == [1, RecordExists, 2, LogConflict, UnknownSession]
    assert not bench.work.purgeable


def test_nothing_is_appended_to_a_session_deleted_in_the_same_transaction(bench: Bench) -> None:
    jobs = [bench.append("s", 0, 1), Job(FUTURE, [DeleteSession("s", "now")]), bench.append("s", 1, 1)]
    bench.work.commit(jobs)
    assert outcomes(jobs) == [1, [None], UnknownSession]
    again = [bench.append("s", 1, 1)]
    bench.work.commit(again)
    assert outcomes(again) == [UnknownSession]
    assert len(bench.work.purgeable) == 1
    while bench.work.purgeable:
        bench.work.purge()
    assert bench.rows() == []


def test_what_was_not_purged_is_found_when_the_log_is_opened_again(bench: Bench) -> None:
    job = bench.append("s", 0, 300)
    job.texts = [(entry, "word") for entry in job.entries]
    bench.work.commit([job])
    bench.work.commit([Job(FUTURE, [DeleteSession("s", "now")])])
    bench.work.purge()
    assert bench.rows() == []
    again = GroupCommit(bench.db, Path("x.db"), lambda: "now", indexed=True)
    assert list(again.purgeable) == list(bench.work.purgeable) != []
    while again.purgeable:
        again.purge()
    assert bench.db.execute("SELECT count(*) FROM texts").fetchone() == (0,)
    assert bench.db.execute("SELECT count(*) FROM search WHERE search MATCH 'word'").fetchone() == (0,)


def test_when_a_transaction_breaks_each_job_is_tried_by_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from pilothouse.log.sqlite import commit

    def fail_for_many(db: sqlite3.Connection, number: int, entries: list[Any], size: int, staged: Any) -> int:
        if len(entries) > 1:
            error = sqlite3.DatabaseError("malformed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        return write(db, number, entries, size, staged)

    write = commit.write_rows
    monkeypatch.setattr(commit, "write_rows", fail_for_many)
    jobs = [bench.append("s", 0, 1), bench.append("t", 0, 2), bench.append("s", 1, 1), bench.append("t", 2, 1)]
    bench.work.commit(jobs)
    assert outcomes(jobs) == [1, LogCorrupt, 2, LogConflict]
    assert not bench.db.in_transaction


def test_the_row_of_a_busy_session_is_told_now_and_then_and_its_head_is_exact_all_the_time(bench: Bench) -> None:
    stored = "SELECT last_seq FROM sessions WHERE id = 's'"
    for seq in range(5):
        bench.work.commit([bench.append("s", seq, 1)])
        assert head(bench.db, "s")[1] == seq + 1
    assert bench.db.execute(stored).fetchone() == (1,)
    assert bench.work.unnoted == {"s"}
    bench.work.settle()
    assert bench.db.execute(stored).fetchone() == (5,)
    assert bench.work.unnoted == set()


def test_what_was_known_of_sessions_changes_only_with_a_commit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from pilothouse.log.sqlite import commit

    def fail(*_: Any) -> int:
        raise sqlite3.OperationalError("no")

    monkeypatch.setattr(commit, "write_rows", fail)
    bench.work.commit([bench.append("s", 0, 3)])
    monkeypatch.undo()
    jobs = [bench.append("s", 0, 1)]
    bench.work.commit(jobs)
    assert outcomes(jobs) == [1]


# -- slices -----------------------------------------------------------------------------------------------------------

EVERYTHING = (10_000, 1 << 40)


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
