"""The log when things break: killed processes, full disks, damaged, foreign, newer, read-only and shared files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pilothouse.log import (
    Entry,
    LogClosed,
    LogCorrupt,
    LogError,
    LogForeign,
    LogFull,
    LogLocked,
    LogTooNew,
    LogUnusable,
    SQLiteLog,
    UnknownSession,
)
from pilothouse.log.sqlite.reader import LogArchive
from pilothouse.model.events import Event, MessageDeltaEvent, decode_event

NOW = "2026-01-01T00:00:00.000Z"
KILLS = 200 if os.environ.get("PILOTHOUSE_SOAK") else 10

# Appends until it is killed. After each commit it says on its output up to where; before each batch up to where it
# wants to go, so that a reader knows what may be there without having been acknowledged.
APPENDER = """
import asyncio, os, sys
from pilothouse.log import SQLiteLog
from pilothouse.model.events import MessageDeltaEvent

def batch(session, size):
    # now and then one that is written in slices, ahead of its commit
    return [MessageDeltaEvent(seq=0, session_id=session, timestamp="t", message_id="m", role="assistant",
            delta="x" * (1_500_000 if size % 9 == 0 and not place else 50)) for place in range(size)]

async def keep_appending(log, session):
    last = await log.last_seq(session)
    size = 1
    while True:
        size = size % 37 + 3
        last = await log.append(session, last, batch(session, size))
        os.write(1, f"{session} {last}\\n".encode())

async def main():
    async with SQLiteLog(sys.argv[1]) as log, asyncio.TaskGroup() as tasks:
        os.write(1, b"ready 0\\n")
        for session in sys.argv[2:]:
            tasks.create_task(keep_appending(log, session))

asyncio.run(main())
"""

# Opens the log given, and says what came of it; as nobody, if told to.
OPENER = """
import asyncio, os, sys
from pilothouse.log import LogError, SQLiteLog
from pilothouse.log.sqlite.database import migrations

migrations()  # read now what nobody may not be allowed to read
if sys.argv[2:] == ["nobody"]:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

async def main():
    try:
        async with SQLiteLog(sys.argv[1]) as log:
            print("opened")
            if sys.argv[2:] == ["hold"]:
                print("holding", flush=True)
                await asyncio.to_thread(sys.stdin.read)
    except LogError as exc:
        print(type(exc).__name__, exc)

asyncio.run(main())
"""


def deltas(count: int, text: str = "piece", session_id: str = "s") -> list[Event]:
    return [
        MessageDeltaEvent(seq=0, session_id=session_id, timestamp=NOW, message_id="m", role="assistant", delta=text)
        for _ in range(count)
    ]


async def everything(log: SQLiteLog, session_id: str) -> list[Entry]:
    found: list[Entry] = []
    while page := await log.read(session_id, found[-1].seq if found else 0):
        found += page
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "hub.db"


async def make(path: Path) -> None:
    async with SQLiteLog(path) as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        await log.append("s", 0, deltas(5))


def debris(path: Path) -> int:
    """Slices that belong to no event."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        sql = (
            "SELECT count(*) FROM slices AS s WHERE NOT EXISTS (SELECT 1 FROM batches AS b WHERE b.session = s.session"
            " AND b.seq = s.seq AND b.count = 1)"
        )
        return int(db.execute(sql).fetchone()[0])


# -- restarts and kills -------------------------------------------------------------------------------------------


async def test_after_a_restart_everything_is_there_and_seq_goes_on(path: Path) -> None:
    await make(path)
    async with SQLiteLog(path) as log:
        assert [entry.seq for entry in await log.read("s")] == [1, 2, 3, 4, 5]
        before = await log.last_position()
        assert await log.append("s", 5, deltas(2)) == 7
        entries = await log.read("s", 5)
        assert [decode_event(entry.data).seq for entry in entries] == [6, 7]
        assert all(entry.position > before for entry in entries)
    assert not path.with_name("hub.db-wal").exists()


async def test_positions_are_not_given_twice_when_the_newest_session_is_deleted(path: Path) -> None:
    await make(path)
    async with SQLiteLog(path) as log:
        await log.sessions.create("gone", agent="demo", cwd="/")
        await log.append("gone", 0, deltas(5000, session_id="gone"))
        cursor = await log.last_position()
        await log.sessions.delete("gone")
    async with SQLiteLog(path) as log:
        follower = log.follow_all(cursor)
        assert await follower.next(0) == []
        await log.append("s", 5, deltas(1))
        assert [entry.seq for entry in await anext(follower)] == [6]
        assert await log.integrity_check() == []


