"""The terminal client as people and as CI start it, and the parts of it that must hold on their own."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilothouse.acp import (
    ElicitationBooleanPropertySchema,
    ElicitationIntegerPropertySchema,
    ElicitationMultiSelectPropertySchema,
    ElicitationStringPropertySchema,
    RequestError,
    StringMultiSelectItems,
)
from pilothouse.agents.console import form
from pilothouse.agents.console.blocks import Blocks
from pilothouse.agents.console.workspace import Workspace

DEMO = (sys.executable, "-m", "pilothouse.cli", "demo")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r")


def run(*args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *args],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
    )


# -- without a terminal -----------------------------------------------------------------------------------------------


def test_without_a_terminal_the_tour_runs_once_and_is_denied(tmp_path: Path) -> None:
    done = run("--cwd", str(tmp_path))
    assert done.returncode == 0
    assert done.stderr == ""
    assert "? Set up a small project" in done.stdout
    assert "denied" in done.stdout
    assert "✗ Set up a small project" in done.stdout
    assert "That is as far as I can go" in done.stdout
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_approve_all_lets_the_tour_happen(tmp_path: Path) -> None:
    done = run("--cwd", str(tmp_path), "--approve-all")
    assert done.returncode == 0
    assert done.stderr == ""
    for line in ("☑ Run the tests again", "FAILED (failures=1)", "-    return sum(prices) - discount", "end_turn"):
        assert line in done.stdout
    assert "(100 - discount)" in (tmp_path / "pilothouse-demo" / "cart.py").read_text()


def test_without_cwd_the_work_is_done_in_a_directory_that_goes_away() -> None:
    done = run("--approve-all", "bash", "pwd")
    assert done.returncode == 0
    (where,) = set(re.findall(r"^\s*(/\S*pilothouse-demo-\S+)$", done.stdout, re.MULTILINE))
    assert not Path(where).exists()


def test_input_that_is_no_terminal_answers_nothing(tmp_path: Path) -> None:
    done = run("--cwd", str(tmp_path), "edit", "a.txt", "text", stdin="1\na\n")
    assert done.returncode == 0
    assert "denied" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_crash_is_reported_and_is_a_failure() -> None:
    done = run("crash", "3")
    assert done.returncode == 1
    assert "exit code 3" in done.stdout
    assert "was told to crash" in done.stdout


def test_help_is_quick_and_needs_nothing_heavy() -> None:
    code = "import sys, pilothouse.cli; sys.exit(any(m in sys.modules for m in ('rich', 'msgspec', 'pilothouse.acp')))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
    done = subprocess.run([*DEMO[:3], "-h"], check=True, capture_output=True, text=True, timeout=30)
    assert "demo-agent" in done.stdout


# -- with a terminal --------------------------------------------------------------------------------------------------


class Typist:
    """Sits at a pseudo-terminal: types, and reads until something appears."""

    def __init__(self, *args: str) -> None:
        self._master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
        self.process = subprocess.Popen([*DEMO, *args], stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)
        self._unread = ""

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def sees(self, text: str) -> str:
        """Wait for a text; the answer is everything before it that was not seen yet."""
        end = time.monotonic() + 15
        while text not in self._unread:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{text!r} did not appear, but {self._unread!r}"
            try:
                data = os.read(self._master, 65536)
            except OSError:  # Linux reports the end of a pseudo-terminal like this
                data = b""
            assert data, f"{text!r} did not appear before the end, but {self._unread!r}"
            self._unread += ESCAPE.sub("", data.decode(errors="replace"))
        before, _, self._unread = self._unread.partition(text)
        return before

    def leaves(self) -> int:
        try:
            return self.process.wait(15)
        finally:
            os.close(self._master)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def typist(tmp_path: Path) -> Iterator[Typist]:
    it = Typist("--cwd", str(tmp_path))
    try:
        yield it
    finally:
        it.stop()


def test_a_conversation_at_the_terminal(typist: Typist, tmp_path: Path) -> None:
    typist.sees("Enter starts the tour")
    typist.sees("› ")
    typist.types("edit a.txt hello\n")
    typist.sees("? Edit a.txt")
    typist.sees("+hello")
    typist.sees("3 Reject")
    typist.sees("› ")
    typist.types("nonsense\n")
    typist.sees("d to reject › ")
    typist.types("3\n")
    typist.sees("It was rejected")
    assert list(tmp_path.iterdir()) == []
    typist.sees("end_turn")
    typist.sees("› ")
    typist.types("edit a.txt hello\n")
    typist.sees("d to reject › ")
    typist.types("a\n")
    typist.sees("is written")
    assert (tmp_path / "a.txt").read_text() == "hello\n"
    typist.sees("end_turn")
    typist.sees("› ")
    typist.types("quit\n")
    assert typist.leaves() == 0


def test_ctrl_c_cancels_the_turn_and_the_second_one_leaves(typist: Typist) -> None:
    typist.sees("› ")
    typist.types("wait\n")
    typist.sees("Waiting until you cancel")
    typist.process.send_signal(signal.SIGINT)
    typist.sees("cancelled")
    typist.sees("› ")
    typist.types("permission\n")
    typist.sees("d to reject › ")
    typist.process.send_signal(signal.SIGINT)
    typist.sees("cancelled")
    typist.sees("› ")
    typist.types("stubborn 60\n")
    typist.sees("do not listen")
    typist.process.send_signal(signal.SIGINT)
    typist.sees("Ctrl-C again leaves")
    typist.process.send_signal(signal.SIGINT)
    assert typist.leaves() == 130


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
    ):
        typist.sees(asked)
        typist.sees("› ")
        typist.types(f"{answer}\n")
    typist.sees("Fruits")
    typist.sees("› ")
    typist.types("apple, plum\n")
    said = typist.sees("end_turn")
    for line in ("colour: 'blue'", "fruits: ['apple', 'plum']", "name: 'Ann'", "ratio: 0.5", "size: 4", "sure: False"):
        assert line in said
    typist.sees("› ")
    typist.types("crash 7\n")
    typist.sees("exit code 7")
    typist.sees("next agent is ready")
    typist.sees("› ")
    typist.types("echo alive\n")
    typist.sees("alive\n")
    typist.sees("end_turn")
    typist.sees("› ")
    typist.types("\x04")
    assert typist.leaves() == 0


# -- the workspace ----------------------------------------------------------------------------------------------------


async def test_the_workspace_refuses_what_lies_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (root / "link").symlink_to(outside)
    workspace = Workspace(root)
    for path in (
        "../outside/secret",
        str(outside / "secret"),
        "link/secret",
        str(root / "link" / "secret"),
        "/etc/passwd",
    ):
        with pytest.raises(RequestError) as read:
            await workspace.read(path)
        assert read.value.code == -32602
        with pytest.raises(RequestError):
            await workspace.write(path, "changed")
    with pytest.raises(RequestError):
        await workspace.start(["sh", "-c", "true"], cwd=str(outside), env={}, limit=None)
    assert (outside / "secret").read_text() == "secret"


async def test_the_workspace_reads_parts_and_makes_directories(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    await workspace.write(str(tmp_path / "a" / "b.txt"), "1\n2\n3\n4\n")
    assert await workspace.read("a/b.txt") == "1\n2\n3\n4\n"
    assert await workspace.read("a/b.txt", line=2, limit=2) == "2\n3\n"
    assert await workspace.read("a/b.txt", line=4) == "4\n"
    with pytest.raises(RequestError) as missing:
        await workspace.read("missing.txt")
    assert missing.value.code == -32002


async def test_a_terminal_keeps_the_end_of_its_output_in_whole_characters(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    terminal = await workspace.start(["sh", "-c", "printf 'aäöü€'; exit 4"], cwd=None, env={}, limit=6)
    ended = await workspace.wait(terminal)
    assert (ended.exit_code, ended.signal) == (4, None)
    output = workspace.output(terminal)
    assert (output.output, output.truncated) == ("ü€", True)
    assert output.exit_status is not None
    await workspace.release(terminal)
    assert workspace.shown(terminal) == "ü€"
    with pytest.raises(RequestError):
        workspace.output(terminal)
    with pytest.raises(RequestError):
        await workspace.start(["no-such-program"], cwd=None, env={}, limit=None)


async def test_a_killed_terminal_can_still_be_read(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    terminal = await workspace.start(["sh", "-c", "echo $NAME; sleep 60"], cwd=None, env={"NAME": "hi"}, limit=None)
    assert workspace.output(terminal).exit_status is None
    workspace.kill(terminal)
    assert (await workspace.wait(terminal)).signal == "SIGKILL"
    await workspace.close()


# -- text and forms ---------------------------------------------------------------------------------------------------


def test_text_is_cut_at_blank_lines_outside_of_code() -> None:
    blocks = Blocks()
    text = "# A\n\nb\nc\n  \n```\nx\n\ny\n```\n\nend"
    closed = [block for char in text for block in blocks.feed(char)]
    assert closed == ["# A", "b\nc", "```\nx\n\ny\n```"]
    assert blocks.tail(100) == "end"
    assert blocks.close() == "end"
    assert blocks.close() == ""


def test_text_without_blank_lines_is_not_held_back_for_ever() -> None:
    blocks = Blocks()
    closed = [block for i in range(10_000) for block in blocks.feed(f"{i}\n")]
    assert len(closed) >= 2
    assert "\n".join([*closed, blocks.close()]).split() == [str(i) for i in range(10_000)]
    assert sum(map(len, blocks.feed("x" * 1_000_000))) == 1_000_000


def test_lines_become_values_of_the_kind_asked_for() -> None:
    colour = ElicitationStringPropertySchema(enum=["red", "green"])
    assert form.parse(colour, "G") == "green"
    assert form.question("colour", colour) == "colour (red/green)"
    assert form.parse(ElicitationStringPropertySchema(), "free text") == "free text"
    assert form.parse(ElicitationBooleanPropertySchema(), "y") is True
    fruits = ElicitationMultiSelectPropertySchema(items=StringMultiSelectItems(enum=["apple", "pear"]))
    assert form.parse(fruits, "pear, apple") == ["pear", "apple"]
    for schema, text in ((colour, "blue"), (ElicitationIntegerPropertySchema(minimum=1), "0"), (fruits, "plum")):
        with pytest.raises(ValueError, match="expected"):
            form.parse(schema, text)
