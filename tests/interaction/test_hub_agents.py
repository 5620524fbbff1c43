"""Agents that crash, hang, make noise or forget: a clear event each, and the next prompt works."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pilothouse.hub.errors import AgentFailed, Unsupported
from pilothouse.hub.hub import Hub
from pilothouse.hub.link import AgentSpec
from pilothouse.model.events import SessionErrorEvent
from tests.support.hubs import (
    PATIENCE,
    check,
    facts,
    gone,
    history,
    odd,
    odd_hub,
    processes_with,
    said,
    until,
)


async def errors(hub: Hub, session_id: str) -> list[SessionErrorEvent]:
    return [event for event in await history(hub.log, session_id) if isinstance(event, SessionErrorEvent)]


async def test_an_agent_that_crashes_at_its_start_says_why_and_is_started_again(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "crash-once") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        first = await session.prompt("echo one")
        assert first.stop_reason == "error"
        assert first.error is not None
        (error,) = await errors(hub, session.id)
        assert error.error.details == {"exitCode": 4, "stderrTail": "odd: not today\n"}
        assert (await session.prompt("echo two")).stop_reason == "end_turn"
        check(await history(hub.log, session.id))


async def test_a_start_that_fails_raises_with_the_last_words(tmp_path: Path) -> None:
    agents = {"odd": odd("crash"), "none": AgentSpec(name="none", command=("no-such-program-anywhere",))}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, asyncio.timeout(PATIENCE):
        with pytest.raises(AgentFailed, match="no licence found"):
            await hub.start_session("odd", tmp_path, start=True)
        with pytest.raises(AgentFailed, match="not found"):
            await hub.start_session("none", tmp_path, start=True)
        session = await hub.start_session("none", tmp_path)
        result = await session.prompt("echo")
        assert result.stop_reason == "error"
        assert "no-such-program-anywhere" in str(result.error)


@pytest.mark.parametrize("how", ["hang", "hang-at-new"])
async def test_an_agent_that_hangs_at_its_start_is_given_up(tmp_path: Path, how: str) -> None:
    agents = {"odd": odd(how, start_timeout=0.5)}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        result = await session.prompt("echo")
        assert result.stop_reason == "error"
        assert "did not answer" in str(result.error)
        assert session.agent_pid is None
        (error,) = await errors(hub, session.id)
        if how == "hang":
            assert "a login that never comes" in error.error.details["stderrTail"]  # type: ignore[index]
        check(await history(hub.log, session.id))


async def test_noise_is_kept_and_disturbs_nothing(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "noise") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (await session.prompt("noise")).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        check(events)
        assert said(events) == "0 1 2 3 4 "
        assert "Welcome to odd!" in str(events)
        assert "not json" in str(events)


async def test_a_flood_on_stderr_holds_nobody_up(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (await session.prompt("stderr 20")).stop_reason == "end_turn"


async def test_a_line_of_twenty_megabytes_arrives(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE * 2):
        session = await hub.start_session("odd", tmp_path)
        assert (await session.prompt("line 20")).stop_reason == "end_turn"
        text = said(await history(hub.log, session.id))
        assert len(text) == 20 * 1024 * 1024 + len("done")


async def test_answers_with_wrong_ids_are_diagnosed_and_passed_over(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (await session.prompt("wrong-ids")).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        assert "999" in str(events)
        assert said(events) == "still here"
        check(events)


async def test_updates_before_the_session_is_known_and_after_the_turn_are_kept(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "early") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("late")
        await until(session, lambda event: getattr(event, "delta", "") == "late words")
        events = await history(hub.log, session.id)
        assert session.state.available_commands == [{"name": "early", "description": "e"}]
        assert session.status == "idle"
        assert (await session.prompt("echo on")).stop_reason == "end_turn"
        check(events)


async def test_an_update_of_another_session_is_kept_apart(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("foreign")
        events = await history(hub.log, session.id)
        assert said(events) == "mine"
        (foreign,) = facts(events, "foreign_update")
        assert foreign["update"]["content"]["text"] == "not mine"


async def test_an_agent_that_dies_between_turns_is_an_event_and_comes_back(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (await session.prompt("die-later 5")).stop_reason == "end_turn"
        await until(session, "session:error")
        assert (await session.prompt("echo back")).stop_reason == "end_turn"
        (error,) = await errors(hub, session.id)
        assert error.error.details == {"exitCode": 5, "stderrTail": "odd: died in its sleep\n"}
        events = await history(hub.log, session.id)
        assert [event.type for event in events].count("session:resumed") == 1
        check(events)


async def test_a_session_that_the_agent_forgot_begins_anew_and_says_so(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "early") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("die 1")
        assert (await session.prompt("echo back")).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        assert len(facts(events, "session_reset")) == 1
        assert facts(events, "foreign_update") == []
        check(events)


async def test_a_loaded_session_is_not_told_twice_but_what_is_new_is_kept(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "load") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("die 1")
        assert (await session.prompt("echo back")).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        assert "REPLAYED" not in str(events)
        assert session.state.available_commands == [{"name": "replayed", "description": "r"}]
        check(events)


async def test_an_agent_that_dies_of_its_old_session_gets_a_new_one(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "die-on-load") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        reasons = [(await session.prompt(word)).stop_reason for word in ("die 1", "echo 1", "echo 2", "echo 3")]
        assert reasons == ["error", "error", "end_turn", "end_turn"]
        check(await history(hub.log, session.id))


async def test_an_agent_that_wants_a_login_says_how_and_then_works(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "auth") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (await session.prompt("echo")).stop_reason == "error"
        (error,) = await errors(hub, session.id)
        assert error.error.code == "auth_required"
        assert error.error.details["authMethods"] == [{"id": "key", "name": "Key"}]  # type: ignore[index]
        with pytest.raises(AgentFailed, match="Authentication required"):
            await session.start()
        pid = session.agent_pid
        await session.authenticate("key")
        assert (await session.prompt("echo in")).stop_reason == "end_turn"
        assert session.agent_pid == pid is not None
        check(await history(hub.log, session.id))


async def test_modes_are_set_and_what_is_not_supported_says_so(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.set_mode("yolo")
        assert session.state.mode == "yolo"
        with pytest.raises(Unsupported):
            await session.set_config_option("speed", "fast")
        with pytest.raises(Unsupported):
            await session.call("session/fork", {})


async def test_what_an_agent_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    mark = f"ODD_MARK={tmp_path.name}"
    agents = {"odd": odd("resume", "ignore-eof", ODD_MARK=tmp_path.name)}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("children")
        assert len(processes_with(mark)) == 3
        await session.prompt("die 1")
        await gone(lambda: processes_with(mark))
        await session.prompt("terminal sleep 3600")
        await session.prompt("children")
        assert len(processes_with(mark)) == 3
        assert len(processes_with(f"PILOTHOUSE_HUB={hub._hub_id}")) == 4
    assert processes_with(mark) == []
    assert processes_with(f"PILOTHOUSE_HUB={hub._hub_id}") == []


async def test_closing_a_hub_ends_whatever_is_under_way(tmp_path: Path) -> None:
    mark = f"ODD_MARK={tmp_path.name}"
    agents = {
        name: odd(*how, ODD_MARK=tmp_path.name)
        for name, how in {"odd": ("ignore-eof",), "hang": ("hang",), "slow": ("slow-start",)}.items()
    }
    hub = Hub(home=tmp_path / "home", agents=agents, cancel_deadline=60)
    async with hub, asyncio.timeout(PATIENCE):
        prompts = []
        for name, words in (("odd", "deaf"), ("odd", "write x"), ("hang", "echo"), ("slow", "echo")):
            session = await hub.start_session(name, tmp_path)
            prompts += [await session.send(words), await session.send("echo queued")]
            await until(session, lambda event: event.type == "custom")
        starting = asyncio.ensure_future(hub.start_session("hang", tmp_path, start=True))
        await asyncio.sleep(0.2)
    assert processes_with(mark) == []
    reasons = [prompt.done.result().stop_reason for prompt in prompts]
    assert reasons == ["interrupted", "cancelled"] * 4
    with pytest.raises((AgentFailed, asyncio.CancelledError)):
        await starting
    async with Hub(home=tmp_path / "home", agents=agents) as again:
        assert again.recovered == []
        for record in (await again.sessions()).sessions:
            check(await history(again.log, record.id), at_rest=record.last_seq > 0)


async def test_a_session_whose_agent_is_no_longer_configured_can_be_read(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo hello")
    async with Hub(home=tmp_path / "home", agents={}) as hub, asyncio.timeout(PATIENCE):
        again = await hub.session(session.id)
        assert "hello" in str(again.snapshot())
        result = await again.prompt("echo more")
        assert result.stop_reason == "error"
        assert "configured" in str(result.error)
