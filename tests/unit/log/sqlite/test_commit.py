"""Group commit: what goes into one transaction, and what becomes of those who fail in it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.log import LogConflict, LogCorrupt, RecordExists, UnknownSession
from pilothouse.log.entries import number
from pilothouse.log.records import Change, DeleteSession, Insert, SessionRecord, Setting
from pilothouse.log.sqlite.commit import GroupCommit, Job
from pilothouse.log.sqlite.database import open_for_writing, prepare_search
from pilothouse.log.sqlite.tables import head
from pilothouse.model.events import MessageStartEvent

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
