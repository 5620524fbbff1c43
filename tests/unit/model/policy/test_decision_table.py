"""The table `golden/commands.jsonl`: what a command risks, and what a policy says about it.

One row a line: the command, its level (a name, or a bound as `{"min": …}` or `{"max": …}`), the policy it is judged by
(a name below), the decision, and why. The expectations are judgements, written before the answers were looked at: when
a row fails, the code is wrong until somebody shows that the row is.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pilothouse.model.policy import decide
from pilothouse.model.risk import assess_risk

TABLE = Path(__file__).parents[3] / "golden" / "commands.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text().splitlines()]
WORKSPACE = "/work/app"
LEVELS = ["low", "medium", "high", "critical"]

EXAMPLE = {"reads": True, "writes": ["src/**/*.ts"], "commands": ["npm test"], "searches": True}
DAILY = """
    ls|ls *|pwd|cat|cat *|head *|tail *|wc *|grep *|rg *|find *|echo *|tree *|du *|df *|file *|stat *|diff *
    which *|date|date *|sort|sort *|uniq *|jq *|sed *|awk *|cut *|cd *|test *|[ *|mkdir *|touch *|cp *|mv *
    git status|git status *|git diff|git diff *|git log|git log *|git show *|git branch|git branch *|git add *
    git commit *|git stash list|git rev-parse *|git blame *|npm test|npm ci|npm run *|npm install *|npx tsc *
    npx eslint *|npx prettier *|yarn test|pnpm run *|tsc *|pytest|pytest *|python -m pytest *|uv run pytest *
    ruff *|mypy *|cargo test|cargo build *|cargo check *|cargo clippy *|go test *|go build *|go vet *|make|make *
    docker ps|docker ps *|docker compose ps|kubectl get *|terraform plan|terraform validate|node --version
    python --version|dotnet test|mvn test|gradle test
"""
WIDE = """
    find *|sort *|git *|tar *|ls *|sed *|awk *|vim *|python *|python3 *|node *|npx *|xargs *|man *|less *|env *
    rg *|fd *|zip *|rsync *|ssh *|curl *|wget *|tee *|cp *|mv *|ln *|make *|npm *|pytest *|cargo *|go *|docker *
    jq *|cat *|rm *|bash *|sh *|perl *|echo *|timeout *|sudo *|nohup *|chmod *|kubectl *|pip *|terraform *|psql *
    gh *|base64 *|printf *|watch *|time *|uniq *|true
"""
WRAPPED = """
    npm test|timeout *|time *|nohup *|sh -c *|env CI=1 npm test|CI=1 npm test|find * -name * -exec grep -n * {} +
    grep *|ls|xargs wc -l|uv run pytest *
"""
WIDER = """
    ok|ok *|echo *|cat *|rg *|grep *|find *|ls|python *|python -m py_compile *|node *|npm *|npm install *|pip *|uv *
    uv run *|yarn *|pnpm *|npx tsc *|npx eslint *|git *|gh *|kubectl *|terraform *|docker *|go *|pytest *|awk *|vim *
    irb|curl *|psql *|sqlite3 *|./build.sh *|bash scripts/*|popd
"""


def patterns(text: str) -> list[str]:
    return [pattern for line in text.split("\n") for pattern in line.strip().split("|") if pattern]


POLICIES: dict[str, dict[str, Any]] = {
    "none": {},
    "example": {"autoApprove": EXAMPLE},
    "daily": {"autoApprove": {"commands": patterns(DAILY), "writes": ["src/**", "docs/*.md"]}},
    "wide": {"autoApprove": {"commands": patterns(WIDE)}},
    "wrapped": {"autoApprove": {"commands": patterns(WRAPPED)}},
    "wider": {"autoApprove": {"commands": patterns(WIDER)}},
    "all": {"autoApprove": {"commands": True}},
    "denying": {
        "autoApprove": {"commands": True, "writes": True},
        "deny": {
            "commands": ["rm *", "git push --force", "sudo", "npm publish", "npx evil"],
            "reads": ["secrets/**"],
            "writes": ["package-lock.json"],
        },
    },
}


def within(level: str, expected: str | dict[str, str]) -> bool:
    if isinstance(expected, str):
        return level == expected
    rank = LEVELS.index(level)
    return LEVELS.index(expected.get("min", "low")) <= rank <= LEVELS.index(expected.get("max", "critical"))


def named(row: dict[str, Any]) -> str:
    return f"{row['policy']}: {row['command']!r}"


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_policy_decides_as_the_table_says(row: dict[str, Any]) -> None:
    decision = decide(POLICIES[row["policy"]], "Bash", {"command": row["command"]}, WORKSPACE)
    assert decision.outcome == row["decision"], f"{decision.reason} ({row['note']})"
    assert decision.reason.startswith({"allow": "Allowed: ", "deny": "Denied: ", "ask": "Ask: "}[decision.outcome])
    assert (decision.rule is None) == (decision.outcome == "ask")


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_risk_is_what_the_table_says(row: dict[str, Any]) -> None:
    risk = assess_risk("Bash", {"command": row["command"]}, WORKSPACE)
    assert within(str(risk.level), row["level"]), f"{risk.level}: {risk.reasons} ({row['note']})"


def test_the_table_is_large_and_has_rows_of_every_kind() -> None:
    assert len(ROWS) >= 330
    assert set(POLICIES) == {row["policy"] for row in ROWS}
    kinds = Counter(row["decision"] for row in ROWS)
    assert kinds["allow"] >= len(ROWS) // 4, "a policy that asks about everything is useless"
    assert kinds["ask"] >= 300
    assert kinds["deny"] >= 25
    assert all(row["note"] for row in ROWS)


def test_no_two_rows_ask_the_same() -> None:
    assert len({(row["command"], row["policy"]) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", [row for row in ROWS if row["decision"] != "allow"], ids=named)
def test_the_documented_example_policy_allows_nothing_the_table_withholds(row: dict[str, Any]) -> None:
    """Only rows that another policy withholds for its own reasons may pass: those whose every command is `npm test`."""
    decision = decide(POLICIES["example"], "Bash", {"command": row["command"]}, WORKSPACE)
    if decision.outcome == "allow":
        assert row["policy"] == "none"
