"""Rules that an earlier version stored for any arguments: listed, narrowed, kept and deleted."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pilothouse.log import Approval, Rule
from tests.support.cli import Cli
from tests.support.served import serving as serving_process
from tests.support.servers import Served, serving

NOW = "2026-01-01T00:00:00.000Z"
TOOL = "mcp__bank__transfer"
ARGUMENTS = {"to": "Ann", "amount": 5}


def wide_rule(rule_id: str, approval_id: str | None) -> Rule:
    rule = {"subject": "tools", "pattern": TOOL, "toolName": TOOL}
    return Rule(id=rule_id, scope="everywhere", rule=rule, effect="allow", created=NOW, approval_id=approval_id)


def approval(session_id: str) -> Approval:
    request = {"toolName": TOOL, "toolInput": ARGUMENTS}
    return Approval(id="apr_1", session_id=session_id, request=request, created=NOW, resolved=NOW)


# -- over HTTP ----------------------------------------------------------------------------------------------------


async def rows(served: Served) -> dict[str, dict[str, Any]]:
    answer = await served.client.request("GET", "/rules")
    return {row["id"]: row for row in answer.json()["rules"]}


async def test_a_wide_rule_is_narrowed_and_kept_over_http(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as served:
        session = await served.hub.start_session("demo", tmp_path)
        await served.hub.log.approvals.add(approval(session.id))
        for rule_id, approval_id in (("rule_1", "apr_1"), ("rule_2", None)):
            await served.hub.log.rules.add(wide_rule(rule_id, approval_id))
        found = await rows(served)
        assert [(row["isWide"], row["text"]) for row in found.values()] == [
            (True, f"Call `{TOOL}` with any arguments"),
            (True, f"Call `{TOOL}` with any arguments"),
        ]
        narrowed = (await served.client.request("POST", "/rules/rule_1/narrow")).json()
        assert (narrowed["isWide"], narrowed["text"]) == (False, f"Call `{TOOL}` with exactly these arguments")
        assert narrowed["rule"]["arguments"] == ARGUMENTS
        assert (await served.client.request("POST", "/rules/rule_1/narrow")).json() == narrowed
        refused = await served.client.request("POST", "/rules/rule_2/narrow")
        assert (refused.status, refused.json()["error"]["code"]) == (409, "illegal_command")
        kept = (await served.client.request("POST", "/rules/rule_2/keep")).json()
        assert (kept["isWide"], kept["text"]) == (False, f"Call `{TOOL}` with any arguments")
        for what in ("narrow", "keep"):
            assert (await served.client.request("POST", f"/rules/none/{what}")).status == 404
        assert await rows(served) == {"rule_1": narrowed, "rule_2": kept}


# -- on the command line ------------------------------------------------------------------------------------------


def store_wide_rules(cli: Cli) -> None:
    """Two rules as an earlier version stored them; only the approval of the first is still there."""
    assert cli("run", "-a", "demo", "echo hello").returncode == 0
    session = json.loads(cli("ls", "--json").stdout)[0]["id"]
    request = json.dumps({"toolName": TOOL, "toolInput": ARGUMENTS})
    rule = json.dumps({"subject": "tools", "pattern": TOOL, "toolName": TOOL})
    with contextlib.closing(sqlite3.connect(cli.home / "pilothouse.db")) as db, db:
        db.execute(
            "INSERT INTO approvals (id, session_id, request, options, created, resolved) VALUES (?, ?, ?, '[]', ?, ?)",
            ["apr_1", session, request, NOW, NOW],
        )
        for rule_id, approval_id in (("rule_1a", "apr_1"), ("rule_2b", None)):
            db.execute(
                "INSERT INTO rules (id, scope, scope_key, rule, effect, created, hits, approval_id) "
                "VALUES (?, 'everywhere', '', ?, 'allow', ?, 0, ?)",
                [rule_id, rule, NOW, approval_id],
            )


def change_wide_rules(cli: Cli) -> None:
    listed = cli("policy", "rules")
    assert listed.stdout.count(f"Call `{TOOL}` with any arguments  ! covers any arguments") == 2
    assert "2 rules of an earlier version cover a tool with any arguments" in listed.stderr
    assert "pilothouse policy narrow RULE" in listed.stderr
    assert f"Call `{TOOL}` with any arguments" in cli("policy", "show").stdout

    narrowed = cli("policy", "narrow", "1a")
    assert narrowed.returncode == 0, narrowed.stderr
    assert narrowed.stdout.splitlines()[:3] == [
        "Narrowed to:",
        f"allow Call `{TOOL}` with exactly these arguments",
        '      {"to":"Ann","amount":5}',
    ]
    again = cli("policy", "narrow", "1a")
    assert (again.returncode, "covers only what it says" in again.stderr) == (2, True)
    refused = cli("policy", "narrow", "2b")
    assert refused.returncode == 2
    assert "pilothouse policy revoke rule_2b" in refused.stderr

    kept = json.loads(cli("policy", "keep", "2b", "--json").stdout)
    assert (kept["isWide"], kept["text"]) == (False, f"Call `{TOOL}` with any arguments")
    listed = cli("policy", "rules")
    assert (listed.stderr, "!" in listed.stdout) == ("", False)
    assert cli("policy", "revoke", "2b").stdout == f"Revoked: allow Call `{TOOL}` with any arguments (rule_2b).\n"
    (left,) = json.loads(cli("policy", "rules", "--json").stdout)
    assert (left["id"], left["rule"]["arguments"]) == ("rule_1a", ARGUMENTS)


@pytest.mark.parametrize("is_hub_running", [True, False])
def test_wide_rules_are_listed_narrowed_and_kept(cli: Cli, is_hub_running: bool) -> None:
    store_wide_rules(cli)
    with serving_process(cli) if is_hub_running else contextlib.nullcontext():
        change_wide_rules(cli)


def test_unknown_rule_is_reported(cli: Cli) -> None:
    unknown = cli("policy", "narrow", "1")
    assert (unknown.returncode, "List them with: pilothouse policy rules" in unknown.stderr) == (2, True)
