"""The contract of adapters, kept by one that does nothing, and by the one for ACP agents with a real process."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from pilothouse.adapters.acp import AcpAdapter
from pilothouse.adapters.catalog import DEMO, KNOWN, AgentProgram, Way
from pilothouse.adapters.contract import Adapter, AdapterError, AgentSession
from pilothouse.app.composition import open_hub, registry
from pilothouse.app.hosting import HubHost
from pilothouse.config import Config
from pilothouse.model.capabilities import ACPCapabilities, capabilities_from_acp
from pilothouse.model.commands import (
    AnswerQuestionCommand,
    ApproveToolCallCommand,
    CancelCommand,
    CancelQueuedCommand,
    PauseCommand,
    SetModeCommand,
)
from pilothouse.model.discovery import AgentDataPaths, StartSessionOptions
from pilothouse.model.events import ApprovalRequestedEvent, CustomEvent, Event


class Plain(Adapter):
    """As little as an adapter may be."""

    @property
    def name(self) -> str:
        return "plain"

    def get_capabilities(self) -> ACPCapabilities:
        return capabilities_from_acp({}, name="plain")

    async def is_installed(self) -> bool:
        return False

    async def get_version(self) -> str | None:
        return None

    async def attach_to_session(self, session_id: str) -> AgentSession:
        raise AdapterError("nothing to attach to")

    async def start_session(self, options: StartSessionOptions) -> AgentSession:
        raise AdapterError("nothing to start")


def program(*command: str, version: tuple[str, ...] | None = None, fetches: bool = False) -> AgentProgram:
    way = Way(tuple(command), fetches)
    return AgentProgram(name="it", title="It", ways=(way,), install="get it", version=version)


async def test_an_adapter_that_only_says_what_it_must_offers_nothing_else() -> None:
    plain = Plain()
    assert (plain.title, plain.launch, plain.install_hint) == ("plain", None, None)
    assert plain.get_data_paths() == AgentDataPaths()
    assert await plain.discover_sessions() == []
    stop = plain.watch_sessions(lambda event: None)
    stop()
    stop()


def test_an_adapter_must_say_who_it_is() -> None:
    with pytest.raises(TypeError, match="name"):
        type("Nameless", (Adapter,), {})()


# -- programs -----------------------------------------------------------------------------------------------------


def test_the_first_way_that_the_machine_has_is_taken() -> None:
    bridge = AgentProgram(name="b", title="B", ways=(Way(("bridge",)), Way(("npx", "-y", "pkg"), fetches=True)))
    both = {"bridge": "/bin/bridge", "npx": "/bin/npx"}
    launch = bridge.launch(both.get)
    assert launch is not None
    assert (launch.command, bridge.availability(both.get)) == (("bridge",), "installed")
    only_npx = {"npx": "/bin/npx"}.get
    fetched = bridge.launch(only_npx)
    assert fetched is not None
    assert (fetched.command, bridge.availability(only_npx)) == (("npx", "-y", "pkg"), "on demand")
    assert (bridge.launch({}.get), bridge.availability({}.get)) == (None, "missing")


def test_known_agents_have_a_way_a_name_and_help_to_install_them() -> None:
    assert {"claude", "codex", "gemini", "opencode", "goose", "qwen", "kimi", "copilot", "junie", DEMO} <= KNOWN.keys()
    for name, known in KNOWN.items():
        assert known.name == name
        assert known.ways
        assert known.title
        assert known.install or name == DEMO


# -- the adapter for ACP agents -----------------------------------------------------------------------------------


async def test_what_the_scripted_agent_can_do_is_observed_not_believed() -> None:
    adapter = AcpAdapter(KNOWN[DEMO])
    assert await adapter.is_installed()
    assert adapter.get_capabilities().agent.version == ""
    observed = await adapter.probe(timeout=30)
    assert observed.agent.name == "pilothouse-demo"
    assert observed.features.session_control.resume
    assert adapter.get_capabilities() is observed


async def test_the_sessions_that_an_agent_lists_are_discovered(tmp_path: Path) -> None:
    code = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    ask = json.loads(line)\n"
        "    if ask['method'] == 'initialize':\n"
        "        result = {'protocolVersion': 1, 'agentCapabilities': {'sessionCapabilities': {'list': {}}}}\n"
        "    elif ask['params'].get('cursor'):\n"
        "        result = {'sessions': [{'sessionId': 'two', 'cwd': '/work/b', 'title': 'Second'}]}\n"
        "    else:\n"
        "        odd = [None, 5, {'sessionId': 7}]\n"
        "        one = {'sessionId': 'one', 'cwd': '/work/a/', 'updatedAt': '2026-01-01T00:00:00Z'}\n"
        "        result = {'sessions': [one, *odd], 'nextCursor': 'more'}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': ask['id'], 'result': result}), flush=True)\n"
    )
    agent = tmp_path / "lister.py"
    agent.write_text(code)
    found = await AcpAdapter(program(sys.executable, str(agent))).discover_sessions()
    assert [(one.id, one.project_name, one.session_name) for one in found] == [
        ("one", "a", None),
        ("two", "b", "Second"),
    ]
    assert found[0].last_activity == "2026-01-01T00:00:00Z"


async def test_the_version_is_what_the_program_says_and_none_when_it_does_not() -> None:
    says = ("-c", "print('It, version 3.20.1-beta (build 7)')")
    assert await AcpAdapter(program(sys.executable, version=(sys.executable, *says))).get_version() == "3.20.1-beta"
    silent = (sys.executable, "-c", "pass")
    assert await AcpAdapter(program(sys.executable, version=silent)).get_version() is None
    gone = ("/no/such/program", "--version")
    assert await AcpAdapter(program(sys.executable, version=gone)).get_version() is None


async def test_a_program_that_never_tells_its_version_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.adapters.acp.VERSION_TIMEOUT", 0.2)
    hangs = (sys.executable, "-c", "import time; time.sleep(60)")
    assert await AcpAdapter(program(sys.executable, version=hangs)).get_version() is None


async def test_nothing_is_fetched_to_learn_a_version(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    version = (sys.executable, "-c", f"open({str(mark)!r}, 'w')")
    assert await AcpAdapter(program(sys.executable, version=version, fetches=True)).get_version() is None
    assert not mark.exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/no/such/agent",), "not installed: get it"),
        ((sys.executable, "-c", "import sys; sys.exit('no key')"), "no key"),
    ],
)
async def test_an_agent_that_cannot_be_asked_is_an_error_that_says_why(command: tuple[str, ...], said: str) -> None:
    with pytest.raises(AdapterError, match=said):
        await AcpAdapter(program(*command)).probe(timeout=20)


async def test_without_a_host_sessions_are_refused() -> None:
    adapter = AcpAdapter(KNOWN[DEMO])
    with pytest.raises(AdapterError, match="inside a hub"):
        await adapter.start_session(StartSessionOptions(project_path="/", prompt="hi"))
    with pytest.raises(AdapterError, match="inside a hub"):
        await adapter.attach_to_session("ses_1")


# -- with a hub as its host ---------------------------------------------------------------------------------------


async def until(ready: asyncio.Event) -> None:
    async with asyncio.timeout(30):
        await ready.wait()


async def test_a_hub_runs_the_sessions_of_an_adapter(tmp_path: Path) -> None:
    config = Config(home=tmp_path / "home")
    project = tmp_path / "project"
    project.mkdir()
    async with open_hub(config, [DEMO]) as hub:
        host = HubHost(hub)
        adapter = registry(config, host).get(DEMO)
        options = StartSessionOptions(project_path=str(project), prompt="edit a.txt hello")
        session = await adapter.start_session(options)
        seen: list[Event] = []
        asked, ended = asyncio.Event(), asyncio.Event()

        def callback(event: Event) -> None:
            seen.append(event)
            if isinstance(event, ApprovalRequestedEvent):
                asked.set()
            if isinstance(event, CustomEvent) and event.event_name == "turn_ended":
                ended.set()
            raise RuntimeError("a callback that fails keeps nobody from the next event")

        stop = session.on_event(callback)
        await until(asked)
        request = next(event for event in seen if isinstance(event, ApprovalRequestedEvent))
        await session.execute(ApproveToolCallCommand(request_id=request.request_id, tool_call_id=request.tool_call_id))
        await until(ended)
        assert (project / "a.txt").read_text() == "hello\n"
        assert session.capabilities.features.approval.tool_calls
        history = await session.get_history()
        assert [event.seq for event in history] == list(range(1, len(history) + 1))
        stop()
        count = len(seen)
        other = await adapter.attach_to_session(session.session_id)
        ended.clear()
        other.on_event(lambda event: ended.set() if event.type == "session:paused" else None)
        await other.execute(PauseCommand())
        await until(ended)
        assert len(seen) == count
        await host.close()


async def test_commands_that_cannot_be_carried_out_are_errors_of_the_adapter(tmp_path: Path) -> None:
    config = Config(home=tmp_path / "home")
    async with open_hub(config, [DEMO]) as hub:
        host = HubHost(hub)
        adapter = registry(config, host).get(DEMO)
        session = await adapter.start_session(StartSessionOptions(project_path=str(tmp_path), prompt=""))
        for command in (
            ApproveToolCallCommand(request_id="none", tool_call_id="none"),
            CancelQueuedCommand(prompt_id="none"),
            AnswerQuestionCommand(question_id="none", answer="x"),
            SetModeCommand(mode_id="no such mode"),
        ):
            with pytest.raises(AdapterError):
                await session.execute(command)
        await session.execute(CancelCommand())
        with pytest.raises(AdapterError, match="no session"):
            await adapter.attach_to_session("ses_none")
        with pytest.raises(AdapterError, match="not of other"):
            await host.attach_to_session("other", session.session_id)
        with pytest.raises(AdapterError, match="absolute path"):
            await adapter.start_session(StartSessionOptions(project_path="relative", prompt="hi"))
        await host.close()
