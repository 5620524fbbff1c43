"""The hub with a real agent in a real process: prompts, approvals, cancels, deaths, restarts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from pilothouse.model.events import ApprovalRequestedEvent

DEMO = AgentSpec(name="demo", command=(sys.executable, "-m", "pilothouse.cli", "demo-agent"))
PATIENCE = 60


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with Hub(home=tmp_path / "home", agents={"demo": DEMO}, cancel_deadline=0.5) as hub:
        yield hub


async def test_a_prompt_is_answered_after_its_events_are_committed(hub: Hub, project: Path) -> None:
    session = await hub.start_session("demo", project)
    async with asyncio.timeout(PATIENCE):
        result = await session.prompt("echo hello")
    assert result.stop_reason == "end_turn"
    assert await hub.log.last_seq(session.id) >= result.seq
    entries = await hub.log.read(session.id, 0)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert session.state.messages[-1].role == "assistant"


@pytest.mark.parametrize("approved", [True, False])
async def test_a_write_happens_only_when_it_is_approved(hub: Hub, project: Path, approved: bool) -> None:
    session = await hub.start_session("demo", project)
    prompt = await session.send("edit note.txt hello")
    async with asyncio.timeout(PATIENCE):
        async for event in session.events():
            if isinstance(event, ApprovalRequestedEvent):
                await hub.decide(event.request_id, approved=approved, by="phone")
                break
        await prompt.done
    assert (project / "note.txt").exists() is approved
    (approval,) = await hub.log.approvals.list(session.id)
    assert approval.decided_by == "phone"


@pytest.mark.parametrize("word", ["wait", "stubborn 20", "slow 20"])
async def test_a_cancel_ends_the_turn_and_the_next_prompt_works(hub: Hub, project: Path, word: str) -> None:
    session = await hub.start_session("demo", project)
    prompt = await session.send(word)
    async with asyncio.timeout(PATIENCE):
        await hub.log.wait_beyond(session.id, 8)
        assert await session.cancel()
        assert prompt.done.result().stop_reason == "cancelled"
        assert (await session.prompt("echo still here")).stop_reason == "end_turn"
    assert not await session.cancel()


async def test_an_agent_that_dies_is_an_event_and_is_started_again(hub: Hub, project: Path) -> None:
    session = await hub.start_session("demo", project)
    async with asyncio.timeout(PATIENCE):
        assert (await session.prompt("crash 3")).stop_reason == "error"
        assert (await session.prompt("echo again")).stop_reason == "end_turn"
    types = [entry.type for entry in await hub.log.read(session.id, 0)]
    assert types.count("session:error") == 1


async def test_prompts_wait_for_each_other_and_each_is_answered(hub: Hub, project: Path) -> None:
    session = await hub.start_session("demo", project)
    prompts = [await session.send(f"echo {number}") for number in range(5)]
    session.cancel_queued(prompts[3].turn_id)
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(*(prompt.done for prompt in prompts))
    assert [result.stop_reason for result in results] == ["end_turn"] * 3 + ["cancelled", "end_turn"]


async def test_a_session_goes_on_in_another_hub(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"
    async with Hub(home=home, agents={"demo": DEMO}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("demo", project, title="First")
        first = await session.prompt("echo one")
    async with Hub(home=home, agents={"demo": DEMO}) as hub, asyncio.timeout(PATIENCE):
        again = await hub.session(session.id)
        second = await again.prompt("echo two")
        assert second.seq > first.seq
        texts = ["".join(str(getattr(block, "text", "")) for block in item.content) for item in again.state.messages]
    assert texts == ["echo one", "one", "echo two", "two"]
