"""The table of known agents, and what some of them cannot be told."""

from __future__ import annotations

import pytest

from pilothouse.adapters.known import KNOWN, without_flaws

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
