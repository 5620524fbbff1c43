"""The log for those who only read: beside a hub that writes, and without one."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from pilothouse.app.stored_sessions import Ambiguous, Archive
from pilothouse.log import LogCorrupt, LogReadOnly, LogTooNew, LogUnusable, SQLiteLog, UnknownSession
from pilothouse.log.records import SessionFilter
from pilothouse.log.sqlite import reader as archive
from pilothouse.log.sqlite.reader import LogArchive, lock_holder
from pilothouse.model.events import DERIVED, MessageDeltaEvent

NOW = "2026-01-01T00:00:00.000Z"


def said(text: str, source: bytes | None = None) -> MessageDeltaEvent:
    event = MessageDeltaEvent(seq=0, session_id="ses_a1", timestamp=NOW, message_id="m", role="assistant", delta=text)
    event.source = source
    return event


async def test_what_is_committed_is_read_while_the_log_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    async with SQLiteLog(path) as log, LogArchive(path) as stored:
        await log.sessions.create("ses_a1", agent="demo", cwd="/work")
        await log.append("ses_a1", 0, [said("one", b'{"a": 1}'), said("two", DERIVED)])
        events = [event async for event in stored.events("ses_a1")]
        assert [(event.seq, event.delta, event.source) for event in events] == [  # type: ignore[attr-defined]
            (1, "one", b'{"a": 1}'),
            (2, "two", DERIVED),
        ]
        await log.append("ses_a1", 2, [said("three")])
        assert [entry.seq for entry in await stored.read("ses_a1", 2)] == [3]
        assert [entry.seq async for entry in stored.entries("ses_a1", 1)] == [2, 3]
        assert await stored.read("ses_a1", 3) == []
        assert [one.id for one in (await stored.list_sessions(SessionFilter())).sessions] == ["ses_a1"]
        assert (await stored.sessions.get("ses_a1")).last_seq == 3
        assert await stored.problems() == []
        with pytest.raises(UnknownSession):
            await stored.read("ses_b")


async def test_nothing_can_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    async with SQLiteLog(path) as log:
        await log.sessions.create("ses_a1", agent="demo", cwd="/work")
    before = path.read_bytes()
    async with LogArchive(path) as stored:
        with pytest.raises(LogReadOnly, match="open for reading only"):
            await stored.sessions.create("ses_c", agent="demo", cwd="/work")
        assert (await stored.sessions.get("ses_a1")).agent == "demo"
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [None, b""])
async def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "hub.db"
    if content is not None:
        path.write_bytes(content)
    async with LogArchive(path) as stored:
        assert (await stored.list_sessions(SessionFilter())).sessions == []
        assert await stored.approvals.pending() == []
        assert await stored.problems() == []
        with pytest.raises(UnknownSession):
            await stored.read("ses_a1")
    assert path.exists() == (content is not None)


async def test_a_file_of_another_kind_or_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hub.db"
    async with SQLiteLog(path):
        pass
    known = archive.migrations()
    monkeypatch.setattr(archive, "migrations", lambda: [*known, "another"])
    with pytest.raises(LogUnusable, match=rf"older schema version {len(known)}; start a hub on it once"):
        async with LogArchive(path):
            pass
    monkeypatch.undo()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with pytest.raises(LogTooNew):
        async with LogArchive(path):
            pass
    path.write_bytes(b"something else entirely")
    with pytest.raises(LogCorrupt):
        async with LogArchive(path):
            pass
    with pytest.raises(LogUnusable):
        async with LogArchive(tmp_path):
            pass


async def test_who_has_the_log_open_is_known_without_disturbing_it(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    assert lock_holder(path) is None
    async with SQLiteLog(path) as log:
        assert lock_holder(path) == os.getpid()
        await log.sessions.create("ses_a1", agent="demo", cwd="/work")
    assert lock_holder(path) is None


async def test_a_session_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    async with SQLiteLog(path) as log:
        for name in ("ses_a1", "ses_a12", "ses_b1"):
            await log.sessions.create(name, agent="demo", cwd="/work")
        await log.append("ses_a1", 0, [said("hello")])
    async with Archive(path) as stored:
        assert [(await stored.match(one)).id for one in ("a1", "ses_a12", "b")] == ["ses_a1", "ses_a12", "ses_b1"]
        with pytest.raises(Ambiguous, match="2 sessions begin with 'a'"):
            await stored.match("a")
        for unknown in ("c", ""):
            with pytest.raises(UnknownSession):
                await stored.match(unknown)
        assert (await stored.fold("ses_a1")).seq == 1
