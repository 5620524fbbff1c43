"""`pilothouse demo`: the same as `run -a demo`, in a directory of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli, Typist

WHERE = re.compile(r"^The scripted agent works in\s(/\S*pilothouse-demo-\S+);\s--cwd\schooses", re.MULTILINE)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    cli.environment["TMPDIR"] = str(temporary)
    return cli


@pytest.fixture
def typist(cli: Cli) -> Iterator[Typist]:
    it = Typist(cli, "demo")
    yield it
    it.stop()


def scratch(told: str) -> Path:
    (where,) = WHERE.findall(told)
    return Path(where)


def steady(text: str) -> str:
    """What is the same in two runs: without times."""
    return re.sub(r"\d+\.\d+ ?s", "", text)


def test_the_tour_works_in_a_directory_of_its_own_and_says_where(cli: Cli) -> None:
    done = cli("demo", "--approve-all", "tour")
    assert done.returncode == 0
    where = scratch(done.stderr)
    assert "(100 - discount)" in (where / "pilothouse-demo" / "cart.py").read_text()
    assert list(cli.project.iterdir()) == []


def test_it_shows_and_ends_as_run_does(cli: Cli) -> None:
    by_run = cli("run", "-a", "demo", "--cwd", cli.project, "tour")
    by_demo = cli("demo", "--cwd", cli.project, "tour")
    assert (by_demo.returncode, by_demo.stderr) == (by_run.returncode, by_run.stderr) == (3, "")
    assert steady(by_demo.stdout) == steady(by_run.stdout)
    assert "medium risk" in by_demo.stdout


@pytest.mark.parametrize(("prompt", "code"), [("error", 1), ("refuse", 3), ("limit", 5), ("crash 3", 1)])
def test_the_exit_code_says_how_the_turn_ended(cli: Cli, prompt: str, code: int) -> None:
    assert cli("demo", prompt).returncode == code


def test_without_a_terminal_the_prompt_comes_from_stdin_and_is_the_tour_if_there_is_none(cli: Cli) -> None:
    assert "you there" in cli("demo", given="echo you there\n").stdout
    toured = cli("demo")
    assert toured.returncode == 3
    assert "? Set up a small project" in toured.stdout


def test_json_is_all_that_is_on_stdout(cli: Cli) -> None:
    done = cli("demo", "--json", "--approve-reads", "edit a.txt hello")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["approved"] for event in events if event["type"] == "approval:resolved"] == [False]
    assert done.returncode == 3
    assert list(scratch(done.stderr).iterdir()) == []


def test_a_session_of_it_can_be_taken_up_again(cli: Cli) -> None:
    where = scratch(cli("demo", "echo first").stderr)
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert (session["agent"], session["cwd"]) == ("demo", str(where.resolve()))
    assert "second" in cli("run", "-s", session["id"], "echo second").stdout


def test_a_start_that_fails_leaves_no_directory_behind(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "config.toml").write_text("no toml at all")
    done = cli("demo", "echo hello")
    assert done.returncode == 2
    assert not scratch(done.stderr).exists()


def test_at_a_terminal_one_talks_with_it_and_is_told_what_to_say(typist: Typist) -> None:
    typist.sees("Say `tour` to see an agent at work, or `help`")
    typist.sees("› ")
    typist.types("edit a.txt hello\n")
    typist.sees("+hello")
    typist.sees("[a]llow once  [d]eny")
    typist.types("a\n")
    typist.sees("Done")
    typist.sees("› ")
    typist.types("\x04")
    assert typist.leaves() == 0
    assert (scratch(typist.seen) / "a.txt").read_text() == "hello\n"


def test_a_form_is_filled_in_and_a_dead_agent_replaced(typist: Typist) -> None:
    typist.sees("› ")
    typist.types("question\n")
    for asked, answer in (
        ("Name", "Ann"),
        ("Size", "99"),
        ("Size", "4"),
        ("Ratio", ""),
        ("sure?", "n"),
        ("Colour", "b"),
        ("Fruits", "apple, plum"),
        ("look at this page", ""),
    ):
        typist.sees(asked)
        typist.sees("› ")
        typist.types(f"{answer}\n")
    typist.sees("Done")
    for line in ("colour: 'blue'", "fruits: ['apple', 'plum']", "name: 'Ann'", "ratio: 0.5", "size: 4", "sure: False"):
        assert line in typist.seen
    typist.sees("› ")
    typist.types("crash 7\n")
    typist.sees("exit code 7")
    typist.sees("› ")
    typist.types("echo alive\n")
    typist.sees("alive\n")
    typist.sees("Done")
    typist.sees("› ")
    typist.types("\x04")
    assert typist.leaves() == 0
