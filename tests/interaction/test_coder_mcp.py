"""MCP servers that a client names when it opens a session: over stdio, HTTP and SSE, every call asked about."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import BinaryImage, ToolReturnPart

from pilothouse.acp import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer
from pilothouse.agents.coder.tools import mcp
from tests.support import mcp_server
from tests.support.coders import Call, Client, Script, coder, results
from tests.support.hubs import processes_with
from tests.support.mcp_server import mcp_over_http

SHOUT: Call = ("lab__shout", {"text": "hello"})


def stdio(name: str = "lab", mark: str = "mark") -> McpServerStdio:
    env = [EnvVariable(name="MCP_MARK", value=mark)]
    return McpServerStdio(name=name, command=sys.executable, args=[mcp_server.__file__], env=env)


async def open_with(client: Client, cwd: Path, *servers: McpServerStdio | HttpMcpServer | SseMcpServer) -> None:
    opened = await client.agent.new_session(cwd=str(cwd), mcp_servers=list(servers))
    client.session = opened.session_id


async def test_a_tool_of_a_server_on_stdio_is_asked_about_and_used(tmp_path: Path) -> None:
    script = Script([[SHOUT], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        assert (await client.say("go")).stop_reason == "end_turn"
    assert results(script.heard[-1]) == ["HELLO"]
    ((asked, options),) = client.asked
    assert (asked.title, asked.raw_input) == ('lab: shout {"text":"hello"}', {"text": "hello"})
    assert options[1].name == "Always allow shout of lab in this session"
    call = client.call("lab__shout")
    assert (call["status"], call["content"][0].content.text) == ("completed", "HELLO")
    assert {"lab__shout", "lab__fail", "read"} <= set(script.offered[0])


async def test_a_result_without_measure_is_cut_for_the_model_as_well(tmp_path: Path) -> None:
    script = Script([[("lab__flood", {})], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        await client.say("go")
    (told,) = results(script.heard[-1])
    assert len(told) < 51_000
    assert "2950000 characters are left out" in told
    assert client.call("lab__flood")["content"][0].content.text == told


async def test_a_picture_is_shown_as_one_and_reaches_the_model(tmp_path: Path) -> None:
    script = Script([[("lab__picture", {})], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        await client.say("go")
    text, picture = (one.content for one in client.call("lab__picture")["content"])
    assert (text.text, picture.mime_type) == ("Look:", "image/png")
    assert base64.b64decode(picture.data) == mcp_server.PIXEL
    returned = [part for part in script.heard[-1][-1].parts if isinstance(part, ToolReturnPart)]
    assert returned[0].content == ["Look:", BinaryImage(mcp_server.PIXEL, media_type="image/png")]


async def test_a_tool_whose_name_no_model_takes_has_another_for_it(tmp_path: Path) -> None:
    long = "lab__" + "long" * 14 + "lon"
    names = {"lab__files_read": "files_read", "lab__files_read_1": "files.read"}
    names |= {long: "long" * 20, f"{long[:-4]}_1": "long" * 21}
    script = Script([[(name, {}) for name in names], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        await client.say("go")
    assert set(names) <= set(script.offered[0])
    assert results(script.heard[-1]) == [f"this is {own}" for own in names.values()]
    assert [asked.title for asked, _ in client.asked] == [f"lab: {own} {{}}" for own in names.values()]


async def test_only_tools_that_their_server_calls_reading_run_beside_others(tmp_path: Path) -> None:
    script = Script([[("lab__count", {}), SHOUT, SHOUT], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        counted, at_once = asyncio.Event(), asyncio.Barrier(2)
        allow = client.answer

        async def answer(call: Any, options: Any) -> Any:
            await (at_once.wait() if "shout" in call.title else counted.wait())
            return allow(call, options)

        client.answer = answer
        prompt = client.start("go")
        await client.until(lambda: client.asked)
        assert ["count" in asked.title for asked, _ in client.asked] == [True]
        counted.set()
        await prompt
    assert results(script.heard[-1]) == ["1", "HELLO", "HELLO"]


def test_no_two_servers_have_the_same_prefix() -> None:
    names = ["a", "a 1", "a", "a", "x" * 90, "x" * 91, "__"]
    made = mcp._prefixes(names)
    assert len(set(made)) == len(names)
    assert max(map(len, made)) < 32
    assert not [prefix for prefix in made if "__" in prefix]


@pytest.mark.parametrize("kind", ["reject_once", "reject_always"])
async def test_a_tool_that_is_rejected_is_not_used_whatever_its_server_says_of_it(tmp_path: Path, kind: str) -> None:
    script = Script([[("lab__count", {})], [("lab__shout", {"text": "x"})], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        client.choose(kind)
        await client.say("go")
        assert len(client.asked) == 2
        assert all("rejected" in text for text in results(script.heard[-1]))
        client.choose("allow_once")
        script.answers = [[("lab__count", {})], "Done."]
        await client.say("now")
        told = results(script.heard[-1])[-1]
        assert told == "1" if kind == "reject_once" else "rejected" in told


async def test_a_server_runs_in_the_workspace_for_as_long_as_the_session(tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    script = Script([[("lab__count", {}), ("lab__where", {})], "Done.", [("lab__count", {})], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio(mark=mark))
        await client.say("one")
        await client.say("two")
        assert results(script.heard[-1]) == ["1", f"{tmp_path} {mark}", "2"]
        assert len(processes_with(f"MCP_MARK={mark}")) == 1
        await client.agent.close_session(session_id=client.session)
        assert processes_with(f"MCP_MARK={mark}") == []


@pytest.mark.parametrize(("kind", "path"), [(HttpMcpServer, "/mcp"), (SseMcpServer, "/sse")])
async def test_a_server_elsewhere_is_announced_and_gets_its_headers(
    tmp_path: Path, kind: type[HttpMcpServer | SseMcpServer], path: str
) -> None:
    script = Script([[SHOUT], "Done."])
    with mcp_over_http(path) as url:
        async with coder(script, tmp_path, session=False) as client:
            offered = client.offer.agent_capabilities.mcp_capabilities
            assert (offered.http, offered.sse) == (True, True)
            headers = [HttpHeader(name="X-Key", value="as given")]
            await open_with(client, tmp_path, kind(name="lab", url=url, headers=headers))
            await client.say("go")
    assert results(script.heard[-1]) == ["HELLO"]


async def test_a_server_that_cannot_be_started_is_told_of_and_left_out(tmp_path: Path) -> None:
    script = Script([[SHOUT], "Done."])
    gone = McpServerStdio(name="gone", command="/no/such/program", args=[], env=[])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, gone, stdio())
        assert (await client.say("go")).stop_reason == "end_turn"
    assert "MCP server 'gone' could not be started" in client.thoughts
    assert results(script.heard[-1]) == ["HELLO"]


async def test_a_tool_that_fails_fails_its_call(tmp_path: Path) -> None:
    script = Script([[("lab__fail", {})], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        assert (await client.say("go")).stop_reason == "end_turn"
    assert client.call("lab__fail")["status"] == "failed"
    assert "it went wrong" in results(script.heard[-1])[0]


async def test_a_call_that_never_ends_is_cancelled(tmp_path: Path) -> None:
    script = Script([[("lab__wait", {})]])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        prompt = client.start("go")
        await client.until(lambda: any(call["status"] == "in_progress" for call in client.calls.values()))
        await client.cancel()
        async with asyncio.timeout(10):
            assert (await prompt).stop_reason == "cancelled"
        assert client.is_settled()


async def test_only_code_mode_has_them(tmp_path: Path) -> None:
    script = Script([[SHOUT], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        await client.agent.set_session_mode(session_id=client.session, mode_id="plan")
        await client.say("go")
        assert client.asked == []
    assert "lab__shout" not in script.offered[0]
    assert client.call("lab__shout")["status"] == "failed"


async def test_servers_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    script = Script([[("lab__shout", {"text": "a"}), ("lab_1__shout", {"text": "b"})], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio(), stdio())
        await client.say("go")
    assert results(script.heard[-1]) == ["A", "B"]


def kill(mark: str) -> None:
    (pid,) = processes_with(f"MCP_MARK={mark}")
    os.kill(pid, signal.SIGKILL)


async def test_a_server_that_dies_is_started_again_by_the_next_call(tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    count: Call = ("lab__count", {})
    script = Script([[count], "Done.", [count, SHOUT], [count], "Done.", [count], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio(mark=mark))
        await client.say("one")
        kill(mark)
        assert (await client.say("two")).stop_reason == "end_turn"
        await client.say("three")
        assert len(processes_with(f"MCP_MARK={mark}")) == 1
        assert client.is_settled()
    # both calls of the second prompt found it dead, and it was started once
    assert results(script.heard[-1]) == ["1", "1", "HELLO", "2", "3"]
    assert processes_with(f"MCP_MARK={mark}") == []


async def test_a_call_that_its_server_dies_of_is_not_made_again(tmp_path: Path) -> None:
    script = Script([[("lab__die", {})], [SHOUT], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        await open_with(client, tmp_path, stdio())
        assert (await client.say("go")).stop_reason == "end_turn"
    assert results(script.heard[-1]) == ["The server ended before it answered. The next call starts it again.", "HELLO"]
    assert (client.call("lab__die")["status"], client.call("lab__shout")["status"]) == ("failed", "completed")


async def test_a_server_that_cannot_be_started_again_fails_the_call_and_nothing_else(tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    program = tmp_path / "server.py"
    program.write_bytes(Path(mcp_server.__file__).read_bytes())
    script = Script([[SHOUT], "Done.", [SHOUT], "Without it, then.", [SHOUT], "Done."])
    async with coder(script, tmp_path, session=False) as client:
        server = stdio(mark=mark)
        server.args = [str(program)]
        await open_with(client, tmp_path, server)
        await client.say("one")
        whole = program.read_bytes()
        program.write_text("raise SystemExit(1)\n")
        kill(mark)
        assert (await client.say("two")).stop_reason == "end_turn"
        assert client.text.endswith("Without it, then. ")
        told = results(script.heard[-1])
        assert "The MCP server 'lab' could not be started" in told[-1]
        program.write_bytes(whole)
        await client.say("three")
        assert results(script.heard[-1])[-1] == "HELLO"
        assert client.is_settled()
