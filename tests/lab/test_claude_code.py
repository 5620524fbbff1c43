"""What Claude Code's own CLI has to hold, through our bridge: the kinds of its errors, stop, always, its history."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import spawn_agent_process
from pilothouse.hub.link import AgentSpec
from tests.lab.conftest import WANTED
from tests.lab.test_agents import PATIENCE, always, answered, bash, begun, goes_on, hub_with, script, spoken
from tests.support.hubs import check, facts, history, said, until
from tests.unit.adapters.claude.driving import Talk, Watcher

pytestmark = pytest.mark.parametrize("agent", ["claude-code"] if "claude-code" in WANTED else [], indirect=True)


KINDS = {400: "invalid_request", 401: "auth_required", 429: "rate_limit", 529: "overloaded", 500: "server_error"}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / "hello.txt").write_text("hello world\nsecond line\n")
    return place


async def test_api_errors(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    """Each is told with its own words, and the session goes on."""
    watcher = Watcher()
    program, *rest = agent.command
    spawned = spawn_agent_process(watcher, program, *rest, cwd=str(work))  # type: ignore[arg-type]
    async with asyncio.timeout(3 * PATIENCE), spawned as (connection, _):
        await connection.initialize(protocol_version=1)
        talk = Talk(connection, watcher, work)
        await talk.open()
        kinds = {}
        for status, kind in KINDS.items():
            error = await talk.failed(script({"error": {"status": status, "message": f"number {status}"}}))
            kinds[status] = (error.data["errorKind"], kind)
            assert f"number {status}" in error.message
        assert all(found == wanted for found, wanted in kinds.values()), kinds
        assert await talk.said(script("Next.")) == "Next."


async def test_parallel_calls(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        (work / "other.txt").write_text("other\n")
        reads = [{"op": "read", "path": f"{work}/{name}.txt"} for name in ("hello", "other")]
        steps: list[Any] = [{"think": "Hm. ", "text": "Both. ", "calls": reads}, "Done."]
        async with answered(session, always):
            result, events = await spoken(hub, session, script(*steps))
        assert (result.stop_reason, result.error) == ("end_turn", None)
        assert said(events) == "Both. Done."
        assert [event.type for event in events].count("tool:result") == 2
        await goes_on(hub, session)


async def test_reject_and_stop(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        before = session.state.seq
        sent = await session.send(script(bash(f"touch {work}/never.txt"), "Never said."))
        asked: Any = await until(session, "approval:requested", before)
        await session.decide(asked.request_id, option_id="stop")
        assert (await sent.done).stop_reason == "cancelled"
        assert not (work / "never.txt").exists()
        assert "Never said" not in said(await history(hub.log, session.id))
        await goes_on(hub, session)


async def test_allow_always(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    """The CLI itself holds what was allowed for good."""
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        steps = [{"op": "write", "path": f"{work}/{name}.txt", "content": "x\n"} for name in ("one", "two")]
        before = session.state.seq
        sent = await session.send(script(*steps, "Done."))
        asked: Any = await until(session, "approval:requested", before)
        await session.decide(asked.request_id, option_id="mode:acceptEdits")
        assert (await sent.done).stop_reason == "end_turn"
        assert (work / "two.txt").exists()
        events = await history(hub.log, session.id)
        assert [event.type for event in events].count("approval:requested") == 1
        assert session.state.mode == "acceptEdits"
        assert facts(events, "agent_killed") == []
        check(events)


async def test_history_is_loaded(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    program, *rest = agent.command
    first, second = Watcher(), Watcher()
    async with (
        asyncio.timeout(PATIENCE),
        spawn_agent_process(first, program, *rest, cwd=str(work)) as (connection, _),  # type: ignore[arg-type]
    ):
        await connection.initialize(protocol_version=1)
        talk = Talk(connection, first, work)
        await talk.open()
        assert await talk.said(script({"op": "read", "path": f"{work}/hello.txt"}, "Read it.")) == "Read it."
    async with (
        asyncio.timeout(PATIENCE),
        spawn_agent_process(second, program, *rest, cwd=str(work)) as (connection, _),  # type: ignore[arg-type]
    ):
        await connection.initialize(protocol_version=1)
        listed = await connection.list_sessions(cwd=str(work))
        assert [one.session_id for one in listed.sessions] == [talk.session]
        await connection.load_session(session_id=talk.session, cwd=str(work), mcp_servers=[])
        assert second.said() == "Read it."
        assert second.said("user_message_chunk").startswith("@@fake")
        assert second.statuses() == first.statuses()
        forked = await connection.fork_session(session_id=talk.session, cwd=str(work))
        branch = Talk(connection, second, work)
        branch.session = forked.session_id
        assert await branch.said(script("I was told {scripts} scripts.")) == "I was told 2 scripts."
