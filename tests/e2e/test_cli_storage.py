"""The command line on a home whose database cannot be used: one line that says what to do, exit code 6, no change."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.hub.hub import DATABASE
from tests.support.cli import PATIENCE, Cli
from tests.support.disks import DAMAGES, as_ordinary_user, small_disk
from tests.support.hubs import ODD, processes_with

HOME_UNUSABLE = 6
READERS = ("ls", "show {id}", "export {id}", "replay --speed 1000 {id}", "approvals")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A home with one session, to be copied."""
    cli = Cli(tmp_path_factory.mktemp("used"))
    assert cli("run", "-a", "demo", "flood 2000").returncode == 0
    return cli


@pytest.fixture
def session_id(used: Cli, cli: Cli) -> str:
    """That of the one session in the home."""
    shutil.copytree(used.home, cli.home)
    with contextlib.closing(sqlite3.connect(cli.home / DATABASE)) as db:
        return str(db.execute("SELECT id FROM sessions").fetchone()[0])


def snapshot(home: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in home.iterdir() if file.is_file() and file.suffix != ".lock"}


def is_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """It failed as documented, with all of these words in the one line that it said."""
    assert done.returncode == HOME_UNUSABLE, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr


# -- files that cannot be used ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_database_that_cannot_be_used_is_said_in_one_line_and_left_as_it_is(
    cli: Cli, session_id: str, damage: str
) -> None:
    how, what, advice = DAMAGES[damage]
    how(cli.home / DATABASE)
    before = snapshot(cli.home)
    for command in ("run -a demo hello", f"show {session_id}"):
        is_one_line(cli(*command.split()), str(cli.home / DATABASE), what, advice)
        assert snapshot(cli.home) == before


@pytest.mark.parametrize("damage", ["damaged header", "cut short", "newer schema", "of another program"])
def test_commands_that_only_read_say_the_same(cli: Cli, session_id: str, damage: str) -> None:
    how, what, advice = DAMAGES[damage]
    how(cli.home / DATABASE)
    before = snapshot(cli.home)
    for command in READERS:
        is_one_line(cli(*command.format(id=session_id).split()), what, advice)
    doctor = cli("doctor")
    assert doctor.returncode == 1
    assert what in doctor.stdout
    assert advice in doctor.stdout
    assert snapshot(cli.home) == before


# -- rights -------------------------------------------------------------------------------------------------------


def test_a_file_that_may_not_be_written_is_refused_and_can_be_read(cli: Cli, session_id: str) -> None:
    (cli.home / DATABASE).chmod(0o400)
    before = snapshot(cli.home)
    done = cli("run", "-a", "demo", "hello", prepare=as_ordinary_user)
    is_one_line(done, "can't be written", "give this user the right to write the file and its directory")
    for command in READERS:
        read = cli(*command.format(id=session_id).split(), prepare=as_ordinary_user)
        assert (read.returncode, read.stderr.count("Error")) == (0, 0), read.stderr
    assert snapshot(cli.home) == before


def test_a_directory_that_may_not_be_written_is_refused_and_can_be_read(cli: Cli, session_id: str) -> None:
    before = snapshot(cli.home)
    cli.home.chmod(0o500)
    try:
        done = cli("run", "-a", "demo", "hello", prepare=as_ordinary_user)
        is_one_line(done, "its directory can't be written", "give this user the right to write")
        for command in READERS:
            read = cli(*command.format(id=session_id).split(), prepare=as_ordinary_user)
            assert (read.returncode, read.stderr.count("Error")) == (0, 0), read.stderr
    finally:
        cli.home.chmod(0o700)
    assert snapshot(cli.home) == before


