"""Which agent is meant when none is named: the built-in one only when it has a model; and what it costs to start."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pilothouse.adapters.catalog import CODER, DEMO, KNOWN
from pilothouse.adapters.registry import Registry
from pilothouse.cli.agent_choice import first_agent
from pilothouse.config import Config, load_config
from tests.support.cli import Cli

OWN = {name: KNOWN[name] for name in (CODER, DEMO)}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.delenv("PILOTHOUSE_MODEL", raising=False)
    return load_config(tmp_path)


def test_without_a_model_it_is_the_scripted_one(config: Config) -> None:
    assert first_agent(config, Registry(known=OWN, points=[])) == DEMO


def test_with_a_model_it_is_the_built_in_one(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_MODEL", "ollama:qwen3")
    assert first_agent(config, Registry(known=OWN, points=[])) == CODER


def test_it_is_listed(tmp_path: Path) -> None:
    listed = {agent["name"]: agent for agent in json.loads(Cli(tmp_path)("agents", "--json").stdout)}
    assert (listed[CODER]["title"], listed[CODER]["state"]) == ("Pilothouse agent", "installed")


def test_what_is_loaded_is_what_is_needed_by_then() -> None:
    """To answer `initialize`, no model library; for a turn, no provider's own package and no MCP."""
    code = (
        "import sys, pilothouse.cli.commands.agents, pilothouse.agents.coder\n"
        "providers = ('fastmcp', 'openai', 'anthropic', 'google.genai')\n"
        "print([name for name in ('pydantic_ai', 'pydantic', *providers) if name in sys.modules])\n"
        "import pilothouse.agents.coder.turn\n"
        "print([name for name in ('pydantic_ai', *providers) if name in sys.modules])\n"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert loaded == ["[]", "['pydantic_ai']"]


def test_a_home_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    (tmp_path / "file").write_text("")
    cli.environment["PILOTHOUSE_CODER_HOME"] = str(tmp_path / "file" / "coder")
    done = cli("agent", "--model", "ollama:x", given="")
    assert done.returncode == 6
    assert str(tmp_path / "file" / "coder") in done.stderr
    assert done.stdout == ""


def test_the_guide_shows_the_code_as_it_is() -> None:
    root = Path(__file__).parents[2]
    blocks = re.findall(r"```python\n(.*?)```", (root / "docs/guides/built-in-agent.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    coder = root / "src/pilothouse/agents/coder"
    code = "\n".join(textwrap.dedent(path.read_text()) for path in sorted(coder.rglob("*.py")))
    for block in blocks:
        assert block in code or textwrap.indent(block, "    ") in code
