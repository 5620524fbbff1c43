"""The write-ahead log is folded into the file while there is writing, and does not grow without end."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pilothouse.log.sqlite import writer as checkpoint
from pilothouse.log.sqlite.database import open_for_writing
from pilothouse.log.sqlite.writer import Checkpointer


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
