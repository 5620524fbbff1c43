"""What a terminal shows: commands of an agent while they run, and sentences that fit."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from pilothouse.cli.commands.sessions import WORDS
from pilothouse.cli.output import _wrapped
from pilothouse.model.records import SessionStatus
from tests.support.cli import Cli, Typist


def test_run_shows_what_a_command_prints_before_it_ends(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    command = "printf 'the %s line\\n' first; until [ -e go ]; do sleep 0.05; done; printf 'the %s line\\n' last"
    typist = Typist(cli, "run", "-a", "demo", "--approve-all", f"bash {command}")
    try:
        typist.sees("the first line")
        (cli.project / "go").touch()  # only now it can end
        typist.sees("the last line")
        assert typist.leaves() == 0
    finally:
        (cli.project / "go").touch()  # whatever happened, the command ends
        typist.stop()


def test_sentences_are_broken_between_words_and_addresses_stay_whole() -> None:
    address = "http://127.0.0.1:7717/login?ticket=abc"
    wrapped = _wrapped(f"  \x1b[2mlog in\x1b[0m   {address} (one browser, once)", 40, 11, len).split("\n")
    assert wrapped == ["  \x1b[2mlog in\x1b[0m", address, "           (one browser, once)"]
    assert _wrapped("a few words", 80, 2, len) == "a few words"


def test_statuses_are_told_in_the_words_of_the_page() -> None:
    assert set(WORDS) == set(get_args(SessionStatus))
    assert {word for word, _ in WORDS.values()} == {"working", "waiting for you", "idle", "done", "failed", "paused"}
