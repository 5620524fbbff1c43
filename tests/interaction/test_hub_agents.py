"""Agents that crash, hang, make noise or forget: a clear event each, and the next prompt works."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import AgentFailed, Unsupported
from pilothouse.hub.hub import Hub
from pilothouse.model.events import CustomEvent, Event, SessionErrorEvent
from tests.support import long_lines
from tests.support.hubs import (
    PATIENCE,
    check,
    fact,
    facts,
    gone,
    history,
    odd,
    odd_hub,
    processes_with,
    said,
    until,
    wait_for_processes,
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
    agents = {"odd": odd(how, start_timeout=3.0)}  # it has begun by then, on a busy machine too
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


async def test_a_flood_of_noise_is_told_of_and_not_stored(tmp_path: Path) -> None:
    """A hundred thousand lines that are no messages: some are kept, the number of the others too."""
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (await session.prompt("babble 100000")).stop_reason == "end_turn"
        counted = 0

        def is_last(event: Event) -> bool:
            nonlocal counted
            if isinstance(event, CustomEvent) and event.event_name == "diagnostic":
                more = re.search(r"; (\d+) more before it were not kept", event.data["reason"])
                counted += 1 + (int(more[1]) if more else 0)
            return counted == 100_000

        await until(session, is_last)
        events = await history(hub.log, session.id)
        told = facts(events, "diagnostic")
        assert len(told) < 1000
        assert len(events) < 1100
        assert told[0]["text"] == "0 of 100000 done"
        assert said(events) == "sorry"
        check(events)


async def test_a_program_that_only_makes_noise_is_given_up_and_its_noise_is_bounded(tmp_path: Path) -> None:
    agents = {"yes": AgentSpec(name="yes", command=("yes",), start_timeout=1.0)}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("yes", tmp_path)
        result = await session.prompt("echo")
        assert result.stop_reason == "error"
        assert "did not answer `initialize` within 1 s" in str(result.error)
        events = await history(hub.log, session.id)
        assert 0 < len(facts(events, "diagnostic")) < 200
        check(events)


async def test_nonsense_of_every_kind_breaks_nothing(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        for _ in range(2):
            assert (await session.prompt("nonsense")).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        assert said(events) == "sorrysorry"
        assert len(facts(events, "diagnostic")) > 10
        check(events)


JUNK = {
    '"result":null': "answered `initialize` with null",
    '"result":"yes"': 'answered `initialize` with "yes"',
    '"result":[1]': "answered `initialize` with [1]",
    '"result":{},"error":{"code":-1,"message":"both"}': "answered `initialize` with the error 'both'",
    '"error":"no"': "answered `initialize` with the error",
    '"error":{"code":"x"}': "answered `initialize` with the error",
    '"answer":42': "answered `initialize` with null",
}


@pytest.mark.parametrize("junk", JUNK)
async def test_an_agent_that_answers_initialize_with_junk_is_refused_clearly(tmp_path: Path, junk: str) -> None:
    agents = {"odd": odd(f"junk={junk}", ODD_MARK=tmp_path.name)}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        result = await session.prompt("echo")
        assert result.stop_reason == "error"
        assert result.error
        assert JUNK[junk] in result.error
        assert "never heard of that" in result.error
        (error,) = await errors(hub, session.id)
        assert error.error.details["stderrTail"] == "odd: never heard of that\n"  # type: ignore[index]
        await gone(lambda: processes_with(f"ODD_MARK={tmp_path.name}"))
        hub.agents["odd"] = odd()
        await hub.release(session.id)
        assert (await (await hub.session(session.id)).prompt("echo now")).stop_reason == "end_turn"
        check(await history(hub.log, session.id))


@pytest.mark.parametrize("command", ["cat", "true", "false"])
async def test_a_program_that_is_no_agent_gives_a_clear_error(tmp_path: Path, command: str) -> None:
    agents = {"none": AgentSpec(name="none", command=(command,), start_timeout=5.0)}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("none", tmp_path)
        result = await session.prompt("echo")
        assert result.stop_reason == "error"
        expected = {
            "cat": "'cat' answered `initialize` with the error 'Method not found'; see that it speaks ACP",
            "true": "exit code 0",
            "false": "exit code 1",
        }
        assert expected[command] in str(result.error)
        assert session.agent_pid is None
        check(await history(hub.log, session.id))


ENDS = {
    "die 0": (0, "told to die"),
    "die 3": (3, "told to die"),
    "close-stdout": (None, "nothing more to say"),
    "leave-pipe": (0, "my child will go on"),
    "stderr-and-die 100": (6, "told to die"),
}


@pytest.mark.parametrize("words", ENDS)
async def test_however_an_agent_ends_in_mid_turn_the_next_prompt_restarts_it(tmp_path: Path, words: str) -> None:
    code, last = ENDS[words]
    agents = {"odd": odd("resume", "ignore-eof", ODD_MARK=tmp_path.name)}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        result = await session.prompt(words)
        assert result.stop_reason == "error"
        assert "The agent" in str(result.error)
        (error,) = await errors(hub, session.id)
        assert error.error.code == "agent_died"
        details: Any = error.error.details
        assert details["exitCode"] == code
        assert last in details["stderrTail"]
        assert len(details["stderrTail"]) <= 64 * 1024
        assert (await session.prompt("echo back")).stop_reason == "end_turn"
        assert len(processes_with(f"ODD_MARK={tmp_path.name}")) == 1  # the new one, and nothing of the old
        events = await history(hub.log, session.id)
        assert [event.type for event in events].count("session:resumed") == 1
        check(events)


async def test_an_agent_that_stops_reading_holds_up_nobody(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", cancel_deadline=0.5) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        other = await hub.start_session("odd", tmp_path)
        await session.prompt("stop-reading")
        unread = await session.send("echo " + "x" * 5_000_000)
        await until(session, lambda event: event.type == "custom" and unread.turn_id in str(event))
        assert (await other.prompt("echo meanwhile")).stop_reason == "end_turn"
        await session.cancel()
        assert (await unread.done).stop_reason == "cancelled"
        assert (await session.prompt("echo back")).stop_reason == "end_turn"
        check(await history(hub.log, session.id))


async def test_a_flood_on_stderr_holds_nobody_up(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (await session.prompt("stderr 100")).stop_reason == "end_turn"
        assert len(await history(hub.log, session.id)) < 50


async def measured(home: Path, megabytes: int) -> list[Any]:
    """What `long_lines` tells, in a process of its own: this one has held much before."""
    home.mkdir()
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, long_lines.__file__, str(home), str(megabytes)),
        stdout=asyncio.subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    async with asyncio.timeout(PATIENCE * 3):
        told, _ = await process.communicate()
    assert process.returncode == 0
    values: list[Any] = json.loads(told)
    return values


async def test_long_lines_arrive_up_to_the_limit_within_bounded_memory(
    tmp_path: Path, tell: Callable[[str], None]
) -> None:
    before, after, length, reason, diagnostics = await measured(tmp_path / "60", 60)
    assert (length, reason, diagnostics) == (60 * 1024 * 1024 + len("warmdonestill here"), "end_turn", [])
    assert after - before < 60 * 12
    tell(f"a line of 60 MiB: {before} MiB before, at most {after} MiB")
    before, after, length, reason, diagnostics = await measured(tmp_path / "70", 70)
    assert (length, reason) == (len("warmdonestill here"), "end_turn")
    assert len(diagnostics) == 1
    assert "is over the limit" in diagnostics[0]
    assert after - before < 64 * 4
    tell(f"a line of 70 MiB, which is passed over: {before} MiB before, at most {after} MiB")


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
        session = await hub.start_session("odd", tmp_path, policy={"autoApprove": {"commands": ["sleep *"]}})
        await session.prompt("children")
        assert len(await wait_for_processes(3, lambda: processes_with(mark))) == 3
        await session.prompt("die 1")
        await gone(lambda: processes_with(mark))
        await session.prompt("terminal sleep 3600")
        await session.prompt("children")
        assert len(await wait_for_processes(3, lambda: processes_with(mark))) == 3
        assert len(processes_with(f"PILOTHOUSE_HUB={hub._hub_id}")) == 4
    assert processes_with(mark) == []
    assert processes_with(f"PILOTHOUSE_HUB={hub._hub_id}") == []


async def test_closing_a_hub_ends_whatever_is_under_way(tmp_path: Path) -> None:
    mark = f"ODD_MARK={tmp_path.name}"
    agents = {
        name: odd(*how, ODD_MARK=tmp_path.name)
        for name, how in {"odd": ("ignore-eof",), "hang": ("hang", "ignore-eof"), "slow": ("slow-start",)}.items()
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


async def test_a_hub_is_not_closed_before_an_agent_that_was_just_starting_is_gone(tmp_path: Path) -> None:
    mark = f"ODD_MARK={tmp_path.name}"
    agents = {"odd": odd("noise", "hang", "ignore-eof", ODD_MARK=tmp_path.name)}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        prompt = await session.send("echo")
        await until(session, fact("diagnostic"))
    assert processes_with(mark) == []
    assert prompt.done.result().stop_reason == "interrupted"


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
