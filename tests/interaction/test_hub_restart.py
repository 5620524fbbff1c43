"""An agent that is started anew gets back what was chosen in its session, and never more freedom than it had."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.dialects.acp import to_updates
from pilothouse.hub.errors import AgentFailed
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import Event
from tests.support.hubs import PATIENCE, check, facts, history, odd_hub, said

WAYS = ["resume", "load", "forgets"]
"""How the odd agent comes back to a session; it knows no `forgets`, and so begins anew."""


async def upto(events: AsyncIterator[Event], seq: int) -> AsyncIterator[Event]:
    """With their sources, as consumers get them."""
    async for event in events:
        yield event
        if event.seq >= seq:
            return


async def in_force(hub: Hub, session: HubSession) -> dict[str, Any]:
    """What the agent itself says is chosen."""
    before = session.state.seq
    result = await session.prompt("chosen")
    assert (result.stop_reason, result.error) == ("end_turn", None)
    events = await history(hub.log, session.id)
    check(events)
    value: dict[str, Any] = json.loads(said(events[before:]))
    return value


async def die(session: HubSession) -> None:
    assert (await session.prompt("die 1")).stop_reason == "error"


@pytest.mark.parametrize("how", WAYS)
async def test_a_mode_is_set_again_after_the_agent_died(tmp_path: Path, how: str) -> None:
    async with odd_hub(tmp_path / "home", how) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.set_mode("plan")
        await die(session)
        assert (await in_force(hub, session))["mode"] == "plan"
        assert session.state.mode == "plan"
        assert facts(await history(hub.log, session.id), "choices_restored") == [{"set": {"mode": "plan"}}]


@pytest.mark.parametrize("how", WAYS)
async def test_options_are_set_again_after_the_hub_was_started_anew(tmp_path: Path, how: str) -> None:
    agent = (how, "options", "wakes-changed")
    async with odd_hub(tmp_path / "home", *agent) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        before = await in_force(hub, session)
        assert before == {"mode": "ask", "model": "small", "web": False, "reach": "near"}
    async with odd_hub(tmp_path / "home", *agent) as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        assert await in_force(hub, session) == before
        assert {option["id"]: option["currentValue"] for option in session.state.config_options} == before
        assert session.state.mode == "ask"
        (fact,) = facts(await history(hub.log, session.id), "choices_restored")
        assert fact == {"set": before}


async def test_what_was_chosen_last_is_set_again_whoever_chose_it(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", "options") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.set_config_option("model", "large")
        await session.set_config_option("web", True)
        await session.set_config_option("mode", "yolo")
        await session.prompt("mode plan")  # the agent itself, and it tells of its mode alone
        await die(session)
        assert await in_force(hub, session) == {"mode": "plan", "model": "large", "web": True, "reach": "near"}
        assert (session.state.mode, session.state.model) == ("plan", "large")


async def test_nothing_is_set_that_the_agent_has_already(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", "options") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await die(session)
        await in_force(hub, session)
        assert facts(await history(hub.log, session.id), "choices_restored") == []


async def test_an_agent_that_does_not_say_what_is_chosen_is_told_all_of_it(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", "options", "untold", "wakes-changed") as hub:
        async with asyncio.timeout(PATIENCE):
            session = await hub.start_session("odd", tmp_path)
            before = await in_force(hub, session)
            await die(session)
            assert await in_force(hub, session) == before


async def test_an_agent_without_modes_has_nothing_to_set_again(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", "no-modes") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await die(session)
        await in_force(hub, session)
        assert facts(await history(hub.log, session.id), "choices_restored") == []


@pytest.mark.parametrize("habit", ["stuck", "no-ask", "tells-by-update"])
@pytest.mark.parametrize("restart", ["agent", "hub"])
async def test_an_agent_that_comes_back_with_more_freedom_does_nothing_until_somebody_chooses(
    tmp_path: Path, habit: str, restart: str
) -> None:
    """It says so in its answer or by an update, refuses to go back or no longer can; and it is asked each time."""
    agent = ("resume", "wakes-changed", *({"stuck", habit} if habit == "tells-by-update" else {habit}))
    hub = odd_hub(tmp_path / "home", *agent)
    async with hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        if habit == "no-ask":
            await session.set_mode("ask")
        assert (await in_force(hub, session))["mode"] == "ask"
        if restart == "agent":
            await die(session)
            await stays_shut(hub, session)
    if restart == "hub":
        for _ in range(2):
            async with odd_hub(tmp_path / "home", *agent) as hub, asyncio.timeout(PATIENCE):
                await stays_shut(hub, await hub.session(session.id))
    async with odd_hub(tmp_path / "home", *agent) as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        await session.set_mode("plan")
        assert (await in_force(hub, session))["mode"] == "plan"


async def stays_shut(hub: Hub, session: HubSession) -> None:
    """No prompt reaches the agent, and the session is still in the mode that it was in."""
    for _ in range(2):
        result = await session.prompt("echo UNSEEN")
        assert result.stop_reason == "error"
        assert "'yolo' and cannot be set back to 'ask'" in str(result.error)
        assert session.agent_pid is None
        assert session.state.mode == "ask"
    with pytest.raises(AgentFailed, match="until somebody chooses"):
        await session.set_config_option("model", "large")
    events = await history(hub.log, session.id)
    check(events)
    assert "UNSEEN" not in said(events)


@pytest.mark.parametrize("options", [(), ("options", "untold")])
async def test_an_agent_that_goes_into_a_third_mode_is_not_believed_to_be_back(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    agent = ("resume", "wakes-changed", "plans-instead", *options)
    async with odd_hub(tmp_path / "home", *agent) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (await in_force(hub, session))["mode"] == "ask"
        await die(session)
        result = await session.prompt("echo UNSEEN")
        assert result.stop_reason == "error"
        assert "'plan' and cannot be set back to 'ask'" in str(result.error)
        assert session.state.mode == "ask"
        await session.set_mode("yolo")  # what it makes of a choice is no surprise to who chooses
        assert session.state.mode == "plan"
        assert (await in_force(hub, session))["mode"] == "plan"


@pytest.mark.parametrize("how", ["tells-by-options", "options"])
async def test_a_mode_is_told_to_those_who_know_only_modes(tmp_path: Path, how: str) -> None:
    async with odd_hub(tmp_path / "home", "options", how) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path, start=True)
        await session.set_mode("plan")
        assert session.state.mode == "plan"
        events = [event async for event in upto(session.events(), session.state.seq)]
        updates = [json.loads(update) for update in to_updates(events)]
        modes = [update["currentModeId"] for update in updates if update["sessionUpdate"] == "current_mode_update"]
        assert modes == ["ask", "plan"]


async def test_an_option_that_may_be_about_freedom_is_held_as_strictly_and_a_model_is_not(tmp_path: Path) -> None:
    for stuck, outcome in (("stuck-model", "end_turn"), ("stuck-reach", "error")):
        work = tmp_path / stuck
        work.mkdir()
        async with odd_hub(work / "home", "resume", "options", "wakes-changed", stuck) as hub:
            async with asyncio.timeout(PATIENCE):
                session = await hub.start_session("odd", work)
                await in_force(hub, session)
                await die(session)
                result = await session.prompt("chosen")
                assert result.stop_reason == outcome
                events = await history(hub.log, session.id)
                if outcome == "error":
                    assert "reach 'far' and cannot be set back to 'near'" in str(result.error)
                    await session.set_config_option("reach", "far")
                    assert (await in_force(hub, session))["reach"] == "far"
                else:
                    (fact,) = facts(events, "choices_restored")
                    assert fact["lost"] == {"model": "never again"}
                    assert fact["set"] == {"mode": "ask", "web": False, "reach": "near"}
                    assert session.state.model == "large"


async def test_the_first_start_of_a_session_chooses_nothing(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", "options") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path, start=True)
        assert session.state.mode == "ask"
        assert facts(await history(hub.log, session.id), "choices_restored") == []
