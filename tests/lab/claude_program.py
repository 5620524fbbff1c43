"""Claude Code's own program, where `make test` has put it, against a scripted model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilothouse.hub.agent.process import AgentSpec
from tests.lab.agents import AGENTS, LAB, is_installed, spec
from tests.lab.model.server import model_server


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentSpec]:
    if not is_installed(LAB, "claude-code"):
        pytest.skip(f"Claude Code is not installed below {LAB}; `make test` does that where there is npm")
    with model_server() as model:
        yield spec(AGENTS["claude-code"], LAB, tmp_path_factory.mktemp("claude-code"), model.url)
    assert model.problems == []
