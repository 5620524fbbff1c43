"""The page "build an agent" itself: what it shows is what the files have, and what it says to type works."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Cli, Typist
from tests.support.deckhands import PATIENCE, STEPS, environment

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "build-an-agent.md"


# -- the guide and the files --


def sections() -> list[str]:
    """The text of each step in the guide."""
    found = re.split(r"^## \d+\. .*$", GUIDE.read_text(), flags=re.MULTILINE)[1:]
    found[-1] = re.split(r"^## ", found[-1], flags=re.MULTILINE)[0]
    return found


def quotes(section: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def statements(path: Path) -> list[str]:
    """Lines of a file without its first docstring, its imports and what is empty."""
    text = path.read_text()
    text = re.sub(r'\A""".*?"""\n', "", text, flags=re.DOTALL)
    text = re.sub(r"^(?:from \S+ )?import (?:\((?:.|\n)*?\)|.*)\n", "", text, flags=re.MULTILINE)
    return [line for line in text.splitlines() if line.strip()]


def added(step: int) -> list[str]:
    before = statements(STEPS[step - 2]) if step > 1 else []
    changes = difflib.ndiff(before, statements(STEPS[step - 1]))
    return [line[2:] for line in changes if line.startswith("+ ")]


def test_the_guide_has_a_section_for_each_step_and_names_its_file() -> None:
    assert len(sections()) == len(STEPS) == 7
    for section, path in zip(sections(), STEPS, strict=True):
        assert f"(../examples/agent/{path.name})" in section


@pytest.mark.parametrize("step", range(1, 8))
def test_what_the_guide_quotes_is_in_the_file_and_new_in_it(step: int) -> None:
    text = STEPS[step - 1].read_text()
    before = STEPS[step - 2].read_text() if step > 1 else ""
    assert quotes(sections()[step - 1])
    for quote in quotes(sections()[step - 1]):
        assert quote in text, f"{STEPS[step - 1].name} does not have\n{quote}"
        assert quote not in before, f"{STEPS[step - 2].name} has this already\n{quote}"


@pytest.mark.parametrize("step", range(1, 8))
def test_the_guide_quotes_all_that_is_new_and_no_step_is_long(step: int) -> None:
    shown = {line for quote in quotes(sections()[step - 1]) for line in quote.splitlines()}
    missing = [line for line in added(step) if line not in shown]
    assert not missing, "the guide does not show\n" + "\n".join(missing)
    assert len(added(step)) <= 60


# -- what the guide says to type --


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A home with the agents that the guide's first commands write into its configuration."""
    made = Cli(tmp_path)
    made.environment |= environment(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, arguments in (("pilothouse", "-m pilothouse.cli"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    made.environment["PATH"] = f"{programs}:{made.environment['PATH']}"
    (block,) = re.findall(r"```sh\n(config=.*?)```", GUIDE.read_text(), re.DOTALL)
    subprocess.run(["sh", "-eu", "-c", block], env=made.environment, cwd=ROOT, check=True, timeout=PATIENCE)
    return made


def shown_commands() -> list[tuple[str, str]]:
    """Lines of the guide such as `pilothouse run -a step1 "hello"   # Aye: hello`: the command, and what it prints."""
    return re.findall(r"^pilothouse (run -a step\d .+?) +# (.+)$", GUIDE.read_text(), re.MULTILINE)


def test_the_commands_of_the_guide_print_what_it_says(cli: Cli) -> None:
    (cli.project / "notes.txt").write_text("one line\n")
    assert len(shown_commands()) >= 4
    for line, printed in shown_commands():
        done = subprocess.run(
            ["sh", "-c", f"pilothouse {line}"],
            env=cli.environment,
            cwd=cli.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert printed in done.stdout, f"{line}: {done.stdout} {done.stderr}"


def test_the_agent_is_asked_stopped_and_taken_up_again_in_a_terminal(cli: Cli) -> None:
    typist = Typist(cli, "run", "-a", "step7")
    typist.sees("›")
    typist.types("write notes.txt hello\r")
    typist.sees("+hello")
    typist.sees("[a]llow")
    typist.types("d\r")
    typist.sees("The user rejected this")
    typist.sees("›")
    typist.types("count to 100000\r")
    typist.sees("7 8 9")
    typist.interrupts()
    typist.sees("Cancelled")
    typist.sees("›")
    typist.types("\x04")
    typist.leaves()
    assert not (cli.project / "notes.txt").exists()
    (session,) = json.loads(cli("ls", "--json").stdout)
    again = cli("run", "-s", session["id"], "what did I say?")
    assert "You said: write notes.txt hello; count to 100000." in again.stdout, again.stderr
