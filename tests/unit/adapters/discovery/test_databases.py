"""Databases of other programs: nothing is left beside them, and whatever is wrong with one is told."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery import databases, lines
from pilothouse.adapters.discovery.databases import look_up, state_of
from pilothouse.adapters.discovery.opencode import OpenCodeStore
from pilothouse.plain_files import Unreadable
from tests.unit.adapters.discovery.recordings import database, read_all, rows_of

ID = "ses_e1bccf051ffe4Bud8RfjMRJz4l"
TABLES, ROWS = rows_of("opencode/opencode.rows.jsonl")


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def closed(path: Path) -> Path:
    """The recorded database, which nobody has open."""
    database(path, TABLES, ROWS).close()
    return path


def titles(db: sqlite3.Connection) -> list[Any]:
    return db.execute("select title from session order by id").fetchall()


def test_reading_a_database_that_nobody_has_open_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = closed(tmp_path / "opencode.db")
    before = path.read_bytes()
    store = OpenCodeStore(tmp_path)
    assert len(store.scan().sessions) == 1
    reader = store.reader(ID)
    assert reader is not None
    assert read_all(reader)
    assert names(tmp_path) == ["opencode.db"]
    assert path.read_bytes() == before


def test_reading_a_live_database_sees_what_is_only_in_its_log(tmp_path: Path) -> None:
    db = database(tmp_path / "opencode.db", TABLES, ROWS)
    db.execute("update session set title = 'New'")
    assert len(names(tmp_path)) == 3
    assert [found.session_name for found in OpenCodeStore(tmp_path).scan().sessions] == ["New"]
    assert len(names(tmp_path)) == 3
    db.execute("update session set title = 'Newer'")  # it goes on undisturbed
    db.close()
    assert names(tmp_path) == ["opencode.db"]


def test_what_a_crash_left_is_read_in_a_copy(tmp_path: Path) -> None:
    db = database(tmp_path / "live" / "opencode.db", TABLES, ROWS)
    db.execute("update session set title = 'In the log'")
    place = tmp_path / "left"
    place.mkdir()
    for name in ("opencode.db", "opencode.db-wal"):
        shutil.copyfile(tmp_path / "live" / name, place / name)
    db.close()
    assert [found.session_name for found in OpenCodeStore(place).scan().sessions] == ["In the log"]
    assert names(place) == ["opencode.db", "opencode.db-wal"]


def test_a_crash_that_left_too_much_to_copy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = closed(tmp_path / "opencode.db")
    Path(f"{path}-wal").write_bytes(b"x" * 64)
    monkeypatch.setattr(databases, "COPIED", 100)
    with pytest.raises(Unreadable, match="too large"):
        look_up(path, titles)


def test_a_database_that_somebody_opens_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = closed(tmp_path / "opencode.db")
    writers: list[sqlite3.Connection] = []

    def ask(db: sqlite3.Connection) -> list[Any]:
        found = titles(db)
        if not writers:
            writers.append(sqlite3.connect(path, isolation_level=None))
            writers[0].execute("update session set title = 'Changed'")
        return found

    assert set(look_up(path, ask)) == {("Changed",)}
    writers[0].close()


def test_a_database_that_changes_all_the_time_is_told(tmp_path: Path) -> None:
    path = closed(tmp_path / "opencode.db")
    with pytest.raises(Unreadable, match="changes while it is read"):
        look_up(path, lambda db: os.utime(path, ns=(1, state_of(path).file.mtime_ns + 1)))  # type: ignore[union-attr]


def test_every_change_is_noticed_whatever_the_clock_says_and_no_look_is_one(tmp_path: Path) -> None:
    for mode in ("wal", "delete"):
        path = tmp_path / mode / "opencode.db"
        db = database(path, TABLES, ROWS)
        db.execute(f"pragma journal_mode = {mode}")
        states = set()
        for number in range(20):
            db.execute("update session set title = ?", (f"{number:03}",))
            for place in path.parent.iterdir():
                os.utime(place, (1, 1))
            states.add(state_of(path))
            before = state_of(path)
            assert look_up(path, titles)[0] == (f"{number:03}",)
            assert state_of(path) == before
        assert len(states) == 20
        db.close()


def test_nothing_can_be_written_by_who_looks(tmp_path: Path) -> None:
    for path in (closed(tmp_path / "a.db"), tmp_path / "b.db"):
        db = database(path, [] if path.exists() else TABLES)
        with pytest.raises(Unreadable, match="readonly"):
            look_up(path, lambda db: db.execute("delete from session"))
        db.close()


def test_a_locked_database_is_a_problem_and_its_sessions_stay_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "PATIENCE", 0.01)
    db = database(tmp_path / "opencode.db", TABLES, ROWS)
    db.execute("pragma journal_mode = delete")
    store = OpenCodeStore(tmp_path)
    reader = store.reader(ID)
    assert reader is not None
    assert len(store.scan().sessions) == 1
    db.execute("update session set title = 'Changed'")
    db.execute("begin exclusive")
    scan = store.scan()
    assert len(scan.sessions) == 1
    assert [(problem.path, "locked" in problem.message) for problem in scan.problems] == [
        (str(tmp_path / "opencode.db"), True)
    ]
    problems = [*reader.read().problems, *reader.read().problems]
    assert ["locked" in problem.message for problem in problems] == [True]
    db.execute("rollback")
    db.close()
    assert read_all(reader)
    assert store.scan().problems == []


WRONG: dict[str, tuple[bytes, str]] = {
    "another kind of file": (b"\x89PNG\r\n\x1a\n" * 100, "no SQLite database"),
    "an empty file": (b"", "is empty"),
    "a cut database": (b"SQLite format 3\0" + b"\x10\x00\x01\x01" + b"\0" * 40, "cannot be read"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_database_is_a_problem(tmp_path: Path, case: str) -> None:
    data, words = WRONG[case]
    (tmp_path / "opencode.db").write_bytes(data)
    os.utime(tmp_path / "opencode.db", (1, 1))
    closed(tmp_path / "opencode-dev.db")
    scan = OpenCodeStore(tmp_path).scan()
    assert [found.id for found in scan.sessions] == [ID]
    (problem,) = scan.problems
    assert problem.path == str(tmp_path / "opencode.db")
    assert words in problem.message


def test_a_damaged_page_is_a_problem(tmp_path: Path) -> None:
    path = closed(tmp_path / "opencode.db")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xaa" * (len(data) - 4096)
    path.write_bytes(data)
    assert [problem.path for problem in OpenCodeStore(tmp_path).scan().problems] == [str(path)]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (["create table session (id text, directory text)"], "no table 'message'"),
        (["create table other (id text)"], "no table 'session'"),
        (["create table session (id text, path text)"], "no column 'directory'"),
    ],
)
def test_tables_of_another_version_are_a_problem(tmp_path: Path, tables: list[str], words: str) -> None:
    database(tmp_path / "opencode.db", tables).close()
    os.utime(tmp_path / "opencode.db", (1, 1))
    (problem,) = OpenCodeStore(tmp_path).scan().problems
    assert words in problem.message


def test_a_database_that_is_being_made_is_no_problem_yet(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    for tables in (["create table other (id text)"], []):
        path.unlink(missing_ok=True)
        database(path, tables).close()
        scan = OpenCodeStore(tmp_path).scan()
        assert (scan.sessions, scan.problems) == ([], [])


def test_columns_that_are_not_needed_may_be_missing(tmp_path: Path) -> None:
    tables = [
        "create table session (id text, directory text, time_updated integer)",
        "create table message (id text, session_id text, data text, time_created integer, time_updated integer)",
        "create table part (id text, session_id text, message_id text, data text, time_updated integer)",
    ]
    rows: list[tuple[str, dict[str, Any]]] = [
        ("session", {"id": "ses_1", "directory": "/x", "time_updated": 5000}),
        ("message", {"id": "msg_1", "session_id": "ses_1", "data": '{"role":"user"}', "time_created": 1}),
        ("part", {"id": "prt_1", "session_id": "ses_1", "message_id": "msg_1", "data": '{"type":"text","text":"Hi"}'}),
    ]
    database(tmp_path / "opencode.db", tables, rows).close()
    store = OpenCodeStore(tmp_path)
    (found,) = store.scan().sessions
    assert (found.id, found.session_name, found.last_activity) == ("ses_1", None, "1970-01-01T00:00:05.000Z")
    reader = store.reader("ses_1")
    assert reader is not None
    assert len(read_all(reader)) == 1


def test_a_database_that_may_not_be_read_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = closed(tmp_path / "opencode.db")

    def refuse(name: Any, *rest: Any) -> int:
        raise PermissionError(13, "Permission denied", str(name))

    monkeypatch.setattr(lines.os, "open", refuse)
    (problem,) = OpenCodeStore(tmp_path).scan().problems
    assert (problem.path, problem.message) == (str(path), "it cannot be read: Permission denied")


def test_a_database_that_vanishes_is_a_problem_of_its_readers_only(tmp_path: Path) -> None:
    path = closed(tmp_path / "opencode.db")
    store = OpenCodeStore(tmp_path)
    reader = store.reader(ID)
    assert reader is not None
    path.unlink()
    assert [problem.message for problem in reader.read().problems] == ["it is gone"]
    assert reader.read().problems == []
    scan = store.scan()
    assert (scan.sessions, scan.problems) == ([], [])