async def test_killed_at_any_moment_no_acknowledged_event_is_lost_and_no_seq_is_given_twice(
    path: Path, tell: Callable[[str], None]
) -> None:
    sessions = ["a", "b", "c"]
    async with SQLiteLog(path) as log:
        for session in sessions:
            await log.sessions.create(session, agent="demo", cwd="/")
    chooser = random.Random()
    counts = {"kills": 0, "acknowledged": 0, "stored": 0, "lost": 0}
    acknowledged = dict.fromkeys(sessions, 0)
    known: dict[str, list[bytes]] = {session: [] for session in sessions}
    for _ in range(KILLS):
        wanted = chooser.randint(1, 60)
        child = subprocess.Popen([sys.executable, "-c", APPENDER, str(path), *sessions], stdout=subprocess.PIPE)
        assert child.stdout is not None
        lines = 0
        while line := child.stdout.readline():
            session, _, last = line.decode().partition(" ")
            if session in acknowledged and last.endswith("\n"):
                acknowledged[session] = int(last)
            lines += 1
            if lines == wanted:
                child.send_signal(signal.SIGKILL)
        child.stdout.close()
        assert child.wait(10) == -signal.SIGKILL
        counts["kills"] += 1
        async with SQLiteLog(path) as log:
            assert await log.integrity_check() == []
            for session in sessions:
                entries = await everything(log, session)
                assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
                counts["lost"] += max(0, acknowledged[session] - len(entries))
                stored = [entry.data for entry in entries]
                assert stored[: len(known[session])] == known[session], "what was stored stays as it was"
                known[session] = stored
                assert await log.last_seq(session) == len(entries)
        assert debris(path) == 0
    counts["acknowledged"] = sum(acknowledged.values())
    counts["stored"] = sum(map(len, known.values()))
    tell(f"log killed: {counts}")
    assert counts["lost"] == 0
    assert counts["acknowledged"] > 0


# -- one hub per file ---------------------------------------------------------------------------------------------


