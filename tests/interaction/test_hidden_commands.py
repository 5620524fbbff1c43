"""A command that an agent hides in its request: deny rules see it, no allow rule covers it, the user can read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.hubs import approval_asked, check, history
from tests.support.rogue import ask, deny, rogue_hub, run_turn
from tests.unit.dialects.acp.test_effects import SHAPES, VICTIM

DENYING = {"deny": {"commands": ["rm *"]}}
ALLOWING = {"autoApprove": {"commands": ["rm -rf victim", "ls", "true"], "tools": ["Bash"], "writes": True}}
CHECKABLE = {"string", "other key", "list", "program and args", "json string"}
"""The shapes whose command a rule can check, and may allow."""


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_rule_denies_a_command_in_every_shape(
    tmp_path: Path, project: Path, shape: str, tally: Callable[[str, int], None]
) -> None:
    async with rogue_hub(tmp_path / "home") as hub:
        session = await hub.start_session("rogue", project, policy=DENYING)
        question = ask("c1", **{"title": "Bash", "kind": "execute", **SHAPES[shape]})
        turn = await run_turn(hub, session, f"agent.say(json.dumps({question}))", decide=lambda event: None)
        assert turn.answers[-1]["outcome"]["optionId"] == "no", turn.said
        (record,) = await hub.log.approvals.list(session.id)
        assert record.decision is not None
        assert record.decision["resolvedBy"] == "policy"
        check(await history(hub.log, session.id))
    tally("hidden commands that a rule denied", 1)


@pytest.mark.parametrize("shape", SHAPES)
async def test_no_rule_allows_a_command_that_it_cannot_check(tmp_path: Path, project: Path, shape: str) -> None:
    async with rogue_hub(tmp_path / "home") as hub:
        session = await hub.start_session("rogue", project, policy=ALLOWING)
        question = ask("c1", **{"title": "Bash", "kind": "execute", **SHAPES[shape]})
        turn = await run_turn(hub, session, f"agent.say(json.dumps({question}))", decide=deny)
        (record,) = await hub.log.approvals.list(session.id)
        assert record.decision is not None
        is_ruled = record.decision["resolvedBy"] == "policy"
        assert is_ruled == (shape in CHECKABLE), turn.said
        assert VICTIM in str(record.request["preview"])
        if shape not in CHECKABLE | {"wrapped list", "env list"}:
            assert record.request.get("ruleOffers", []) == []
            assert record.request["ruleRefusal"]


@pytest.mark.parametrize("name", ["KillShell", "BashOutput"])
@pytest.mark.parametrize("shape", ["fenced", "prompt", "label", "streamed as text"])
async def test_a_command_under_the_name_of_a_tool_that_runs_none_is_seen(
    tmp_path: Path, project: Path, name: str, shape: str
) -> None:
    async with rogue_hub(tmp_path / "home") as hub:
        session = await hub.start_session("rogue", project, policy=DENYING)
        asked = {"title": name, "name": name, "kind": "execute", "status": "completed", **SHAPES[shape]}
        program = f"agent.tool('c1', name={name!r}, status='pending')\n{ask('c1', **asked)}\n{ask('c2', **asked)}"
        turn = await run_turn(hub, session, program, decide=deny)
        records = await hub.log.approvals.list(session.id)
        assert [(record.decision or {}).get("resolvedBy") for record in records] == ["policy", "policy"]
        assert all(event.risk_level == "high" for event in turn.asked)


async def test_a_rule_denies_a_command_in_the_text_next_to_another(tmp_path: Path, project: Path) -> None:
    policy = {"autoApprove": {"commands": ["ls"]}, "deny": {"commands": ["rm *"]}}
    content = [{"type": "content", "content": {"type": "text", "text": VICTIM}}]
    async with rogue_hub(tmp_path / "home") as hub:
        session = await hub.start_session("rogue", project, policy=policy)
        for given, outcome in (({}, "yes"), ({"content": content}, "no")):
            question = ask("c1", title="ls", kind="execute", rawInput={"command": "ls"}, **given)
            turn = await run_turn(hub, session, f"agent.say(json.dumps({question}))", decide=lambda event: None)
            assert turn.answers[-1]["outcome"]["optionId"] == outcome, turn.said


HIDDEN = {
    "list": {"command": "ls", "then": ["rm", "-rf", "victim"]},
    "limit": {"command": "ls", "async_next": ["rm", "-rf", "victim"]},
    "word": {"command": "ls", "then": "reboot"},
    "part of the command": {"command": "echo rm -rf victim", "then": VICTIM},
    "description": {"command": "ls", "description": VICTIM},
}


@pytest.mark.parametrize("case", HIDDEN)
@pytest.mark.parametrize("is_denied", [True, False])
async def test_a_rule_for_a_command_does_not_cover_what_is_next_to_it(
    tmp_path: Path, project: Path, case: str, is_denied: bool
) -> None:
    policy = {"autoApprove": {"commands": ["ls", "echo *"]}, "deny": {"commands": ["rm *", "reboot"] * is_denied}}
    content = [{"type": "content", "content": {"type": "text", "text": VICTIM}}] * (case == "description")
    async with rogue_hub(tmp_path / "home") as hub:
        session = await hub.start_session("rogue", project, policy=policy)
        question = ask("c1", title="Bash", kind="execute", rawInput=HIDDEN[case], content=content)
        await run_turn(hub, session, f"agent.say(json.dumps({question}))", decide=deny)
        (record,) = await hub.log.approvals.list(session.id)
        assert record.decision is not None
        if is_denied:
            assert (record.decision["resolvedBy"], record.decision["approved"]) == ("policy", False)
        elif case != "description":
            assert record.decision["resolvedBy"] == "user"
            assert record.request.get("ruleOffers", []) == []
        assert record.request["riskLevel"] == "high"


async def test_always_for_a_command_of_another_tool_covers_exactly_its_arguments(tmp_path: Path, project: Path) -> None:
    staging = {"command": "rm -rf build", "target": "staging"}
    asks = [
        ("mcp__staging__exec", staging, "yes"),
        ("mcp__staging__exec", {**staging, "target": "production"}, "no"),
        ("mcp__production__exec", staging, "no"),
        ("mcp__staging__exec", {**staging, "then": ["reboot"]}, "no"),
        ("Bash", {"command": "rm -rf build"}, "no"),
    ]
    async with rogue_hub(tmp_path / "home") as hub:
        session = await hub.start_session("rogue", project)
        first = ask("c0", title="Work", name="mcp__staging__exec", kind="execute", rawInput=staging)
        prompt = await session.send(f"agent.say(json.dumps({first}))")
        asked = await approval_asked(session)
        assert [offer.text for offer in asked.rule_offers] == ["Call `mcp__staging__exec` with exactly these arguments"]
        await session.decide(asked.request_id, approved=True, remember="session")
        await prompt.done
        for index, (name, raw, outcome) in enumerate(asks, 1):
            question = ask(f"c{index}", title="Work", name=name, kind="execute", rawInput=raw)
            turn = await run_turn(hub, session, f"agent.say(json.dumps({question}))", decide=deny)
            assert turn.answers[-1]["outcome"]["optionId"] == outcome, (name, raw)
