"""Real agents under the hub: each case once for each agent, with the log, the disk and the processes checked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.acp import AcpAdapter
from pilothouse.adapters.catalog import AgentProgram, Way
from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.prompt_queue import TurnResult
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import Event
from tests.lab.agents import AGENTS
from tests.support.hubs import check, facts, gone, history, processes_with, said

PATIENCE = 90
Note = Callable[[str], None]


def script(*steps: Any) -> str:
    return "@@fake " + json.dumps(list(steps))


def bash(command: str) -> dict[str, Any]:
    return {"op": "bash", "cmd": command, "escalate": True}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The workspace, with a file in it."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "hello.txt").write_text("hello world\nsecond line\n")
    return place


@asynccontextmanager
async def hub_with(agent: AgentSpec, tmp_path: Path) -> AsyncIterator[Hub]:
    """A hub; when it has closed, nothing that it started runs any more."""
    async with Hub(home=tmp_path / "hub", agents={agent.name: agent}) as hub, asyncio.timeout(PATIENCE):
        yield hub
        mark = f"PILOTHOUSE_HUB={hub._hub_id}"
    await gone(lambda: processes_with(mark))


async def begun(hub: Hub, agent: AgentSpec, work: Path) -> HubSession:
    """A new session, in a mode in which the agent asks."""
    session = await hub.start_session(agent.name, work)
    mode = AGENTS[agent.name].mode
    if mode is not None:
        await session.set_mode(mode)
    return session


@asynccontextmanager
async def answered(session: HubSession, allows: Callable[[Event], bool]) -> AsyncIterator[list[Any]]:
    """Approvals are decided as they come; those that came."""
    asked: list[Any] = []

    async def decide() -> None:
        async for event in session.events(session.state.seq):
            if event.type == "approval:requested":
                asked.append(event)
                await session.decide(event.request_id, approved=allows(event))  # type: ignore[attr-defined]

    task = asyncio.create_task(decide())
    try:
        yield asked
    finally:
        task.cancel()
        await asyncio.wait((task,))


def always(event: Event) -> bool:
    return True


def never(event: Event) -> bool:
    return False


async def spoken(hub: Hub, session: HubSession, prompt: str) -> tuple[TurnResult, list[Event]]:
    """Prompt; the result and the events of this turn."""
    before = session.state.seq
    result = await session.prompt(prompt)
    return result, (await history(hub.log, session.id))[before:]


async def goes_on(hub: Hub, session: HubSession, *, unasked: int = 0) -> None:
    """The next prompt works, the log is sound, and `unasked` acts are flagged."""
    result, events = await spoken(hub, session, script("Second answer"))
    assert (result.stop_reason, result.error) == ("end_turn", None)
    assert "Second answer" in said(events)
    whole = await history(hub.log, session.id)
    check(whole)
    assert len(facts(whole, "acted_without_asking")) == unasked


async def test_text(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        result, events = await spoken(hub, session, script("Hello from the lab, ä 漢 🛳"))
        assert (result.stop_reason, result.error) == ("end_turn", None)
        assert said(events) == "Hello from the lab, ä 漢 🛳"
        await goes_on(hub, session)


async def test_tools(agent: AgentSpec, tmp_path: Path, work: Path, note: Note) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        steps = [
            {"text": "Reading. ", "calls": [{"op": "read", "path": f"{work}/hello.txt"}]},
            {"text": "Writing. ", "calls": [{"op": "write", "path": f"{work}/new.txt", "content": "one\ntwo\n"}]},
            {"op": "edit", "path": f"{work}/hello.txt", "old": "hello world", "new": "HELLO LAB"},
            bash(f"echo ran > {work}/ran.txt"),
            "All done.",
        ]
        async with answered(session, always) as asked:
            result, events = await spoken(hub, session, script(*steps))
        assert (result.stop_reason, result.error) == ("end_turn", None)
        assert said(events).endswith("All done.")
        assert (work / "new.txt").read_text() == "one\ntwo\n"
        assert (work / "hello.txt").read_text() == "HELLO LAB\nsecond line\n"
        assert (work / "ran.txt").read_text() == "ran\n"
        calls = {event.tool_call_id for event in events if event.type == "tool:start"}  # type: ignore[attr-defined]
        ends = [event for event in events if event.type == "tool:result"]
        assert len(calls) == len(ends) == 4
        changed = {Path(event.path).name for event in events if event.type == "file:change"}  # type: ignore[attr-defined]
        assert {"new.txt", "hello.txt"} <= changed
        note(f"{len(asked)} asked")
        unasked = [fact["name"] for fact in facts(events, "acted_without_asking")]
        note(f"{len(unasked)} flagged")
        acts = 3  # a write, an edit and a command
        await goes_on(hub, session, unasked=acts - len([event for event in asked if event.risk_level != "low"]))


async def test_reject(agent: AgentSpec, tmp_path: Path, work: Path, note: Note) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        steps = [bash(f"touch {work}/never.txt"), "Well then."]
        async with answered(session, never) as asked:
            result, events = await spoken(hub, session, script(*steps))
        assert asked
        assert not (work / "never.txt").exists()
        assert not [event for event in events if event.type == "tool:result"]
        note(f"the turn ended {result.stop_reason}")
        await goes_on(hub, session)


async def test_reject_write(agent: AgentSpec, tmp_path: Path, work: Path, note: Note) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        steps = [{"op": "write", "path": f"{work}/never.txt", "content": "x\n"}, "Well then."]
        async with answered(session, never) as asked:
            await spoken(hub, session, script(*steps))
        if not asked:
            note("it asks nobody inside its sandbox")
            assert (work / "never.txt").exists()
        else:
            assert not (work / "never.txt").exists()
        await goes_on(hub, session, unasked=0 if asked else 1)


async def cancelled_when(hub: Hub, session: HubSession, prompt: str, when: Callable[[Event], bool]) -> list[Event]:
    """Prompt, cancel when an event comes; the events of the turn."""
    before = session.state.seq
    sent = await session.send(prompt)
    async for event in session.events(before):
        if when(event):
            break
        assert not sent.done.done(), f"the turn is over: {sent.done.result()}"
    async with asyncio.timeout(15):
        assert await session.cancel() is True
    assert sent.done.result().stop_reason == "cancelled"
    return (await history(hub.log, session.id))[before:]


async def test_cancel_text(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        prompt = script({"text": "tick " * 300, "chunk": 5, "delay": 0.1})
        events = await cancelled_when(hub, session, prompt, lambda event: event.type == "message:delta")
        assert facts(events, "agent_killed") == []
        await goes_on(hub, session)


async def test_cancel_tool(agent: AgentSpec, tmp_path: Path, work: Path, note: Note) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        marker = work / "begun.txt"
        prompt = script(bash(f"touch {marker}; sleep 61; touch {work}/late.txt"), "Too late.")
        before = session.state.seq
        async with answered(session, always):
            sent = await session.send(prompt)
            while not marker.exists():
                assert not sent.done.done(), f"the turn is over: {sent.done.result()}"
                await asyncio.sleep(0.05)
            async with asyncio.timeout(15):
                assert await session.cancel() is True
        assert sent.done.result().stop_reason == "cancelled"
        events = (await history(hub.log, session.id))[before:]
        if facts(events, "agent_killed"):
            note("it had to be ended")
        await goes_on(hub, session)
        assert not (work / "late.txt").exists()


async def test_cancel_approval(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        prompt = script(bash(f"touch {work}/never.txt"), "Too late.")
        events = await cancelled_when(hub, session, prompt, lambda event: event.type == "approval:requested")
        assert not (work / "never.txt").exists()
        assert [event.type for event in events].count("approval:resolved") == 1
        assert await hub.approvals() == []
        await goes_on(hub, session)


async def remembers(hub: Hub, session: HubSession, note: Note) -> None:
    """The session goes on, with what was said before, or is told to be a fresh one."""
    result, events = await spoken(hub, session, script("I was told {scripts} scripts."))
    assert (result.stop_reason, result.error) == ("end_turn", None)
    check(await history(hub.log, session.id))
    reset = facts(events, "session_reset")
    if reset:
        note(f"a fresh session: {reset[0].get('refused', 'it cannot resume')}")
        assert "told 1 scripts" in said(events)
    else:
        assert "told 2 scripts" in said(events)
        assert [event.type for event in events].count("session:resumed") == 1


async def test_resume_after_a_hub_restart(agent: AgentSpec, tmp_path: Path, work: Path, note: Note) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        await spoken(hub, session, script("First answer"))
    async with hub_with(agent, tmp_path) as hub:
        await remembers(hub, await hub.session(session.id), note)


async def test_resume_after_the_agent_was_killed(agent: AgentSpec, tmp_path: Path, work: Path, note: Note) -> None:
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        await spoken(hub, session, script("First answer"))
        pid = session.agent_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        async for event in session.events(session.state.seq):
            if event.type == "session:error":
                break
        await remembers(hub, session, note)
        assert session.agent_pid != pid


async def test_discovery(agent: AgentSpec, tmp_path: Path, work: Path, note: Note) -> None:
    """The adapter hears what the agent says of itself, and finds the session in its list, where it keeps one."""
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        await spoken(hub, session, script("First answer"))
        known = (await hub.log.sessions.get(session.id)).agent_session_id
    program = AgentProgram(name=agent.name, title=agent.name, ways=(Way(agent.command),))
    adapter = AcpAdapter(program)
    capabilities = await adapter.probe()
    assert capabilities.agent.name
    found = await adapter.discover_sessions()
    note(f"{capabilities.agent.display_name} {capabilities.agent.version or 'without a version'}")
    if found:
        assert (known, str(work)) in [(item.id, item.project_path) for item in found]
    else:
        note("it keeps no list")


async def test_choices_after_a_hub_restart(agent: AgentSpec, tmp_path: Path, work: Path, note: Note) -> None:
    """Each mode that it offers is the same before and after; so are its options."""
    async with hub_with(agent, tmp_path) as hub:
        session = await begun(hub, agent, work)
        await spoken(hub, session, script("First answer"))
        options = {option["id"]: option for option in session.state.config_options}
        modes = [mode["id"] for mode in session.state.modes] or list(_values(options.get("mode", {})))
        assert modes
    for mode in modes:
        async with hub_with(agent, tmp_path) as hub:
            session = await hub.session(session.id)
            await (session.set_mode(mode) if session.state.modes else session.set_config_option("mode", mode))
            if session.state.mode != mode:
                note(f"for {mode} it takes {session.state.mode}")
            before = chosen(session)
        async with hub_with(agent, tmp_path) as hub:
            session = await hub.session(session.id)
            await session.start()
            assert chosen(session) == before
            restored = facts(await history(hub.log, session.id), "choices_restored")
            await goes_on(hub, session)
    note(f"modes {', '.join(modes)}; options {', '.join(options) or 'none'}; {len(restored)} times set again")


def chosen(session: HubSession) -> dict[str, Any]:
    options = {option["id"]: option["currentValue"] for option in session.state.config_options}
    return {"mode": session.state.mode, **options}


def _values(option: dict[str, Any]) -> Iterator[str]:
    for item in option.get("options", ()):
        yield item["value"]
