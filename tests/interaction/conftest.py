"""For tests of the hub: a directory to work in, one of records, and Claude Code's adapter over a stand-in program.
Tests of other things have fixtures of their own by these names, or none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.adapters.known import claude_code
from pilothouse.hub.link import AgentSpec
from tests.unit.adapters.claude.driving import fake_cli


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


@pytest.fixture
def claude(tmp_path: Path) -> AgentSpec:
    """The agent as the table of known ones starts it."""
    cli = str(fake_cli(tmp_path))
    launch = claude_code({"PILOTHOUSE_CLAUDE": cli}).launch()
    assert launch is not None
    env = {"PILOTHOUSE_CLAUDE": cli, "CLAUDE_CONFIG_DIR": str(tmp_path / "cli-home")}
    return AgentSpec(name="claude-code", command=launch.command, env=env)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where another program keeps the records of its sessions."""
    return tmp_path / "demo"
