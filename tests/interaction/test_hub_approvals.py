"""Approvals: durable, decided once, answered to the agent after the commit; silence never allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.adapters.catalog import PermissionBehavior
from pilothouse.hub.approvals.approvals import Approvals
from pilothouse.hub.errors import DecidedOtherwise, IllegalCommand, UnknownApproval, Unsupported
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.log.records import Approval
from pilothouse.model.events import ApprovalResolvedEvent
from pilothouse.model.policy import parse_policy
from tests.support.hubs import PATIENCE, approval_asked, check, fact, facts, history, odd, odd_hub, said, until


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with odd_hub(tmp_path / "home", "resume") as hub:
        yield hub


@pytest.fixture
async def session(hub: Hub, project: Path) -> HubSession:
    return await hub.start_session("odd", project)


async def answers(hub: Hub, session: HubSession) -> list[Any]:
    """What the agent was answered, as it says itself."""
    text = said(await history(hub.log, session.id))
    return [json.JSONDecoder().raw_decode(part)[0] for part in text.split("ANSWER ")[1:]]


async def test_of_a_hundred_deciders_one_wins_and_all_are_told(hub: Hub, session: HubSession, project: Path) -> None:
    prompt = await session.send("write note.txt")
    asked = await approval_asked(session)

    async def decide(number: int) -> Approval | DecidedOtherwise:
        try:
            return await hub.decide(asked.request_id, approved=number % 2 == 0, by=f"device {number}")
        except DecidedOtherwise as exc:
            return exc

    async with asyncio.timeout(PATIENCE):
        told = await asyncio.gather(*(decide(number) for number in range(100)))
        await prompt.done
    winners = {one.decided_by if isinstance(one, Approval) else one.details["decidedBy"] for one in told}
    assert len(winners) == 1
    allowed = int(winners.pop().split()[1]) % 2 == 0
    assert sum(isinstance(one, Approval) for one in told) == 50
    assert (project / "note.txt").exists() is allowed
    events = await history(hub.log, session.id)
    check(events)
    (resolved,) = [event for event in events if isinstance(event, ApprovalResolvedEvent)]
    assert resolved.approved is allowed


async def test_the_agent_learns_of_a_decision_when_it_is_committed(hub: Hub, session: HubSession) -> None:
    prompt = await session.send("write note.txt")
    asked = await approval_asked(session)
    await session.decide(asked.request_id, approved=True)
    async with asyncio.timeout(PATIENCE):
        await prompt.done
    types = [event.type for event in await history(hub.log, session.id)]
    assert types.index("approval:resolved") < types.index("tool:result")


async def test_rejecting_never_executes_and_the_reason_reaches_the_agent(
    hub: Hub, session: HubSession, project: Path
) -> None:
    prompt = await session.send("write note.txt")
    asked = await approval_asked(session)
    await session.decide(asked.request_id, approved=False, reason="Not on a Friday")
    async with asyncio.timeout(PATIENCE):
        assert (await prompt.done).stop_reason == "end_turn"
    assert not (project / "note.txt").exists()
    (answer,) = await answers(hub, session)
    assert answer == {"outcome": {"outcome": "selected", "optionId": "no"}, "_meta": {"reason": "Not on a Friday"}}
    check(await history(hub.log, session.id))


async def test_a_decision_after_the_turn_ended_is_told_that_it_is_too_late(hub: Hub, session: HubSession) -> None:
    await session.send("write note.txt")
    asked = await approval_asked(session)
    async with asyncio.timeout(PATIENCE):
        await session.cancel()
    with pytest.raises(DecidedOtherwise) as info:
        await session.decide(asked.request_id, approved=True)
    assert info.value.details["decidedBy"] == "cancelled"
    assert (await session.decide(asked.request_id, approved=False)).decided_by == "cancelled"


async def test_decisions_that_make_no_sense_change_nothing(hub: Hub, session: HubSession) -> None:
    prompt = await session.send("write note.txt")
    asked = await approval_asked(session)
    with pytest.raises(UnknownApproval):
        await hub.decide("apr_none", approved=True)
    with pytest.raises(UnknownApproval):
        await session.decide("apr_none", approved=True)
    with pytest.raises(UnknownApproval):
        await session.decide(asked.request_id, option_id="made up")
    with pytest.raises(IllegalCommand):
        await session.decide(asked.request_id)
    with pytest.raises(IllegalCommand):
        await session.decide(asked.request_id, approved=False, option_id="yes")
    assert [approval.id for approval in await hub.approvals()] == [asked.request_id]
    await session.decide(asked.request_id, option_id="no")
    async with asyncio.timeout(PATIENCE):
        await prompt.done


async def test_what_the_agent_offers_no_way_to_allow_cannot_be_allowed(hub: Hub, session: HubSession) -> None:
    session.set_policy(parse_policy({"autoApprove": {"writes": True}}))
    prompt = await session.send("only-reject note.txt")
    asked = await approval_asked(session)
    with pytest.raises(IllegalCommand):
        await session.decide(asked.request_id, approved=True)
    await session.decide(asked.request_id, approved=False)
    async with asyncio.timeout(PATIENCE):
        await prompt.done
    assert (await answers(hub, session))[0]["outcome"]["optionId"] == "no"


async def test_an_approval_that_is_pending_when_the_hub_closes_is_cancelled(tmp_path: Path, project: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub:
        session = await hub.start_session("odd", project)
        prompt = await session.send("write note.txt")
        asked = await approval_asked(session)
    assert prompt.done.result().stop_reason == "interrupted"
    async with odd_hub(tmp_path / "home", "resume") as hub:
        assert hub.recovered == []
        events = await history(hub.log, session.id)
        check(events)
        (resolved,) = [event for event in events if isinstance(event, ApprovalResolvedEvent)]
        assert (resolved.approved, resolved.resolved_by) == (False, "cancelled")
        assert await hub.approvals() == []
        with pytest.raises(DecidedOtherwise):
            await hub.decide(asked.request_id, approved=True)
    assert not (project / "note.txt").exists()


async def test_a_timeout_denies(tmp_path: Path, project: Path) -> None:
    async with odd_hub(tmp_path / "home", approval_timeout=0.2) as hub:
        session = await hub.start_session("odd", project)
        async with asyncio.timeout(PATIENCE):
            assert (await session.prompt("write note.txt")).stop_reason == "end_turn"
        (approval,) = await hub.log.approvals.list(session.id)
        assert approval.decision is not None
        assert (approval.decision["approved"], approval.decision["resolvedBy"]) == (False, "timeout")
        assert approval.expires is not None
        assert (await answers(hub, session))[0]["outcome"]["optionId"] == "no"
        events = await history(hub.log, session.id)
        check(events)
    assert not (project / "note.txt").exists()


@pytest.mark.parametrize("scope", ["session", "project", "everywhere"])
async def test_always_answers_in_its_scope_until_it_is_revoked(
    hub: Hub, session: HubSession, project: Path, tmp_path: Path, scope: Any
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    same, other = await hub.start_session("odd", project), await hub.start_session("odd", elsewhere)
    async with asyncio.timeout(PATIENCE):
        prompt = await session.send("run make test")
        asked = await approval_asked(session)
        await session.decide(asked.request_id, approved=True, remember=scope)
        await prompt.done
        await session.prompt("run make test")
        asks = {"session": [same, other], "project": [other], "everywhere": []}[scope]
        for one in (same, other):
            prompt = await one.send("run make test")
            if one in asks:
                await one.decide((await approval_asked(one)).request_id, approved=False)
            await prompt.done
        (rule,) = await hub.rules()
        assert (rule.scope, rule.hits) == (scope, 3 - len(asks))
        await hub.revoke_rule(rule.id)
        prompt = await session.send("run make test")
        asked = await approval_asked(session, session.state.seq)
        await session.decide(asked.request_id, approved=False)
        await prompt.done
    chosen = [answer["outcome"]["optionId"] for answer in await answers(hub, session)]
    assert chosen == ["yes", "yes", "no"]
    for one in (session, same, other):
        check(await history(hub.log, one.id))


async def test_an_always_covers_exactly_what_was_decided(hub: Hub, session: HubSession) -> None:
    async with asyncio.timeout(PATIENCE):
        prompt = await session.send("run rm *.pyc")
        await session.decide((await approval_asked(session)).request_id, approved=True, remember="everywhere")
        await prompt.done
        assert facts(await history(hub.log, session.id), "rule_not_kept")
        prompt = await session.send("run make test")
        asked = await approval_asked(session, session.state.seq)
        await session.decide(asked.request_id, approved=True, remember="everywhere", remember_for=3600)
        await prompt.done
        (rule,) = await hub.rules()
        assert rule.expires is not None
        for command in ("make test install", "make test; rm -rf /", "sudo make test", "make"):
            prompt = await session.send(f"run {command}")
            await session.decide((await approval_asked(session, session.state.seq)).request_id, approved=False)
            await prompt.done
    assert (await hub.rules())[0].hits == 0


async def test_an_expired_rule_asks_again(hub: Hub, session: HubSession) -> None:
    async with asyncio.timeout(PATIENCE):
        prompt = await session.send("run make test")
        asked = await approval_asked(session)
        await session.decide(asked.request_id, approved=True, remember="session", remember_for=-1)
        await prompt.done
        prompt = await session.send("run make test")
        await session.decide((await approval_asked(session, session.state.seq)).request_id, approved=False)
        await prompt.done


async def test_always_never_is_a_rule_too(hub: Hub, session: HubSession, project: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        prompt = await session.send("write note.txt")
        asked = await approval_asked(session)
        await session.decide(asked.request_id, approved=False, remember="project")
        await prompt.done
        session.set_policy(parse_policy({"autoApprove": {"writes": True}}))
        await session.prompt("write note.txt")
    assert not (project / "note.txt").exists()
    assert (await hub.rules())[0].hits == 1


async def test_a_policy_decides_and_says_which_rule(hub: Hub, project: Path) -> None:
    policy = {"autoApprove": {"writes": ["*.txt"]}, "deny": {"writes": ["secret.txt"]}}
    session = await hub.start_session("odd", project, policy=policy)
    async with asyncio.timeout(PATIENCE):
        await session.prompt("write note.txt")
        await session.prompt("write secret.txt")
    assert (project / "note.txt").exists()
    assert not (project / "secret.txt").exists()
    first, second = await hub.log.approvals.list(session.id)
    assert first.decided_by == "autoApprove.writes[0]: *.txt"
    assert second.decided_by == "deny.writes[0]: secret.txt"
    await hub.release(session.id)
    again = await hub.session(session.id)
    assert again.policy == parse_policy(policy)


async def test_a_request_that_the_agent_withdraws_is_cancelled(hub: Hub, session: HubSession) -> None:
    async with asyncio.timeout(PATIENCE):
        assert (await session.prompt("withdraw note.txt")).stop_reason == "end_turn"
    assert await hub.approvals() == []
    (resolved,) = [e for e in await history(hub.log, session.id) if isinstance(e, ApprovalResolvedEvent)]
    assert (resolved.approved, resolved.resolved_by) == (False, "cancelled")
    check(await history(hub.log, session.id))


async def test_an_agent_that_dies_while_it_asks_leaves_nothing_pending(hub: Hub, session: HubSession) -> None:
    async with asyncio.timeout(PATIENCE):
        result = await session.prompt("ask-and-die note.txt")
        assert result.stop_reason == "error"
        assert await hub.approvals() == []
        assert (await session.prompt("echo again")).stop_reason == "end_turn"
    events = await history(hub.log, session.id)
    check(events)
    (error,) = [event for event in events if event.type == "session:error"]
    assert error.error.details["exitCode"] == 7  # type: ignore[attr-defined]
    assert "dying with a question open" in error.error.details["stderrTail"]  # type: ignore[attr-defined]


async def test_an_agent_may_ask_when_its_turn_is_over(hub: Hub, session: HubSession) -> None:
    async with asyncio.timeout(PATIENCE):
        await session.prompt("background note.txt")
        asked = await approval_asked(session)
        assert session.status == "waiting_for_approval"
        await session.decide(asked.request_id, approved=True)
        await until(session, lambda event: "ANSWER" in str(getattr(event, "delta", "")))
        assert (await answers(hub, session))[0]["outcome"]["optionId"] == "yes"
        assert session.status == "idle"


async def test_requests_that_come_at_once_leave_the_loop_to_others(
    hub: Hub, session: HubSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, int]] = []
    turns = 0
    open_request = Approvals._open

    def count_turns() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(count_turns)

    def note(self: Approvals, pending: Any, *args: Any, **fields: Any) -> None:
        open_request(self, pending, *args, **fields)
        opened.append((pending.event.tool_call_id, turns))

    monkeypatch.setattr(Approvals, "_open", note)
    loop = asyncio.get_running_loop()
    count_turns()
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    calls = [{"toolCallId": f"c{number}", "title": "ls", "kind": "execute"} for number in range(100)]
    requests = [msgspec.json.encode({"sessionId": "s", "toolCall": call, "options": options}) for call in calls]
    approvals = session._parts.approvals
    asking = [asyncio.create_task(approvals.ask(request)) for request in requests]
    async with asyncio.timeout(PATIENCE):
        while len(opened) < len(calls):
            await asyncio.sleep(0.01)
        asking[7].cancel()
        approvals.cancel_all("enough")
        await asyncio.wait(asking)
    assert sorted(name for name, _ in opened) == sorted(call["toolCallId"] for call in calls)
    assert len({turn for _, turn in opened}) == len(calls)


async def test_an_act_without_asking_is_flagged_even_after_an_approval(hub: Hub, session: HubSession) -> None:
    async with asyncio.timeout(PATIENCE):
        await session.prompt("unasked /etc/passwd")
        prompt = await session.send("write note.txt")
        await session.decide((await approval_asked(session)).request_id, option_id="always")
        await prompt.done
        await session.prompt("unasked /etc/passwd")
    flagged = facts(await history(hub.log, session.id), "acted_without_asking")
    assert [data["toolCallId"] for data in flagged] == ["u1", "u1"]


@pytest.mark.parametrize(
    ("answer", "action", "expected", "outcome"),
    [
        ("blue", None, {"action": "accept", "content": {"colour": "blue"}}, "answered"),
        ({"colour": "red"}, None, {"action": "accept", "content": {"colour": "red"}}, "answered"),
        (None, None, {"action": "decline"}, "declined"),
        (None, "cancel", {"action": "cancel"}, "cancelled"),
    ],
)
async def test_a_question_is_answered_declined_or_cancelled(
    hub: Hub, session: HubSession, answer: Any, action: Any, expected: Any, outcome: str
) -> None:
    prompt = await session.send("question")
    asked = await until(session, "interaction:question")
    question_id = asked.question_id  # type: ignore[attr-defined]
    assert session.status == "waiting_for_input"
    session.answer(question_id, answer, action=action)
    session.answer(question_id, answer, action=action)
    with pytest.raises(DecidedOtherwise):
        session.answer(question_id, "green")
    async with asyncio.timeout(PATIENCE):
        await prompt.done
    assert await answers(hub, session) == [expected]
    (answered,) = facts(await history(hub.log, session.id), "question_answered")
    assert answered["outcome"] == outcome
    session.answer(question_id, answer, action=action)
    with pytest.raises(DecidedOtherwise):
        session.answer(question_id, "green")
    with pytest.raises(UnknownApproval):
        session.answer("qst_none", "green")
    check(await history(hub.log, session.id))


async def test_a_cancel_answers_a_question(hub: Hub, session: HubSession) -> None:
    prompt = await session.send("question")
    await until(session, "interaction:question")
    async with asyncio.timeout(PATIENCE):
        await session.cancel()
    assert prompt.done.result().stop_reason == "cancelled"
    check(await history(hub.log, session.id))


async def test_a_question_times_out_like_an_approval(tmp_path: Path, project: Path) -> None:
    async with odd_hub(tmp_path / "home", approval_timeout=0.2) as hub:
        session = await hub.start_session("odd", project)
        async with asyncio.timeout(PATIENCE):
            await session.prompt("question")
        assert await answers(hub, session) == [{"action": "cancel"}]


@pytest.mark.parametrize("way", ["answer", "approve", "decline"])
async def test_answers_approve_a_tool_that_only_asks(tmp_path: Path, project: Path, way: str) -> None:
    declines = way == "decline"
    asking = msgspec.structs.replace(odd(), behavior=PermissionBehavior(question_tools=frozenset({"AskUserQuestion"})))
    async with Hub(home=tmp_path / "home", agents={"odd": asking}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", project)
        prompt = await session.send("ask-tool")
        asked = await approval_asked(session)
        assert asked.question_ids == ["q1:0"]
        if way == "approve":
            await session.decide(asked.request_id, approved=True, answers={"q1:0": "B"}, by="phone")
        else:
            session.answer("q1:0", None if declines else "B", by="phone")
        await prompt.done
        await _check_answer(hub, session, declines)


async def _check_answer(hub: Hub, session: HubSession, declines: bool) -> None:
    (answer,) = await answers(hub, session)
    assert answer["outcome"]["optionId"] == ("no" if declines else "yes")
    assert answer["_meta"] == (
        {"reason": "The user did not want to answer."} if declines else {"answers": {"Which?": "B"}}
    )
    (approval,) = await hub.log.approvals.list(session.id)
    assert approval.decided_by == "phone"
    check(await history(hub.log, session.id))


@pytest.mark.parametrize("approves", [False, True])
async def test_an_answer_never_decides_an_approval_of_the_same_call(
    hub: Hub, session: HubSession, approves: bool
) -> None:
    prompt = await session.send("ask-tool")
    asked = await approval_asked(session)
    assert asked.question_ids == []
    session.answer("q1:0", "B", by="phone")
    await session.committed()
    (approval,) = await hub.log.approvals.list(session.id)
    assert approval.state == "pending"
    await session.decide(asked.request_id, approved=approves)
    async with asyncio.timeout(PATIENCE):
        await prompt.done
    (answer,) = await answers(hub, session)
    assert answer["outcome"]["optionId"] == ("yes" if approves else "no")
    assert answer.get("_meta") == ({"answers": {"Which?": "B"}} if approves else None)
    check(await history(hub.log, session.id))


async def test_a_tools_question_that_nobody_can_answer_says_so(hub: Hub, session: HubSession) -> None:
    prompt = await session.send("ask-tool")
    await until(session, "interaction:question")
    asked = await approval_asked(session)
    await session.decide(asked.request_id, approved=False)
    await until(session, fact("turn_ended"))
    async with asyncio.timeout(PATIENCE):
        await prompt.done
    with pytest.raises((Unsupported, DecidedOtherwise)):
        session.answer("q1:0", "A")
