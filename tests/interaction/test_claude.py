"""Claude Code's own CLI under the hub, through the bridge: the fake CLI stands in for the real one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import AgentFailed
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import Event
from tests.support.hubs import PATIENCE, check, facts, gone, history, processes_with, said, until


@asynccontextmanager
async def hub_with(spec: AgentSpec, tmp_path: Path) -> AsyncIterator[Hub]:
    """A hub; when it has closed, nothing that it started runs any more."""
    async with Hub(home=tmp_path / "hub", agents={spec.name: spec}) as hub, asyncio.timeout(2 * PATIENCE):
        yield hub
        mark = f"PILOTHOUSE_HUB={hub._hub_id}"
        assert processes_with(mark)
    await gone(lambda: processes_with(mark))


@asynccontextmanager
async def session_of(spec: AgentSpec, tmp_path: Path) -> AsyncIterator[tuple[Hub, HubSession]]:
    work = tmp_path / "work"
    work.mkdir()
    async with hub_with(spec, tmp_path) as hub:
        session = await hub.start_session(spec.name, work)
        yield hub, session
        check(await history(hub.log, session.id))


async def turn(hub: Hub, session: HubSession, prompt: str) -> list[Event]:
    """The events of a turn that ends well."""
    before = session.state.seq
    result = await session.prompt(prompt)
    assert (result.stop_reason, result.error) == ("end_turn", None)
    return (await history(hub.log, session.id))[before:]


async def decided(session: HubSession, prompt: str, **decision: Any) -> str:
    """Prompt, decide the one approval that comes; the stop reason."""
    before = session.state.seq
    sent = await session.send(prompt)
    asked: Any = await until(session, "approval:requested", before)
    await session.decide(asked.request_id, **decision)
    async with asyncio.timeout(PATIENCE):
        return str((await sent.done).stop_reason)


async def cancelled(session: HubSession, prompt: str, when: Callable[[Event], bool] | str) -> None:
    before = session.state.seq
    sent = await session.send(prompt)
    await until(session, when, before)
    async with asyncio.timeout(PATIENCE):
        assert await session.cancel() is True
    assert sent.done.result().stop_reason == "cancelled"


async def test_text_tools_and_the_log(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        assert said(await turn(hub, session, "say Hello, ä 漢 🛳")) == "Hello, ä 漢 🛳"
        assert await decided(session, f"write {tmp_path}/work/new.txt", approved=True) == "end_turn"
        assert (tmp_path / "work/new.txt").read_text() == "written\n"
        events = await history(hub.log, session.id)
        assert [event.type for event in events].count("tool:result") == 1
        assert "file:change" in [event.type for event in events]
        assert facts(events, "acted_without_asking") == []
        assert session.state.mode == "default"
        assert [option["id"] for option in session.state.config_options] == ["model"]


async def test_steps_of_a_plan_are_nothing_to_ask_about(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        events = await turn(hub, session, "play todos_tasks")
        started: list[Any] = [event for event in events if event.type == "tool:start"]
        assert [(event.name, event.kind) for event in started] == [("TodoWrite", "think")] * 2
        assert facts(events, "acted_without_asking") == []


async def test_what_is_denied_leaves_the_file_untouched(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        assert await decided(session, f"write {tmp_path}/work/new.txt", approved=False) == "end_turn"
        assert not (tmp_path / "work/new.txt").exists()
        assert said(await history(hub.log, session.id)) == "Well then."


async def test_denied_and_stopped(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        assert await decided(session, f"write {tmp_path}/work/new.txt", option_id="stop") == "cancelled"
        assert not (tmp_path / "work/new.txt").exists()
        assert said(await turn(hub, session, "say next")) == "next"


@pytest.mark.parametrize(
    ("prompt", "when"), [("talk", "message:delta"), ("work {}/pid", "tool:start"), ("write {}/x", "approval:requested")]
)
async def test_a_turn_is_cancelled_and_the_next_one_works(
    claude: AgentSpec, tmp_path: Path, prompt: str, when: str
) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        await cancelled(session, prompt.format(tmp_path), when)
        assert not (tmp_path / "x").exists()
        assert said(await turn(hub, session, "say next")) == "next"
        assert facts(await history(hub.log, session.id), "agent_killed") == []


async def test_a_session_goes_on_after_a_restart_of_the_hub(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        await turn(hub, session, "say one")
        await session.set_mode("plan")
        await session.set_config_option("model", "small")
    async with hub_with(claude, tmp_path) as hub:
        again = await hub.session(session.id)
        events = await turn(hub, again, "recall")
        assert said(events).startswith("2 prompts, mode plan, model fake-small")
        assert "session:resumed" in [event.type for event in events]
        check(await history(hub.log, again.id))


async def test_a_session_goes_on_after_its_bridge_was_killed(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        await turn(hub, session, "say one")
        pid, before = session.agent_pid, session.state.seq
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(session, "session:error", before)
        assert said(await turn(hub, session, "recall")).startswith("2 prompts")


async def test_a_cli_that_dies_is_told_with_its_last_words(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        result = await session.prompt("die 7")
        assert result.stop_reason == "error"
        assert "exit code 7" in str(result.error)
        assert "fake: out of memory" in str(await history(hub.log, session.id))
        assert said(await turn(hub, session, "recall")).startswith("2 prompts")


@pytest.mark.parametrize("status", [400, 401, 429, 529])
async def test_errors_of_the_api_are_told(claude: AgentSpec, tmp_path: Path, status: int) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        result = await session.prompt(f"fail {status}")
        assert result.stop_reason == "error"
        assert f"API Error: {status}" in str(result.error)
        assert said(await turn(hub, session, "say next")) == "next"


async def test_a_long_line_and_junk_reach_the_log(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        assert said(await turn(hub, session, "junk fine")) == "fine"
        assert "Segmentation fault" in str(await history(hub.log, session.id))
        assert len(said(await turn(hub, session, f"long {16 * 1024 * 1024}"))) == 16 * 1024 * 1024


async def test_a_fork_has_the_mode_and_the_model_of_its_parent(claude: AgentSpec, tmp_path: Path) -> None:
    async with session_of(claude, tmp_path) as (hub, session):
        await turn(hub, session, "say one")
        await session.set_mode("acceptEdits")
        await session.set_config_option("model", "small")
        fork = (await hub.fork_session(session.id)).session
        assert (fork.state.mode, fork.state.config_options[0]["currentValue"]) == ("acceptEdits", "small")
        assert "mode acceptEdits, model fake-small" in said(await turn(hub, fork, "recall"))
        assert [set(fact["set"]) for fact in facts(await history(hub.log, fork.id), "choices_restored")] == [
            {"mode", "model"}
        ]


async def test_a_missing_program_is_told_with_the_way_to_get_it(claude: AgentSpec, tmp_path: Path) -> None:
    env = {**claude.env, "PILOTHOUSE_CLAUDE": "/no/such/claude"}
    missing = AgentSpec(name="claude-code", command=(sys.executable, *claude.command[1:]), env=env)
    async with Hub(home=tmp_path / "hub", agents={"claude-code": missing}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("claude-code", tmp_path)
        result = await session.prompt("say hello")
        assert result.stop_reason == "error"
        assert "npm install -g @anthropic-ai/claude-code" in str(result.error)


async def test_why_a_start_failed_reaches_whoever_asked_for_it(claude: AgentSpec, tmp_path: Path) -> None:
    env = {**claude.env, "FAKE_CLAUDE": "crash"}
    broken = AgentSpec(name="claude-code", command=claude.command, env=env)
    async with Hub(home=tmp_path / "hub", agents={"claude-code": broken}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("claude-code", tmp_path)
        with pytest.raises(AgentFailed, match="no licence found") as caught:
            await session.start()
        assert str(caught.value).count("no licence found") == 1
        known = {"agent": "claude-code", "errorKind": "start_failed", "stderrTail": "fake: no licence found\n"}
        assert caught.value.details == known
