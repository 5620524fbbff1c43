"""Claude Code's own CLI through our bridge: all its cases, and its history."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilothouse.acp import schema, spawn_agent_process
from pilothouse.hub.agent.process import AgentSpec
from tests.lab.claude_cases import *  # noqa: F403
from tests.lab.claude_cases import bash, raw, script
from tests.lab.conftest import WANTED
from tests.lab.talks import PATIENCE, WAYS, Talk
from tests.unit.agents.claude_bridge.driving import Talk as BridgeTalk
from tests.unit.agents.claude_bridge.driving import Watcher

pytestmark = pytest.mark.parametrize("agent", ["claude-code"] if "claude-code" in WANTED else [], indirect=True)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def bridge(agent: AgentSpec, work: Path) -> AsyncIterator[BridgeTalk]:
    """The bridge alone, without a hub, and a client that shows forms."""
    watcher = Watcher()
    program, *rest = agent.command
    spawned = spawn_agent_process(watcher, program, *rest, cwd=str(work))  # type: ignore[arg-type]
    async with asyncio.timeout(PATIENCE), spawned as (connection, _):
        await connection.initialize(protocol_version=1, client_capabilities={"elicitation": {"form": {}}})  # type: ignore[arg-type]
        yield BridgeTalk(connection, watcher, work)


async def test_history_is_loaded(agent: AgentSpec, work: Path) -> None:
    async with bridge(agent, work) as talk:
        first = talk.watcher
        await talk.open()
        assert await talk.said(script({"op": "read", "path": f"{work}/hello.txt"}, "Read it.")) == "Read it."
        await talk.agent.set_config_option(session_id=talk.session, config_id="model", value="haiku")
        given = {"description": "Sub", "subagent_type": "general-purpose", "run_in_background": False}
        sub = raw("Agent", prompt=script(bash("true"), "Sub done."), **given)
        assert await talk.said(script(sub, "Main done.")) == "Main done."
    async with bridge(agent, work) as branch:
        connection, second = branch.agent, branch.watcher
        listed = await connection.list_sessions(cwd=str(work))
        assert [one.session_id for one in listed.sessions] == [talk.session]
        await connection.load_session(session_id=talk.session, cwd=str(work), mcp_servers=[])
        assert second.said() == "Read it.Main done."
        assert second.said("user_message_chunk").startswith("@@fake")
        ends = [[end for end in each.statuses() if end != "in_progress"] for each in (first, second)]
        assert ends[0] == ends[1]
        parents = [call["_meta"]["claudeCode"].get("parentToolUseId") for call in second.of("tool_call")]
        assert parents == [None, None, second.of("tool_call")[1]["toolCallId"]]
        forked = await connection.fork_session(session_id=talk.session, cwd=str(work))
        branch.session = forked.session_id
        assert await branch.said(script("I was told {scripts} scripts.")) == "I was told 3 scripts."


async def test_a_workspace_by_a_link_and_with_a_long_path(agent: AgentSpec, tmp_path: Path) -> None:
    real = tmp_path / ("d" * 120) / ("e" * 120)
    real.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(real)
    async with bridge(agent, link) as talk:
        await talk.open()
        assert await talk.said(script("Here.")) == "Here."
        for cwd in (link, real):
            listed = await talk.agent.list_sessions(cwd=str(cwd))
            assert [one.session_id for one in listed.sessions] == [talk.session]
        assert (await talk.agent.list_sessions(cwd=str(tmp_path))).sessions == []


async def test_servers_and_directories_of_the_client(agent: AgentSpec, tmp_path: Path, work: Path) -> None:
    server = schema.McpServerStdio(
        name="lab", command=sys.executable, args=["-S", str(Path(__file__).with_name("mcp_server.py"))], env=[]
    )
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "note.txt").write_text("a note\n")
    async with bridge(agent, work) as talk:
        opened = await talk.agent.new_session(
            cwd=str(work), mcp_servers=[server], additional_directories=[str(beside), str(tmp_path / "not there")]
        )
        talk.session = opened.session_id
        shout = {"op": "raw", "name": "mcp__lab__shout", "input": {"text": "ahoy"}}
        read = {"op": "read", "path": f"{beside}/note.txt"}
        assert await talk.said(script(shout, read, "Done.")) == "Done."
        assert [asked["call"]["title"] for asked in talk.watcher.asked] == ["shout (lab)"]
        contents = [update["content"] for update in talk.watcher.of("tool_call_update") if update.get("content")]
        assert [content[0]["content"]["text"] for content in contents] == ["AHOY", "a note\n"]


async def test_a_question_and_a_plan(agent: AgentSpec, work: Path) -> None:
    options = [{"label": label, "description": label} for label in ("Red", "Blue")]
    question = {"question": "Which one?", "header": "Colour", "options": options, "multiSelect": True}
    async with bridge(agent, work) as talk:
        await talk.open(claudeCode={"options": {"permissionMode": "plan"}})
        ask = {"op": "raw", "name": "AskUserQuestion", "input": {"questions": [question]}}
        assert await talk.said(script(ask, "Thanks.")) == "Thanks."
        ended = talk.watcher.of("tool_call_update")[-1]
        assert "Blue" in ended["content"][0]["content"]["text"]
        talk.watcher.choose = lambda: "acceptEdits"
        leave = {"op": "raw", "name": "ExitPlanMode", "input": {"plan": "Do it."}}
        write = {"op": "write", "path": f"{work}/new.txt", "content": "x\n"}
        assert await talk.said(script(leave, write, "Done.")) == "Done."
        assert [asked["call"]["kind"] for asked in talk.watcher.asked] == ["switch_mode"]
        assert talk.watcher.of("current_mode_update")[-1]["currentModeId"] == "acceptEdits"
        assert (work / "new.txt").exists()


@pytest.mark.parametrize("settings", ['{"permissions": {"deny": ["Bash(touch:*)"]}}', '{"permissions": {"allow": ['])
async def test_settings_of_the_cli_bind_and_broken_ones_allow_nothing(
    agent: AgentSpec, work: Path, settings: str
) -> None:
    (work / ".claude").mkdir()
    (work / ".claude" / "settings.json").write_text(settings)
    async with bridge(agent, work) as talk:
        await talk.open()
        talk.watcher.choose = lambda: "reject"
        assert await talk.said(script(bash(f"touch {work}/never.txt"), "Well then.")) == "Well then."
        assert talk.watcher.statuses()[-1] == "failed"
        assert not (work / "never.txt").exists()
        assert len(talk.watcher.asked) == (0 if "deny" in settings else 1)


@pytest.mark.parametrize(
    ("limit", "then"), [({"maxTurns": 1}, "end_turn"), ({"maxBudgetUsd": 0.0001}, "max_turn_requests")]
)
async def test_a_limit_of_turns_ends_one_and_a_limit_of_money_all(
    agent: AgentSpec, work: Path, limit: dict[str, float], then: str
) -> None:
    async with bridge(agent, work) as talk:
        await talk.open(claudeCode={"options": limit})
        read = {"op": "read", "path": f"{work}/hello.txt"}
        assert await talk.prompt(script(read, read, "Done.")) == "max_turn_requests"
        assert talk.watcher.statuses()[-1] in ("completed", "failed")
        notices = [params["title"] for method, params in talk.watcher.notes if method == "claude/notice"]
        assert [title for title in notices if title.endswith("reached")]
        assert await talk.prompt(script("I was told {scripts} scripts.")) == then
        assert talk.watcher.said() == ("I was told 2 scripts." if then == "end_turn" else "")


async def test_a_cli_that_hangs_is_ended_when_its_turn_is_cancelled(talk: Talk) -> None:
    await talk.turn(script("First answer."))
    (pid,) = talk.processes()

    def hung() -> bool:
        if "tick" in talk.heard():
            os.kill(pid, signal.SIGSTOP)
        return "tick" in talk.heard()

    turn = await talk.turn(script({"text": "tick " * 300, "chunk": 5, "delay": 0.1}), cancel=hung)
    assert turn.stop == "cancelled"
    said = (await talk.turn(script("I was told {scripts} scripts."))).said
    assert said in ("I was told 2 scripts.", "I was told 3 scripts.")  # it may not have written down the last one
    assert pid not in talk.processes()
