"""`pilothouse discover` and `pilothouse adopt`, with a hub that runs and without one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.cli.exits import Exit
from pilothouse.hub.hub import Hub
from tests.support.cli import PATIENCE, Cli, Typist
from tests.support.records import append, packaged, says, write_record
from tests.support.served import serving

OTHER = "demo-9-00000000"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli(tmp_path)
    made.environment |= packaged(tmp_path / "package", made.home / "demo", made.project)
    made.environment |= {"PILOTHOUSE_LEASES": str(tmp_path / "leases"), "HOME": str(tmp_path / "user")}
    (tmp_path / "user").mkdir()
    return made


@pytest.fixture
def begun(cli: Cli, tmp_path: Path) -> str:
    """A session that another home's demo agent has had; its id."""
    elsewhere = {**cli.environment, "PILOTHOUSE_HOME": str(tmp_path / "elsewhere")}
    subprocess.run(cli.command("run", "-a", "demo", "flood 3"), env=elsewhere, cwd=cli.project, check=True, timeout=30)
    (record,) = (tmp_path / "elsewhere" / "demo").glob("*.jsonl")
    (cli.home / "demo").mkdir(parents=True)
    shutil.copy(record, cli.home / "demo")
    return record.stem


@pytest.fixture(params=["alone", "served"])
def world(request: pytest.FixtureRequest, cli: Cli) -> Iterator[Cli]:
    """With a hub and without one."""
    if request.param == "alone":
        yield cli
        return
    with serving(cli):
        yield cli


def listed(cli: Cli, *args: str) -> list[dict[str, Any]]:
    done = cli("discover", "--json", *args)
    assert done.returncode == Exit.OK, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["sessions"]
    return found


