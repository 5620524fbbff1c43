"""The journal of a hub that has no terminal: private, and never much larger than it may be."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilothouse.cli.daemon.background import Turning
from pilothouse.editor.hub_connection import LARGEST, open_journal

RECORD = logging.LogRecord("x", logging.WARNING, "x", 1, "words", None, None)


@pytest.fixture
def streams() -> Iterator[None]:
    """stdout and stderr as they were, whatever a test does to them."""
    kept = {stream: os.dup(stream) for stream in (1, 2)}
    yield
    for stream, copy in kept.items():
        os.dup2(copy, stream)
        os.close(copy)


def test_a_journal_that_has_grown_is_begun_anew_and_the_last_one_kept(tmp_path: Path) -> None:
    (tmp_path / "hub.log").write_bytes(b"x" * (LARGEST + 1))
    os.close(open_journal(tmp_path))
    assert (tmp_path / "hub.log").stat().st_size == 0
    assert (tmp_path / "hub.log").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "hub.log.1").stat().st_size == LARGEST + 1


def test_a_hub_that_has_much_to_say_begins_a_new_journal_while_it_runs(
    tmp_path: Path, streams: None, capfd: pytest.CaptureFixture[str]
) -> None:
    with capfd.disabled():
        journal = open_journal(tmp_path)
        for stream in (1, 2):
            os.dup2(journal, stream)
        os.close(journal)
        turning = Turning(tmp_path)
        turning.emit(RECORD)
        assert not (tmp_path / "hub.log.1").exists()
        os.write(2, b"x" * (LARGEST + 1))
        turning.emit(RECORD)
        os.write(1, b"out ")
        os.write(2, b"err")
    assert (tmp_path / "hub.log").read_bytes() == b"out err"
    assert (tmp_path / "hub.log.1").stat().st_size == LARGEST + 1
