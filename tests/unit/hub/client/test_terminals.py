"""Terminals with real programs: what they print, how they end, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.acp.schema import EnvVariable
from pilothouse.hub.client import process_tree as families
from pilothouse.hub.client import programs
from pilothouse.hub.client.process_tree import Family
from pilothouse.hub.client.programs import ExitStatus, Pieces, Tail
from pilothouse.hub.client.refusals import (
    BadPath,
    CannotStart,
    NoSuchFile,
    OutsideWorkspace,
    ProgramNotFound,
    TerminalsClosed,
    TooManyTerminals,
    UnknownTerminal,
    request_error,
)
from pilothouse.hub.client.terminals import OUTPUT_MOST, Output, Terminals
from pilothouse.hub.client.workspace import Workspace

OK = ExitStatus(0, None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture
async def terminals(root: Path) -> AsyncIterator[Terminals]:
    async with asyncio.timeout(20), Terminals(Workspace(root), grace=0.3) as made:
        yield made


async def run(terminals: Terminals, command: str, *args: str) -> Output:
    terminal = await terminals.create(command, args)
    await terminals.wait(terminal)
    output = terminals.output(terminal)
    await terminals.release(terminal)
    return output


def python(code: str) -> tuple[str, str, str]:
    return sys.executable, "-c", textwrap.dedent(code)


async def printed(terminals: Terminals, terminal: str, text: str) -> str:
    """The output, once it has a certain text in it."""
    while text not in (output := terminals.output(terminal).text):
        await asyncio.sleep(0.01)
    return output


def is_running(pid: int) -> bool:
    return families.entry_of(pid) is not None


async def gone(*pids: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not any(is_running(pid) for pid in pids):
            return True
        await asyncio.sleep(0.01)
    return False


# -- the end of an output --


def test_a_tail_keeps_the_last_bytes() -> None:
    tail = Tail(10)
    assert tail.read(complete=True) == ("", False)
    tail.add(b"0123456789")
    assert tail.read(complete=True) == ("0123456789", False)
    tail.add(b"ab")
    assert tail.read(complete=True) == ("23456789ab", True)
    tail.add(b"x" * 100_000)
    assert tail.read(complete=True) == ("x" * 10, True)
    assert tail.total == 100_012


def test_a_tail_is_cut_between_characters() -> None:
    for limit in range(12):
        tail = Tail(limit)
        tail.add("äß🎉é".encode())
        text, truncated = tail.read(complete=True)
        assert "äß🎉é".endswith(text)
        assert len(text.encode()) <= limit
        assert limit - len(text.encode()) < 4
        assert truncated == (limit < 10)


def test_half_a_character_waits_for_its_other_half() -> None:
    tail = Tail(100)
    for byte in "a🎉".encode()[:-1]:
        tail.add(bytes([byte]))
    assert tail.read(complete=False) == ("a", False)
    assert tail.read(complete=True) == ("a\ufffd", False)
    tail.add("🎉".encode()[-1:])
    assert tail.read(complete=False) == ("a🎉", False)


def test_marks_for_broken_bytes_do_not_exceed_the_limit() -> None:
    tail = Tail(10)
    tail.add(b"\xff" * 10)
    assert tail.read(complete=True) == ("\ufffd" * 3, True)
    assert Tail(0).read(complete=True) == ("", False)
    nothing = Tail(0)
    nothing.add(b"x")
    assert nothing.read(complete=True) == ("", True)


def test_a_tail_of_single_bytes_is_kept_in_few_pieces() -> None:
    tail = Tail(50_000)
    for _ in range(200_000):
        tail.add(b"x")
    assert len(tail._chunks) < 10
    assert tail.read(complete=True) == ("x" * 50_000, True)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 100), st.lists(st.integers(1, 9), max_size=80))
def test_a_tail_of_any_bytes_in_any_pieces_is_the_end_of_the_text(data: bytes, limit: int, cuts: list[int]) -> None:
    tail = Tail(limit)
    rest = data
    for cut in cuts:
        tail.add(rest[:cut])
        rest = rest[cut:]
    tail.add(rest)
    text, truncated = tail.read(complete=True)
    whole = data.decode(errors="replace")
    assert len(text.encode()) <= limit
    if not truncated:
        assert text == whole
    if "\ufffd" not in whole:
        assert whole.endswith(text)
        assert truncated == (text != whole)


# -- pieces for followers --


def test_pieces_below_the_rate_are_the_whole_text() -> None:
    pieces = Pieces(burst=1000, rate=10, piece=100)
    text, now, got = "grün 🎉 " * 50, 0.0, ""
    data = text.encode()
    for start in range(0, len(data), 7):
        pieces.add(data[start : start + 7])
        got += pieces.take(now)
        now += 1
    assert got + pieces.take(now, final=True) == text


def test_a_flood_is_thinned_out_and_says_so() -> None:
    pieces = Pieces(burst=1000, rate=100, piece=100)
    got, now = [], 0.0
    for _ in range(10_000):
        pieces.add("é".encode() * 50)
        if text := pieces.take(now):
            got.append(text)
        now += 0.01
    pieces.add(b"the end")
    while not pieces.is_empty:
        got.append(pieces.take(now, final=True))
    whole = "".join(got)
    assert len(whole) < 1000 + 100 * 100 + 10_000
    assert " bytes left out …\n" in whole
    assert "\ufffd" not in whole
    assert whole.endswith("éthe end")
    left_out = sum(int(part.split("… ")[-1].replace(",", "")) for part in whole.split(" bytes left out")[:-1])
    assert left_out + 2 * whole.count("é") + len("the end") == 10_000 * 100 + len("the end")


def test_of_a_long_flood_only_glimpses_are_shown_at_a_slow_rate() -> None:
    pieces = Pieces(burst=1000, rate=10, piece=100, glimpse=20)
    got, now = [], 0.0
    for number in range(10_000):
        pieces.add(f"{number:09}\n".encode())
        if text := pieces.take(now):
            got.append((now, text))
        now += 0.1
    late = [(when, text) for when, text in got if when > 100]
    assert sum(len(text.encode()) for _, text in got) < 1000 + 1000 * 10 * 4  # with what is said of the rest
    assert all(text.startswith("\n… ") and len(text.partition(" …\n")[2]) == 20 for _, text in late)
    # each is the end of what had come by then
    assert all(text.endswith(f"{round(when * 10):09}\n") for when, text in late)
    assert len(late) > 100


def test_the_last_piece_says_what_is_no_character() -> None:
    pieces = Pieces()
    pieces.add("🎉".encode()[:2])
    assert pieces.take(0.0) == ""
    assert pieces.is_empty
    assert pieces.take(0.0, final=True) == "\ufffd"


# -- running --


async def test_a_program_runs_and_its_output_and_exit_code_are_known(terminals: Terminals) -> None:
    assert await run(terminals, "echo", "hello", "world") == Output("hello world\n", False, OK)
    assert await run(terminals, "sh", "-c", "exit 7") == Output("", False, ExitStatus(7, None))
    assert len(terminals) == 0


async def test_output_and_errors_come_in_the_order_of_arrival(terminals: Terminals) -> None:
    output = await run(terminals, "sh", "-c", "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
    assert output.text == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"


async def test_while_it_runs_there_is_output_and_no_status(terminals: Terminals) -> None:
    terminal = await terminals.create("sh", ["-c", "echo ready; sleep 60"])
    await printed(terminals, terminal, "ready")
    assert terminals.output(terminal) == Output("ready\n", False, None)


async def test_an_end_by_signal_is_named(terminals: Terminals) -> None:
    assert (await run(terminals, "sh", "-c", "kill -SEGV $$")).exit_status == ExitStatus(None, "SIGSEGV")
    assert (await run(terminals, "sh", "-c", "kill -KILL $$")).exit_status == ExitStatus(None, "SIGKILL")
    assert ExitStatus.of(-(signal.SIGRTMIN + 3)) == ExitStatus(None, "SIGRTMIN+3")


async def test_there_is_nothing_to_read(terminals: Terminals) -> None:
    assert (await run(terminals, "readlink", "/proc/self/fd/0")).text == "/dev/null\n"
    assert (await run(terminals, "cat")).exit_status == OK


async def test_a_whole_line_goes_to_a_shell(terminals: Terminals, root: Path) -> None:
    assert (await run(terminals, "echo one && echo two | tr o 0")).text == "one\ntw0\n"
    assert (await run(terminals, "echo x>out")).exit_status == OK
    assert (root / "out").read_text() == "x\n"
    assert (await run(terminals, "true;exit 3")).exit_status == ExitStatus(3, None)
    assert (await run(terminals, "no-such-program-at-all --flag")).exit_status == ExitStatus(127, None)


async def test_a_program_with_a_space_in_its_name_is_that_program(terminals: Terminals, root: Path) -> None:
    script = root / "my script"
    script.write_text("#!/bin/sh\necho it is me $#\n")
    script.chmod(0o755)
    assert (await run(terminals, str(script))).text == "it is me 0\n"
    assert (await run(terminals, "./my script")).text == "it is me 0\n"
    assert (await run(terminals, "./my script", "a b")).text == "it is me 1\n"


async def test_arguments_are_not_looked_at_by_a_shell(terminals: Terminals) -> None:
    assert (await run(terminals, "echo", "$HOME;", "a  b")).text == "$HOME; a  b\n"


async def test_the_directory_is_inside_the_workspace(terminals: Terminals, root: Path) -> None:
    (root / "sub").mkdir()
    terminal = await terminals.create("pwd")
    await terminals.wait(terminal)
    assert terminals.output(terminal).text == f"{root}\n"
    terminal = await terminals.create("pwd", cwd=str(root / "sub"))
    await terminals.wait(terminal)
    assert terminals.output(terminal).text == f"{root}/sub\n"
    (root / "file").write_text("")
    (root / "link").symlink_to("/")
    for cwd, kind in (("/", OutsideWorkspace), ("link", OutsideWorkspace), ("no", NoSuchFile), ("file", BadPath)):
        with pytest.raises(kind):
            await terminals.create("pwd", cwd=cwd)


async def test_the_environment_is_ours_without_secrets_and_with_what_the_agent_adds(
    terminals: Terminals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_TOKEN", "tell-nobody")
    monkeypatch.setenv("PILOTHOUSE_HOME", "/tell-nobody")
    monkeypatch.setenv("SOMETHING_ELSE", "kept")
    terminal = await terminals.create(
        "env", env=[EnvVariable(name="ADDED", value="a=b"), ("PILOTHOUSE_CHILD", "forged"), ("PAIR", "ü")]
    )
    await terminals.wait(terminal)
    lines = terminals.output(terminal).text.splitlines()
    assert "tell-nobody" not in "\n".join(lines)
    assert {"SOMETHING_ELSE=kept", "ADDED=a=b", "PAIR=ü"} <= set(lines)
    ours = [line for line in lines if line.startswith("PILOTHOUSE_")]
    assert len(ours) == 1
    assert ours[0].startswith(f"PILOTHOUSE_CHILD={os.getpid()}-")  # by which descendants are found; no secret
    terminal = await terminals.create("env", env={"MAPPED": "1"})
    await terminals.wait(terminal)
    assert "MAPPED=1" in terminals.output(terminal).text
    for name, value in (("", "x"), ("A=B", "x"), ("A", "x\0")):
        with pytest.raises(CannotStart):
            await terminals.create("env", env=[(name, value)])


async def test_what_cannot_be_started_is_a_clear_error(terminals: Terminals, root: Path) -> None:
    with pytest.raises(ProgramNotFound, match=r"'no-such-program' is not on PATH=.*/bin.*install it") as caught:
        await terminals.create("no-such-program")
    assert request_error(caught.value).code == -32602
    assert request_error(caught.value).data == {"command": "no-such-program"}
    with pytest.raises(ProgramNotFound, match="no-such-program"):
        await terminals.create("no-such-program --with", ["args"])
    with pytest.raises(ProgramNotFound):
        await terminals.create("./missing")
    (root / "plain").write_text("no program")
    with pytest.raises(CannotStart, match="permissions"):
        await terminals.create("./plain")
    (root / "plain").chmod(0o755)
    with pytest.raises(CannotStart, match="#! line"):
        await terminals.create("./plain")
    (root / "odd").write_text("#!/no/such/interpreter\n")
    (root / "odd").chmod(0o755)
    with pytest.raises(CannotStart, match="interpreter"):
        await terminals.create("./odd")
    with pytest.raises(CannotStart, match="too long"):
        await terminals.create("echo", ["x" * 3_000_000])
    for command, args in (("", []), ("  ", []), ("a\0b", []), ("echo", ["\0"]), ("echo", ["\ud800"])):
        with pytest.raises(CannotStart):
            await terminals.create(command, args)
    assert len(terminals) == 0


async def test_an_unknown_terminal_is_named(terminals: Terminals) -> None:
    terminal = await terminals.create("true")
    await terminals.release(terminal)
    for call in (terminals.wait, terminals.kill, terminals.release):
        with pytest.raises(UnknownTerminal, match=terminal):
            await call(terminal)
    with pytest.raises(UnknownTerminal, match="'other'") as caught:
        terminals.output("other")
    assert request_error(caught.value).to_error_obj()["data"] == {"terminalId": "other"}
    assert request_error(caught.value).code == -32002


async def test_the_number_of_terminals_is_limited(root: Path) -> None:
    async with Terminals(Workspace(root), most=2, grace=0.3) as terminals:
        first = await terminals.create("sleep", ["60"])
        await terminals.create("sleep", ["60"])
        with pytest.raises(TooManyTerminals, match="2 already"):
            await terminals.create("true")
        await terminals.release(first)
        made = await asyncio.gather(*(terminals.create("sleep", ["60"]) for _ in range(5)), return_exceptions=True)
        assert sum(isinstance(one, str) for one in made) == 1
        with pytest.raises(CannotStart):
            await Terminals(Workspace(root), most=1).create("")
    with pytest.raises(TerminalsClosed):
        await terminals.create("true")
    await terminals.close()  # again is no harm


async def test_a_terminal_made_while_all_are_closed_is_closed_too(root: Path) -> None:
    terminals = Terminals(Workspace(root), grace=0.3)
    creating = asyncio.create_task(terminals.create("sh", ["-c", "echo $$ > pid; exec sleep 60"]))
    await asyncio.sleep(0)
    await terminals.close()
    with pytest.raises(TerminalsClosed):
        await creating
    assert not (root / "pid").exists() or await gone(int((root / "pid").read_text() or 0))


# -- limits and characters --


async def test_output_beyond_the_limit_loses_its_beginning(terminals: Terminals) -> None:
    terminal = await terminals.create("seq 1 100000", output_byte_limit=100)
    assert await terminals.wait(terminal) == OK
    output = terminals.output(terminal)
    assert output.truncated
    assert len(output.text) == 100
    assert output.text.endswith("\n99999\n100000\n")
    terminal = await terminals.create("echo", ["gone"], output_byte_limit=0)
    await terminals.wait(terminal)
    assert terminals.output(terminal) == Output("", True, OK)


async def test_no_agent_can_have_more_kept_than_a_message_holds(terminals: Terminals) -> None:
    terminal = await terminals.create(f"head -c {OUTPUT_MOST + 1000} /dev/zero | tr '\\0' x", output_byte_limit=10**12)
    await terminals.wait(terminal)
    output = terminals.output(terminal)
    assert (len(output.text), output.truncated) == (OUTPUT_MOST, True)


async def test_a_character_in_two_writes_is_one(terminals: Terminals) -> None:
    pieces: list[str] = []
    terminals._on_output = lambda _, text: pieces.append(text)
    code = """
        import os, time
        for byte in "grün 🎉 fertig".encode():
            os.write(1, bytes([byte]))
            time.sleep(0.02)
    """
    output = await run(terminals, *python(code))
    assert output.text == "grün 🎉 fertig"
    assert "".join(pieces) == "grün 🎉 fertig"
    assert len(pieces) > 1


async def test_what_is_no_utf8_becomes_a_mark(terminals: Terminals) -> None:
    output = await run(terminals, *python(r"import os; os.write(1, b'a\xff\xfeb\x80\xed\xa0\x80 \xf0\x9f')"))
    assert output.text == b"a\xff\xfeb\x80\xed\xa0\x80 \xf0\x9f".decode(errors="replace")
    output.text.encode()  # nothing in it that JSON could not carry


# -- followers --


async def test_a_follower_gets_all_of_an_ordinary_output_put_together(terminals: Terminals) -> None:
    pieces: list[tuple[str, str]] = []
    terminals._on_output = lambda terminal, text: pieces.append((terminal, text))
    terminal = await terminals.create("for i in $(seq 2000); do echo line $i; done")
    await terminals.wait(terminal)
    assert {one for one, _ in pieces} == {terminal}
    assert "".join(text for _, text in pieces) == terminals.output(terminal).text
    assert len(pieces) < 200


async def test_a_follower_that_fails_does_not_disturb_the_program(
    terminals: Terminals, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(terminal: str, text: str) -> None:
        raise RuntimeError("no room")

    terminals._on_output = fail
    assert (await run(terminals, "echo", "hello")).text == "hello\n"
    assert "a follower of a terminal failed" in caplog.text


# -- ends --


async def test_kill_then_output_then_release(terminals: Terminals) -> None:
    terminal = await terminals.create("sh", ["-c", "echo before; sleep 60"])
    await printed(terminals, terminal, "before")
    await terminals.kill(terminal)
    assert terminals.output(terminal) == Output("before\n", False, ExitStatus(None, "SIGTERM"))
    assert await terminals.wait(terminal) == ExitStatus(None, "SIGTERM")
    await terminals.kill(terminal)  # again is no harm
    await terminals.release(terminal)


async def test_a_program_that_ignores_sigterm_is_killed(terminals: Terminals) -> None:
    terminal = await terminals.create("sh", ["-c", "trap 'echo no' TERM; echo ready; while :; do sleep 0.1; done"])
    await printed(terminals, terminal, "ready")
    await asyncio.gather(terminals.kill(terminal), terminals.kill(terminal))
    output = terminals.output(terminal)
    assert output.exit_status == ExitStatus(None, "SIGKILL")
    assert "no" in output.text  # it was asked first


async def test_a_program_may_use_its_grace(terminals: Terminals) -> None:
    code = """
        import os, signal, time
        signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"tidy"), os._exit(5)))
        os.write(1, b"ready ")
        time.sleep(60)
    """
    command, *args = python(code)
    terminal = await terminals.create(command, args)
    await printed(terminals, terminal, "ready")
    await terminals.kill(terminal)
    assert terminals.output(terminal) == Output("ready tidy", False, ExitStatus(5, None))


FAMILY = """
import os, signal, subprocess, sys, time
out = lambda pid: os.write(1, f"{pid} ".encode())
nap = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"]
out(os.getpid())
out(subprocess.Popen(nap).pid)                                      # in the group
out(subprocess.Popen(nap, start_new_session=True).pid)              # in a session of its own
out(subprocess.Popen(nap, start_new_session=True, env={}).pid)      # without the mark too
out(subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"]).pid)
os.write(1, b"ready")
"""


async def test_kill_ends_the_whole_family(terminals: Terminals) -> None:
    terminal = await terminals.create(sys.executable, ["-c", FAMILY + "time.sleep(60)"])
    pids = [int(word) for word in (await printed(terminals, terminal, "ready")).split()[:-1]]
    assert len(pids) == 5
    await terminals.kill(terminal)
    assert await gone(*pids)
    assert terminals.output(terminal).exit_status == ExitStatus(None, "SIGTERM")


async def test_wait_is_over_when_the_program_is_although_its_output_is_held_open(terminals: Terminals) -> None:
    terminal = await terminals.create("(sleep 0.05; echo late; exec sleep 60) & echo $!; echo done; exit 4")
    async with asyncio.timeout(30):
        assert await terminals.wait(terminal) == ExitStatus(4, None)
    output = terminals.output(terminal)
    assert output.exit_status == ExitStatus(4, None)
    pid, *rest = output.text.split()
    assert rest == ["done", "late"]  # what comes soon after is kept
    assert is_running(int(pid))
    await terminals.release(terminal)
    assert await gone(int(pid))


async def test_what_is_printed_later_in_the_background_is_read_as_well(terminals: Terminals, root: Path) -> None:
    terminal = await terminals.create("(while [ ! -e go ]; do sleep 0.01; done; seq 100000; echo over) & exit 0")
    assert await terminals.wait(terminal) == OK
    (root / "go").write_text("")
    assert "99999\n100000\nover\n" in await printed(terminals, terminal, "over")


async def test_release_ends_what_a_program_left_behind_wherever_it_is(terminals: Terminals) -> None:
    detached = """
        import os, subprocess, sys
        nap = ["sleep", "60"]
        null = subprocess.DEVNULL
        one = subprocess.Popen(nap, stdout=null, stderr=null)
        two = subprocess.Popen(nap, stdout=null, stderr=null, start_new_session=True)
        three = subprocess.Popen(nap, stdout=null, stderr=null, env={})
        print(one.pid, two.pid, three.pid)
    """
    command, *args = python(detached)
    terminal = await terminals.create(command, args)
    assert await terminals.wait(terminal) == OK
    pids = [int(word) for word in terminals.output(terminal).text.split()]
    assert all(is_running(pid) for pid in pids)
    await terminals.release(terminal)
    assert await gone(*pids)


LEFT = {
    "same group": "env -i /bin/bash -c 'sleep 0.3; (./left & ); exit 0' & exit 0",
    "own group, program runs": "set -m; env -i /bin/bash -c './left & exit'; sleep 32",
    "own group, program has ended": "set -m; env -i /bin/bash -c './left & exit'; exit 0",
    "own session with a living parent": "env -i setsid /bin/bash -c '(./left &); sleep 32' & sleep 32",
}
"""Lines that leave a process without the mark of its family and with a parent that has exited."""


@pytest.mark.skipif(not families.LINUX, reason="elsewhere only the group is known")
@pytest.mark.parametrize("line", LEFT.values(), ids=LEFT)
@pytest.mark.parametrize("act", ["kill", "release"])
async def test_orphans_without_the_mark_end_with_their_session(
    terminals: Terminals, root: Path, line: str, act: str
) -> None:
    (root / "left").write_text("#!/bin/bash\necho $$ > new\nmv new pid\nexec sleep 31\n")
    (root / "left").chmod(0o755)
    terminal = await terminals.create("bash", ["-c", line])
    while not (root / "pid").exists():
        await asyncio.sleep(0.01)
    pid = int((root / "pid").read_text())
    await asyncio.sleep(0.1)  # its parent exits
    assert is_running(pid)
    await getattr(terminals, act)(terminal)
    assert await gone(pid)


CHAIN = """
my $end = time + 8;
while (time < $end) {
    my $pid = fork; exit 0 if $pid; setpgrp if @ARGV; select(undef, undef, undef, 0.001);
    open F, ">", "beat"; print F time; close F;
}
"""


@pytest.mark.skipif(not families.LINUX, reason="elsewhere only the group is known")
@pytest.mark.parametrize(
    "line",
    [
        "perl chain.pl & sleep 30",
        "perl chain.pl & exit 0",
        "set -m; env -i perl chain.pl & sleep 30",
        "env -i perl chain.pl setpgrp & sleep 30",
    ],
    ids=["program runs", "program has ended", "own group without the mark", "new groups without the mark"],
)
async def test_processes_that_keep_forking_are_ended(terminals: Terminals, root: Path, line: str) -> None:
    """Each lives for a millisecond, so most looks through the processes find none of them."""
    (root / "chain.pl").write_text(CHAIN)
    terminal = await terminals.create("bash", ["-c", line])
    while not (root / "beat").exists():
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    await terminals.release(terminal)
    (root / "beat").unlink()
    await asyncio.sleep(0.2)
    assert not (root / "beat").exists()


@pytest.mark.skipif(not families.LINUX, reason="sessions are only known on Linux")
def test_a_session_that_was_found_empty_is_not_believed_again(stranger: subprocess.Popen[bytes]) -> None:
    process = subprocess.Popen(["true"], start_new_session=True)
    family = Family(process.pid, "1-nobody")
    process.wait(5)
    family.settle()
    family._pid = stranger.pid  # the id is given away again
    family._root = None
    asyncio.run(family.end(0.1))
    assert stranger.poll() is None


@pytest.mark.skipif(not families.LINUX, reason="start times are only known on Linux")
def test_a_session_whose_leader_started_at_another_time_is_left_alone(stranger: subprocess.Popen[bytes]) -> None:
    family = Family(stranger.pid, "1-nobody")
    assert family._root is not None
    family._root = family._root._replace(start=family._root.start - 1)
    family._known = {(stranger.pid, family._root.start)}
    family.signal(signal.SIGKILL)
    asyncio.run(family.end(0.1))
    assert stranger.poll() is None


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a group of its own and belongs to no terminal."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait(5)


def test_a_stranger_that_got_the_id_of_an_ended_program_is_left_alone(stranger: subprocess.Popen[bytes]) -> None:
    family = Family(stranger.pid, "1-nobody")
    family._known = {(stranger.pid, 1)}  # the same id, but started at another time
    family._is_ours = False  # the group was empty when the program ended
    asyncio.run(family.end(0.1))
    assert stranger.poll() is None
    assert family._find() == []


def test_where_only_groups_are_known_one_that_was_empty_is_left_alone(
    stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way that macOS goes."""
    monkeypatch.setattr(families, "LINUX", False)
    family = Family(stranger.pid, "1-nobody")
    with monkeypatch.context() as emptied:
        emptied.setattr(Family, "is_inhabited", lambda self: False)
        family.settle()
    asyncio.run(family.end(0.1))
    assert stranger.poll() is None
    family = Family(stranger.pid, "1-nobody")
    asyncio.run(family.end(0.1))
    assert stranger.wait(5) == -signal.SIGTERM


async def test_release_while_somebody_waits_tells_them(terminals: Terminals) -> None:
    terminal = await terminals.create("sleep", ["60"])
    waiting = [asyncio.create_task(terminals.wait(terminal)) for _ in range(3)]
    await asyncio.sleep(0)
    await terminals.release(terminal)
    assert await asyncio.gather(*waiting) == [ExitStatus(None, "SIGTERM")] * 3


async def test_giving_up_a_wait_does_not_end_the_program(terminals: Terminals) -> None:
    terminal = await terminals.create("sleep", ["60"])
    waiting = asyncio.create_task(terminals.wait(terminal))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert terminals.output(terminal).exit_status is None
    await terminals.kill(terminal)
    assert await terminals.wait(terminal) == ExitStatus(None, "SIGTERM")


async def test_a_kill_or_release_that_is_cancelled_is_carried_out_all_the_same(terminals: Terminals) -> None:
    script = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
    for act in (terminals.kill, terminals.release):
        terminal = await terminals.create("sh", ["-c", script])
        pid = int(await printed(terminals, terminal, "\n"))
        acting = asyncio.create_task(act(terminal))
        await asyncio.sleep(0.02)
        acting.cancel()
        await asyncio.wait((acting,))
        assert acting.cancelled()
        assert await gone(pid)


async def test_who_gives_up_a_kill_does_not_take_it_from_others(terminals: Terminals) -> None:
    terminal = await terminals.create("sh", ["-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"])
    await printed(terminals, terminal, "ready")
    first, second = (asyncio.create_task(terminals.kill(terminal)) for _ in range(2))
    await asyncio.sleep(0.02)
    first.cancel()
    await second
    assert first.cancelled()
    assert terminals.output(terminal).exit_status == ExitStatus(None, "SIGKILL")


async def test_close_ends_all_at_once(root: Path) -> None:
    terminals = Terminals(Workspace(root), grace=0.3)
    script = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
    made = [await terminals.create("sh", ["-c", script]) for _ in range(5)]
    pids = [int(await printed(terminals, terminal, "\n")) for terminal in made]
    async with asyncio.timeout(10):
        await terminals.close()
    assert await gone(*pids)
    assert len(terminals) == 0


def test_a_loop_that_ends_before_anybody_closed_leaves_no_program(root: Path) -> None:
    async def forget() -> int:
        terminals = Terminals(Workspace(root))
        terminal = await terminals.create("sh", ["-c", "trap '' TERM; echo $$; while :; do sleep 0.1; done"])
        return int(await printed(terminals, terminal, "\n"))

    pid = asyncio.run(forget())
    assert asyncio.run(gone(pid))


def test_a_loop_that_ends_leaves_nothing_for_the_collector_to_find(root: Path) -> None:
    """Also while somebody else holds the pipe, so that its end does not come before the loop's."""

    async def forget() -> int:
        terminals = Terminals(Workspace(root))
        terminal = await terminals.create("sh", ["-c", "echo $$; sleep 60; :"])
        pid = int(await printed(terminals, terminal, "\n"))
        terminals._programs[terminal]._family.signal = lambda number: []  # type: ignore[method-assign]
        return pid

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pid = asyncio.run(forget())
        gc.collect()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    assert [str(one.message) for one in seen] == []


async def test_a_program_that_nothing_ends_is_given_up_and_those_who_wait_are_told(
    terminals: Terminals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that hangs in the kernel; acted here by signals that are not sent."""

    monkeypatch.setattr(programs, "STUCK", 0.1)
    monkeypatch.setattr(Family, "signal", lambda self, number: [])
    terminal = await terminals.create("sh", ["-c", "trap '' TERM; echo $$; exec sleep 60"])
    pid = int(await printed(terminals, terminal, "\n"))
    waiting = asyncio.create_task(terminals.wait(terminal))
    process = terminals._programs[terminal]._process
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await terminals.release(terminal)
        assert await waiting == ExitStatus(None, "SIGKILL")
    os.kill(pid, signal.SIGKILL)
    await process.wait()
    process._transport.close()  # it was given up before its end, so nobody else does


async def test_no_descriptor_and_no_task_stays(root: Path) -> None:
    async def use() -> None:
        async with Terminals(Workspace(root), grace=0.3) as terminals:
            await run(terminals, "echo", "x")
            await terminals.create("sleep", ["60"])
            with pytest.raises(ProgramNotFound):
                await terminals.create("no-such-program")

    await use()
    descriptors, tasks = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
    for _ in range(3):
        await use()
    for _ in range(5):  # closing a transport takes a turn of the loop
        await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert len(asyncio.all_tasks()) == tasks
