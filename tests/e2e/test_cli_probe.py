"""`pilothouse doctor agent`: what people and scripts see of a probe."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.cli import Cli, Typist

ODD = str(Path(__file__).parents[1] / "support" / "odd_agent.py")


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    made = Cli(tmp_path)
    made.home.mkdir(mode=0o700)
    made.environment["TMPDIR"] = str(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    yield made
    assert [left.name for left in (tmp_path / "tmp").iterdir() if "probe" in left.name] == []
    running = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert [words for words in running if str(tmp_path) in " ".join(words)] == []


def configure(cli: Cli, *how: str) -> None:
    """An agent `odd` that is known by its command; the last word tells its processes from others."""
    command = json.dumps([sys.executable, ODD, *how, str(cli.home)])
    (cli.home / "config.toml").write_text(f"[agents.odd]\ncommand = {command}\n")


def test_the_scripted_agent_has_a_card_that_is_remembered(cli: Cli) -> None:
    done = cli("doctor", "agent", "demo", "--allow")
    assert done.returncode == 0, done.stderr
    assert "✓ permission" in done.stdout
    assert "✗" not in done.stdout.replace("✗ does not", "")
    assert "streaming.messages" in done.stdout
    told = json.loads(cli("doctor", "agent", "demo", "--allow", "--json").stdout)
    assert {row["state"] for row in told["rows"]} == {"yes"}
    assert told["prompted"] is True
    assert told["card"]["features"]["streaming"]["messages"] is True
    (demo,) = [one for one in json.loads(cli("agents", "--json").stdout) if one["name"] == "demo"]
    assert demo["observed"]["steps"]["prompt"] == "yes"
    assert demo["observed"]["version"] == told["version"]
    assert "streaming.messages" in demo["observed"]["capabilities"]


def test_without_a_terminal_and_without_yes_no_model_is_asked(cli: Cli) -> None:
    configure(cli)
    done = cli("doctor", "agent", "odd")
    assert done.returncode == 0
    assert "· prompt" in done.stdout
    assert "--yes" in done.stderr
    told = json.loads(cli("doctor", "agent", "odd", "--json").stdout)
    assert told["prompted"] is False


def test_at_a_terminal_the_user_is_asked_first(cli: Cli) -> None:
    configure(cli)
    typist = Typist(cli, "doctor", "agent", "odd")
    try:
        typist.sees("5 short prompts to the model of odd?")
        typist.types("n\n")
        assert typist.leaves() == 0
        assert "· prompt" in typist.seen
    finally:
        typist.stop()


def test_an_agent_that_fails_is_told_of_with_its_last_words(cli: Cli) -> None:
    configure(cli, "crash")
    done = cli("doctor", "agent", "odd")
    assert done.returncode == 4
    assert "✗ initialize" in done.stdout
    assert "no licence found" in done.stdout
    configure(cli, "auth")
    done = cli("doctor", "agent", "odd", "--json")
    assert done.returncode == 1
    states = {row["step"]: row["state"] for row in json.loads(done.stdout)["rows"]}
    assert (states["initialize"], states["new"], states["auth"]) == ("yes", "no", "no")


def test_an_agent_that_hangs_is_given_up_and_an_impatient_user_leaves_nothing_behind(cli: Cli) -> None:
    configure(cli, "hang", "ignore-eof")
    done = cli("doctor", "agent", "odd", "--timeout", "1")
    assert done.returncode == 4
    assert "did not answer" in done.stdout
    typist = Typist(cli, "doctor", "agent", "odd", "--yes")
    try:
        typist.sees("… initialize")
        typist.interrupts()
        assert typist.leaves() == 130
    finally:
        typist.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_command_ends_the_agent_with_it(cli: Cli, number: int) -> None:
    configure(cli, "hang", "ignore-eof", "child")
    typist = Typist(cli, "doctor", "agent", "odd", "--yes", "--json")
    try:
        typist.sees("… initialize")  # on stderr, as stdout is for the JSON
        typist.process.send_signal(number)
        assert typist.leaves() == 128 + number
    finally:
        typist.stop()


def test_an_agent_that_is_fetched_first_is_waited_for_with_a_word(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    npx = place / "npx"
    npx.write_text(f"#!/bin/sh\nsleep 3\nexec {sys.executable} {ODD} {cli.home}\n")
    npx.chmod(0o700)
    cli.environment["PATH"] = f"{place}:{cli.environment['PATH']}"
    (cli.home / "config.toml").write_text('[agents.odd]\ncommand = ["npx", "-y", "@some/agent"]\n')
    done = cli("doctor", "agent", "odd", "--json")
    assert done.returncode == 0
    assert "Fetching @some/agent with npx; the first time takes a while." in done.stderr
    json.loads(done.stdout)
    done = cli("run", "-a", "odd", "echo hello")
    assert "Fetching @some/agent with npx" in done.stdout
    npx.write_text("#!/bin/sh\necho npm error code ENOTFOUND >&2\nexit 1\n")
    done = cli("doctor", "agent", "odd")
    assert done.returncode == 4
    assert "npm install -g @some/agent" in done.stdout
    assert "ENOTFOUND" in done.stdout
    done = cli("run", "-a", "odd", "echo hello")
    assert done.returncode != 0
    assert "npm install -g @some/agent" in done.stdout + done.stderr


def test_an_agent_that_nobody_knows_is_a_mistake(cli: Cli) -> None:
    done = cli("doctor", "agent", "dem")
    assert done.returncode == 2
    assert "did you mean 'demo'?" in done.stderr
    assert cli("doctor").returncode == 0
    assert json.loads(cli("doctor", "--json").stdout)[0]["what"] == "python"
