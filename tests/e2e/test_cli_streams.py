"""The command line where its surroundings are missing: streams that are closed or full, a directory that is gone."""

from __future__ import annotations

import errno
import os
import pty
import resource
import subprocess
from pathlib import Path

import pytest

from pilothouse.cli.exits import HANGUP, Exit, reported
from tests.support.cli import PATIENCE, Cli
from tests.support.disks import small_disk


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.mark.parametrize("closed", [(0,), (0, 1, 2)], ids=["stdin", "all"])
def test_closed_streams_are_nothing_to_read_and_nowhere_to_write(cli: Cli, closed: tuple[int, ...]) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    done = cli("run", "-a", "demo", "help", prepare=close)
    assert done.returncode == Exit.OK
    assert ("`tour`" in done.stdout) is (1 not in closed)
    assert done.stderr == ""
    assert len(cli("ls").stdout.splitlines()) == 2, "it was stored, and nothing was said into the database"


@pytest.mark.parametrize("command", ["config", "agents"])
def test_output_that_cannot_be_written_is_said_in_one_line(cli: Cli, tmp_path: Path, command: str) -> None:
    cli.environment.pop("PYTHONUNBUFFERED", None)
    with (tmp_path / "output").open("wb") as full:
        done = subprocess.run(
            cli.command(command),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            env=cli.environment,
            cwd=cli.project,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
        )
    assert done.returncode == Exit.ERROR
    assert done.stderr == "Error: the output cannot be written: File too large\n"


@pytest.mark.parametrize("command", ["config", "ls"])
def test_a_terminal_that_is_gone_is_told_to_nobody(cli: Cli, command: str) -> None:
    master, slave = pty.openpty()
    os.close(master)
    try:
        done = subprocess.run(
            cli.command(command),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            timeout=PATIENCE,
            env=cli.environment,
            cwd=cli.project,
        )
    finally:
        os.close(slave)
    assert done.returncode == HANGUP


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_another_error_of_the_system_stays_a_defect(number: int) -> None:
    @reported
    def command() -> None:
        raise OSError(number, "it failed")

    with pytest.raises(OSError, match="it failed"):
        command()


@pytest.mark.parametrize("command", [("run", "-a", "demo", "help"), ("hooks", "status")])
def test_a_directory_that_is_gone_is_said_in_one_line(cli: Cli, command: tuple[str, ...]) -> None:
    gone = cli.project / "gone"
    gone.mkdir()

    def remove() -> None:
        os.chdir(gone)
        gone.rmdir()

    done = cli(*command, prepare=remove)
    assert done.returncode == Exit.USAGE
    assert done.stderr == "Error: the current directory does not exist any more; go to another one\n"


def test_an_export_to_a_dash_is_one_to_standard_output(cli: Cli) -> None:
    assert cli("run", "-a", "demo", "help").returncode == Exit.OK
    (session,) = [line.split()[0] for line in cli("ls").stdout.splitlines()[1:]]
    given = cli("export", session, "-o", "-")
    assert given.stdout == cli("export", session).stdout != ""
    assert given.stderr == ""
    assert os.listdir(cli.project) == []


def test_doctor_finds_a_full_disk(cli: Cli) -> None:
    with small_disk(cli.home, 300_000) as mounted:
        done = cli("doctor")
        assert ("its disk is full" in done.stdout) is mounted
        assert done.returncode == (Exit.ERROR if mounted else Exit.OK)
