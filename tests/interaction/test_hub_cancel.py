"""A cancel always ends the turn, once, and the next prompt works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import ToolCallErrorEvent
from tests.support.hubs import PATIENCE, check, fact, facts, history, odd, odd_hub, until


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with odd_hub(tmp_path / "home", "resume") as hub:
        yield hub


@pytest.fixture
async def session(hub: Hub, tmp_path: Path) -> HubSession:
    return await hub.start_session("odd", tmp_path)


async def works(hub: Hub, session: HubSession, *reasons: str) -> None:
    """The next prompt works, and the log says how each turn ended."""
    async with asyncio.timeout(PATIENCE):
        assert (await session.prompt("echo still here")).stop_reason == "end_turn"
    events = await history(hub.log, session.id)
    check(events)
    assert [data["stopReason"] for data in facts(events, "turn_ended")] == [*reasons, "end_turn"]


@pytest.mark.parametrize("word", ["text", "text-end-turn", "text-error", "tool"])
async def test_a_cancel_ends_a_turn_however_the_agent_answers_it(hub: Hub, session: HubSession, word: str) -> None:
    prompt = await session.send(word)
    await until(session, "tool:executing" if word == "tool" else "message:delta")
    async with asyncio.timeout(PATIENCE):
        assert await session.cancel()
    assert prompt.done.result().stop_reason == "cancelled"
    assert prompt.done.result().error is None
    await works(hub, session, "cancelled")


async def test_an_open_tool_call_ends_with_its_cancelled_turn(hub: Hub, session: HubSession) -> None:
    await session.send("tool")
    await until(session, "tool:executing")
    async with asyncio.timeout(PATIENCE):
        await session.cancel()
    (error,) = [event for event in await history(hub.log, session.id) if isinstance(event, ToolCallErrorEvent)]
    assert error.error.code == "cancelled"


async def test_a_cancel_answers_what_is_pending(hub: Hub, session: HubSession, tmp_path: Path) -> None:
    prompt = await session.send("write note.txt")
    asked = await until(session, "approval:requested")
    async with asyncio.timeout(PATIENCE):
        assert await session.cancel()
    assert prompt.done.result().stop_reason == "cancelled"
    (approval,) = await hub.log.approvals.list(session.id)
    assert approval.id == asked.request_id  # type: ignore[attr-defined]
    assert approval.decision is not None
    assert (approval.decision["approved"], approval.decided_by) == (False, "cancelled")
    assert not (tmp_path / "note.txt").exists()
    await works(hub, session, "cancelled")


async def test_an_agent_that_asks_again_after_a_cancel_is_answered_at_once(hub: Hub, session: HubSession) -> None:
    await session.send("write-uncancelled note.txt")
    await until(session, "approval:requested")
    async with asyncio.timeout(PATIENCE):
        assert await session.cancel()
    await works(hub, session, "cancelled")


async def test_an_agent_that_ignores_a_cancel_is_ended_at_the_deadline(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", cancel_deadline=0.3) as hub:
        session = await hub.start_session("odd", tmp_path)
        prompt = await session.send("deaf")
        await until(session, "message:delta")
        pid = session.agent_pid
        async with asyncio.timeout(PATIENCE):
            assert await session.cancel()
        assert prompt.done.result().stop_reason == "cancelled"
        await works(hub, session, "cancelled")
        assert session.agent_pid not in (pid, None)
        events = await history(hub.log, session.id)
        assert len(facts(events, "agent_killed")) == 1
        assert not [event for event in events if event.type == "session:error"]


async def test_many_cancels_at_once_are_one(hub: Hub, session: HubSession) -> None:
    await session.send("text")
    await until(session, "message:delta")
    async with asyncio.timeout(PATIENCE):
        assert await asyncio.gather(*(session.cancel() for _ in range(5))) == [True] * 5
        assert not await session.cancel()
    await works(hub, session, "cancelled")


async def test_queued_prompts_run_after_a_cancelled_one(hub: Hub, session: HubSession) -> None:
    first = await session.send("text")
    waiting = [await session.send(f"echo {number}") for number in range(3)]
    await until(session, "message:delta")
    async with asyncio.timeout(PATIENCE):
        assert await session.cancel()
        assert first.done.result().stop_reason == "cancelled"
        results = await asyncio.gather(*(prompt.done for prompt in waiting))
    assert [result.stop_reason for result in results] == ["end_turn"] * 3
    await works(hub, session, "cancelled", *["end_turn"] * 3)


@pytest.mark.parametrize("how", ["hang", "hang-at-new", "slow-start"])
async def test_a_cancel_while_the_agent_starts_ends_its_start(tmp_path: Path, how: str) -> None:
    async with odd_hub(tmp_path / "home", how) as hub:
        session = await hub.start_session("odd", tmp_path)
        prompt = await session.send("echo never")
        await until(session, fact("turn_started"))
        async with asyncio.timeout(PATIENCE):
            assert await session.cancel()
        assert prompt.done.result().stop_reason == "cancelled"
        assert session.agent_pid is None
        hub.agents["odd"] = odd()
        await hub.release(session.id)
        await works(hub, await hub.session(session.id), "cancelled")


async def test_a_cancel_right_after_a_prompt_ends_it_before_the_agent_sees_it(hub: Hub, session: HubSession) -> None:
    async with asyncio.timeout(PATIENCE):
        await session.prompt("echo first")
        prompt = await session.send("text")
        assert await session.cancel()
    assert prompt.done.result().stop_reason == "cancelled"
    await works(hub, session, "end_turn", "cancelled")


async def test_cancels_that_race_with_the_end_of_turns_leave_each_turn_one_end(hub: Hub, session: HubSession) -> None:
    reasons = []
    async with asyncio.timeout(PATIENCE):
        for number in range(40):
            prompt = await session.send(f"flood {number}")
            for _ in range(number):
                await asyncio.sleep(0)
            cancelled = await session.cancel()
            reasons.append(prompt.done.result().stop_reason)
            assert reasons[-1] == ("cancelled" if cancelled else "end_turn")
    await works(hub, session, *reasons)


async def test_a_queued_prompt_can_be_edited_moved_and_cancelled(hub: Hub, session: HubSession) -> None:
    await session.send("text")
    first, second, third = [await session.send(f"echo {word}") for word in ("one", "two", "three")]
    await session.committed()
    assert [item["promptId"] for item in session.snapshot()["queue"]] == [p.turn_id for p in (first, second, third)]
    session.edit_queued(first.turn_id, "echo changed")
    session.move_queued(third.turn_id, 0)
    session.cancel_queued(second.turn_id)
    async with asyncio.timeout(PATIENCE):
        assert (await second.done).stop_reason == "cancelled"
        await until(session, "message:delta")
        await session.cancel()
        results = await asyncio.gather(first.done, third.done)
    assert results[0].seq > results[1].seq
    assert session.snapshot()["queue"] == []
    assert "changed" in str(session.snapshot())
    await works(hub, session, "cancelled", "end_turn", "end_turn")
