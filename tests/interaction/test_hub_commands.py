"""Every command has its effect on a real session, or an error that says why not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import HubError, IllegalCommand, UnknownApproval, Unsupported
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.commands import execute
from pilothouse.hub.session.session import HubSession
from pilothouse.model.commands import ACPCommand, parse_command
from pilothouse.model.events import ApprovalRequestedEvent, Event, MessageDeltaEvent, UserQuestionEvent

DEMO = AgentSpec(name="demo", command=(sys.executable, "-m", "pilothouse.cli", "demo-agent"))
PATIENCE = 60


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[HubSession]:
    project = tmp_path / "project"
    project.mkdir()
    async with Hub(home=tmp_path / "home", agents={"demo": DEMO}) as hub, asyncio.timeout(PATIENCE):
        yield await hub.start_session("demo", project)


async def do(session: HubSession, command: str, **fields: Any) -> dict[str, Any]:
    return await execute(session, parse_command({"command": command, **fields}), by="tester")


async def seen(session: HubSession, kind: type[Event]) -> Any:
    async for event in session.events():
        if isinstance(event, kind):
            return event
    raise AssertionError("the session ended")


async def test_a_message_is_a_prompt_and_the_same_request_is_sent_once(session: HubSession) -> None:
    first = await do(session, "send_message", message="echo hello", clientRequestId="c1")
    again = await do(session, "send_message", message="echo hello", clientRequestId="c1")
    assert first == again
    await session.prompt("echo two")
    texts = [message.text for message in session.state.messages if message.role == "assistant"]
    assert texts == ["hello", "two"]


@pytest.mark.parametrize(("command", "written"), [("approve_tool_call", True), ("deny_tool_call", False)])
async def test_a_tool_call_runs_when_it_is_approved(session: HubSession, command: str, written: bool) -> None:
    sent = await session.send("edit note.txt hello")
    asked = await seen(session, ApprovalRequestedEvent)
    await do(session, command, requestId=asked.request_id, toolCallId=asked.tool_call_id)
    await sent.done
    assert (Path(session.cwd) / "note.txt").exists() is written


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("approve_tool_call", {"toolCallId": "another"}),
        ("deny_tool_call", {"toolCallId": "another"}),
        ("approve_tool_call", {"optionId": "reject-once"}),
        ("deny_tool_call", {"optionId": "allow-once"}),
    ],
)
async def test_a_decision_that_contradicts_itself_decides_nothing(
    session: HubSession, command: str, wrong: dict[str, str]
) -> None:
    sent = await session.send("edit note.txt hello")
    asked = await seen(session, ApprovalRequestedEvent)
    about = {"requestId": asked.request_id, "toolCallId": asked.tool_call_id}
    with pytest.raises(IllegalCommand):
        await do(session, command, **about | wrong)
    assert session.status == "waiting_for_approval"
    await do(session, "deny_tool_call", **about, optionId="reject-once")
    await sent.done
    assert not (Path(session.cwd) / "note.txt").exists()


async def test_a_question_is_answered(session: HubSession) -> None:
    sent = await session.send("question")
    asked = await seen(session, UserQuestionEvent)
    await do(session, "answer_question", questionId=asked.question_id, answer=None)
    await session.cancel()
    assert sent.done.done()


async def test_a_turn_is_cancelled(session: HubSession) -> None:
    sent = await session.send("wait")
    assert await do(session, "cancel") == {"cancelled": True}
    assert sent.done.result().stop_reason == "cancelled"
    assert await do(session, "cancel") == {"cancelled": False}


async def test_a_turn_that_does_not_stop_is_forced_to(session: HubSession) -> None:
    sent = await session.send("stubborn 600")
    async for event in session.events():
        if isinstance(event, MessageDeltaEvent) and event.role == "assistant":
            break
    asked = asyncio.create_task(do(session, "cancel"))
    assert await do(session, "cancel", force=True) == {"cancelled": True}
    assert await asked == {"cancelled": True}
    assert sent.done.result().stop_reason == "cancelled"
    assert "did not want to wait" in str([event async for event in _stored(session)])
    assert (await session.prompt("echo next")).stop_reason == "end_turn"


async def _stored(session: HubSession) -> AsyncIterator[Event]:
    async for event in session.events():
        yield event
        if event.seq == session.state.seq:
            return


async def test_a_paused_session_waits(session: HubSession) -> None:
    await do(session, "pause")
    waiting = await do(session, "send_message", message="echo later")
    assert session.status == "paused"
    await do(session, "edit_queued", promptId=waiting["turnId"], message="echo edited")
    await do(session, "resume", prompt="echo next")
    await session.prompt("echo last")
    texts = [message.text for message in session.state.messages if message.role == "assistant"]
    assert texts == ["edited", "next", "last"]


async def test_queued_prompts_are_moved_and_dropped(session: HubSession) -> None:
    await do(session, "pause")
    ids = [(await do(session, "send_message", message=f"echo {name}"))["turnId"] for name in "abc"]
    await do(session, "move_queued", promptId=ids[2], position=0)
    await do(session, "cancel_queued", promptId=ids[0])
    await do(session, "resume")
    await session.prompt("echo end")
    texts = [message.text for message in session.state.messages if message.role == "assistant"]
    assert texts == ["c", "b", "end"]


async def test_a_policy_answers_without_asking(session: HubSession) -> None:
    policy = {"autoApprove": {"reads": True, "writes": ["*.txt"], "commands": False, "searches": True}}
    await do(session, "set_permission_policy", policy=policy)
    assert (await session.prompt("edit note.txt hello")).stop_reason == "end_turn"
    assert (Path(session.cwd) / "note.txt").read_text().strip() == "hello"


async def test_mode_model_option_and_title_are_set(session: HubSession) -> None:
    await session.start()
    await do(session, "set_mode", modeId="plan")
    assert session.state.mode == "plan"
    await do(session, "set_model", modelId="scripted-large")
    assert session.state.model == "scripted-large"
    await do(session, "set_config_option", optionId="thoughts", value=False)
    await do(session, "rename", title="The login")
    assert session.state.title == "The login"


async def test_a_terminated_session_takes_no_prompt(session: HubSession) -> None:
    await session.prompt("echo hello")
    await do(session, "terminate")
    assert session.status == "completed"
    with pytest.raises(IllegalCommand):
        await do(session, "send_message", message="more")


@pytest.mark.parametrize(
    ("command", "fields", "error"),
    [
        ("approve_tool_call", {"requestId": "no", "toolCallId": "no"}, UnknownApproval),
        ("deny_tool_call", {"requestId": "no", "toolCallId": "no"}, UnknownApproval),
        ("answer_question", {"questionId": "no", "answer": "x"}, UnknownApproval),
        ("edit_queued", {"promptId": "no", "message": "x"}, IllegalCommand),
        ("cancel_queued", {"promptId": "no"}, IllegalCommand),
        ("move_queued", {"promptId": "no", "position": 0}, IllegalCommand),
        ("set_mode", {"modeId": "no such mode"}, HubError),
        ("set_config_option", {"optionId": "no such option", "value": "x"}, HubError),
        ("set_model", {"modelId": "x"}, Unsupported),
    ],
)
async def test_what_cannot_be_done_is_said(session: HubSession, command: str, fields: Any, error: type) -> None:
    with pytest.raises(error):
        await do(session, command, **fields)


def test_no_command_is_forgotten() -> None:
    from pilothouse.hub.session.commands import _EFFECTS

    assert set(_EFFECTS) == set(get_args(ACPCommand))
