"""`pilothouse agent` as a program, against models that speak the real interfaces of their providers, by script."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pilothouse.acp import ConnectionClosed, RequestError, spawn_agent_process
from pilothouse.agents.coder.host import Options
from pilothouse.agents.coder.models import resolve
from pilothouse.cli.exits import Exit
from tests.lab.model.server import Server, model_server
from tests.support.cli import PATIENCE, Cli
from tests.support.coders import Client, Script, coder, prompts, results
from tests.support.hubs import processes_with

WIRES = {
    "openai": "openai:fake@{url}/v1",
    "openai responses": "openai-responses:fake@{url}/v1",
    "anthropic": "anthropic:fake@{url}",
    "google": "google:fake@{url}",
    "ollama": "ollama:fake@{url}/v1",
}
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY", "OLLAMA_BASE_URL")


def without_keys(directory: Path) -> Cli:
    cli = Cli(directory)
    for name in (*KEYS, "PILOTHOUSE_MODEL"):
        cli.environment.pop(name, None)
    return cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return without_keys(tmp_path)


@pytest.fixture
def server() -> Iterator[Server]:
    with model_server() as server:
        yield server
        assert server.problems == []
        assert server.refused == []


def script(*steps: Any) -> str:
    return f"@@fake {json.dumps(list(steps))}"


def use(cli: Cli, server: Server, wire: str = "openai") -> None:
    cli.environment["PILOTHOUSE_MODEL"] = WIRES[wire].format(url=server.url)


READ = {"op": "read", "path": "a.txt"}
WRITE = {"op": "write", "path": "new.txt", "content": "written\n"}


# -- one process for all wires: it takes seconds to start --


class Crew:
    """`pilothouse agent` without any key, in a process that several tests share; each has a session of its own."""

    def __init__(self, agent: Any, client: Client) -> None:
        self.client = client
        client.agent = agent

    async def begin(self, cwd: Path, model: str) -> Client:
        client = self.client
        client.updates.clear()
        client.session = (await client.agent.new_session(cwd=str(cwd), mcp_servers=[])).session_id
        await client.agent.set_config_option(session_id=client.session, config_id="model", value=model)
        return client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crew(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Crew]:
    cli = without_keys(tmp_path_factory.mktemp("crew"))
    client = Client()
    async with spawn_agent_process(client, *cli.command("agent"), env=cli.environment) as (agent, _):  # type: ignore[arg-type]
        await agent.initialize(1)
        yield Crew(agent, client)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_turn_with_tools_on_each_wire(crew: Crew, server: Server, tmp_path: Path, wire: str) -> None:
    (tmp_path / "a.txt").write_text("what is in it\n")
    client = await crew.begin(tmp_path, WIRES[wire].format(url=server.url))
    bash = {"op": "bash", "cmd": "cat new.txt"}
    steps = script({"text": "I look.", "calls": [READ, WRITE]}, bash, "All of it is done.")
    assert (await client.say(steps)).stop_reason == "end_turn"
    assert client.text.endswith("All of it is done.")
    assert [call["title"] for call in client.calls.values()] == ["Read a.txt", "Write new.txt", "`cat new.txt`"]
    assert {call["status"] for call in client.calls.values()} == {"completed"}
    assert (tmp_path / "new.txt").read_text() == "written\n"


@pytest.mark.asyncio(loop_scope="module")
async def test_thinking_is_told(crew: Crew, server: Server, tmp_path: Path) -> None:
    client = await crew.begin(tmp_path, WIRES["anthropic"].format(url=server.url))
    await client.say(script({"think": "Let me think.", "text": "Thought."}))
    assert (client.thoughts, client.text) == ("Let me think.", "Thought.")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("wire", "status", "words"),
    [
        ("anthropic", 401, "refuses the key"),
        ("google", 400, "refused the request"),
        ("openai", 500, "server failed"),
    ],
)
async def test_an_error_of_the_server_says_what_it_is(
    crew: Crew, server: Server, tmp_path: Path, wire: str, status: int, words: str
) -> None:
    client = await crew.begin(tmp_path, WIRES[wire].format(url=server.url))
    with pytest.raises(RequestError, match=f"{words}.*as told by the test"):
        await client.say(script({"error": {"status": status, "message": "as told by the test"}}))


@pytest.mark.asyncio(loop_scope="module")
async def test_without_a_key_it_says_which(crew: Crew, tmp_path: Path) -> None:
    client = await crew.begin(tmp_path, "anthropic:claude-sonnet-4-5")
    with pytest.raises(RequestError, match="ANTHROPIC_API_KEY") as told:
        await client.say("hello")
    assert told.value.code == -32000


@pytest.mark.asyncio(loop_scope="module")
async def test_a_server_that_is_not_there_is_told_of(crew: Crew, tmp_path: Path) -> None:
    client = await crew.begin(tmp_path, "openai:fake@http://127.0.0.1:9/v1")
    with pytest.raises(RequestError, match=r"at http://127\.0\.0\.1:9 cannot be reached") as told:
        await client.say("hello")
    assert told.value.data["errorKind"] == "connection"


# -- by `pilothouse run` --


def test_what_is_denied_is_not_done_and_the_next_process_knows_and_does_what_is_allowed(
    cli: Cli, server: Server
) -> None:
    use(cli, server)
    done = cli("run", "-a", "coder", script(WRITE, {"op": "bash", "cmd": "touch ran"}, "Nothing was done."))
    assert done.returncode == Exit.REFUSED
    assert "Nothing was done." in done.stdout
    assert list(cli.project.iterdir()) == []

    (listed,) = json.loads(cli("ls", "--json").stdout)
    (cli.project / "a.txt").write_text("what is in it\n")
    steps = script({"text": "I look.", "calls": [READ, WRITE]}, "All of it is done: {scripts}.")
    done = cli("run", "-s", listed["id"], "--approve-all", steps)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "All of it is done: 2." in done.stdout
    assert "✓ Read a.txt" in done.stdout
    assert (cli.project / "new.txt").read_text() == "written\n"


def test_without_a_model_it_says_how_to_get_one(cli: Cli) -> None:
    done = cli("run", "-a", "coder", "hello")
    assert done.returncode == Exit.ERROR
    assert "PILOTHOUSE_MODEL" in done.stdout
    assert "`demo` needs no model" in done.stdout.replace("demo needs", "`demo` needs")
    assert "✗ No model is configured: name one in PILOTHOUSE_MODEL or config.toml" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_missing_key_is_all_that_is_told_of(cli: Cli) -> None:
    cli.environment["PILOTHOUSE_MODEL"] = "openai:gpt-5"
    done = cli("run", "-a", "coder", "hello")
    assert done.returncode == Exit.ERROR
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("✗")]
    assert "set the variable OPENAI_API_KEY" in told
    assert told.endswith("the agent `demo` needs neither model nor key")


def test_a_model_for_tests_cannot_be_asked_for(cli: Cli) -> None:
    done = cli("agent", "--model", "test")
    assert done.returncode == Exit.USAGE
    assert "expected PROVIDER:NAME" in done.stderr


async def test_a_name_in_the_environment_that_is_none_is_told_with_the_first_prompt(tmp_path: Path) -> None:
    async with coder(Script([]), tmp_path, options=Options(model="test"), resolve=resolve) as client:
        with pytest.raises(RequestError, match="expected PROVIDER:NAME"):
            await client.say("hello")


def test_stdout_carries_the_protocol_and_nothing_else(cli: Cli, server: Server) -> None:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such", "params": {}},
    ]
    given = "".join(json.dumps(message) + "\n" for message in messages) + "no json\n"
    done = cli("agent", "--model", WIRES["openai"].format(url=server.url), given=given)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {message.get("id") for message in told} >= {1, 2, 3}
    offer = next(message for message in told if message.get("id") == 1)["result"]
    assert offer["agentInfo"]["name"] == "pilothouse-coder"
    assert offer["agentCapabilities"]["mcpCapabilities"] == {"http": True, "sse": True}
    assert done.returncode == 0


def test_a_client_that_leaves_while_it_is_asked_has_allowed_nothing_and_that_is_no_failure(
    cli: Cli, server: Server
) -> None:
    use(cli, server)
    pipe = subprocess.PIPE
    with subprocess.Popen(cli.command("agent"), stdin=pipe, stdout=pipe, stderr=pipe, env=cli.environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        given = process.stdin

        def call(number: int, method: str, **params: Any) -> None:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            given.write(json.dumps(message).encode() + b"\n")
            given.flush()

        call(1, "initialize", protocolVersion=1)
        call(2, "session/new", cwd=str(cli.project), mcpServers=[])
        told = map(json.loads, process.stdout)
        opened = next(message for message in told if message.get("id") == 2)["result"]
        call(3, "session/prompt", sessionId=opened["sessionId"], prompt=[{"type": "text", "text": script(WRITE)}])
        assert any(message.get("method") == "session/request_permission" for message in told)
        given.close()
        assert process.wait(PATIENCE) == 0
        assert b"session/prompt failed" not in process.stderr.read()
    assert list(cli.project.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_that_ends_it_ends_its_commands_as_well(
    cli: Cli, server: Server, tmp_path: Path, number: signal.Signals
) -> None:
    use(cli, server)
    cli.environment["MARK"] = str(tmp_path)
    client = Client()
    async with spawn_agent_process(client, *cli.command("agent"), env=cli.environment) as (agent, process):  # type: ignore[arg-type]
        await agent.initialize(1)
        client.session = (await agent.new_session(cwd=str(cli.project), mcp_servers=[])).session_id
        client.agent = agent
        prompt = client.start(script({"op": "bash", "cmd": "setsid sleep 600 & echo begun; sleep 600"}))
        await client.until(lambda: "begun" in str(client.calls))
        process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 128 + number
            with pytest.raises((ConnectionClosed, RequestError)):
                await prompt
            # before whoever started it ends what it left
            while processes_with(f"MARK={tmp_path}"):
                await asyncio.sleep(0.01)


async def test_a_process_that_was_killed_in_a_call_has_lost_nothing_that_was_said(
    cli: Cli, server: Server, tmp_path: Path
) -> None:
    command = cli.command("agent", "--model", WIRES["openai"].format(url=server.url))
    client = Client()
    async with spawn_agent_process(client, *command, env=cli.environment) as (agent, process):  # type: ignore[arg-type]
        await agent.initialize(1)
        client.session = (await agent.new_session(cwd=str(cli.project), mcp_servers=[])).session_id
        client.agent = agent
        prompt = client.start(script({"text": "I run it.", "calls": [{"op": "bash", "cmd": "echo begun; sleep 600"}]}))
        await client.until(lambda: "begun" in str(client.calls))
        process.kill()
        with pytest.raises(ConnectionClosed):
            await prompt
    # as another process would, with the same files
    later = Script(["And on."])
    async with coder(later, cli.project, home=cli.home / "coder", session=False) as other:
        await other.agent.load_session(session_id=client.session, cwd=str(cli.project), mcp_servers=[])
        assert other.text == "I run it."
        other.session = client.session
        assert (await other.say("Go on")).stop_reason == "end_turn"
    (first,), (second,) = prompts(later.heard[0])
    assert (first.startswith("@@fake"), second) == (True, "Go on")
    assert "interrupted" in results(later.heard[0])[0]
