"""Agents that nobody here wrote run under the hub: the example agents of the official Python and TypeScript SDKs.

The Python ones are in the SDK's source distribution and the TypeScript one in its last package that had it; `make test`
gets both. They write no files, so agents on the same two SDKs that do are run as well.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.prompt_queue import TurnResult
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import Event
from pilothouse.model.policy import parse_policy
from tests.support.hubs import check, facts, history, said, until

PATIENCE = 60
HERE = Path(__file__).resolve().parent
INTEROP = HERE.parent / "interop"
HURRY = "const wait = setTimeout; globalThis.setTimeout = (then, ms, ...more) => wait(then, ms / 10, ...more)"
"""The TypeScript example takes a second for each of its steps; so it takes a tenth."""
TYPESCRIPT_EXAMPLE = INTEROP / "node_modules" / "sdk-examples" / "dist" / "examples" / "agent.js"


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official Python SDK's examples, as it publishes them."""
    found = sorted((Path(sys.prefix) / "sdk").glob("agent_client_protocol-*.tar.gz"))
    if not found:
        pytest.skip("the official SDK's source distribution is not there: `make test` gets it")
    place = tmp_path_factory.mktemp("sdk")
    with tarfile.open(found[-1]) as archive:
        archive.extractall(place, filter="data")
    (folder,) = place.glob("*/examples")
    return folder


def node() -> str:
    program = shutil.which("node")
    if program is None or not TYPESCRIPT_EXAMPLE.is_file():
        pytest.skip("node, or the TypeScript SDK in tests/interop/node_modules, is not there: `make test` gets the SDK")
    return program


def typescript_example() -> tuple[str, ...]:
    return node(), f"--import=data:text/javascript,{quote(HURRY)}", str(TYPESCRIPT_EXAMPLE)


def hub_of(tmp_path: Path, *command: str) -> Hub:
    return Hub(home=tmp_path / "home", agents={"real": AgentSpec(name="real", command=command)})


def python_example(examples: Path, name: str) -> tuple[str, str]:
    return sys.executable, str(examples / f"{name}.py")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / "notes.txt").write_text("old\nsecond\n")
    return place


async def turn(hub: Hub, session: HubSession, content: Any) -> tuple[TurnResult, list[Event]]:
    """Prompt; the result and the events of the turn. All that is stored must be sound."""
    before = await session.committed()
    result = await session.prompt(content)
    events = await history(hub.log, session.id)
    check(events)
    return result, events[before:]


async def decided(session: HubSession, prompt: str, *, approved: bool) -> TurnResult:
    """Prompt, and decide what the agent asks."""
    before = await session.committed()
    sent = await session.send(prompt)
    asked = await until(session, "approval:requested", before)
    await session.decide(asked.request_id, approved=approved)  # type: ignore[attr-defined]
    return await asyncio.shield(sent.done)


async def cancelled(session: HubSession, prompt: str, when: str | None = None) -> None:
    """Prompt, and cancel when an event of this type comes, or at once."""
    before = await session.committed()
    sent = await session.send(prompt)
    if when is not None:
        await until(session, when, before)
    assert await session.cancel() is True
    assert sent.done.result().stop_reason == "cancelled"


async def begins_anew(tmp_path: Path, work: Path, *command: str, prompt: str, answer: str) -> None:
    """After a restart of the hub an agent that cannot load gets a fresh session, and that is told."""
    async with hub_of(tmp_path, *command) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        await turn(hub, session, prompt)
        first = (await hub.log.sessions.get(session.id)).agent_session_id
    async with hub_of(tmp_path, *command) as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        result, events = await turn(hub, session, prompt)
        assert (result.stop_reason, result.error) == ("end_turn", None)
        assert answer in said(events)
        assert facts(events, "session_reset") == [{"previousSessionId": first}]


# -- the examples of the official Python SDK --


@pytest.mark.parametrize("name", ["agent", "echo_agent"])
async def test_the_python_examples_are_prompted_and_go_on_after_a_cancel(
    tmp_path: Path, work: Path, examples: Path, name: str
) -> None:
    async with hub_of(tmp_path, *python_example(examples, name)) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        result, events = await turn(hub, session, "hello, ä 漢 🛳")
        assert (result.stop_reason, result.error) == ("end_turn", None)
        assert said(events).endswith("hello, ä 漢 🛳")
        blocks = [{"type": "text", "text": "two"}, {"type": "resource_link", "uri": "file:///x", "name": "x"}]
        assert (await turn(hub, session, blocks))[0].stop_reason == "end_turn"
        await cancelled(session, "never mind")
        result, events = await turn(hub, session, "still here")
        assert result.stop_reason == "end_turn"
        assert said(events).endswith("still here")


@pytest.mark.parametrize("name", ["agent", "echo_agent"])
async def test_the_python_examples_begin_anew_when_the_hub_was_restarted(
    tmp_path: Path, work: Path, examples: Path, name: str
) -> None:
    command = python_example(examples, name)
    await begins_anew(tmp_path, work, *command, prompt="again", answer="again")


async def test_the_python_example_is_known_by_what_it_says_of_itself(
    tmp_path: Path, work: Path, examples: Path
) -> None:
    async with hub_of(tmp_path, *python_example(examples, "agent")) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        await session.set_mode("quiet")
        assert session.state.mode == "quiet"
        await session.authenticate("any")
        context: Any = await until(session, "environment:info")
        assert (context.context.agent.display_name, context.context.agent.version) == ("Example Agent", "0.1.0")


# -- the example of the TypeScript SDK --