def running_with(session_id: str) -> subprocess.Popen[bytes]:
    """A program of the agent's name that was started with the session's id."""
    code = "import sys, time; print('up', flush=True); time.sleep(600)"
    process = subprocess.Popen(["demo", "-c", code, session_id], executable=sys.executable, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def test_sessions_are_found_adopted_and_go_on(begun: str, world: Cli) -> None:
    (one,) = listed(world)
    assert (one["id"], one["agent"], one["projectPath"]) == (begun, "demo", str(world.project))
    done = world("adopt", begun[:10])
    assert done.returncode == Exit.OK, done.stderr
    session_id = done.stdout.strip()
    assert f"pilothouse run -s {session_id}" in done.stderr
    (one,) = listed(world)
    assert one["hubSessionId"] == session_id
    went_on = world("run", "-s", session_id, "flood 2")
    assert went_on.returncode == Exit.OK, went_on.stderr
    shown = json.loads(world("show", session_id, "--json").stdout)
    assert shown["turns"] == 2
    assert (world.home / "demo" / f"{begun}.jsonl").read_text().count("user_message_chunk") == 2


def test_a_session_of_another_agent_that_has_the_same_id_is_not_the_one_here(begun: str, cli: Cli) -> None:
    async def keep() -> None:
        async with Hub(home=cli.home, agents={}) as hub:
            await hub.log.sessions.create("ses_other", agent="odd", cwd=str(cli.project), agent_session_id=begun)

    asyncio.run(keep())
    (one,) = listed(cli)
    assert "hubSessionId" not in one


def test_a_fork_and_a_look_leave_the_session_alone(begun: str, world: Cli) -> None:
    path = world.home / "demo" / f"{begun}.jsonl"
    before = path.read_bytes()
    watched = json.loads(world("adopt", begun, "--watch", "--json").stdout)
    assert (watched["how"], watched["agentSessionId"]) == ("watch", begun)
    shown = world("show", watched["sessionId"])
    assert "flood 3" in shown.stdout
    refused = world("run", "-s", watched["sessionId"], "hello")
    assert refused.returncode == Exit.USAGE
    assert f"pilothouse adopt {watched['sessionId']}" in refused.stderr
    forked = json.loads(world("adopt", watched["sessionId"], "--fork", "--json").stdout)
    assert forked["sessionId"] != watched["sessionId"]
    assert world("run", "-s", forked["sessionId"], "flood 2").returncode == Exit.OK
    assert path.read_bytes() == before


def test_a_session_that_a_program_has_is_refused_and_taken_over_when_that_is_asked_for(begun: str, world: Cli) -> None:
    with running_with(begun) as process:
        try:
            (one,) = listed(world)
            assert one["pid"] == process.pid
            refused = world("adopt", begun)
            assert refused.returncode == Exit.ERROR
            assert f"process {process.pid} (demo)" in refused.stderr
            for option in ("--watch", "--fork", "--take-over"):
                assert option in refused.stderr
            both = world("adopt", begun, "--watch", "--take-over")
            assert both.returncode == Exit.USAGE
            assert "exclude each other" in both.stderr
            assert process.poll() is None
            assert world("adopt", begun, "--take-over").returncode == Exit.OK
            assert process.wait(PATIENCE) == -signal.SIGTERM
        finally:
            process.kill()


def test_a_program_that_only_works_in_the_same_directory_is_ended_when_it_is_named(begun: str, world: Cli) -> None:
    code = "import sys, time; print('up', flush=True); time.sleep(600)"
    program = ["demo", "-c", code]
    with subprocess.Popen(program, executable=sys.executable, stdout=subprocess.PIPE, cwd=world.project) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            (world.home / "demo" / f"{begun}.jsonl").touch()  # it changes while the program runs there
            (one,) = listed(world)
            assert "pid" not in one
            for option in ((), ("--take-over",), ("--take-over", "--pid", "1")):
                refused = world("adopt", begun, *option)
                assert refused.returncode == Exit.ERROR
                assert f"process {process.pid} (demo) may have this session" in refused.stderr
                assert f"--take-over --pid {process.pid}" in refused.stderr
            assert process.poll() is None
            wrong = world("adopt", begun, "--pid", str(process.pid))
            assert wrong.returncode == Exit.USAGE
            assert world("adopt", begun, "--take-over", "--pid", str(process.pid)).returncode == Exit.OK
            assert process.wait(PATIENCE) == -signal.SIGTERM
        finally:
            process.kill()


def test_a_busy_session_that_is_watched_refuses_a_prompt_at_once(begun: str, world: Cli) -> None:
    with running_with(begun) as process:
        try:
            append(world.home / "demo" / f"{begun}.jsonl", {"update": says("And?", "u9", user=True)})
            watched = json.loads(world("adopt", begun, "--watch", "--json").stdout)["sessionId"]
            refused = world("run", "-s", watched, "hello")
            assert refused.returncode == Exit.USAGE
            assert refused.stdout == ""
            assert "waits" not in refused.stderr
            assert f"`pilothouse adopt {watched}` takes it up" in " ".join(refused.stderr.split())
        finally:
            process.kill()


def test_the_table_fits_into_the_terminal(cli: Cli) -> None:
    title = "A title that is longer than any of these terminals is wide, so that it has to be cut somewhere " * 2
    for number in range(3):
        path = write_record(cli.home / "demo", f"demo-{number}-0123abc{number}", cli.project, [says(title)])
        os.utime(path, (time.time(), time.time() - number * 3600))
    for width in (60, 80, 100):
        cli.environment["COLUMNS"] = str(width)
        typist = Typist(cli, "discover")
        assert typist.leaves() == Exit.OK
        lines = [line.rstrip() for line in typist.seen.splitlines()]
        assert all(len(line) <= width for line in lines), (width, lines)
        assert sum(line.startswith("demo-") for line in lines) == 3, lines
        typist.stop()


def test_an_empty_machine_and_wrong_words(cli: Cli) -> None:
    done = cli("discover")
    assert (done.returncode, "No sessions" in done.stdout) == (Exit.OK, True)
    wrong = cli("adopt", "nothing")
    assert wrong.returncode == Exit.USAGE
    assert "pilothouse discover" in wrong.stderr
    assert cli("adopt", "").returncode == Exit.USAGE
    assert cli("discover", "-a", "nobody").returncode == Exit.USAGE
    for number in (1, 2):
        write_record(cli.home / "demo", f"demo-{number}-0123abcd", cli.project, [says("x", user=True)])
    several = cli("adopt", "demo-")
    assert several.returncode == Exit.USAGE
    assert "2 sessions begin with" in several.stderr


def test_what_cannot_be_read_is_told_and_stops_nothing(cli: Cli, tmp_path: Path) -> None:
    entry_points = tmp_path / "package" / "demo_records-1.0.dist-info" / "entry_points.txt"
    entry_points.write_text("[pilothouse.stores]\nbroken = no.such.module:store\n")
    done = cli("discover")
    assert done.returncode == Exit.OK
    assert "store broken" in done.stderr


def test_changes_are_printed_as_they_come(cli: Cli) -> None:
    path = write_record(cli.home / "demo", OTHER, cli.project, [says("first", user=True)])
    typist = Typist(cli, "discover", "--watch", "--json", terminal=False)
    typist.sees(OTHER)
    new = "demo-8-11111111"
    write_record(path.parent, new, cli.project, [says("second", user=True)])
    typist.sees(new)
    path.unlink()
    typist.sees('"removed":true')
    typist.interrupts()
    assert typist.leaves() == Exit.CANCELLED
    typist.stop()
