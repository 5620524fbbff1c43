"""The examples of the documentation, run as a reader would run them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def run(*command: object, given: str = "", cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *map(str, command)],
        input=given,
        capture_output=True,
        text=True,
        timeout=30,
        cwd=cwd,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_talks_to_the_parrot() -> None:
    out = run(EXAMPLES / "client.py", "hello there", sys.executable, EXAMPLES / "parrot_agent.py")
    assert out == "hello there\n(end_turn)\n"


@pytest.mark.parametrize(("answer", "status"), [("y", "completed"), ("n", "failed")])
def test_the_careful_agent_writes_only_when_allowed(tmp_path: Path, answer: str, status: str) -> None:
    command = (EXAMPLES / "client.py", "a note", sys.executable, EXAMPLES / "careful_agent.py")
    out = run(*command, given=answer + "\n", cwd=tmp_path)
    assert f"[{status}]" in out
    note = tmp_path / "note.txt"
    assert (note.read_text() == "a note") if answer == "y" else not note.exists()


def test_the_proxy_passes_a_turn_on() -> None:
    proxy = (EXAMPLES / "proxy.py", sys.executable, EXAMPLES / "parrot_agent.py")
    out = run(EXAMPLES / "client.py", "through the proxy", sys.executable, *proxy)
    assert out == "through the proxy\n(end_turn)\n"


@pytest.mark.parametrize(
    ("prompt", "approved", "written"), [("edit note.txt hello", True, True), ("edit note.sh hello", False, False)]
)
def test_the_guard_lets_pass_what_its_policy_covers(tmp_path: Path, prompt: str, approved: bool, written: bool) -> None:
    agent = (sys.executable, "-m", "pilothouse.cli", "demo-agent")
    out = run(EXAMPLES / "guard.py", prompt, *agent, cwd=tmp_path)
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    (resolved,) = (event for event in events if event["type"] == "approval:resolved")
    assert resolved["approved"] is approved
    assert (tmp_path / prompt.split()[1]).exists() is written
    assert events[-1]["to"] == "idle"


def test_the_guide_to_the_model_runs(tmp_path: Path) -> None:
    """Its blocks in order, as one program."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "guides" / "model.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    program = tmp_path / "guide.py"
    program.write_text("\n".join(blocks))
    assert "Looking." in run(program)


def test_the_agent_of_the_readme_works(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    agent = tmp_path / "agent.py"
    agent.write_text(code)
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    assert json.loads(run(agent, given=json.dumps(request) + "\n"))["result"]["protocolVersion"] == 1
    assert run(EXAMPLES / "client.py", "polly", sys.executable, agent) == "polly\n(end_turn)\n"


def test_every_example_is_shown_somewhere_and_every_link_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    for example in EXAMPLES.glob("*.py"):
        assert example.name in text, f"no page mentions {example.name}"
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_version_has_a_changelog_entry() -> None:
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"## {version[1]}" in changelog or "## Unreleased" in changelog
    package = (ROOT / "src" / "pilothouse" / "__init__.py").read_text()
    assert f'__version__ = "{version[1]}"' in package
