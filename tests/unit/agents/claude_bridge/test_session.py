"""A session over the fake CLI: turns, permissions, interrupts, and what becomes of it when its process does not."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import RequestError
from pilothouse.agents.claude_bridge.actions import Ask, ClientEnd
from tests.support.hubs import gone
from tests.unit.agents.claude_bridge.driving import Talk, in_memory, on_stdio


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "cli-home"))


def running(place: Path) -> list[int]:
    """The process whose id a tool has written down, while it lives."""
    pid = int(place.read_text())
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return []
    return [] if state in "ZX" else [pid]


# -- turns --


async def test_text_comes_by_token_and_once(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        assert await talk.prompt("say Hello from the fake, ä 漢 🛳") == "end_turn"
        assert talk.watcher.said() == "Hello from the fake, ä 漢 🛳"
        assert len(talk.watcher.of("agent_message_chunk")) > 3


async def test_a_session_offers_modes_models_and_commands_after_its_answer(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        assert talk.opened.modes.current_mode_id == "default"
        assert "acceptEdits" in [mode.id for mode in talk.opened.modes.available_modes]
        (option,) = talk.opened.config_options
        assert (option.id, option.current_value) == ("model", "default")
        await talk.watcher.until(lambda: talk.watcher.of("available_commands_update"))
        assert talk.watcher.updates[0]["session"] == talk.session


@pytest.mark.parametrize("name", ["text_partial", "parallel_tools", "todos_todowrite", "subagent", "hooks"])
async def test_a_recording_of_the_real_cli_passes_whole(tmp_path: Path, name: str) -> None:
    async with in_memory(tmp_path) as (talk, _):
        assert await talk.prompt(f"play {name}") == "end_turn"
        started = {update["toolCallId"] for update in talk.watcher.of("tool_call")}
        ended = [
            update["toolCallId"]
            for update in talk.watcher.updates
            if update.get("status") in ("completed", "failed") and "toolCallId" in update
        ]
        assert sorted(ended) == sorted(started)


async def test_prompts_of_two_sessions_do_not_mix(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        other = Talk(talk.agent, talk.watcher, talk.work)
        await other.open()
        await asyncio.gather(talk.prompt("say one"), other.prompt("say two"))
        for session, words in ((talk.session, "one"), (other.session, "two")):
            own = [update for update in talk.watcher.of("agent_message_chunk") if update["session"] == session]
            assert "".join(update["content"]["text"] for update in own) == words


# -- permissions --


async def test_what_is_allowed_is_done(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        assert await talk.prompt(f"write {tmp_path}/new.txt") == "end_turn"
        assert (tmp_path / "new.txt").read_text() == "written\n"
        assert talk.watcher.statuses() == ["pending", "in_progress", "completed"]
        (asked,) = talk.watcher.asked
        assert asked["call"]["toolCallId"] == talk.watcher.of("tool_call")[0]["toolCallId"]


async def test_what_is_rejected_is_not_done_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        talk.watcher.choose = lambda: "reject"
        assert await talk.said(f"write {tmp_path}/new.txt") == "Well then."
        assert not (tmp_path / "new.txt").exists()
        assert talk.watcher.statuses() == ["pending", "failed"]


async def test_reject_and_stop_ends_the_turn(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        talk.watcher.choose = lambda: "stop"
        assert await talk.prompt(f"write {tmp_path}/new.txt") == "cancelled"
        assert not (tmp_path / "new.txt").exists()
        assert await talk.said("say next") == "next"


async def test_allow_always_is_asked_once(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        talk.watcher.choose = lambda: "allow_always"
        await talk.prompt(f"write {tmp_path}/one.txt")
        await talk.prompt(f"write {tmp_path}/two.txt")
        assert (tmp_path / "two.txt").exists()
        assert len(talk.watcher.asked) == 1


async def test_a_client_that_cannot_ask_has_allowed_nothing(tmp_path: Path) -> None:
    def fail() -> str:
        raise RequestError.internal_error({"details": "no screen"})

    async with in_memory(tmp_path) as (talk, _):
        talk.watcher.choose = fail
        assert await talk.said(f"write {tmp_path}/new.txt") == "Well then."
        assert not (tmp_path / "new.txt").exists()


async def test_a_question_is_answered_by_a_form(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.agent.initialize(protocol_version=1, client_capabilities={"elicitation": {"form": {}}})
        await talk.open()
        assert await talk.said("question") == '{"Which one?": "Blue"}'


async def test_a_question_waits_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day passes, by the clock that every timeout here goes by, and nobody has decided in the user's place."""
    loop, later = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + later)
    user: asyncio.Future[Any] = loop.create_future()

    class Slow:
        async def send_request(self, method: str, params: Any = None) -> Any:
            return await user

        async def send_notification(self, method: str, params: Any = None) -> None: ...

    answered, refused = asyncio.Event(), asyncio.Event()
    client = ClientEnd("s", Slow(), answered=lambda *answer: answered.set(), refused=lambda *reason: refused.set())
    await client.ask(Ask("r1", "session/request_permission", {}))
    later = 24 * 3600.0
    for _ in range(5):
        await asyncio.sleep(0)
    assert not answered.is_set()
    assert not refused.is_set()
    user.set_result({"outcome": {"outcome": "selected", "optionId": "allow"}})
    async with asyncio.timeout(30):
        await answered.wait()


