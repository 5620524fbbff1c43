"""Real agents' sessions that were begun elsewhere: found, told live, adopted by one writer at a time, continued."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.adapters.discovery.claude import ClaudeStore
from pilothouse.adapters.discovery.codex import CodexStore
from pilothouse.adapters.discovery.finder import Finder
from pilothouse.adapters.discovery.opencode import OpenCodeStore
from pilothouse.adapters.discovery.store import Store
from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import Held
from pilothouse.hub.external.writer_lock import Leases
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.discovery import DiscoveredSession
from tests.lab.agents import AGENTS, CLEAN, LAB, programs, spec
from tests.lab.claude_cases import script
from tests.lab.claude_storage import Terminal
from tests.lab.conftest import WANTED
from tests.lab.model.server import Server
from tests.support.hubs import check, facts, history, said

PATIENCE = 90
STORES: dict[str, Callable[[Path], Store]] = {
    "claude-code": lambda home: ClaudeStore(home / ".claude"),
    "codex": lambda home: CodexStore(home / ".codex"),
    "opencode": lambda home: OpenCodeStore(home / ".local/share/opencode"),
}


@contextlib.asynccontextmanager
async def looking(place: Path, agent: AgentSpec, store: Store) -> AsyncIterator[Hub]:
    """A hub that finds the sessions of one agent."""
    place.mkdir(parents=True)
    own = msgspec.structs.replace(agent, name=store.agent)
    async with Hub(home=place, agents={store.agent: own}) as hub:
        finder = Finder([store])
        hub.discovery.prepare(lambda: finder, Leases(place.parent / "leases", place))
        await hub.discovery.begin()
        yield hub


async def eventually(hub: Hub, session: HubSession, text: str) -> list[Any]:
    """The events of a session once a text was said in it."""
    async with asyncio.timeout(PATIENCE):
        while text not in said(events := list(await history(hub.log, session.id))):
            await asyncio.sleep(0.05)
    return events


async def only(hub: Hub) -> DiscoveredSession:
    async with asyncio.timeout(PATIENCE):
        while not (found := (await hub.discovery.found(refresh=True))[0]):
            await asyncio.sleep(0.1)
    (one,) = found
    return one


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.parametrize("name", [name for name in STORES if name in WANTED])
async def test_a_session_of_another_hub_is_told_live_and_goes_on_when_that_has_ended(
    tmp_path: Path, work: Path, model: Server, name: str
) -> None:
    home = tmp_path / "agent"
    agent = spec(AGENTS[name], LAB, home, model.url)
    async with looking(tmp_path / "here", agent, STORES[name](home)) as hub:
        async with looking(tmp_path / "there", agent, STORES[name](home)) as other:
            begun = await other.start_session(next(iter(other.agents)), work)
            assert (await begun.prompt(f"go {script('First words.')}")).error is None
            found = await only(hub)
            assert found.id == begun.agent_session_id
            assert found.project_path == str(work)
            watched = await hub.watch_session(found)
            await eventually(hub, watched, "First words.")
            assert (await begun.prompt(f"more {script('Second words.')}")).error is None
            await eventually(hub, watched, "Second words.")
            for how in ("resume", "take_over"):
                with pytest.raises(Held) as refused:
                    await hub.adopt_session(found, how)  # type: ignore[arg-type]
                assert "take_over" not in refused.value.details["choices"]
        session = await hub.adopt_session(found)
        assert session is watched
        outcome = await session.prompt(f"and more {script('Third words.')}")
        assert outcome.error is None
        events = await eventually(hub, session, "Third words.")
        check(events)
        told = said(events)
        assert [told.count(f"{word} words.") for word in ("First", "Second", "Third")] == [1, 1, 1]
        assert session.agent_session_id == found.id
        assert len(facts(events, "turn_started")) == 3
        assert not facts(events, "session_reset")
        pid = session.agent_pid
        assert (await session.prompt(f"and on {script('Fourth words.')}")).error is None
        await session.read_on()
        assert (await session.prompt(f"and on {script('Fifth words.')}")).error is None
        events = await eventually(hub, session, "Fifth words.")
        check(events)
        assert session.agent_pid == pid  # nothing of its own was taken for another's
        assert not any(data.get("elsewhere") for data in facts(events, "turn_started"))


def cli(home: Path, work: Path, url: str, *words: str) -> str:
    """What Claude Code says that is run for one prompt."""
    command = spec(AGENTS["claude-code"], LAB, home, url).command
    variables = command[command.index(CLEAN) + 1 : command.index("--")]
    program = str(programs(LAB, "claude-code") / "claude")
    done = subprocess.run(
        [sys.executable, "-S", "-E", CLEAN, *variables, "--", program, "-p", *words],
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout


def branches(home: Path) -> int:
    """How many records of a session go on in two ways."""
    (path,) = (home / ".claude/projects").rglob("*.jsonl")
    records = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    parents = Counter(one.get("parentUuid") for one in records if one.get("type") in ("user", "assistant"))
    del parents[None]
    return sum(count > 1 for count in parents.values())


@pytest.mark.skipif("claude-code" not in WANTED, reason="another agent was chosen")
async def test_what_is_done_elsewhere_in_an_adopted_session_is_told_and_known_and_nothing_forks(
    tmp_path: Path, work: Path, model: Server
) -> None:
    home = tmp_path / "agent"
    agent = spec(AGENTS["claude-code"], LAB, home, model.url)
    await asyncio.to_thread(cli, home, work, model.url, f"go {script('First words.')}")
    async with looking(tmp_path / "here", agent, ClaudeStore(home / ".claude")) as hub:
        found = await only(hub)
        session = await hub.adopt_session(found)
        resume = ("--resume", found.id)
        await asyncio.to_thread(cli, home, work, model.url, *resume, f"go {script('Second words.')}")
        assert (await session.prompt(f"go {script('Third words: {scripts} scripts.')}")).error is None
        pid = session.agent_pid
        await asyncio.to_thread(cli, home, work, model.url, *resume, f"go {script('Fourth words.')}")
        assert (await session.prompt(f"go {script('Fifth words: {scripts} scripts.')}")).error is None
        events = await eventually(hub, session, "Fifth words")
        check(events)
        wanted = "First words.Second words.Third words: 3 scripts.Fourth words.Fifth words: 5 scripts."
        assert said(events) == wanted
        marks = [bool(data.get("elsewhere")) for data in facts(events, "turn_started")]
        assert marks == [False, True, False, True, False]
        assert session.agent_pid not in (None, pid)
        assert branches(home) == 0


@pytest.fixture
def terminal(tmp_path: Path, work: Path, model: Server) -> Iterator[Terminal]:
    (tmp_path / "user").mkdir()
    terminal = Terminal(tmp_path / "user", work, model.url)
    yield terminal
    terminal.kill()


@pytest.mark.skipif("claude-code" not in WANTED, reason="another agent was chosen")
async def test_a_session_in_a_terminal_is_told_live_forked_and_taken_over(
    tmp_path: Path, model: Server, terminal: Terminal
) -> None:
    agent = spec(AGENTS["claude-code"], LAB, terminal.home, model.url)
    async with looking(tmp_path / "here", agent, ClaudeStore(terminal.home / ".claude")) as hub:
        await asyncio.to_thread(terminal.until, lambda: terminal.told.get("status") == "idle", "the start")
        await asyncio.to_thread(terminal.say, f"go {script('First words.')}", "First words.")
        found = await only(hub)
        assert (found.id, found.pid) == (terminal.told["sessionId"], terminal.pid)
        watched = await hub.watch_session(found)
        await eventually(hub, watched, "First words.")
        await asyncio.to_thread(terminal.say, f"more {script('Second words.')}", "Second words.")
        await eventually(hub, watched, "Second words.")
        with pytest.raises(Held) as refused:
            await hub.adopt_session(found)
        assert refused.value.details["pid"] == terminal.pid
        assert refused.value.details["choices"] == ["watch", "fork", "take_over"]
        fork = await hub.adopt_session(found, "fork")
        assert fork.agent_session_id != found.id
        assert (await fork.prompt(f"go {script('Aside.')}")).error is None
        assert terminal.told.get("status") == "idle"
        session = await hub.adopt_session(found, "take_over", pid=terminal.pid)
        assert (await session.prompt(f"and more {script('Third words.')}")).error is None
        events = await eventually(hub, session, "Third words.")
        check(events)
        told = said(events)
        assert [told.count(f"{word} words.") for word in ("First", "Second", "Third")] == [1, 1, 1]
        assert session.agent_session_id == found.id
        (adopted,) = facts(events, "session_adopted")
        assert adopted["endedPid"] == terminal.pid