def test_a_place_where_no_home_can_be_made_is_refused(cli: Cli, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    cli.environment["PILOTHOUSE_HOME"] = str(closed / "home")
    is_one_line(cli("run", "-a", "demo", "hello", prepare=as_ordinary_user), str(closed), "give this user the right")
    assert list(closed.iterdir()) == []


# -- two at once --------------------------------------------------------------------------------------------------


HOLDER = """
import asyncio, sys
from pilothouse.hub.hub import Hub

async def main():
    async with Hub(home=sys.argv[1]):
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def test_a_home_that_another_program_has_open_is_refused_and_can_be_read(cli: Cli, session_id: str) -> None:
    command = [sys.executable, "-c", HOLDER, str(cli.home)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "open\n"
        before = (cli.home / DATABASE).read_bytes()
        is_one_line(cli("run", "-a", "demo", "hello"), f"process {holder.pid}", str(cli.home), "PILOTHOUSE_HOME")
        assert cli("show", session_id).returncode == 0
        assert (cli.home / DATABASE).read_bytes() == before
    finally:
        holder.communicate("", timeout=PATIENCE)
    assert cli("run", "-a", "demo", "echo hello").returncode == 0


# -- no room ------------------------------------------------------------------------------------------------------


def with_pouring_agent(cli: Cli, mark: str) -> None:
    cli.home.mkdir(exist_ok=True, mode=0o700)
    command = json.dumps([sys.executable, "-S", "-E", ODD, "resume"])
    (cli.home / "config.toml").write_text(f"[agents.odd]\ncommand = {command}\nenv = {{ ODD_MARK = {mark!r} }}\n")


def test_a_disk_that_fills_up_in_mid_turn_ends_it_with_a_line_and_the_next_prompt_works(
    cli: Cli, tmp_path: Path
) -> None:
    """On a real small file system where one can be mounted, else with a limit on the size of files."""
    with small_disk(cli.home, 8_000_000) as mounted:
        with_pouring_agent(cli, tmp_path.name)
        ballast = cli.home / "ballast"
        if mounted:
            ballast.write_bytes(bytes(5_000_000))
            done = cli("run", "-a", "odd", "--json", "pour")
            what, advice = "no room left", "free some space and try again"
        else:
            done = cli("run", "-a", "odd", "--json", "pour", prepare=with_small_files)
            what, advice = "disk I/O error", "has room"
        assert done.returncode == HOME_UNUSABLE
        last = done.stderr.splitlines()[-1]
        assert last.startswith("Error: ")
        assert what in last
        assert advice in last
        assert "Traceback" not in done.stderr
        assert processes_with(f"ODD_MARK={tmp_path.name}") == []
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert "message:start" in {event["type"] for event in told}  # the disk was full in the middle of the turn
        ballast.unlink(missing_ok=True)
        session_id = told[0]["sessionId"]
        again = cli("run", "-s", session_id, "--json", "echo there is room")
        assert (again.returncode, again.stderr) == (0, "")
        stored = [json.loads(line) for line in cli("export", session_id).stdout.splitlines()]
        for event in stored:
            event.pop("source", None)
        assert stored[: len(told)] == told
        assert [event["data"]["stopReason"] for event in stored if event.get("eventName") == "turn_ended"] == [
            "interrupted",
            "end_turn",
        ]


def with_small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))


def test_a_limit_on_the_size_of_files_is_said_too(cli: Cli, tmp_path: Path) -> None:
    with_pouring_agent(cli, tmp_path.name)
    done = cli("run", "-a", "odd", "pour", prepare=with_small_files)
    assert done.returncode == HOME_UNUSABLE
    assert "see whether the disk is in order and has room" in done.stderr
    assert processes_with(f"ODD_MARK={tmp_path.name}") == []
    assert cli("run", "-a", "odd", "echo again").returncode == 0


def test_a_home_without_room_is_refused(cli: Cli) -> None:
    with small_disk(cli.home, 300_000) as mounted:
        if mounted:
            with pytest.raises(OSError, match="space"):
                (cli.home / "ballast").write_bytes(bytes(1_000_000))
            is_one_line(cli("run", "-a", "demo", "hello"), "no room left", "free some space")
        else:
            done = cli("run", "-a", "demo", "hello", prepare=with_no_files)
            is_one_line(done, "has room")


def with_no_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def test_the_exit_code_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
    (line,) = [line for line in page.read_text().splitlines() if line.startswith(f"| {HOME_UNUSABLE} |")]
    for word in ("another hub has it open", "damaged", "read-only", "full"):
        assert word in line
