"""The database file: migrations, header, errors of SQLite, and the lock of the process that writes it."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from importlib import resources
from pathlib import Path

import pytest

from pilothouse.log import LogCorrupt, LogForeign, LogFull, LogLocked, LogReadOnly, LogTooNew, LogUnusable, records
from pilothouse.log.sqlite import database as lock
from pilothouse.log.sqlite.database import (
    APPLICATION_ID,
    FileLock,
    check_header,
    explain,
    has_fts,
    migrations,
    open_for_writing,
    prepare,
    prepare_search,
)
from pilothouse.log.sqlite.log import SQLiteLog
from pilothouse.log.sqlite.tables import columns, find

# -- file -------------------------------------------------------------------------------------------------------------

HERE = Path("x.db")


def opened(path: Path) -> sqlite3.Connection:
    prepare(path)
    return open_for_writing(path, synchronous="NORMAL", max_bytes=None)


def test_migrations_are_numbered_without_a_gap() -> None:
    names = sorted(file.name for file in resources.files("pilothouse.log.sqlite").joinpath("sql").iterdir())
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert all(re.fullmatch(r"\d{4}_[a-z_]+\.sql", name) for name in names)
    assert len(migrations()) == len(names)


def test_every_record_has_a_table_with_its_fields_as_columns(tmp_path: Path) -> None:
    db = opened(tmp_path / "x.db")
    for kind in records.KINDS:
        found = {row[1] for row in db.execute(f"PRAGMA table_info({kind.table})")}
        assert found - {"number"} == set(columns(kind)), kind.table
        assert set(kind.documents) <= found
        assert set(kind.key) <= found
    db.close()


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "x.db"
    opened(path).close()
    before = path.read_bytes()
    db = opened(path)
    assert db.execute("PRAGMA user_version").fetchone() == (len(migrations()),)
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA foreign_keys").fetchone() == (1,)
    db.close()
    assert path.read_bytes() == before


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.db"
    opened(path).close()
    broken = (*migrations(), "CREATE TABLE half (x); CREATE TABLE sessions (x);")
    monkeypatch.setattr("pilothouse.log.sqlite.database.migrations", lambda: broken)
    with pytest.raises(LogUnusable, match="sessions already exists"):
        opened(path)
    monkeypatch.undo()
    db = opened(path)
    assert db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'half'").fetchone() is None
    db.close()


def test_a_database_of_the_oldest_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    db = sqlite3.connect(path)
    db.executescript(f"{migrations()[0]}; PRAGMA user_version = 1; PRAGMA application_id = {APPLICATION_ID};")
    db.execute("INSERT INTO settings VALUES ('a', '1', 't')")
    db.execute("INSERT INTO rules VALUES ('r', 'everywhere', '', '{}', 'allow', 't', NULL, 0, NULL, NULL)")
    db.commit()
    db.close()
    db = opened(path)
    assert [(rule.id, rule.made_by, rule.approval_id) for rule in find(db, records.Rule, {})] == [("r", None, None)]
    assert db.execute("PRAGMA user_version").fetchone() == (len(migrations()),)
    assert db.execute("SELECT value FROM settings").fetchone() == ("1",)
    db.close()


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (b"x", LogCorrupt),
        (b"\0" * 100, LogCorrupt),
        (b"SQLite format 3\0" + b"\0" * 10, LogCorrupt),
        (b"SQLite format 3\0" + b"\0" * 44 + b"\0\0\0\x63" + b"\0" * 4 + b"PLTH" + b"\0" * 28, LogTooNew),
        (b"SQLite format 3\0" + b"\0" * 44 + b"\0\0\0\x01" + b"\0" * 36, LogForeign),
        (b"SQLite format 3\0" + b"\0" * 52 + b"abcd" + b"\0" * 28, LogForeign),
    ],
)
def test_a_header_says_what_the_file_is(header: bytes, error: type[LogUnusable]) -> None:
    with pytest.raises(error, match=r"x\.db"):
        check_header(HERE, header)


def test_an_empty_file_and_one_of_ours_pass() -> None:
    check_header(HERE, b"")
    check_header(HERE, b"SQLite format 3\0" + b"\0" * 44 + b"\0\0\0\x01" + b"\0" * 4 + b"PLTH" + b"\0" * 28)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (sqlite3.SQLITE_FULL, LogFull),
        (sqlite3.SQLITE_CORRUPT, LogCorrupt),
        (sqlite3.SQLITE_NOTADB, LogCorrupt),
        (sqlite3.SQLITE_READONLY, LogReadOnly),
        (sqlite3.SQLITE_READONLY_DBMOVED, LogReadOnly),
        (sqlite3.SQLITE_BUSY, LogLocked),
        (sqlite3.SQLITE_IOERR_FSYNC, LogUnusable),
        (sqlite3.SQLITE_CANTOPEN, LogUnusable),
    ],
)
def test_errors_of_sqlite_have_a_meaning(tmp_path: Path, code: int, error: type[Exception]) -> None:
    exc = sqlite3.OperationalError("said so")
    exc.sqlite_errorcode = code
    assert type(explain(tmp_path / "x.db", exc)) is error


def test_an_input_output_error_on_a_full_disk_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exc = sqlite3.OperationalError("disk I/O error")
    exc.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    monkeypatch.setattr("pilothouse.log.sqlite.database.NEARLY_FULL", 1 << 60)
    assert type(explain(tmp_path / "x.db", exc)) is LogFull


def test_an_old_sqlite_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 7, 0))
    with pytest.raises(LogUnusable, match="or newer"):
        opened(tmp_path / "x.db")


def test_the_index_is_made_where_it_can_be(tmp_path: Path) -> None:
    db = opened(tmp_path / "x.db")
    assert prepare_search(db, wanted=False) is False
    assert prepare_search(db, wanted=True) is has_fts(db)
    db.close()


async def test_turns_of_the_first_version_are_known_without_a_digest(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    db = sqlite3.connect(path)
    db.executescript(f"{migrations()[0]}; PRAGMA user_version = 1; PRAGMA application_id = {APPLICATION_ID};")
    db.execute(
        "INSERT INTO sessions (id, agent, cwd, status, meta, created, updated, last_seq) "
        "VALUES ('s', 'a', '/', 'idle', '{}', 't', 't', 0)"
    )
    db.execute("INSERT INTO turns VALUES ('s', 'old', 'turn_1', 't')")
    db.commit()
    db.close()
    async with SQLiteLog(path) as log:
        old = await log.turns.record("s", "old")
        assert old is not None
        assert (old.turn_id, old.digest) == ("turn_1", None)
        await log.apply(log.turns.claiming("s", "new", "turn_2", "abc"))
        new = await log.turns.record("s", "new")
        assert new is not None
        assert (new.turn_id, new.digest) == ("turn_2", "abc")


# -- lock -------------------------------------------------------------------------------------------------------------


def test_the_lock_of_a_process_that_runs_is_refused_at_once_and_names_it(tmp_path: Path) -> None:
    held, other = FileLock(tmp_path / "hub.db"), FileLock(tmp_path / "hub.db")
    assert held.acquire() is None
    with pytest.raises(LogLocked) as caught:
        other.acquire()
    assert caught.value.pid == os.getpid()
    held.release()
    assert other.acquire() is None
    other.release()


@pytest.mark.parametrize("holder", ["", "nobody"])
def test_a_lock_whose_holder_is_going_is_waited_for(tmp_path: Path, holder: str) -> None:
    ended = subprocess.Popen(["true"])
    try:
        while not lock._is_exiting(ended.pid):  # it has ended, and is still listed because nobody took note of that
            time.sleep(0.01)
        os.kill(ended.pid, 0)
        going = FileLock(tmp_path / "hub.db")
        descriptor = os.open(going.path, os.O_RDWR | os.O_CREAT)
        os.write(descriptor, holder.encode() or str(ended.pid).encode())
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        letting_go = threading.Timer(0.1, os.close, (descriptor,))
        letting_go.start()
        assert going.acquire() is None
        letting_go.join()
        going.release()
    finally:
        ended.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a process is on its way out")
def test_a_process_that_runs_is_not_on_its_way_out() -> None:
    assert not lock._is_exiting(os.getpid())
    assert not lock._is_exiting(2**22 + 1)