async def test_a_second_hub_is_refused_and_told_who_holds_the_log(path: Path) -> None:
    await make(path)
    child = subprocess.Popen(
        [sys.executable, "-c", OPENER, str(path), "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert [child.stdout.readline(), child.stdout.readline()] == ["opened\n", "holding\n"]
    try:
        with pytest.raises(LogLocked, match=f"process {child.pid};") as caught:
            await SQLiteLog(path).open()
        assert caught.value.pid == child.pid
    finally:
        child.kill()
        child.communicate()
    async with SQLiteLog(path) as log:
        assert await log.last_seq("s") == 5
        with pytest.raises(LogLocked, match=f"process {os.getpid()};"):
            await SQLiteLog(path).open()
        assert await log.append("s", 5, deltas(1)) == 6


async def test_where_there_are_no_file_locks_the_log_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.log.sqlite.database.LOCKS", False)
    async with SQLiteLog(path) as log:
        assert any("second hub" in notice for notice in log.notices)


async def test_another_program_that_holds_the_database_gives_a_clear_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.log.sqlite.database.BUSY_TIMEOUT", 0.05)
    await make(path)
    async with SQLiteLog(path) as log:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogLocked, match="another process"):
            await log.append("s", 5, deltas(1))
        other.execute("ROLLBACK")
        other.close()
        assert await log.append("s", 5, deltas(1)) == 6


async def test_opening_that_is_given_up_leaves_the_file_free(path: Path) -> None:
    await make(path)
    opening = asyncio.create_task(SQLiteLog(path).open())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with asyncio.timeout(10):
        while True:
            try:
                async with SQLiteLog(path) as log:
                    assert await log.last_seq("s") == 5
                    break
            except LogLocked:
                await asyncio.sleep(0.01)


# -- files that can't be used -------------------------------------------------------------------------------------


async def refused(path: Path, error: type[LogError], *words: str) -> None:
    """Opening fails so, with words of advice, and the file is as it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error) as caught:
        await SQLiteLog(path).open()
    assert all(word in str(caught.value) for word in (str(path), *words)), str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    for content in (b"hello", b"\0" * 8192, b"SQLite format 3\0"):
        path.write_bytes(content)
        await refused(path, LogCorrupt, "not a SQLite database", "move it aside")


async def test_a_damaged_header_is_refused(path: Path) -> None:
    await make(path)
    content = bytearray(path.read_bytes())
    content[0:4] = b"XXXX"
    path.write_bytes(content)
    await refused(path, LogCorrupt, "move it aside")


async def test_damage_behind_the_header_is_refused(path: Path) -> None:
    await make(path)
    content = bytearray(path.read_bytes())
    content[100:4000] = b"\xff" * 3900
    path.write_bytes(content)
    with pytest.raises(LogCorrupt, match="damaged"):
        await SQLiteLog(path).open()


async def test_damage_found_while_reading_is_an_error_and_the_integrity_check_tells_of_it(path: Path) -> None:
    async with SQLiteLog(path) as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        await log.append("s", 0, deltas(3000))
    db = sqlite3.connect(path)
    (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'batches'").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    content = bytearray(path.read_bytes())
    content[(root - 1) * size : root * size] = b"\xff" * size
    path.write_bytes(content)
    with pytest.raises(LogCorrupt):
        async with SQLiteLog(path) as log:
            await log.read("s")
    shutil.copy(path, path.with_name("copy.db"))


async def test_the_integrity_check_finds_events_that_are_missing(path: Path) -> None:
    await make(path)
    db = sqlite3.connect(path)
    db.execute("DELETE FROM batches")
    db.commit()
    db.close()
    async with SQLiteLog(path) as log:
        assert await log.integrity_check() == ["session 's' was at seq 5 and has 0 events up to 0"]


async def test_a_newer_schema_is_refused(path: Path) -> None:
    await make(path)
    content = bytearray(path.read_bytes())
    content[60:64] = struct.pack(">i", 999)
    path.write_bytes(content)
    await refused(path, LogTooNew, "version 999", "update Pilothouse")


async def test_a_newer_schema_that_is_still_in_the_write_ahead_log_is_refused(path: Path) -> None:
    await make(path)
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 999")
    other.commit()
    assert path.read_bytes()[60:64] != struct.pack(">i", 999)
    with pytest.raises(LogTooNew, match="version 999"):
        await SQLiteLog(path).open()
    other.close()


async def test_the_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    for pragma in ("application_id = 7", "user_version = 3", "cache_size = 10"):
        path.unlink(missing_ok=True)
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE recipes (name)")
        db.execute(f"PRAGMA {pragma}")
        db.commit()
        db.close()
        await refused(path, LogForeign, "another program", "another path")


async def test_a_directory_in_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    await refused(path, LogUnusable, "is a directory")


async def test_a_file_in_place_of_the_directory_is_refused(path: Path) -> None:
    path.parent.write_text("in the way")
    await refused(path, LogUnusable)


@pytest.fixture
def shared_home() -> Iterator[Path]:
    """A directory that another user may look into: tests as root try permissions as nobody."""
    home = Path(tempfile.mkdtemp(prefix="pilothouse-log-"))
    home.chmod(0o755)
    yield home
    for each in [home, *home.iterdir()]:
        each.chmod(0o700)
    shutil.rmtree(home)


def open_as_ordinary_user(path: Path) -> str:
    args = ["nobody"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [sys.executable, "-c", OPENER, str(path), *args], capture_output=True, text=True, timeout=20, check=False
    )
    return done.stdout + done.stderr


async def test_a_read_only_file_is_refused(shared_home: Path) -> None:
    path = shared_home / "hub.db"
    await make(path)
    path.chmod(0o444)
    shared_home.chmod(0o777)
    before = path.read_bytes()
    said = open_as_ordinary_user(path)
    assert said.startswith("LogReadOnly"), said
    assert "give this user the right to write" in said
    assert path.read_bytes() == before


async def test_a_read_only_directory_is_refused(shared_home: Path) -> None:
    shared_home.chmod(0o555)
    for path in (shared_home / "hub.db", shared_home / "new" / "hub.db"):
        said = open_as_ordinary_user(path)
        assert said.startswith("LogReadOnly"), said
    assert list(shared_home.iterdir()) == []


async def test_an_unreadable_directory_is_refused(shared_home: Path) -> None:
    home = shared_home / "closed"
    await make(home / "hub.db")
    home.chmod(0o700 if os.geteuid() == 0 else 0o000)
    said = open_as_ordinary_user(home / "hub.db")
    assert said.startswith("LogReadOnly"), said


async def test_files_are_for_their_owner_only(path: Path) -> None:
    async with SQLiteLog(path) as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        await log.append("s", 0, deltas(1))
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        assert modes == dict.fromkeys(("hub.db", "hub.db-wal", "hub.db-shm", "hub.db.lock"), 0o600)
        assert path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o644)
    async with SQLiteLog(path):
        assert path.stat().st_mode & 0o777 == 0o600


# -- no room ------------------------------------------------------------------------------------------------------


async def fill(log: SQLiteLog, session_id: str) -> int:
    """Append until there is no room; returns the last seq that was acknowledged."""
    last = 0
    try:
        while True:
            last = await log.append(session_id, last, deltas(20, "x" * 1000, session_id))
    except LogFull:
        return last


async def test_a_full_log_refuses_the_batch_alone_and_works_again_when_there_is_room(path: Path) -> None:
    async with SQLiteLog(path, max_bytes=600_000) as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        last = await fill(log, "s")
        assert last > 0
        assert await log.last_seq("s") == last
        assert [entry.seq for entry in await everything(log, "s")] == list(range(1, last + 1))
        follower = log.follow("s", last)
        assert await follower.next(0) == []
        with pytest.raises(LogFull, match="free some space"):
            await log.append("s", last, deltas(20, "x" * 1000))
    async with SQLiteLog(path, max_bytes=2_000_000) as log:
        assert await log.append("s", last, deltas(20, "x" * 1000)) == last + 20
        assert await log.integrity_check() == []


async def test_on_a_full_log_a_small_batch_does_not_fail_for_a_large_one(path: Path) -> None:
    async with SQLiteLog(path, max_bytes=600_000) as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        await log.sessions.create("t", agent="demo", cwd="/")
        results = await asyncio.gather(
            log.append("s", 0, deltas(1)),
            log.append("t", 0, deltas(1, "x" * 5_000_000, "t")),
            log.append("s", 1, deltas(1)),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [int, LogFull, int]
        assert await log.last_seq("s") == 2
        assert await log.last_seq("t") == 0


async def test_room_made_by_deleting_a_session_is_used_again(path: Path) -> None:
    async with SQLiteLog(path, max_bytes=600_000) as log:
        for session in ("s", "t"):
            await log.sessions.create(session, agent="demo", cwd="/")
        await fill(log, "t")
        await log.sessions.delete("t")
        async with asyncio.timeout(10):
            while True:
                try:
                    assert await log.append("s", 0, deltas(100, "x" * 1000)) == 100
                    break
                except LogFull:  # the purge goes on aside
                    await asyncio.sleep(0.01)


async def test_on_a_full_disk_the_batch_fails_and_later_ones_work(tmp_path: Path) -> None:
    """On a real small file system where one can be mounted; with a size limit of the process elsewhere."""
    home = tmp_path / "small"
    home.mkdir()
    mount = [shutil.which("mount") or "false", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(home)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        home, ballast = tmp_path, None
    else:
        ballast = home / "ballast"
        ballast.write_bytes(b"x" * 1_500_000)
    try:
        async with SQLiteLog(home / "hub.db", max_bytes=None if ballast else 500_000) as log:
            await log.sessions.create("s", agent="demo", cwd="/")
            last = await fill(log, "s")
            assert [entry.seq for entry in await everything(log, "s")] == list(range(1, last + 1))
            if ballast:
                ballast.unlink()
                assert await log.append("s", last, deltas(50, "x" * 1000)) == last + 50
                assert await log.integrity_check() == []
    finally:
        if ballast:
            subprocess.run(["umount", str(home)], check=True)


async def test_without_room_to_fold_it_the_write_ahead_log_is_kept_for_the_next_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folded halfway it would take the room that the next small batch needs."""
    await make(path)
    before = path.read_bytes()
    monkeypatch.setattr("pilothouse.log.sqlite.database.has_room", lambda _: False)
    async with SQLiteLog(path) as log:
        assert await log.append("s", 5, deltas(100)) == 105
    assert path.read_bytes() == before
    assert path.with_name("hub.db-wal").stat().st_size > 0
    monkeypatch.undo()
    async with SQLiteLog(path) as log:
        assert len(await everything(log, "s")) == 105
    assert not path.with_name("hub.db-wal").exists()


async def test_reading_a_log_that_a_killed_hub_left_changes_nothing(path: Path, tmp_path: Path) -> None:
    await make(path)
    left = tmp_path / "left"
    left.mkdir()
    async with SQLiteLog(path) as log:
        await log.append("s", 5, deltas(100))
        for file in path.parent.iterdir():
            shutil.copy(file, left / file.name)
    before = {file.name: file.read_bytes() for file in left.iterdir() if not file.name.endswith("-shm")}
    assert len(before["hub.db-wal"]) > 0
    async with LogArchive(left / "hub.db") as archive:
        assert [entry.seq async for entry in archive.entries("s")] == list(range(1, 106))
    assert {file.name: file.read_bytes() for file in left.iterdir() if not file.name.endswith("-shm")} == before


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE batches SET events = X'00FF'",
        "UPDATE batches SET events = X'7B7D0A7B7D'",
        "UPDATE batches SET events = 7",
        "UPDATE batches SET sources = X'C1'",
        "UPDATE sessions SET policy = '{'",
    ],
)
async def test_a_row_that_was_never_written_so_is_damage(path: Path, sql: str) -> None:
    await make(path)
    db = sqlite3.connect(path)
    db.execute(sql)
    db.commit()
    db.close()
    async with SQLiteLog(path) as log:
        with pytest.raises(LogCorrupt, match="move it aside"):
            await asyncio.gather(log.sessions.get("s"), log.read("s"))


