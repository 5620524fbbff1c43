"""Turns of the scripted agent that are cancelled or go wrong, and what its sessions promise over their life."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from pilothouse.acp import (
    ConnectionClosed,
    RequestError,
    text_block,
)
from tests.support.demo_talk import (
    QUICK,
    Talk,
    talk,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


# -- trouble ----------------------------------------------------------------------------------------------------------


async def test_wait_ends_when_cancelled(full: Talk) -> None:
    turn = full.start("wait")
    await full.client.until(lambda: full.client.text)
    await full.cancelled(turn)


@pytest.mark.parametrize("command", ["permission", "edit a.txt x", "bash echo x"])
async def test_cancel_while_permission_is_asked(full: Talk, command: str) -> None:
    full.client.hangs = True
    turn = full.start(command)
    await full.client.asking.wait()
    await full.cancelled(turn)
    assert full.client.only_call()["statuses"][-1] == "failed"
    assert list(full.cwd.iterdir()) == []


@pytest.mark.parametrize("command", ["permission", "edit a.txt x", "bash echo x", "tour"])
async def test_the_answer_cancelled_ends_the_turn(full: Talk, command: str) -> None:
    full.client.choice = None
    assert (await full.prompt(command)).stop_reason == "cancelled"
    assert full.client.only_call()["statuses"][-1] == "failed"
    assert list(full.cwd.iterdir()) == []


async def test_cancel_while_a_command_runs_ends_the_command(full: Talk, minimal: Talk) -> None:
    for it in (full, minimal):
        turn = it.start("bash echo $$ > pid; sleep 60")
        await it.client.until(lambda it=it: "in_progress" in str(it.client.calls) and (it.cwd / "pid").exists())
        await it.cancelled(turn)
        assert it.client.only_call()["statuses"][-1] == "failed"
        pid = int((it.cwd / "pid").read_text() or 0)
        async with asyncio.timeout(QUICK):
            while pid and _runs(pid):
                await asyncio.sleep(0.01)
        (it.cwd / "pid").unlink()
    assert full.client.used[-1] == "release"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_cancelling_the_request_itself_also_ends_the_turn(full: Talk) -> None:
    turn = full.start("wait")
    await full.client.until(lambda: full.client.text)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert await full.says("echo free again") == "free again"


async def test_a_flood_can_be_cancelled(full: Talk) -> None:
    turn = full.start("flood 1000000")
    await full.client.until(lambda: full.client.text)
    await full.cancelled(turn)
    count = len(full.client.of("agent_message_chunk"))
    assert count < 1_000_000
    assert full.client.text == "".join(f"{i}\n" for i in range(count))


async def test_stubborn_ignores_cancel_and_then_ends_cancelled(full: Talk) -> None:
    began = time.monotonic()
    turn = full.start("stubborn 1")
    await full.client.until(lambda: full.client.text)
    await full.agent.cancel(session_id=full.session)
    assert (await turn).stop_reason == "cancelled"
    assert time.monotonic() - began >= 1
    assert (await full.prompt("stubborn 0")).stop_reason == "end_turn"


async def test_prompts_to_a_busy_session_wait_their_turn(full: Talk) -> None:
    first = full.start("slow 1")
    await full.client.until(lambda: full.client.text)
    second = full.start("echo second")
    third = full.start("echo third")
    await asyncio.gather(first, second, third)
    assert full.client.text.endswith("1.0 s\nsecondthird")


async def test_cancel_also_ends_the_prompts_that_wait(full: Talk) -> None:
    first = full.start("wait")
    await full.client.until(lambda: full.client.text)
    second = full.start("echo never")
    await asyncio.sleep(0)  # it is sent before the cancellation
    await full.cancelled(first)
    assert (await second).stop_reason == "cancelled"
    assert "never" not in full.client.text


async def test_other_sessions_are_not_held_up(full: Talk) -> None:
    turn = full.start("wait")
    await full.client.until(lambda: full.client.text)
    other = (await full.agent.new_session(cwd=str(full.cwd))).session_id
    await full.agent.cancel(session_id=other)
    response = await full.agent.prompt(session_id=other, prompt=[text_block("echo hi")])
    assert response.stop_reason == "end_turn"
    assert not turn.done()
    await full.cancelled(turn)


async def test_error_answers_with_that_code(full: Talk) -> None:
    for command, code in (("error", -32603), ("error -32000", -32000), ("error 7", 7)):
        with pytest.raises(RequestError) as error:
            await full.prompt(command)
        assert error.value.code == code


async def test_refuse_and_limit_have_their_stop_reasons(full: Talk) -> None:
    assert (await full.prompt("refuse")).stop_reason == "refusal"
    assert (await full.prompt("limit")).stop_reason == "max_tokens"


async def test_noise_does_not_disturb(full: Talk) -> None:
    assert await full.says("noise") == "0 1 2 3 4 5 6 7 8 9 10 11 and still here."
    excerpts = " ".join(f"{diagnostic}" for diagnostic in full.diagnostics)
    assert "This line is not JSON" in excerpts
    assert "demo/unheard_of" in excerpts
    assert len(full.diagnostics) >= 10
    assert await full.says("echo fine") == "fine"


async def test_stderr_is_drained(full: Talk) -> None:
    assert await full.says("stderr 2048") == "2048 KiB went to stderr."


async def test_crash_gives_the_exit_code_and_the_end_of_stderr(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        with pytest.raises(ConnectionClosed) as closed:
            await it.prompt("crash 3")
        assert closed.value.exit_code == 3
        assert "was told to crash" in closed.value.stderr_tail
        assert it.client.text == "I am about to crash."
        assert it.client.only_call()["statuses"] == ["pending", "in_progress"]


# -- sessions ---------------------------------------------------------------------------------------------------------


async def test_sessions_are_loaded_resumed_forked_listed_closed_and_deleted(full: Talk) -> None:
    agent, session, cwd = full.agent, full.session, str(full.cwd)
    await full.prompt("echo remembered")
    full.client.updates.clear()
    await agent.resume_session(session_id=session, cwd=cwd)
    await full.client.until(lambda: full.client.of("available_commands_update"))
    assert full.client.text == ""
    await agent.load_session(session_id=session, cwd=cwd)
    assert full.client.of("user_message_chunk")[0].content.text == "echo remembered"
    assert full.client.text == "remembered"
    fork = (await agent.fork_session(session_id=session, cwd=cwd)).session_id
    assert fork != session
    full.client.updates.clear()
    await agent.prompt(session_id=fork, prompt=[text_block("title The fork")])
    await agent.load_session(session_id=fork, cwd=cwd)
    assert "remembered" in full.client.text
    listed = (await agent.list_sessions(cwd=cwd)).sessions
    assert {(info.session_id, info.title) for info in listed} == {(session, None), (fork, "The fork")}
    assert (await agent.list_sessions(cwd="/elsewhere")).sessions == []
    await agent.close_session(session_id=fork)
    with pytest.raises(RequestError) as closed:
        await agent.prompt(session_id=fork, prompt=[text_block("echo x")])
    assert closed.value.code == -32002
    await agent.load_session(session_id=fork, cwd=cwd)
    await agent.delete_session(session_id=fork)
    assert [info.session_id for info in (await agent.list_sessions(cwd=cwd)).sessions] == [session]


async def test_long_lists_of_sessions_come_in_pages(full: Talk) -> None:
    cwd = str(full.cwd / "many")
    made = {(await full.agent.new_session(cwd=cwd)).session_id for _ in range(101)}
    first = await full.agent.list_sessions(cwd=cwd)
    assert first.next_cursor is not None
    second = await full.agent.list_sessions(cwd=cwd, cursor=first.next_cursor)
    assert second.next_cursor is None
    assert [len(first.sessions), len(second.sessions)] == [100, 1]
    assert {info.session_id for info in (*first.sessions, *second.sessions)} == made
    with pytest.raises(RequestError) as unknown:
        await full.agent.list_sessions(cursor="x")
    assert unknown.value.code == -32602


async def test_an_unknown_session_is_not_found(full: Talk) -> None:
    for call in (full.agent.load_session, full.agent.resume_session, full.agent.fork_session):
        for session in ("demo-9-00000000", "../../etc/passwd", ""):
            with pytest.raises(RequestError) as unknown:
                await call(session_id=session, cwd=str(full.cwd))
            assert unknown.value.code == -32002
    with pytest.raises(RequestError) as relative:
        await full.agent.new_session(cwd="not/absolute")
    assert relative.value.code == -32602


async def test_closing_a_session_ends_its_turn(full: Talk) -> None:
    turn = full.start("wait")
    await full.client.until(lambda: full.client.text)
    await full.agent.close_session(session_id=full.session)
    assert (await turn).stop_reason == "cancelled"


async def test_a_restarted_agent_loads_what_another_one_said(tmp_path: Path) -> None:
    env = {"PILOTHOUSE_DEMO_HOME": str(tmp_path / "home")}
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    async with talk(cwd, env=env) as it:
        for command in ("title Kept", "markdown", "bash echo kept", "edit a.txt x", "flood 2000", "mode plan"):
            await it.prompt(command)
        session, said, calls = it.session, it.client.text, it.client.calls
        with pytest.raises(ConnectionClosed):
            await it.prompt("crash")
    (file,) = (tmp_path / "home").glob("*.jsonl")
    assert file.stat().st_mode & 0o77 == 0
    with file.open("ab") as torn:
        torn.write(b'{"update": {"sessionUp')
    async with talk(cwd, env=env) as it:
        assert it.session != session
        opened = await it.agent.load_session(session_id=session, cwd=str(cwd))
        assert opened.modes is not None
        assert opened.modes.current_mode_id == "plan"
        assert it.client.text == said + "I am about to crash."
        assert [u.content.text for u in it.client.of("user_message_chunk")][-1] == "crash"
        replayed = it.client.calls
        assert [replayed[call]["statuses"][-1] for call in calls] == ["completed"] * 2
        assert all(item.type != "terminal" for call in replayed.values() for item in call.get("content", ()))
        it.session = session
        it.client.updates.clear()
        await it.prompt("tools")
        assert not set(it.client.calls) & set(replayed), "ids are not used twice"
        titles = {info.session_id: info.title for info in (await it.agent.list_sessions()).sessions}
        assert titles[session] == "Kept"
        await it.agent.delete_session(session_id=session)
        assert not file.exists()


async def test_without_a_home_nothing_is_kept(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        session = it.session
    async with talk(tmp_path) as it:
        with pytest.raises(RequestError) as unknown:
            await it.agent.load_session(session_id=session, cwd=str(tmp_path))
        assert unknown.value.code == -32002
    assert list(tmp_path.iterdir()) == []
