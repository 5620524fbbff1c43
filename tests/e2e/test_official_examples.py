"""Programs written for the official SDK run on ours after changing the import, and do the same.

`programs/` holds them once, in the manner of the SDK's published examples, with `acp_root` for the package. Each test
writes them out with `acp` and with `pilothouse.acp` in its place, runs both as real processes and compares what can
be seen from outside: what goes over the wire, what is printed, which files change, how processes end.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.schema_samples import unstable

PROGRAMS = Path(__file__).resolve().parent / "programs"
ROOTS = {"official": "acp", "ours": "pilothouse.acp"}
TIMEOUT = 40


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Stage:
    """The programs, ready to run on one of the two packages."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder = folder
        self.root = root
        folder.mkdir(parents=True)
        for program in PROGRAMS.glob("*.py"):
            text = program.read_text()
            assert "acp_root" in text
            (folder / program.name).write_text(text.replace("acp_root", root))

    def __getitem__(self, program: str) -> str:
        return str(self.folder / program)

    async def start(self, program: str, *arguments: str, cwd: Path | None = None) -> asyncio.subprocess.Process:
        # with ours a warning is an error; the official package warns about itself
        strict = ["-W", "error"] if self.root == ROOTS["ours"] else []
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *strict,
            self[program],
            *arguments,
            cwd=cwd or self.folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, program: str, *arguments: str, typed: str = "", cwd: Path | None = None) -> Outcome:
        process = await self.start(program, *arguments, cwd=cwd)
        try:
            async with asyncio.timeout(TIMEOUT):
                out, err = await process.communicate(typed.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return Outcome(process.returncode, out.decode(), err.decode())


@pytest.fixture
def stages(tmp_path: Path) -> dict[str, Stage]:
    return {name: Stage(tmp_path / name, root) for name, root in ROOTS.items()}


async def on_both(stages: dict[str, Stage], program: str, *arguments: str, **options: Any) -> Outcome:
    """Run a program on both packages at once; they must agree. Answers what ours did."""
    runs = (stage.run(program, *arguments, **options) for stage in stages.values())
    official, ours = await asyncio.gather(*runs)
    assert ours.out == official.out
    assert ours.code == official.code
    assert "Traceback" not in ours.err
    return ours


# -- agents, seen from the wire ---------------------------------------------------------------------------------------


class Driver:
    """Speaks to an agent in plain JSON lines and keeps what it hears, whatever library is behind it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.next_id = 0

    async def tell(self, method: str, params: Any) -> None:
        await self._write({"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, method: str, params: Any) -> list[Any]:
        """The answer and, before it, all notifications that came first."""
        self.next_id += 1
        await self._write({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        heard: list[Any] = []
        while True:
            assert self.process.stdout is not None
            line = await self.process.stdout.readline()
            assert line, "the agent has closed its output"
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            heard.append(message)
            if message.get("id") == self.next_id and "method" not in message:
                return heard

    async def _write(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()


@asynccontextmanager
async def driven(stage: Stage, program: str) -> AsyncIterator[Driver]:
    process = await stage.start(program)
    try:
        async with asyncio.timeout(TIMEOUT):
            yield Driver(process)
            _, err = await process.communicate(b"")  # closes its input, which ends the agent
        assert process.returncode == 0, err.decode()
        assert b"Traceback" not in err
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def text(value: str) -> Any:
    return {"type": "text", "text": value}


def differences(official: list[Any], ours: list[Any]) -> list[str]:
    """Where two transcripts differ in more than defaults that one of them spells out."""

    def body(message: Any) -> Any:
        return next(message[key] for key in ("params", "result", "error") if key in message)

    heads = [[{k: m.get(k) for k in ("id", "method")} for m in transcript] for transcript in (official, ours)]
    assert heads[0] == heads[1]
    pairs = [(body(one), body(other)) for one, other in zip(official, ours, strict=True)]
    return [line for one, other in pairs for line in unstable().lost(one, other) + unstable().lost(other, one)]


async def echo_conversation(stage: Stage) -> list[Any]:
    async with driven(stage, "echo_agent.py") as agent:
        (started,) = await agent.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        (opened,) = await agent.ask("session/new", {"cwd": "/w", "mcpServers": []})
        session = opened["result"].pop("sessionId")
        assert len(session) == 32
        image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        blocks = [text("hello"), text("漢字 🛳"), image]
        params = {"sessionId": session, "prompt": blocks, "_meta": {"trace": {"id": 7}}}
        heard = await agent.ask("session/prompt", params)
        for update in heard[:-1]:
            assert update["params"].pop("sessionId") == session
        return [started, opened, *heard]


async def test_the_echo_agent_says_the_same_on_the_wire(stages: dict[str, Stage]) -> None:
    official, ours = await asyncio.gather(*map(echo_conversation, stages.values()))
    assert differences(official, ours) == []
    updates = [message["params"] for message in ours if message.get("method") == "session/update"]
    assert updates == [
        {
            "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": said, "_meta": {"of": kind}},
                "_meta": {"echo": True, "number": number},
            },
            "_meta": {"source": "echo", "heard": {"trace": {"id": 7}}},
        }
        for number, (said, kind) in enumerate([("hello", "text"), ("漢字 🛳", "text"), ("", "image")])
    ]
    assert ours[-1]["result"] == {"stopReason": "end_turn"}


async def full_conversation(stage: Stage) -> list[Any]:
    where = {"sessionId": "session-0", "cwd": "/w"}
    info = {"name": "driver", "version": "1"}
    server = {"name": "files", "command": "mcp", "args": ["-v"], "env": [{"name": "K", "value": "v"}]}
    web = {"type": "http", "name": "web", "url": "http://localhost", "headers": []}
    blocks = [
        text("look"),
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a.png"},
        {"type": "resource_link", "uri": "file:///b", "name": "b", "size": 3},
        {"type": "resource", "resource": {"uri": "file:///c", "text": "inside", "mimeType": "text/plain"}},
        {"type": "resource", "resource": {"uri": "file:///d", "blob": "aGk="}},
        {**text("kept"), "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"k": [1]}},
    ]
    asked = [
        (
            "initialize",
            {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}, "clientInfo": info},
        ),
        ("authenticate", {"methodId": "pass"}),
        ("session/new", {"cwd": "/w", "mcpServers": [server, web], "additionalDirectories": ["/x"]}),
        ("session/load", {"sessionId": "old", "cwd": "/w", "mcpServers": []}),
        ("session/list", {"cwd": "/w", "cursor": "next"}),
        ("session/set_mode", {"sessionId": "session-0", "modeId": "edit"}),
        ("session/set_config_option", {"sessionId": "session-0", "configId": "style", "value": "plain"}),
        ("session/set_config_option", {"sessionId": "session-0", "configId": "loud", "type": "boolean", "value": True}),
        ("session/resume", where),
        ("session/fork", where),
        ("session/prompt", {"sessionId": "session-0", "prompt": blocks, "_meta": {"traceparent": "00-1"}}),
        ("session/close", {"sessionId": "session-0"}),
        ("session/prompt", {"sessionId": "nowhere", "prompt": []}),
        ("_fail", {}),
        ("_unheard/of", {"a": 1}),
        ("no/such", {}),
    ]
    transcript: list[Any] = []
    async with driven(stage, "full_agent.py") as agent:
        for method, params in asked:
            transcript += await agent.ask(method, params)
        await agent.tell("session/cancel", {"sessionId": "session-0"})
        await agent.tell("_note", {"deep": {"a": [None]}})
        transcript += await agent.ask("_journal", {})
    return transcript


async def test_the_full_agent_says_the_same_on_the_wire(stages: dict[str, Stage]) -> None:
    official, ours = await asyncio.gather(*map(full_conversation, stages.values()))
    assert differences(official, ours) == []
    journal = ours[-1]["result"]["journal"]
    assert [entry[0] for entry in journal] == [
        "initialize",
        "authenticate",
        "new_session",
        "load_session",
        "list_sessions",
        "set_session_mode",
        "set_config_option",
        "set_config_option",
        "resume_session",
        "fork_session",
        "prompt",
        "close_session",
        "prompt",
        "cancel",
        "ext_notification",
    ]
    assert journal[0] == ["initialize", 1, True, "driver"]
    assert journal[2] == ["new_session", "/w", ["/x"], [["McpServerStdio", "files"], ["HttpMcpServer", "web"]]]
    assert journal[10][3] == {"traceparent": "00-1"}
    codes = [message["error"]["code"] for message in ours if "error" in message]
    assert codes == [-32602, -32050, -32601, -32601]


# -- clients, seen from the console -----------------------------------------------------------------------------------


async def test_the_console_client_talks_to_every_agent(stages: dict[str, Stage]) -> None:
    """Client and agent on either package, in all four pairings: the console looks the same."""
    typed = "hello\n\nzweite Zeile: ä 漢\n"
    pairs = [(client, agent) for client in stages.values() for agent in stages.values()]
    outcomes = await asyncio.gather(
        *(client.run("console_client.py", agent["full_agent.py"], typed=typed) for client, agent in pairs)
    )
    expected = "".join(
        f"agent: You said:\nagent: {line}\nagent: That was all.\n(end_turn)\n" for line in typed.split("\n") if line
    )
    assert [outcome.out for outcome in outcomes] == [expected] * 4
    assert [outcome.code for outcome in outcomes] == [0] * 4


async def test_the_console_client_shows_what_came_as_meta(stages: dict[str, Stage]) -> None:
    runs = (stage.run("console_client.py", stage["echo_agent.py"], typed="hi\n") for stage in stages.values())
    official, ours = await asyncio.gather(*runs)
    assert ours.out == official.out == "agent: hi\n  with ['heard', 'source']\n(end_turn)\n"


async def test_the_console_client_without_an_agent_says_how_to_call_it(stages: dict[str, Stage]) -> None:
    outcome = await on_both(stages, "console_client.py")
    assert outcome.code == 2
    assert "usage" in outcome.err


# -- the client for coding agents -------------------------------------------------------------------------------------


async def at_work(
    stages: dict[str, Stage], tmp_path: Path, typed: str, *options: str, notes: str = "old\nsecond\n"
) -> tuple[Outcome, str]:
    """Run client and agent in a folder with a file; what was seen, and the file afterwards, from ours."""

    async def one(name: str, stage: Stage) -> tuple[Outcome, str]:
        folder = tmp_path / "work" / name
        folder.mkdir(parents=True)
        (folder / "notes.txt").write_text(notes)
        outcome = await stage.run("workshop_client.py", *options, stage["workshop_agent.py"], typed=typed, cwd=folder)
        return outcome, (folder / "notes.txt").read_text()

    official, ours = await asyncio.gather(*(one(name, stage) for name, stage in stages.items()))
    assert ours[0].out == official[0].out
    assert ours[0].err == official[0].err
    assert ours[0].code == official[0].code
    assert ours[1] == official[1]
    return ours


def lines(*expected: str) -> str:
    return "\n".join(expected) + "\n"


GREETING = "connected by version 1, session shop"
FAREWELL = "the agent has ended: True"
READING = (
    "* Read notes.txt (pending)",
    "[read notes.txt: 11 from None limit None]",
    "[read notes.txt: 11 from 1 limit 1]",
    "* r -> completed",
    "* Edit notes.txt (pending)",
)
ASKING = (
    "may I: Edit notes.txt",
    "  1. Leave it (reject_once)",
    "  2. Do it (allow_once)",
    "  3. Do it always (allow_always)",
)
DONE = ("[wrote notes.txt: 3]", "* e -> completed", "  diff: notes.txt", "'old' is now 'new'", "(end_turn)")


async def test_the_trusting_client_takes_the_first_option_that_allows(stages: dict[str, Stage], tmp_path: Path) -> None:
    outcome, notes = await at_work(stages, tmp_path, "edit notes.txt new\n:exit\n", "--trust")
    assert outcome.out == lines(GREETING, *READING, *DONE, FAREWELL)
    assert outcome.code == 0
    assert notes == "new"


async def test_the_asking_client_does_what_the_user_picks(stages: dict[str, Stage], tmp_path: Path) -> None:
    """Rejected; then, after two slips, allowed; then the user walks away, which is no consent either."""
    typed = "edit notes.txt never\n1\nedit notes.txt new\nyes\n9\n3\nedit notes.txt gone\n"
    outcome, notes = await at_work(stages, tmp_path, typed)
    again = tuple(line.replace("11", "3") for line in READING)
    assert outcome.out == lines(
        GREETING,
        *READING,
        *ASKING,
        "* e -> failed",
        "left notes.txt alone (reject_once)",
        "(end_turn)",
        *READING,
        *ASKING,
        "one of the numbers, please",
        "one of the numbers, please",
        *DONE,
        *again,
        *ASKING,
        "* e -> failed",
        "left notes.txt alone (none)",
        "(end_turn)",
        FAREWELL,
    )
    assert notes == "new"


async def test_every_kind_of_update_is_shown_and_commands_run_in_terminals(
    stages: dict[str, Stage], tmp_path: Path
) -> None:
    typed = "show\nrun echo done here\nfail\n:cancel\n:exit\n"
    outcome, _ = await at_work(stages, tmp_path, typed)
    assert outcome.out == lines(
        GREETING,
        "(you said)",
        "show",
        "(thinks)",
        "let me see",
        "plan:",
        "  COMPLETED  look (medium)",
        "  PENDING    tell (high)",
        "notes",
        "inside",
        "* Thinking hard (pending)",
        "* t1 -> in_progress",
        "  content",
        "* t1 -> completed",
        "commands: edit",
        "that is all",
        "(end_turn)",
        "[terminal term-1: echo ['done', 'here'] limit 1000]",
        "* Run echo (pending)",
        "* x -> completed",
        "  terminal: term-1",
        "[released term-1]",
        "echo ended with 0: done here",
        "(end_turn)",
        FAREWELL,
    )
    assert outcome.err == 'prompt failed (-32002): Resource not found\n{"uri": "file:///missing"}\n'


async def test_a_prompt_that_takes_too_long_is_given_up(stages: dict[str, Stage], tmp_path: Path) -> None:
    outcome, _ = await at_work(stages, tmp_path, "", "--prompt", "wait", "--prompt-timeout", "0.2")
    assert (outcome.code, outcome.err) == (1, "no answer in time\n")
    assert outcome.out == lines(GREETING)


async def test_an_agent_that_wants_authentication_is_understood(stages: dict[str, Stage], tmp_path: Path) -> None:
    outcome, _ = await at_work(stages, tmp_path, "", "--locked")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == 'start failed (-32000): Authentication required\n{"hint": "unlock it first"}\n'


async def test_an_agent_that_dies_at_once_ends_the_client(stages: dict[str, Stage]) -> None:
    runs = (stage.run("workshop_client.py", stage["workshop_agent.py"], "--dead") for stage in stages.values())
    for outcome in await asyncio.gather(*runs):
        assert outcome.code == 1
        assert outcome.out == ""
        assert outcome.err.startswith("start failed: Connection")


# -- both in one ------------------------------------------------------------------------------------------------------


async def test_the_duet_starts_its_agent_and_sees_it_end(stages: dict[str, Stage]) -> None:
    outcome = await on_both(stages, "duet.py", typed="one\ntwo\n")
    assert outcome.code == 0
    said = "".join(f"agent: You said:\nagent: {word}\nagent: That was all.\n(end_turn)\n" for word in ("one", "two"))
    assert outcome.out == f"{said}the agent ended with 0\n"


def test_programs_name_no_package_but_the_placeholder() -> None:
    for program in PROGRAMS.glob("*.py"):
        source = program.read_text()
        assert "pilothouse" not in source
        assert "import acp" not in source
        assert "from acp " not in source
        assert "from acp." not in source