# -- the rest -----------------------------------------------------------------------------------------------------


async def test_search_catches_up_after_a_time_without_full_text(path: Path) -> None:
    from pilothouse.model.events import MessageCompleteEvent
    from pilothouse.model.records import TextContent

    def said(text: str) -> list[Event]:
        content = [TextContent(text=text)]
        return [
            MessageCompleteEvent(
                seq=0, session_id="s", timestamp=NOW, message_id="m", role="assistant", content=content
            )
        ]

    await make(path)
    async with SQLiteLog(path, full_text=False) as log:
        assert any("FTS5" in notice for notice in log.notices)
        await log.append("s", 5, said("a walrus"))
        assert [hit.seq for hit in await log.search("walrus")] == [6]
    async with SQLiteLog(path) as log:
        assert log.notices == []
        await log.append("s", 6, said("another walrus"))
        assert [hit.seq for hit in await log.search("walrus")] == [7, 6]


async def test_full_synchronous_is_honoured(path: Path) -> None:
    async with SQLiteLog(path, synchronous="FULL") as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        assert await log.append("s", 0, deltas(3)) == 3


async def test_a_log_is_opened_once(path: Path) -> None:
    log = SQLiteLog(path)
    with pytest.raises(LogClosed):
        await log.read("s")
    await log.open()
    with pytest.raises(LogError, match="opened before"):
        await log.open()
    await log.close()
    with pytest.raises(LogError, match="opened before"):
        await log.open()