# -- interrupts --


async def test_text_is_interrupted(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, agent):
        pid = agent._sessions[talk.session].pid
        assert await talk.cancelled("talk", talk.watcher.said) == "cancelled"
        assert await talk.said("say next") == "next"
        assert agent._sessions[talk.session].pid == pid


async def test_a_tool_is_interrupted(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        marker = tmp_path / "pid"
        assert await talk.cancelled(f"work {marker}", marker.exists) == "cancelled"
        assert talk.watcher.statuses()[-1] == "failed"
        await gone(lambda: running(marker))
        assert await talk.said("say next") == "next"


async def test_a_question_is_withdrawn_when_the_turn_is_interrupted(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        talk.watcher.choose = lambda: None
        stopped = await talk.cancelled(f"write {tmp_path}/new.txt", lambda: talk.watcher.asked)
        assert stopped == "cancelled"
        assert talk.watcher.withdrawn == 1
        assert not (tmp_path / "new.txt").exists()
        assert await talk.said("say next") == "next"


async def test_a_cli_that_hears_nothing_is_ended_with_its_tree_and_started_again(tmp_path: Path) -> None:
    async with in_memory(tmp_path, interrupt_deadline=0.3) as (talk, _):
        await talk.prompt("say one")
        marker = tmp_path / "pid"
        assert await talk.cancelled(f"deaf {marker}", marker.exists) == "cancelled"
        await gone(lambda: running(marker))
        assert (await talk.said("recall")).startswith("3 prompts")


async def test_a_result_that_comes_late_is_not_taken_for_the_next_turn(tmp_path: Path) -> None:
    async with in_memory(tmp_path, interrupt_deadline=0.3) as (talk, _):
        assert await talk.cancelled("late", lambda: "Working" in talk.watcher.said()) == "cancelled"
        assert await talk.said("say the real answer") == "the real answer"
        assert ("claude/late_result") in [method for method, _ in talk.watcher.notes]


async def test_cancelling_nothing_does_nothing(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.agent.cancel(session_id=talk.session)
        assert await talk.said("say here") == "here"


async def test_a_start_that_takes_long_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with in_memory(tmp_path) as (talk, agent):
        session = agent._sessions[talk.session]
        await talk.prompt("say one")
        await session.stop()
        monkeypatch.setenv("FAKE_CLAUDE", "mute")
        assert await talk.cancelled("say two", lambda: session.pid) == "cancelled"
        monkeypatch.delenv("FAKE_CLAUDE")
        assert (await talk.said("recall")).startswith("2 prompts")


# -- ends --


async def test_a_cli_that_dies_fails_its_prompt_and_the_next_one_goes_on(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("say one")
        error = await talk.failed("die 7")
        assert error.data == {"errorKind": "agent_died", "exitCode": 7, "stderrTail": "fake: out of memory\n"}
        assert error.message == "Claude Code ended with exit code 7. It said: fake: out of memory"
        assert talk.watcher.statuses() == ["pending", "failed"]
        assert (await talk.said("recall")).startswith("3 prompts")


async def test_a_cli_that_was_killed_between_turns_is_started_again_in_the_same_mode(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, agent):
        await talk.prompt("say one")
        await talk.agent.set_session_mode(session_id=talk.session, mode_id="plan")
        await talk.agent.set_config_option(session_id=talk.session, config_id="model", value="small")
        pid = agent._sessions[talk.session].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        said = await talk.said("recall")
        assert said.startswith("2 prompts, mode plan, model small")
        assert f"'--resume', '{talk.session}'" in said


@pytest.mark.parametrize(("typed", "shown"), [("small", "small"), ("large", "large"), ("of-a-gateway", "of-a-gateway")])
async def test_a_model_that_was_chosen_by_a_command_is_shown_at_once_and_outlives_the_process(
    tmp_path: Path, typed: str, shown: str
) -> None:
    async with in_memory(tmp_path) as (talk, agent):
        await talk.agent.set_config_option(session_id=talk.session, config_id="model", value="default")
        await talk.prompt(f"/model {typed}")
        told = talk.watcher.of("config_option_update")[-1]["configOptions"][0]
        assert told["currentValue"] == shown
        for _ in range(2):
            os.kill(agent._sessions[talk.session].pid or 0, signal.SIGKILL)
            assert f"model {typed}, " in await talk.said("recall")
        assert talk.watcher.of("config_option_update")[-1]["configOptions"][0]["currentValue"] == shown


async def test_a_model_that_the_cli_did_not_take_is_not_the_sessions(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, agent):
        await talk.agent.set_config_option(session_id=talk.session, config_id="model", value="small")
        assert await talk.said("/model locked") == "Model: fake-small"
        os.kill(agent._sessions[talk.session].pid or 0, signal.SIGKILL)
        assert "model small, " in await talk.said("recall")


async def test_a_prompt_that_crosses_the_end_at_a_limit_is_sent_again(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        assert await talk.prompt("limit") == "max_turn_requests"
        (talk.work / "gone").touch()
        assert (await talk.said("recall")).startswith("2 prompts")


async def test_a_session_without_a_turn_is_begun_again_under_its_id(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, agent):
        await agent._sessions[talk.session].stop()
        assert agent._sessions[talk.session].pid is None
        assert f"'--session-id', '{talk.session}'" in await talk.said("recall")


async def test_closing_leaves_no_process_and_answers_the_prompt(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        marker = tmp_path / "pid"
        task = asyncio.create_task(talk.prompt(f"deaf {marker}"))
        while not marker.exists():
            await asyncio.sleep(0.01)
        await talk.agent.close_session(session_id=talk.session)
        assert await task == "cancelled"
        await gone(lambda: running(marker))


@pytest.mark.parametrize("end", [signal.SIGTERM, None])
async def test_a_bridge_that_ends_takes_its_processes_along(tmp_path: Path, end: signal.Signals | None) -> None:
    marker = tmp_path / "pid"
    async with on_stdio(tmp_path) as (talk, process):
        task = asyncio.create_task(talk.prompt(f"deaf {marker}"))
        while not marker.exists():
            await asyncio.sleep(0.01)
        if end is not None:
            process.send_signal(end)
            await gone(lambda: running(marker))
    await gone(lambda: running(marker))
    await asyncio.wait((task,))
    assert task.exception() is not None or task.result() == "cancelled"


# -- failures --


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request", -32603),
        (401, "auth_required", -32000),
        (429, "rate_limit", -32603),
        (529, "overloaded", -32603),
        (500, "server_error", -32603),
    ],
)
async def test_errors_of_the_api_are_told_apart(tmp_path: Path, status: int, kind: str, code: int) -> None:
    async with in_memory(tmp_path) as (talk, _):
        error = await talk.failed(f"fail {status}")
        assert (error.code, error.data["errorKind"], error.data["status"]) == (code, kind, status)
        assert await talk.said("say next") == "next"


async def test_noise_disturbs_nothing_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CLAUDE", "noisy")
    async with in_memory(tmp_path) as (talk, _):
        assert await talk.said("junk still here") == "still here"
        told = [params for method, params in talk.watcher.notes if method == "claude/unreadable"]
        assert "Segmentation fault" in [params["text"] for params in told]
        assert "Welcome to the fake!" in [params["text"] for params in told]


async def test_a_line_of_sixteen_megabytes_arrives(tmp_path: Path) -> None:
    size = 16 * 1024 * 1024 + 5
    async with in_memory(tmp_path) as (talk, _):
        assert len(await talk.said(f"long {size}")) == size


async def test_a_flood_on_stderr_blocks_nothing(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        assert await talk.said(f"stderr {8 * 1024 * 1024}") == "Quiet again."


async def test_a_cli_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    async with in_memory(tmp_path, open_session=False, program="/no/such/claude") as (talk, _):
        with pytest.raises(RequestError, match="npm install -g @anthropic-ai/claude-code"):
            await talk.open()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("crash", "^Claude Code ended with exit code 1. It said: fake: no licence found$"),
        ("chatty", "^Claude Code ended with exit code 3. It said: Please log in$"),
        ("mute", "^Claude Code did not answer within 0.5 s.$"),
    ],
)
async def test_a_cli_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, words: str
) -> None:
    monkeypatch.setenv("FAKE_CLAUDE", how)
    async with in_memory(tmp_path, open_session=False, initialize_timeout=0.5 if how == "mute" else 20) as (
        talk,
        agent,
    ):
        with pytest.raises(RequestError, match=words) as caught:
            await talk.open()
        assert caught.value.data["errorKind"] == "start_failed"
        assert caught.value.data["stderrTail"] == ("fake: no licence found\n" if how == "crash" else "")
        assert agent._sessions == {}
