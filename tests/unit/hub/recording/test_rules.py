"""Standing rules: what "always" stores is what was offered, and rules of earlier versions can be narrowed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.hub.errors import IllegalCommand
from pilothouse.hub.recording.rules import (
    StandingRules,
    find_wide_rules,
    is_wide_rule,
    keep_rule,
    narrow_rule,
    read_rule,
    wide_rules_notice,
)
from pilothouse.log import Approval, EventLog, MemoryLog, Rule, SQLiteLog, UnknownRecord
from pilothouse.model.events import ApprovalRequestedEvent
from pilothouse.model.policy import offer_rules
from pilothouse.model.records import RuleOffer

NOW = "2026-01-01T00:00:00.000Z"
WORKSPACE = "/work/app"
TRANSFER = {"to": "Ann", "amount": 5}


@pytest.fixture(params=["memory", "sqlite"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    made: EventLog = MemoryLog() if request.param == "memory" else SQLiteLog(tmp_path / "hub.db")
    async with made as opened:
        await opened.sessions.create("ses_1", agent="demo", cwd=WORKSPACE)
        yield opened


def asked(name: str, raw: dict[str, Any], *, shown: bool = True, **fields: Any) -> ApprovalRequestedEvent:
    offers, refusal = offer_rules(name, raw, WORKSPACE) if shown else ([], None)
    event = ApprovalRequestedEvent(
        seq=1,
        session_id="ses_1",
        timestamp=NOW,
        request_id="apr_1",
        tool_call_id="call_1",
        tool_name=name,
        tool_input=raw,
        description=name,
        risk_level="low",
        rule_offers=offers,
        rule_refusal=refusal,
    )
    return msgspec.structs.replace(event, **fields)


def standing(log: EventLog, session_id: str = "ses_1", workspace: str = WORKSPACE) -> StandingRules:
    return StandingRules(log, session_id, workspace)


# Storing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", [True, False])
async def test_the_narrowest_offer_is_stored_with_its_words(log: EventLog, shown: bool) -> None:
    event = asked("mcp__bank__transfer", TRANSFER, shown=shown)
    record = standing(log).remembering(event, True, "project", NOW, by="Ann", device_id="dev_1")
    assert record is not None
    assert record.rule == {
        "subject": "tools",
        "pattern": "mcp__bank__transfer",
        "toolName": "mcp__bank__transfer",
        "arguments": TRANSFER,
        "text": "Call `mcp__bank__transfer` with exactly these arguments",
    }
    assert (record.scope, record.scope_key, record.effect, record.expires) == ("project", WORKSPACE, "allow", None)
    assert (record.made_by, record.device_id, record.approval_id) == ("Ann", "dev_1", "apr_1")


async def test_the_chosen_offer_is_stored(log: EventLog) -> None:
    rules = standing(log)
    event = asked("mcp__bank__transfer", TRANSFER)
    narrow = rules.remembering(event, True, "session", NOW, rule="exact")
    wide = rules.remembering(event, True, "session", NOW, 60, rule="any_arguments")
    assert narrow is not None
    assert wide is not None
    assert narrow.rule["arguments"] == TRANSFER
    assert "arguments" not in wide.rule
    assert wide.rule["text"] == "Call `mcp__bank__transfer` with any arguments"
    assert wide.expires is not None
    assert not is_wide_rule(wide)


async def test_a_rule_that_was_not_offered_is_not_stored(log: EventLog) -> None:
    rules = standing(log)
    event = asked("Bash", {"command": "npm test"})
    assert rules.remembering(event, True, "session", NOW, rule="any_arguments") is None
    assert rules.explain_refusal(event) == "The request did not offer this rule; choose one of those that it shows."
    assert rules.remembering(event, True, "once", NOW) is None


async def test_a_refusal_of_the_request_is_kept(log: EventLog) -> None:
    rules = standing(log)
    event = asked("Bash", {"command": "npm test"}, rule_offers=[], rule_refusal="Its risk is critical.")
    assert rules.remembering(event, True, "session", NOW) is None
    assert rules.explain_refusal(event) == "Its risk is critical."


async def test_the_reason_is_computed_for_events_without_one(log: EventLog) -> None:
    event = asked("Bash", {"command": "rm *.pyc"}, shown=False)
    assert standing(log).remembering(event, True, "everywhere", NOW) is None
    assert standing(log).explain_refusal(event) == (
        "No rule can cover this request, because the shell replaces `*.pyc` with the names of files."
    )


@pytest.mark.parametrize(
    "change",
    [
        {"pattern": "mcp__bank__*"},
        {"text": "Call mcp__bank__balance"},
        {"arguments": None},
        {"arguments": {"to": "Ann", "amount": 5.0}},
        {"arguments": {"to": "Ann", "amount": 5, "x": 1}},
        {"arguments": {}},
        {"subject": "commands"},
        {"offer_id": "any_arguments"},
    ],
    ids=str,
)
async def test_an_offer_that_is_not_what_would_be_stored_stores_nothing(log: EventLog, change: dict[str, Any]) -> None:
    (offer, _), _ = offer_rules("mcp__bank__transfer", TRANSFER, WORKSPACE)
    shown: RuleOffer = msgspec.structs.replace(offer, **change)
    event = asked("mcp__bank__transfer", TRANSFER, rule_offers=[shown])
    assert standing(log).remembering(event, True, "session", NOW) is None


async def test_offers_of_other_arguments_store_nothing(log: EventLog) -> None:
    shown, _ = offer_rules("mcp__bank__transfer", {"to": "Bob"}, WORKSPACE)
    event = asked("mcp__bank__transfer", TRANSFER, rule_offers=shown)
    assert standing(log).remembering(event, True, "session", NOW) is None


# Answering -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize(
    ("name", "raw", "others"),
    [
        ("Bash", {"command": "make test"}, [{"command": "make"}, {"command": "make t"}]),
        ("Bash", {"command": "echo 'a*b'"}, [{"command": "echo axb"}]),
        ("Write", {"file_path": "/work/app/a/[id].txt"}, [{"file_path": "/work/app/a/i.txt"}]),
        ("Write", {"file_path": "a*.txt"}, [{"file_path": "ab.txt"}, {"file_path": "docs/a*.txt"}]),
        ("WebFetch", {"url": "https://a.example/x"}, [{"url": "https://b.example/x"}]),
        ("mcp__bank__transfer", TRANSFER, [{**TRANSFER, "to": "Bob"}, {**TRANSFER, "amount": 5.0}, {}]),
    ],
)
async def test_a_stored_rule_answers_the_same_request_and_no_other(
    log: EventLog, name: str, raw: dict[str, Any], others: list[dict[str, Any]], allowed: bool
) -> None:
    rules = standing(log)
    record = rules.remembering(asked(name, raw), allowed, "project", NOW)
    assert record is not None
    await log.rules.add(record)
    stored = await rules.rules()
    decision = rules.decide(stored, name, raw)
    assert decision.outcome == ("allow" if allowed else "deny")
    assert len(rules.hits(decision, stored)) == 1
    for other in others:
        assert rules.decide(stored, name, other).outcome == "ask", other
    assert await standing(log, "ses_2").rules() == stored
    assert await standing(log, "ses_1", "/other").rules() == []


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"subject": "later", "pattern": "x"},
        {"subject": "tools", "pattern": 7},
        {"subject": "tools", "pattern": "x", "arguments": [1]},
        {"subject": "tools", "pattern": None, "arguments": {}},
        {"subject": "commands", "pattern": "ls", "arguments": {}},
        {"subject": "commands", "pattern": "ls | sh"},
        {"subject": "web", "pattern": "https://*.example.com"},
        {"subject": "writes", "pattern": "!x"},
    ],
    ids=str,
)
async def test_a_record_that_cannot_be_read_answers_nothing(log: EventLog, rule: dict[str, Any]) -> None:
    await log.rules.add(stored_rule(rule))
    assert read_rule(stored_rule(rule)) is None
    assert await standing(log).rules() == []
    assert find_wide_rules(await log.rules.active()) == []


# Rules of earlier versions ---------------------------------------------------------------------------------------


def stored_rule(rule: dict[str, Any], **fields: Any) -> Rule:
    given: dict[str, Any] = {"id": "rule_1", "scope": "everywhere", "effect": "allow", "created": NOW}
    return Rule(**given | {"approval_id": "apr_1", "rule": rule} | fields)


def wide(name: str = "mcp__bank__transfer", **fields: Any) -> Rule:
    return stored_rule({"subject": "tools", "pattern": name, "toolName": name}, **fields)


async def approve(log: EventLog, name: str = "mcp__bank__transfer", raw: Any = None) -> None:
    request = {"toolName": name, "toolInput": TRANSFER if raw is None else raw}
    await log.approvals.add(Approval(id="apr_1", session_id="ses_1", request=request, created=NOW))


async def test_any_arguments_rules_without_text_are_wide() -> None:
    records = [
        wide(),
        wide(id="rule_2", effect="deny"),
        wide(id="rule_3", revoked=NOW),
        stored_rule({"subject": "tools", "pattern": "x", "text": "Call `x` with any arguments"}, id="rule_4"),
        stored_rule({"subject": "tools", "pattern": "x", "arguments": {}}, id="rule_5"),
        stored_rule({"subject": "commands", "pattern": "ls"}, id="rule_6"),
    ]
    assert [record.id for record in find_wide_rules(records)] == ["rule_1"]


async def test_a_wide_rule_is_narrowed_to_the_arguments_that_were_approved(log: EventLog) -> None:
    await log.rules.add(wide())
    await approve(log)
    rules = standing(log)
    assert rules.decide(await rules.rules(), "mcp__bank__transfer", {"to": "Bob"}).outcome == "allow"
    narrowed = await narrow_rule(log, "rule_1")
    assert narrowed.rule["arguments"] == TRANSFER
    assert narrowed.rule["text"] == "Call `mcp__bank__transfer` with exactly these arguments"
    assert (narrowed.id, narrowed.scope, narrowed.approval_id) == ("rule_1", "everywhere", "apr_1")
    stored = await rules.rules()
    assert rules.decide(stored, "mcp__bank__transfer", {"to": "Bob"}).outcome == "ask"
    assert rules.decide(stored, "mcp__bank__transfer", TRANSFER).outcome == "allow"
    assert await narrow_rule(log, "rule_1") == narrowed
    assert find_wide_rules(await log.rules.active()) == []


async def test_a_wide_rule_for_fetching_is_narrowed_to_the_origin(log: EventLog) -> None:
    await log.rules.add(wide("WebFetch"))
    await approve(log, "WebFetch", {"url": "https://example.com/a", "prompt": "x"})
    narrowed = await narrow_rule(log, "rule_1")
    assert (narrowed.rule["subject"], narrowed.rule["text"]) == ("web", "Fetch pages of https://example.com")


async def test_a_rule_is_not_narrowed_without_its_approval(log: EventLog) -> None:
    await log.rules.add(wide())
    await log.rules.add(wide(id="rule_2", approval_id=None))
    for rule_id in ("rule_1", "rule_2"):
        with pytest.raises(
            IllegalCommand, match=f"not stored any more. Delete it with: pilothouse policy revoke {rule_id}"
        ):
            await narrow_rule(log, rule_id)
    with pytest.raises(UnknownRecord):
        await narrow_rule(log, "rule_9")


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("mcp__bank__refund", TRANSFER, "about another tool"),
        ("mcp__bank__transfer", {"to": "x" * 20_000}, "more than 16,000 characters"),
    ],
)
async def test_a_rule_is_not_narrowed_to_something_else(log: EventLog, name: str, raw: Any, why: str) -> None:
    await log.rules.add(wide())
    await approve(log, name, raw)
    with pytest.raises(IllegalCommand, match=why):
        await narrow_rule(log, "rule_1")
    assert len(find_wide_rules(await log.rules.active())) == 1


async def test_a_wide_rule_can_be_kept(log: EventLog) -> None:
    await log.rules.add(wide())
    kept = await keep_rule(log, "rule_1")
    assert kept.rule["text"] == "Call `mcp__bank__transfer` with any arguments"
    assert find_wide_rules(await log.rules.active()) == []
    assert await keep_rule(log, "rule_1") == kept
    rules = standing(log)
    assert rules.decide(await rules.rules(), "mcp__bank__transfer", {"to": "Bob"}).outcome == "allow"
    with pytest.raises(UnknownRecord):
        await keep_rule(log, "rule_9")


async def test_a_revoked_rule_is_neither_narrowed_nor_kept(log: EventLog) -> None:
    await log.rules.add(wide())
    await approve(log)
    revoked = await log.rules.revoke("rule_1")
    assert await narrow_rule(log, "rule_1") == revoked
    assert await keep_rule(log, "rule_1") == revoked


async def test_the_notice_is_shown_once(log: EventLog) -> None:
    assert await wide_rules_notice(log) is None
    await log.rules.add(wide(scope="project", scope_key="/p"))
    notice = await wide_rules_notice(log)
    assert notice is not None
    assert notice.splitlines() == [
        "1 rule of an earlier version covers a tool with any arguments, although “always” said “exactly this request”:",
        "  rule_1  Call `mcp__bank__transfer` with any arguments (project /p)",
        "Change each with: pilothouse policy narrow RULE, keep RULE or revoke RULE",
    ]
    assert await wide_rules_notice(log) is None
    await log.rules.add(wide(id="rule_2"))
    assert "2 rules" in (await wide_rules_notice(log) or "")