ASKS = "call_2"


async def test_the_typescript_example_works_when_it_is_allowed(tmp_path: Path, work: Path) -> None:
    async with hub_of(tmp_path, *typescript_example()) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        result = await decided(session, "improve it", approved=True)
        assert (result.stop_reason, result.error) == ("end_turn", None)
        events = await history(hub.log, session.id)
        check(events)
        assert "successfully updated the configuration" in said(events)
        ends = [event.tool_call_id for event in events if event.type == "tool:result"]  # type: ignore[attr-defined]
        assert ends == ["call_1", ASKS]


async def test_the_typescript_example_leaves_it_when_it_is_rejected(tmp_path: Path, work: Path) -> None:
    async with hub_of(tmp_path, *typescript_example()) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        result = await decided(session, "improve it", approved=False)
        assert result.stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        check(events)
        assert "prefer not to make that change" in said(events)
        (error,) = [event for event in events if event.type == "tool:error"]
        assert (error.tool_call_id, error.error.code) == (ASKS, "rejected")  # type: ignore[attr-defined]


@pytest.mark.parametrize("moment", ["message:delta", "tool:start", "approval:requested"])
async def test_the_typescript_example_is_cancelled_and_takes_the_next_prompt(
    tmp_path: Path, work: Path, moment: str
) -> None:
    """In text, in a tool, and while it asks; it answers the last as if its turn had come to a natural end."""
    async with hub_of(tmp_path, *typescript_example()) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        await cancelled(session, "improve it", moment)
        check(await history(hub.log, session.id))
        assert await hub.approvals() == []
        assert (await decided(session, "once more", approved=True)).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        check(events)
        assert facts(events, "agent_killed") == []


async def test_the_typescript_example_begins_anew_when_the_hub_was_restarted(tmp_path: Path, work: Path) -> None:
    """The first turn is ended by the restart, while it asks."""
    command = typescript_example()
    async with hub_of(tmp_path, *command) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        sent = await session.send("improve it")
        await until(session, "approval:requested")
    assert sent.done.result().stop_reason == "interrupted"
    async with hub_of(tmp_path, *command) as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        check(await history(hub.log, session.id))
        assert (await decided(session, "once more", approved=False)).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        check(events)
        assert len(facts(events, "session_reset")) == 1


# -- agents on the official SDKs that write files --


@pytest.fixture
def workshop(tmp_path: Path) -> tuple[str, str]:
    """The agent of the tests for the official SDK, on that SDK."""
    program = tmp_path / "workshop_agent.py"
    program.write_text((HERE / "programs" / "workshop_agent.py").read_text().replace("acp_root", "acp"))
    return sys.executable, str(program)


async def test_an_agent_on_the_python_sdk_writes_only_what_it_may(
    tmp_path: Path, work: Path, workshop: tuple[str, str]
) -> None:
    async with hub_of(tmp_path, *workshop) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        assert (await decided(session, "edit notes.txt never", approved=False)).stop_reason == "end_turn"
        assert (work / "notes.txt").read_text() == "old\nsecond\n"
        assert (await decided(session, "edit notes.txt new", approved=True)).stop_reason == "end_turn"
        assert (work / "notes.txt").read_text() == "new"
        session.set_policy(parse_policy({"autoApprove": {"commands": ["echo *"]}}))  # it runs commands without asking
        result, events = await turn(hub, session, "run echo done here")
        assert result.stop_reason == "end_turn"
        assert "echo ended with 0: done here" in said(events)
        await cancelled(session, "wait", "session:status_changed")
        assert (await turn(hub, session, "show"))[0].stop_reason == "end_turn"


async def test_an_agent_on_the_typescript_sdk_writes_only_what_it_may(tmp_path: Path, work: Path) -> None:
    async with hub_of(tmp_path, node(), str(INTEROP / "ts_agent.mjs")) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        before = await session.committed()
        content = [{"type": "text", "text": "tool new.txt"}, {"type": "text", "text": "żółw\n"}]
        for approved in (False, True):
            sent = await session.send(content)
            asked = await until(session, "approval:requested", before)
            await session.decide(asked.request_id, approved=approved)  # type: ignore[attr-defined]
            if approved:  # its request names the file but not the text, so the write is shown before it is done
                act = await until(session, "approval:requested", asked.seq)
                assert "żółw" in str(act.preview)  # type: ignore[attr-defined]
                await session.decide(act.request_id, approved=True)  # type: ignore[attr-defined]
            assert (await sent.done).stop_reason == "end_turn"
            assert (work / "new.txt").exists() is approved
            before = await session.committed()
        assert (work / "new.txt").read_text() == "żółw\n"
        await cancelled(session, "wait", "message:delta")
        result, events = await turn(hub, session, "read notes.txt")
        assert result.stop_reason == "end_turn"
        assert said(events) == "old\nsecond\n"


async def test_an_agent_on_the_typescript_sdk_resumes_with_its_mode_and_options(tmp_path: Path, work: Path) -> None:
    command = (node(), str(INTEROP / "ts_agent.mjs"))
    async with hub_of(tmp_path, *command) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("real", work)
        await session.set_mode("code")
        await session.set_config_option("model", "large")
    async with hub_of(tmp_path, *command) as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        _, events = await turn(hub, session, "read notes.txt")
        assert [event.type for event in events].count("session:resumed") == 1
        (fact,) = facts(events, "choices_restored")
        assert fact == {"set": {"model": "large", "mode": "code"}}
        assert (session.state.mode, session.state.model) == ("code", "large")
