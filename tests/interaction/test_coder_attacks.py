"""The model as an attacker: whatever it calls, nothing outside is touched, nothing hangs, nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models.function import DeltaToolCall

from pilothouse.acp import McpServerStdio, RequestError, RequestPermissionResponse
from pilothouse.agents.coder.tools import mcp
from tests.support.coders import Answer, Client, Script, _chosen, coder, results
from tests.support.hubs import processes_with

BOTH = pytest.mark.parametrize("lends", [True, False])
WRITE = ("write", {"path": "d/x.txt", "content": "mine\n"})
EDIT = ("edit", {"path": "d/a.txt", "old_string": "one", "new_string": "two"})
PATCH = ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: d/x.txt\n+mine\n*** End Patch"})
DELETE = ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: d/a.txt\n*** End Patch"})
BASH = ("bash", {"command": "echo mine > x.txt", "cwd": "d"})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace, and beside it what is nobody's business."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("one\n")
    (tmp_path / "work" / "d").mkdir(parents=True)
    (tmp_path / "work" / "d" / "a.txt").write_text("one\n")
    return tmp_path / "work"


def files(place: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in place.iterdir()}


async def told(script: Script, work: Path, *, lends: bool = False, **more: Any) -> tuple[list[str], Client]:
    async with coder(script, work, lends=lends, **more) as client:
        await client.say("go")
        assert client.is_settled()
    return results(script.heard[-1]), client


# -- places --


@BOTH
@pytest.mark.parametrize("call", [WRITE, EDIT, PATCH, DELETE, BASH], ids=lambda call: call[0])
async def test_a_link_that_is_put_in_the_way_while_the_user_is_asked_leads_nowhere(
    work: Path, call: Any, lends: bool
) -> None:
    outside = work.parent / "outside"

    def swap(_: Any, options: Any) -> RequestPermissionResponse:
        (work / "d").rename(work / "away")
        (work / "d").symlink_to(outside)
        return _chosen(options, "allow_once")

    script = Script([[call], "Done."])
    async with coder(script, work, lends=lends) as client:
        client.answer = swap
        await client.say("go")
        (ended,) = client.calls.values()
        assert ended["status"] == "failed"
    assert files(outside) == {"a.txt": "one\n"}
    assert files(work / "away") == {"a.txt": "one\n"}


@BOTH
@pytest.mark.parametrize("kind", ["reject_once", "reject_always", None])
@pytest.mark.parametrize("call", [WRITE, EDIT, PATCH, DELETE, BASH], ids=["write", "edit", "add", "delete", "bash"])
async def test_what_is_rejected_is_not_done(work: Path, call: Any, kind: str | None, lends: bool) -> None:
    script = Script([[call], "Done."])
    async with coder(script, work, lends=lends) as client:
        client.choose(kind)
        assert (await client.say("go")).stop_reason == ("end_turn" if kind else "cancelled")
        (ended,) = client.calls.values()
        assert (ended["status"], len(client.asked)) == ("failed", 1)
    assert files(work / "d") == {"a.txt": "one\n"}


@BOTH
async def test_always_for_a_file_is_not_for_the_one_that_its_name_leads_to_later(work: Path, lends: bool) -> None:
    (work / "other.txt").write_text("other\n")
    write = ("write", {"path": "d/a.txt", "content": "new\n"})
    script = Script([[write], "Done.", [write], "Done."])
    async with coder(script, work, lends=lends) as client:
        client.choose("allow_always")
        await client.say("go")
        (work / "d" / "a.txt").unlink()
        (work / "d" / "a.txt").symlink_to(work / "other.txt")
        client.choose("reject_once")
        await client.say("go")
        assert len(client.asked) == 2
    assert (work / "other.txt").read_text() == "other\n"


async def test_a_patch_with_two_names_of_one_file_is_refused(work: Path) -> None:
    (work / "link").symlink_to(work / "d")
    change = "*** Update File: {}/a.txt\n@@\n-one\n+{}\n"
    patch = f"*** Begin Patch\n{change.format('d', 'x')}{change.format('link', 'y')}*** End Patch"
    (text,), _ = await told(Script([[("apply_patch", {"patch": patch})], "Done."]), work)
    assert "under another name" in text
    assert files(work / "d") == {"a.txt": "one\n"}


async def test_a_patch_moves_nothing_out(work: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: d/a.txt\n*** Move to: ../outside/b.txt\n@@\n-one\n+x\n*** End Patch"
    (text,), client = await told(Script([[("apply_patch", {"patch": patch})], "Done."]), work)
    assert "outside of the workspace" in text
    assert client.asked == []
    assert files(work / "d") == files(work.parent / "outside") == {"a.txt": "one\n"}


async def test_a_pipe_is_not_waited_for(work: Path) -> None:
    os.mkfifo(work / "pipe")
    os.mkfifo(work / "AGENTS.md")
    calls = [("read", {"path": "pipe"}), ("write", {"path": "pipe", "content": "x"}), ("grep", {"pattern": "x"})]
    texts, client = await told(Script([calls, "Done."]), work)
    assert ["no file but a pipe" in text for text in texts] == [True, True, False]
    assert client.asked == []


async def test_a_directory_is_called_one_also_the_workspace_itself(work: Path) -> None:
    calls = [("read", {"path": "."}), ("read", {"path": "d"}), ("write", {"path": ".", "content": "x"})]
    texts, client = await told(Script([calls, "Done."]), work)
    assert ["it is a directory" in text for text in texts] == [True, True, True]
    assert client.asked == []


@BOTH
async def test_what_no_file_and_no_command_can_be_is_told_plainly(work: Path, lends: bool) -> None:
    calls = [
        ("write", {"path": "x" * 5000, "content": "x"}),
        ("read", {"path": "a\0b"}),
        ("bash", {"command": "echo a\0b"}),
        ("bash", {"command": "ls", "cwd": "nowhere"}),
    ]
    texts, _ = await told(Script([calls, [("grep", {"pattern": "x" * 300_000})], "Done."]), work, lends=lends)
    assert len(texts) == 5
    assert not [text for text in texts if "defect" in text]


# -- processes --


@BOTH
@pytest.mark.parametrize("ending", ["; true", "; sleep 600"], ids=["ended", "cancelled"])
async def test_what_a_command_left_in_the_background_ends_with_it(work: Path, lends: bool, ending: str) -> None:
    mark = f"ATTACK={work}"
    left = f"export '{mark}'; sleep 600 & setsid sleep 600 & echo begun > begun{ending}"
    script = Script([[("bash", {"command": left})], "Done."])
    async with coder(script, work, lends=lends) as client:
        turn = client.start("go")
        if "600" in ending:
            async with asyncio.timeout(20):
                while not (work / "begun").exists() or len(processes_with(mark)) < 2:
                    await asyncio.sleep(0.01)
            await client.cancel()
        await turn
        assert client.is_settled()
    async with asyncio.timeout(30):  # those that were killed are gone a moment later
        while processes_with(mark):
            await asyncio.sleep(0.01)


async def test_output_without_measure_is_cut(work: Path) -> None:
    script = Script([[("bash", {"command": "yes | head -c 5000000"})], "Done."])
    (text,), _ = await told(script, work, home=work.parent / "home")
    assert len(text) < 40_000
    assert text.endswith("[exit code 0]")
    assert sum(path.stat().st_size for path in (work.parent / "home").iterdir()) < 8_000_000


# -- what it says --


async def test_half_of_a_character_harms_neither_the_turn_nor_the_memory(work: Path) -> None:
    script = Script([Answer(text="half \ud83d here", thinking="\udc00"), "Still here."])
    home = work.parent / "home"
    async with coder(script, work, home=home) as client:
        await client.say("go")
        assert client.text == "half � here "
        await client.say("again")
        session = client.session
    later = Script(["Back."])
    async with coder(later, work, home=home, session=False) as client:
        client.session = session
        await client.agent.load_session(session_id=session, cwd=str(work), mcp_servers=[])
        assert "half � here" in client.text
        await client.say("and on")
    assert len(later.heard[0]) == 5


async def test_calls_that_nobody_has_end_and_so_does_the_turn(work: Path) -> None:
    wrong = [("nothing", {"a": 1}), ("read", {"way": 1}), ("task", {"description": 1})]
    script = Script([wrong] * 10)
    async with coder(script, work) as client:
        with pytest.raises(RequestError) as error:
            await client.say("go")
        assert error.value.data["errorKind"] == "model"
        assert error.value.message.endswith("in a wrong way more than 3 times")
        assert client.is_settled()
        script.answers = ["Back."]
        assert (await client.say("again")).stop_reason == "end_turn"


async def test_a_name_that_no_server_takes_back_is_not_sent_to_it(work: Path) -> None:
    odd = ["functions.read", "read file", "ü" * 100, "read"]
    script = Script([[(name, {"path": "d/a.txt"}) for name in odd], "Done.", "Yes."])
    async with coder(script, work) as client:
        await client.say("go")
        await client.say("again")
        assert [call["name"] for call in client.calls.values()] == odd
        assert client.is_settled()
    for heard in script.heard[1:]:
        parts = [part for message in heard for part in message.parts if hasattr(part, "tool_name")]
        assert [part.tool_name for part in parts] == ["functions_read", "read_file", "_" * 64, "read"] * 2


class SameIds(Script):
    """A server that counts its calls anew in each answer."""

    async def _stream(self, messages: Any, info: Any) -> Any:
        answer = self._next(messages, info)
        if answer.text:
            yield answer.text
        for number, (name, given) in enumerate(answer.calls, 1):
            yield {number: DeltaToolCall(name, json.dumps(given), tool_call_id=f"call_{number}")}


async def test_every_call_is_shown_once_also_where_the_server_uses_its_ids_again(work: Path) -> None:
    read, unknown, unfit = ("read", {"path": "d/a.txt"}), ("nothing", {"x": 1}), ("write", {"path": "b"})
    task = ("task", {"description": "part", "prompt": "part"})
    script = SameIds([[read], [unknown], [unfit], [read, unknown], [task], [read], [unknown], "Report.", "Done."])
    async with coder(script, work) as client:
        await client.say("go")
        shown = [(call["name"], call["status"]) for call in client.calls.values()]
    own = [("read", "completed"), ("nothing", "failed"), ("write", "failed"), ("read", "completed")]
    assert shown == [*own, ("nothing", "failed"), ("task", "completed"), ("read", "completed"), ("nothing", "failed")]


class OneId(SameIds):
    """A server that gives all its calls the same id."""

    async def _stream(self, messages: Any, info: Any) -> Any:
        async for piece in super()._stream(messages, info):
            calls = piece if isinstance(piece, dict) else {}
            for call in calls.values():
                call.tool_call_id = "call"
            yield piece


async def test_calls_of_one_answer_that_have_one_id_are_told_apart(work: Path) -> None:
    (work / "b.txt").write_text("two\n")
    script = OneId([[("read", {"path": path}) for path in ("d/a.txt", "b.txt", "none")], "Done."])
    texts, client = await told(script, work)
    assert texts == ["one\n", "two\n", "`none` could not be read: there is no such file."]
    shown = [(call["title"], call["status"]) for call in client.calls.values()]
    assert shown == [("Read d/a.txt", "completed"), ("Read b.txt", "completed"), ("Read none", "failed")]


async def test_a_sub_agent_delegates_nothing(work: Path) -> None:
    task = ("task", {"description": "more", "prompt": "more"})
    texts, client = await told(Script([[task], [task], "Report.", "Done."]), work)
    assert texts == ["Report. "]
    assert sorted(call["status"] for call in client.calls.values()) == ["completed", "failed"]


async def test_fifty_calls_at_once_are_asked_about_one_by_one(work: Path) -> None:
    calls = [("bash", {"command": f"echo {number} > {number}.txt"}) for number in range(50)]
    script = Script([calls, "Done."])
    async with coder(script, work, lends=False) as client:
        client.answer = lambda call, options: _chosen(options, "allow_once" if "7" in call.title else "reject_once")
        await client.say("go")
        assert len(client.asked) == 50
        assert client.is_settled()
    assert sorted(path.stem for path in work.glob("*.txt")) == ["17", "27", "37", "47", "7"]


# -- servers of tools --

SERVER = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "x", "version": "1"}
        case "tools/list":
            time.sleep(%d)
            names = ["fetch", "odd name", "x" * 80]
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case _:
            result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def server(name: str, program: str) -> McpServerStdio:
    return McpServerStdio(name=name, command=sys.executable, args=["-c", program], env=[])


async def test_a_server_has_no_tool_that_is_taken_for_another_or_that_models_refuse(work: Path) -> None:
    script = Script(["Done."])
    async with coder(script, work, session=False) as client:
        servers = [server("web", SERVER % 0), server("web_", SERVER % 0)]
        client.session = (await client.agent.new_session(cwd=str(work), mcp_servers=servers)).session_id
        await client.say("go")
    offered = script.offered[0]
    assert {"web_fetch", "web__fetch", "web_1__fetch"} <= set(offered)
    assert len(set(offered)) == len(offered) == 16
    assert [name for name in offered if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)] == []


@pytest.mark.parametrize(
    "program", [SERVER % 600, "import time; time.sleep(600)", "while True: print('rubbish')", "raise SystemExit(3)"]
)
async def test_a_server_that_hangs_talks_rubbish_or_dies_is_left_out(
    work: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(mcp, "START", 1.0)
    script = Script(["Done.", "Again."])
    async with coder(script, work, session=False) as client:
        answer = await client.agent.new_session(cwd=str(work), mcp_servers=[server("lab", program)])
        client.session = answer.session_id
        await client.say("go")
        await client.say("again")
        assert client.text == "Done. Again. "
    assert not [name for name in script.offered[-1] if "lab" in name]


ODD_SERVER = """
import json, os, sys, threading
place = sys.argv[1]
for line in sys.stdin:
    message = json.loads(line)
    tool = {"name": "go", "inputSchema": {"type": "string" if "schema" in place else "object"}}
    match message.get("method"):
        case "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "x", "version": "1"}
        case "tools/list":
            result = {"tools": [tool]}
            if "hang" in place:
                open(place, "w").close()
                threading.Event().wait()
        case "tools/call":
            result = {"content": [{"type": "text", "text": "done"}] if "logs" in place else "no list"}
            said = {"level": "warning", "data": "something for programmers"}
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": said}), flush=True)
        case _:
            result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def odd_server(place: str) -> McpServerStdio:
    return McpServerStdio(name="lab", command=sys.executable, args=["-c", ODD_SERVER, place], env=[])


