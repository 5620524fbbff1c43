"""The tables of the policy page are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pilothouse.model.policy import decide

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "policy.md").read_text()
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
COMMANDS, PATHS = PAGE.split("## Patterns of paths")


@pytest.mark.parametrize(("rule", "covered", "not_covered"), ROW.findall(COMMANDS.split("## Patterns of commands")[1]))
def test_commands(rule: str, covered: str, not_covered: str) -> None:
    policy = {"autoApprove": {"commands": [rule]}}
    assert decide(policy, "Bash", {"command": covered}, "/work/app").outcome == "allow"
    assert decide(policy, "Bash", {"command": not_covered}, "/work/app").outcome == "ask"


@pytest.mark.parametrize(("rule", "covered", "not_covered"), ROW.findall(PATHS))
def test_paths(rule: str, covered: str, not_covered: str) -> None:
    policy = {"autoApprove": {"writes": [rule]}}
    assert decide(policy, "Write", {"file_path": covered}, "/work/app").outcome == "allow"
    assert decide(policy, "Write", {"file_path": not_covered}, "/work/app").outcome == "ask"


def test_the_tables_are_there() -> None:
    assert len(ROW.findall(PAGE)) >= 15
