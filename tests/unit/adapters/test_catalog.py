"""The table of known agents, and what some of them cannot be told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.adapters import catalog as programs
from pilothouse.adapters.catalog import CODER, KNOWN, claude, claude_code, without_flaws

OFFERED = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}


def test_every_known_agent_says_how_it_is_started_and_got() -> None:
    for name, program in KNOWN.items():
        assert program.name == name
        assert program.title
        assert all(way.command for way in program.ways)
        assert program.install or name == "demo"


@pytest.mark.parametrize("command", [["gemini", "--acp"], ["env", "-i", "/opt/bin/gemini", "--acp"]])
def test_gemini_is_not_offered_to_read_files(command: list[str]) -> None:
    told = without_flaws(OFFERED, command)
    assert told == {"fs": {"readTextFile": False, "writeTextFile": True}, "terminal": True}
    assert OFFERED["fs"] == {"readTextFile": True, "writeTextFile": True}


def test_others_are_offered_all() -> None:
    assert without_flaws(OFFERED, ["goose", "acp", "--gemini"]) == OFFERED


def only(*names: str) -> Callable[[str], str | None]:
    return lambda wanted: wanted if wanted in (*names, sys.executable) else None


def test_claude_code_is_there_when_its_own_program_is() -> None:
    program = KNOWN["claude-code"]
    assert program.title == "Claude Code"
    assert program.availability(only("nothing")) == "missing"
    launch = claude_code({}).launch(only("claude"))
    assert launch is not None
    assert launch.command == (sys.executable, "-P", "-m", "pilothouse.agents.claude_bridge")
    elsewhere = claude_code({"PILOTHOUSE_CLAUDE": "/opt/claude"})
    assert elsewhere.availability(only("claude")) == "missing"
    assert elsewhere.availability(only("/opt/claude")) == "installed"
    assert elsewhere.install == "set PILOTHOUSE_CLAUDE to a program that can be run; /opt/claude is none"


def test_claude_is_its_own_program_where_there_is_one_and_else_its_adapter() -> None:
    ours = claude_code({}).ways[0].command
    commands = [
        (("claude", "claude-agent-acp", "npx"), ours),
        (("claude-agent-acp", "npx"), ("claude-agent-acp",)),
        (("npx",), ("npx", "-y", "@agentclientprotocol/claude-agent-acp")),
    ]
    for there, command in commands:
        launch = claude({}).launch(only(*there))
        assert launch is not None
        assert launch.command == command
    assert claude({}).availability(only("nothing")) == "missing"
    named = claude({"PILOTHOUSE_CLAUDE": "/opt/claude"})
    assert named.availability(only("npx")) == "missing"  # that is not what was named
    launch = KNOWN["claude-acp"].launch(only("claude", "claude-agent-acp"))
    assert launch is not None
    assert launch.command == ("claude-agent-acp",)


def test_the_built_in_agent_is_there_when_its_extra_is(monkeypatch: pytest.MonkeyPatch) -> None:
    program = KNOWN[CODER]
    launch = program.launch(only())
    assert launch is not None
    assert launch.command == (sys.executable, "-P", "-m", "pilothouse.cli", "agent")
    there: dict[str, Any] = {"pydantic_ai": None}
    monkeypatch.setattr(programs, "find_spec", lambda name: there.get(name, "there"))
    assert program.availability(only()) == "missing"
    assert program.install == "pip install 'pilothouse[agent]'"
    assert KNOWN["demo"].availability(only()) == "installed"
