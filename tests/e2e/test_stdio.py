"""An agent on the stdin and stdout it happens to be given: pipes, files, the null device, a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
PROGRAM = """
import asyncio, sys
from pilothouse.acp import Agent, InitializeResponse, run_agent

class Minimal(Agent):
    async def initialize(self, protocol_version, **kwargs):
        print("this must not reach the protocol")
        return InitializeResponse(protocol_version=1)

asyncio.run(run_agent(Minimal()))
"""


@pytest.fixture
def agent(tmp_path: Path) -> list[str]:
    path = tmp_path / "agent.py"
    path.write_text(PROGRAM)
    return [sys.executable, "-X", "dev", "-W", "error", str(path)]


def test_pipes_carry_protocol_only_and_print_goes_to_stderr(agent: list[str]) -> None:
    done = subprocess.run(agent, input=REQUEST, capture_output=True, timeout=20, check=True)
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1
    assert done.stderr == b"this must not reach the protocol\n"


def test_files_work_like_pipes(agent: list[str], tmp_path: Path) -> None:
    script, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    script.write_bytes(REQUEST)
    with script.open("rb") as stdin, out.open("wb") as stdout:
        subprocess.run(agent, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, timeout=20, check=True)
    assert json.loads(out.read_text())["id"] == 1


def test_the_null_device_is_an_end_at_once(agent: list[str]) -> None:
    done = subprocess.run(agent, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_reader_that_leaves_ends_the_agent(agent: list[str]) -> None:
    process = subprocess.Popen(agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, stderr = process.communicate(REQUEST * 100, timeout=20)
    assert process.returncode == 0
    assert b"Traceback" not in stderr


def test_a_terminal_is_left_as_it_was(agent: list[str]) -> None:
    """A shell on the same terminal would stumble over one that no longer blocks."""
    controller, terminal = pty.openpty()
    try:
        process = subprocess.Popen(agent, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL)
        os.write(controller, REQUEST)
        seen = b""
        while b'"result"' not in seen:
            seen += os.read(controller, 4096)
        assert not os.get_blocking(terminal)
        os.write(controller, b"\x04")
        assert process.wait(timeout=20) == 0
        assert os.get_blocking(terminal)
    finally:
        os.close(controller)
        os.close(terminal)
