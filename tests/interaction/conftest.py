"""Fixtures for tests of the hub: directories, a hub with a scripted agent, and Claude Code over a fake program.

Modules may override them with fixtures of the same name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.adapters.catalog import PermissionBehavior, claude_code
from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from tests.support.rogue import rogue_hub
from tests.unit.agents.claude_bridge.driving import fake_cli


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


@pytest.fixture
def behavior() -> PermissionBehavior:
    """How the scripted agent of `hub` asks for permission."""
    return PermissionBehavior(modes_without_approval={"yolo": "everything"})


@pytest.fixture
async def hub(tmp_path: Path, behavior: PermissionBehavior) -> AsyncIterator[Hub]:
    """A hub with an agent that runs a program from each prompt."""
    async with rogue_hub(tmp_path / "home", behavior=behavior) as hub:
        yield hub


@pytest.fixture
async def session(hub: Hub, project: Path) -> HubSession:
    (project / "sub").mkdir()
    return await hub.start_session("rogue", project)


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
