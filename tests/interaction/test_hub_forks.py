"""Forks with real agents: each has the history of its origin, and from there on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.hub import hub as hub_module
from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import AgentFailed, IllegalCommand
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from tests.support.hubs import check, facts, history, odd_hub, said
from tests.support.servers import agent_specs


async def answer(hub: Hub, session: HubSession, prompt: str) -> str:
    before = session.state.seq
    assert (await session.prompt(prompt)).error is None
    return said((await history(hub.log, session.id))[before:])


async def test_claude_code_goes_two_ways_and_knows_both_after_a_restart(tmp_path: Path, claude: AgentSpec) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with Hub(home=tmp_path / "hub", agents={"claude-code": claude}) as hub:
        session = await hub.start_session("claude-code", work)
        assert await answer(hub, session, "say one") == "one"
        fork, _ = await hub.fork_session(session.id)
        assert (await answer(hub, fork, "recall")).startswith("2 prompts")
        assert (await answer(hub, fork, "recall")).startswith("3 prompts")
        assert (await answer(hub, session, "recall")).startswith("2 prompts")
        assert fork.agent_session_id != session.agent_session_id
    async with Hub(home=tmp_path / "hub", agents={"claude-code": claude}) as hub:
        again = await hub.session(fork.id)
        assert (await answer(hub, again, "recall")).startswith("4 prompts")
        check(await history(hub.log, fork.id))


async def test_a_fork_is_the_same_history_event_for_event(tmp_path: Path) -> None:
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub:
        session = await hub.start_session("demo", tmp_path, policy={"autoApprove": {"reads": True}})
        for prompt in ("tour", "flood 1200", "tools"):
            sent = await session.send(prompt)
            async for event in session.events():
                if event.type == "approval:requested":
                    request_id = event.request_id  # type: ignore[union-attr]
                    if any(one.request_id == request_id for one in session.state.pending_approvals):
                        await session.decide(request_id, approved=True)
                if getattr(event, "event_name", "") == "turn_ended" and event.data["turnId"] == sent.turn_id:  # type: ignore[union-attr]
                    break
            await sent.done
        before = await hub.log.read(session.id, 0, 100_000)
        until = session.state.seq
        fork, inherited = await hub.fork_session(session.id)
        assert inherited == until
        after = await hub.log.read(fork.id, 0, 100_000)
        assert (len(before), len(after) > until) == (until, True)
        for old, new in zip(before, after, strict=False):
            assert (old.seq, old.type, old.source) == (new.seq, new.type, new.source)
            told = msgspec.json.decode(new.data)
            assert told.pop("sessionId") == fork.id
            assert {**told, "sessionId": session.id} == msgspec.json.decode(old.data)
        events = await history(hub.log, fork.id)
        check(events)
        assert facts(events, "session_forked") == [{"sessionId": session.id, "seq": until}]
        assert fork.policy == session.policy
        assert fork.state.turns == session.state.turns
        assert (await fork.prompt("echo on")).stop_reason == "end_turn"
        assert len(await hub.log.read(session.id, until, 10)) == 0


async def test_a_fork_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "fork", "resume") as hub:
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo before")
        hub.agents["odd"] = msgspec.structs.replace(hub.agents["odd"], command=("/no/such/program",))
        with pytest.raises(AgentFailed):
            await hub.fork_session(session.id)
        assert [record.id for record in (await hub.sessions(archived=None)).sessions] == [session.id]
        await session.terminate()
        with pytest.raises(IllegalCommand, match="it is over"):
            await hub.fork_session(session.id)


async def test_a_session_that_is_prompted_while_it_is_forked_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with odd_hub(tmp_path / "home", "fork", "resume") as hub:
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo before")
        copy = hub_module.copy_history

        async def slowly(*what: Any) -> None:
            await copy(*what)
            await session.prompt("echo meanwhile")

        monkeypatch.setattr(hub_module, "copy_history", slowly)
        with pytest.raises(IllegalCommand, match="prompted while it was forked"):
            await hub.fork_session(session.id)
        assert [record.id for record in (await hub.sessions(archived=None)).sessions] == [session.id]
        assert (await session.prompt("echo after")).stop_reason == "end_turn"