async def test_when_the_writer_ends_by_a_defect_nobody_is_left_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(path)
    async with asyncio.timeout(10):
        log = await SQLiteLog(path).open()
        monkeypatch.setattr("pilothouse.log.sqlite.commit.GroupCommit.commit", lambda *_: 1 / 0)
        with pytest.raises(LogError, match="defect"):
            await log.append("s", 5, deltas(1))
        monkeypatch.setattr("pilothouse.log.sqlite.writer.Writer._take", lambda *_: 1 / 0)
        monkeypatch.setattr("threading.excepthook", lambda *_: None)
        outcomes = [await asyncio.gather(log.append("s", 5, deltas(1)), return_exceptions=True) for _ in range(3)]
        assert isinstance(outcomes[-1][0], LogClosed)
        # its last words must not be taken for those of another test
        writers = [thread for thread in threading.enumerate() if thread.name == "pilothouse-log-writer"]
        await log.close()
        for writer in writers:
            await asyncio.to_thread(writer.join)


async def test_closing_does_not_wait_for_a_long_read(path: Path) -> None:
    async with asyncio.timeout(10):
        log = await SQLiteLog(path).open()
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
        readers = log._open_readers()
        reading = asyncio.create_task(readers.run(lambda db: db.execute(endless).fetchone()))
        await asyncio.sleep(0)
        await log.close()
        with pytest.raises(LogClosed):
            await reading


async def test_history_that_was_read_before_is_not_served_after_its_session_is_deleted(path: Path) -> None:
    async with SQLiteLog(path, tail_bytes=0) as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        await log.append("s", 0, deltas(3000))
        assert len(await anext(log.follow("s"))) > 0
        await log.sessions.delete("s")
        with pytest.raises(UnknownSession):
            await anext(log.follow("s"))


async def test_deleted_sessions_are_purged_also_after_a_restart(path: Path) -> None:
    async with SQLiteLog(path) as log:
        await log.sessions.create("s", agent="demo", cwd="/")
        for start in range(300):
            await log.append("s", start, deltas(1))
        await log.append("s", 300, deltas(1, "x" * 500_000))
        await log.append("s", 301, deltas(1, "x" * 9_000_000))
        await log.sessions.delete("s")
    async with asyncio.timeout(10):
        left = 1
        while left:
            async with SQLiteLog(path):
                pass
            db = sqlite3.connect(path)
            (left,) = db.execute(
                "SELECT (SELECT count(*) FROM batches) + (SELECT count(*) FROM blobs) + (SELECT count(*) FROM slices)"
            ).fetchone()
            db.close()