async def test_a_server_whose_tools_no_protocol_has_is_told_of_once(work: Path) -> None:
    script = Script([[("read", {"path": "d/a.txt"})], "Done.", "Again."])
    async with coder(script, work, session=False) as client:
        opened = await client.agent.new_session(cwd=str(work), mcp_servers=[odd_server("schema")])
        client.session = opened.session_id
        await client.say("go")
        await client.say("again")
    assert client.thoughts == (
        "The tools of the MCP server 'lab' cannot be used: tools.0.inputSchema.type: Input should be 'object'\n"
    )


async def test_an_answer_that_no_protocol_has_is_the_servers_fault(work: Path) -> None:
    script = Script([[("lab__go", {})], "Done."])
    async with coder(script, work, session=False) as client:
        opened = await client.agent.new_session(cwd=str(work), mcp_servers=[odd_server("result")])
        client.session = opened.session_id
        await client.say("go")
    (result,) = results(script.heard[-1])
    assert result == "The server answered, but not as the protocol has it: content: Input should be a valid list"


async def test_what_a_server_logs_is_not_printed(work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The agent's client reads it all, and the library prints it so slowly that much of it holds the agent."""
    script = Script([[("lab__go", {})], "Done."])
    async with coder(script, work, session=False) as client:
        opened = await client.agent.new_session(cwd=str(work), mcp_servers=[odd_server("logs")])
        client.session = opened.session_id
        await client.say("go")
    assert results(script.heard[-1]) == ["done"]
    assert "programmers" not in "".join(capfd.readouterr())


async def test_a_server_that_hangs_when_the_turn_is_cancelled_ends_with_the_session(work: Path) -> None:
    place = work / "hang"
    os.mkfifo(place)
    async with coder(Script(["Done."]), work, session=False) as client:
        opened = await client.agent.new_session(cwd=str(work), mcp_servers=[odd_server(str(place))])
        client.session = opened.session_id
        prompt = client.start("go")
        await asyncio.to_thread(place.read_bytes)  # it was asked for its tools
        await client.cancel()
        assert (await prompt).stop_reason == "cancelled"
        assert len(processes_with(str(place), "cmdline")) == 1
        await client.agent.close_session(session_id=client.session)
        assert processes_with(str(place), "cmdline") == []


# -- two processes --


async def test_two_processes_on_one_session_take_turns_and_know_of_each_other(work: Path) -> None:
    home = work.parent / "home"
    gate = asyncio.Event()
    first, second = Script(["One.", Answer(text="Slow.", until=gate), "Five."]), Script(["Two.", "Four."])
    async with (
        coder(first, work, home=home) as one,
        coder(second, work, home=home, session=False) as two,
    ):
        two.session = one.session
        await one.say("first")
        await two.agent.load_session(session_id=one.session, cwd=str(work), mcp_servers=[])
        await two.say("second")
        turn = one.start("third")
        await one.until(lambda: len(first.heard) == 2)
        with pytest.raises(RequestError, match="Another process") as error:
            await two.say("too early")
        assert error.value.data["errorKind"] == "busy"
        gate.set()
        await turn
        await two.say("fourth")
        await one.say("fifth")
        assert [len(messages) for messages in first.heard] == [1, 5, 9]
        assert [len(messages) for messages in second.heard] == [3, 7]
        two.updates.clear()
        await two.agent.load_session(session_id=one.session, cwd=str(work), mcp_servers=[])
        assert two.text == "One. Two. Slow. Four. Five. "
        await two.agent.delete_session(session_id=one.session)
        with pytest.raises(RequestError, match="not found"):
            await one.say("sixth")
    assert list(home.iterdir()) == []


# -- cancellation --


@pytest.mark.parametrize("lends", [True, False])
async def test_cancelled_at_any_moment_every_call_has_ended_and_nothing_runs(work: Path, lends: bool) -> None:
    chance = random.Random(8)
    mark = f"ATTACK={work}"
    calls = [
        ("read", {"path": "d/a.txt"}),
        ("write", {"path": "n.txt", "content": "x"}),
        ("bash", {"command": f"export '{mark}'; sleep 600 & setsid sleep 600 & sleep 600"}),
        ("grep", {"pattern": "one"}),
        ("task", {"description": "part", "prompt": "part"}),
    ]
    script = Script([])
    async with coder(script, work, lends=lends, home=work.parent / "home") as client:
        for number in range(TIMES):
            script.answers = [Answer(text="I do.", thinking="Hm.", calls=calls), [calls[2]], "Report.", "Done."]
            turn = client.start(f"go {number}")
            await asyncio.sleep(chance.random() * chance.choice([0.01, 0.1, 0.3]))
            await client.cancel()
            assert (await turn).stop_reason == "cancelled"
            assert client.is_settled()
        script.answers = ["Back."]
        assert (await client.say("again")).stop_reason == "end_turn"
    async with asyncio.timeout(30):
        while processes_with(mark):
            await asyncio.sleep(0.01)


TIMES = int(os.environ.get("ATTACK_TIMES", "12"))
"""More for whoever has more time."""
