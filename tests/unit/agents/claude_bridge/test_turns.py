"""Ends of turns: whose they are, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.agents.claude_bridge.actions import Ended, Note, Withdraw
from tests.unit.agents.claude_bridge.lines import (
    ask,
    assistant,
    block_start,
    delta,
    init,
    message_start,
    result,
    stream,
    system,
    text,
    tool_result,
    use,
    user,
)
from tests.unit.agents.claude_bridge.playing import Play, checked, play

ABORTED = result("error_during_execution", terminal_reason="aborted_streaming")
OWN = {"origin": {"kind": "task-notification"}}


def read(played: Play, *lines: dict[str, Any]) -> None:
    for line in lines:
        played.take(played.translator.read(json.dumps(line)))
    checked(played)


def stop(*lines: dict[str, Any]) -> str:
    (ended,) = play("go", init(), *lines).ended
    assert ended.failure is None
    assert ended.response is not None
    reason = ended.response["stopReason"]
    assert isinstance(reason, str)
    return reason


def failed(*lines: dict[str, Any]) -> Ended:
    (ended,) = play("go", init(), *lines).ended
    assert ended.response is None
    return ended


# -- stop reasons --


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (result(), "end_turn"),
        (result("error_max_turns"), "max_turn_requests"),
        (result("error_max_budget_usd"), "max_turn_requests"),
        (ABORTED, "cancelled"),
        (result(stop_reason="refusal", is_error=True), "refusal"),
        (result(stop_reason="max_tokens"), "max_tokens"),
        (result(api_error="max_output_tokens", is_error=True, terminal_reason="api_error"), "max_tokens"),
        (result("from_tomorrow", is_error=False), "end_turn"),
    ],
)
def test_a_result_gives_the_stop_reason(line: dict[str, Any], reason: str) -> None:
    assert stop(line) == reason


def test_a_refusal_that_only_the_stream_tells_is_one() -> None:
    refusal = stream("message_delta", delta={"stop_reason": "refusal"})
    error = result(is_error=True, terminal_reason="api_error", result="API Error")
    assert stop(message_start(), refusal, error) == "refusal"
    assert stop(system("model_refusal_no_fallback"), error) == "refusal"
    played = play("go", init(), message_start(), refusal, error)
    assert played.notices() == ["The model refused to answer"]


def test_an_interrupt_that_the_result_does_not_mention_still_cancels() -> None:
    played = play("go", init(), assistant(text("x")))
    played.take(played.translator.interrupt())
    read(played, result("error_during_execution", terminal_reason=None))
    assert played.ended[0].response == {
        "stopReason": "cancelled",
        "_meta": {"claudeCode": {"subtype": "error_during_execution"}},
    }


def test_an_error_that_only_the_subtype_tells_is_one() -> None:
    line = result("error_during_execution", is_error=False, terminal_reason=None, errors=["It broke."])
    ended = failed(line)
    assert ended.failure is not None
    assert ended.failure.message == "It broke."
    played = play("go", init(), assistant(text("x")))
    played.take(played.translator.interrupt())
    read(played, line)
    assert (played.ended[0].response or {})["stopReason"] == "cancelled"


def test_each_limit_says_which_it_was() -> None:
    budget = play("go", init(), result("error_max_budget_usd", errors=["Reached maximum budget ($1)"]))
    turns = play("go", init(), result("error_max_turns", errors=["Reached maximum number of turns (2)"]))
    assert (budget.notices(), turns.notices()) == (["Budget reached"], ["Turn limit reached"])
    assert budget.updates[-1]["description"] == "Reached maximum budget ($1)"


def test_the_answer_has_the_tokens_of_the_turn() -> None:
    usage = {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 11, "cache_creation_input_tokens": 13}
    (ended,) = play("go", init(), result(usage=usage, total_cost_usd=0.5, num_turns=2)).ended
    assert ended.response is not None
    assert ended.response["usage"] == {
        "totalTokens": 36,
        "inputTokens": 5,
        "outputTokens": 7,
        "cachedReadTokens": 11,
        "cachedWriteTokens": 13,
    }


# -- failures --


@pytest.mark.parametrize(
    ("error", "status", "message", "kind", "code"),
    [
        ("invalid_request", 400, "API Error: 400 bad thing", "invalid_request", -32603),
        ("authentication_failed", 401, "Invalid API key · Fix external API key", "auth_required", -32000),
        ("authentication_failed", None, "Please run /login", "auth_required", -32000),
        ("rate_limit", 429, "API Error: slow down", "rate_limit", -32603),
        ("rate_limit", None, "Claude usage limit reached", "rate_limit", -32603),
        ("server_error", 529, "API Error: Overloaded", "overloaded", -32603),
        ("server_error", 500, "API Error: 500", "server_error", -32603),
        ("billing_error", None, "Credit balance is too low", "billing", -32603),
        ("unknown", None, "API Error: Connection error.", "connection", -32603),
        ("server_error", None, "API Error: The socket connection was closed", "connection", -32603),
        ("unknown", None, "API Error: who knows", "agent_error", -32603),
    ],
)
def test_each_trouble_with_the_api_is_told_apart(
    error: str, status: int | None, message: str, kind: str, code: int
) -> None:
    said = assistant(text(message), error=error, is_api_error_message=True, api_error_status=status)
    end = result(is_error=True, terminal_reason="api_error", result=message, api_error_status=status)
    ended = failed(said, end)
    assert ended.failure is not None
    assert (ended.failure.kind, ended.failure.code, ended.failure.message) == (kind, code, message)
    assert ended.failure.data["errorKind"] == kind
    assert ended.failure.data.get("status") == status


def test_what_the_cli_says_of_a_failure_is_not_the_models_words() -> None:
    said = assistant(text("API Error: 400"), error="invalid_request", is_api_error_message=True)
    assert play("go", init(), said, result(is_error=True, result="API Error: 400")).text() == ""


def test_a_session_that_is_not_there_is_told_apart() -> None:
    line = result("error_during_execution", errors=["No conversation found with session ID: x"], terminal_reason=None)
    (ended,) = play("go", line).ended
    assert ended.failure is not None
    assert (ended.failure.kind, ended.failure.code) == ("session_not_found", -32002)


def test_a_result_that_cannot_be_read_ends_the_prompt_all_the_same() -> None:
    (ended,) = play("go", init(), {"type": "result"}).ended
    assert ended.failure is not None
    odd = {"type": "result", "subtype": "success", "is_error": "?", "errors": None, "usage": [], "num_turns": {}}
    assert stop(odd) == "end_turn"


def test_a_result_that_is_longer_than_any_line_ends_the_prompt_all_the_same() -> None:
    played = play("go", init())
    played.take(played.translator.oversize(b'{"type":"result","subtype":"success","result":"xxx', 100_000_000))
    (ended,) = played.ended
    assert ended.failure is not None
    assert "longer than any line" in ended.failure.message


def test_the_death_of_the_cli_ends_everything() -> None:
    played = play("go", init(), assistant(use("Bash")), ask("Bash"))
    played.take(played.translator.control("set_model", model="x"))
    played.take(played.translator.died(1, "boom"))
    checked(played)
    assert played.statuses("t1") == ["pending", "failed"]
    assert played.of(Withdraw) == [Withdraw("r1")]
    (ended,) = played.ended
    assert ended.failure is not None
    assert ended.failure.data == {"errorKind": "agent_died", "exitCode": 1, "stderrTail": "boom"}
    assert played.translator.died(1) == []


# -- whose turn it is --


def test_every_turn_begins_with_the_same_line_and_nothing_is_told_twice() -> None:
    begin = init(slash_commands=["compact"])
    played = play("go", begin, result(), "go", begin, result())
    assert played.kinds() == ["available_commands_update"]
    assert [ended.prompts for ended in played.ended] == [1, 1]


def test_a_turn_of_a_background_task_is_not_the_users() -> None:
    words = [init(), assistant(text("The task is done.")), result(**OWN)]
    played = play("go", init(), result(), *words, "again", init(), assistant(text("Yes")), result())
    assert len(played.ended) == 2
    assert "The task is done." in played.text()
    assert played.translator.late == 0


def test_a_prompt_sent_during_a_turn_of_a_background_task_waits_for_its_own() -> None:
    played = play("go", init(), result(), init(), "again", result(**OWN))
    assert len(played.ended) == 1
    read(played, init(), assistant(text("Yes")), result())
    assert len(played.ended) == 2


def test_a_prompt_that_was_taken_into_a_turn_of_a_background_task_ends_with_it() -> None:
    taken = user("again", isReplay=True)
    assert len(play("go", init(), result(), init(), "again", taken, result(**OWN)).ended) == 2


def test_a_failure_of_a_background_turn_is_a_notice() -> None:
    played = play("go", init(), result(), init(), result(is_error=True, result="API Error", **OWN))
    assert len(played.ended) == 1
    assert played.notices() == ["API Error"]


def test_a_prompt_taken_into_a_running_turn_ends_with_it() -> None:
    played = play("go", init(), assistant(text("a")), "more", assistant(text("b")), result(queued_turn_count=0))
    assert [ended.prompts for ended in played.ended] == [2]


def test_a_prompt_that_is_queued_waits_for_its_own_turn() -> None:
    played = play("go", init(), "more", result(queued_turn_count=1), init(), result())
    assert [ended.prompts for ended in played.ended] == [1, 1]


def test_a_late_result_after_a_cancel_does_not_end_the_next_turn() -> None:
    played = play("go", init(), assistant(use("Bash")))
    played.take(played.translator.interrupt())
    played.take(played.translator.abandon())
    assert [ended.response for ended in played.ended] == [{"stopReason": "cancelled"}]
    assert played.statuses("t1") == ["pending", "failed"]
    played.take(played.translator.prompt("next"))
    read(played, ABORTED)
    assert len(played.ended) == 1
    assert played.translator.late == 1
    assert "_claude/late_result" in [note.method for note in played.of(Note)]
    read(played, init(), assistant(text("Here.")), result())
    assert len(played.ended) == 2


def test_a_late_result_may_come_before_the_next_prompt_or_never() -> None:
    early = play("go", init())
    early.take(early.translator.abandon())
    read(early, ABORTED)
    never = play("go", init())
    never.take(never.translator.abandon())
    for played, late in ((early, 1), (never, 0)):
        played.take(played.translator.prompt("next"))
        read(played, init(), result())
        assert len(played.ended) == 2
        assert played.translator.late == late


def test_a_prompt_taken_into_the_turn_that_was_given_up_ends_with_it() -> None:
    played = play("go", init())
    played.take(played.translator.abandon())
    played.take(played.translator.prompt("next", uuid="u1"))
    read(played, user("next", isReplay=True, uuid="u1"), result())
    assert len(played.ended) == 2


def moved(uuid: str, state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state}


def prompted(*uuids: str) -> Play:
    played = play(init())
    for uuid in uuids:
        played.take(played.translator.prompt("go", uuid=uuid))
    return played


def test_what_the_cli_says_of_a_prompt_decides_which_turn_is_its_own() -> None:
    played = prompted("u1")
    read(played, moved("u1", "queued"), moved("u1", "started"))
    played.take(played.translator.prompt("more", uuid="u2"))
    read(played, moved("u2", "queued"), init(), result())
    assert [ended.prompts for ended in played.ended] == [1]
    read(played, moved("u1", "completed"), moved("u2", "started"), init(), result(), moved("u2", "completed"))
    assert [ended.prompts for ended in played.ended] == [1, 1]
    assert not played.translator.unknown


def test_prompts_that_were_both_taken_in_end_together() -> None:
    played = prompted("u1", "u2")
    read(played, moved("u1", "started"), moved("u2", "queued"), moved("u2", "started"), result())
    assert [ended.prompts for ended in played.ended] == [2]


def test_a_result_does_not_end_a_prompt_that_is_still_queued() -> None:
    played = prompted("u1")
    read(played, moved("u1", "queued"), ABORTED)
    assert (played.ended, played.translator.late) == ([], 1)


def test_a_prompt_dropped_from_the_queue_ends_as_cancelled() -> None:
    played = prompted("u1")
    read(played, moved("u1", "queued"), moved("u1", "cancelled"))
    assert [ended.response for ended in played.ended] == [{"stopReason": "cancelled"}]


def test_a_prompt_that_was_cancelled_in_its_turn_ends_with_the_turn() -> None:
    played = prompted("u1")
    read(played, moved("u1", "started"), moved("u1", "cancelled"))
    assert played.ended == []
    read(played, ABORTED, moved("u1", "cancelled"), moved("other", "cancelled"))
    assert len(played.ended) == 1


def test_giving_up_nothing_does_nothing() -> None:
    assert play(init()).translator.abandon() == []


def test_a_result_that_nobody_waits_for_is_counted() -> None:
    played = play(init(), result())
    assert played.ended == []
    assert played.translator.late == 1


# -- sub-agents --


def test_a_sub_agents_calls_are_linked_to_its_own() -> None:
    lines = [
        assistant(use("Agent", "t0", description="Look", prompt="Look around")),
        system("task_started", task_id="a1", tool_use_id="t0", task_type="local_agent", is_backgrounded=False),
        user([text("Look around")], parent_tool_use_id="t0"),
        assistant(use("Read", "t1", file_path="/work/a"), parent="t0", agent_id="a1"),
        tool_result("x", "t1"),
        system("task_progress", task_id="a1", tool_use_id="t0", description="Reading a"),
        assistant(use("Bash", "t2", command="sleep 9"), parent="t0"),
        tool_result("done", "t0", told={"status": "completed", "content": [text("All well.")]}),
    ]
    played = play("go", init(), *lines)
    assert played.call("t1")["_meta"]["claudeCode"]["parentToolUseId"] == "t0"
    assert played.statuses("t0") == ["pending", "in_progress", "in_progress", "completed"]
    assert played.call("t0")["content"][0]["content"]["text"] == "All well."
    assert played.statuses("t2") == ["pending", "failed"]
    assert "user_message_chunk" not in played.kinds()


def test_a_turn_is_over_when_its_sub_agents_in_the_background_are() -> None:
    started = system("task_started", task_id="a1", tool_use_id="t0", task_type="local_agent", is_backgrounded=True)
    progress = system("task_progress", task_id="a1", tool_use_id="t0", description="Reading")
    lines = [
        assistant(use("Agent", "t0", description="Look", prompt="Look around")),
        started,
        tool_result("launched", "t0", told={"status": "async_launched", "description": "Look"}),
        assistant(use("Read", "t1", file_path="/work/a"), parent="t0"),
        result(),
    ]
    played = play("go", init(), *lines)
    assert played.statuses("t0") == ["pending", "in_progress", "completed"]
    assert played.call("t0")["content"][0]["content"]["text"] == "Runs in the background: Look"
    assert (played.statuses("t1"), played.ended) == (["pending"], [])
    read(played, progress, tool_result("x", "t1"), assistant(use("Read", "t2"), parent="t0"))
    assert not played.translator.is_held_for_nothing
    read(played, system("task_notification", task_id="a1", tool_use_id="t0", status="completed", summary="Found it."))
    assert played.translator.is_held_for_nothing
    read(played, init(), assistant(text("It found it.")))
    assert (played.ended, played.translator.is_held_for_nothing) == ([], False)
    read(played, result(origin={"kind": "task-notification"}))
    (ended,) = played.ended
    assert (ended.response or {})["stopReason"] == "end_turn"
    assert ended.prompts == 1
    assert played.statuses("t0")[-1] == "completed"
    assert played.statuses("t1") == ["pending", "completed"]
    assert played.statuses("t2") == ["pending", "failed"]
    assert played.notices() == ["Background task completed"]


BACKGROUND = (
    init(),
    assistant(use("Agent", "t0")),
    system("task_started", task_id="a1", tool_use_id="t0", task_type="local_agent", is_backgrounded=True),
    tool_result("launched", "t0", told={"status": "async_launched"}),
    assistant(use("Read", "t1", file_path="/work/a"), parent="t0"),
)


def test_a_cancel_ends_a_turn_of_which_only_a_sub_agent_is_left_and_stops_that() -> None:
    played = play("go", *BACKGROUND, result())
    played.take(played.translator.interrupt())
    asked = [line["request"] for line in played.sent if line["type"] == "control_request"]
    assert asked[-2:] == [{"subtype": "interrupt"}, {"subtype": "stop_task", "task_id": "a1"}]
    assert [ended.response for ended in played.ended] == [{"stopReason": "cancelled"}]
    assert played.statuses("t1") == ["pending", "failed"]
    read(played, system("task_notification", task_id="a1", tool_use_id="t0", status="killed"))
    assert (played.notices(), len(played.ended)) == ([], 1)


def test_a_cancel_stops_the_sub_agents_of_a_turn_that_runs() -> None:
    played = play("go", *BACKGROUND)
    played.take(played.translator.interrupt())
    assert played.ended == []
    read(played, result("error_during_execution"))
    assert [(ended.response or {})["stopReason"] for ended in played.ended] == ["cancelled"]
    assert played.statuses("t1") == ["pending", "failed"]


def test_a_turn_that_failed_waits_for_nobody() -> None:
    failed = result(is_error=True, api_error_status=529, result="Overloaded")
    (ended,) = play("go", *BACKGROUND, failed).ended
    assert ended.failure is not None


def test_a_turn_that_waits_ends_with_its_process() -> None:
    played = play("go", *BACKGROUND, result())
    played.take(played.translator.died(9))
    (ended,) = played.ended
    assert ended.failure is not None
    assert ended.failure.kind == "agent_died"


def test_a_turn_that_waits_for_a_word_that_does_not_come_can_be_released() -> None:
    played = play("go", *BACKGROUND, result())
    read(played, system("background_tasks_changed", tasks=[]))
    assert played.translator.is_held_for_nothing
    played.take(played.translator.release())
    assert [(ended.response or {})["stopReason"] for ended in played.ended] == ["end_turn"]
    assert played.translator.release() == []


def test_a_command_in_the_background_keeps_no_turn_open() -> None:
    lines = [
        assistant(use("Bash", "t0", command="serve", run_in_background=True)),
        system("task_started", task_id="b1", tool_use_id="t0", task_type="local_bash", is_backgrounded=True),
        tool_result("launched", "t0", told={"backgroundTaskId": "b1"}),
    ]
    assert len(play("go", init(), *lines, result()).ended) == 1


def test_what_a_sub_agent_in_the_background_has_started_outlives_the_turn_too() -> None:
    started = system("task_started", task_id="a1", tool_use_id="t0", task_type="local_agent", is_backgrounded=True)
    lines = [
        assistant(use("Agent", "t0")),
        started,
        tool_result("launched", "t0", told={"status": "async_launched"}),
        assistant(use("Agent", "t1"), parent="t0"),
        assistant(use("Read", "t2"), parent="t1"),
        assistant(use("Read", "t3")),
        result(),
    ]
    played = play("go", init(), *lines)
    assert [played.statuses(name)[-1] for name in ("t1", "t2", "t3")] == ["pending", "pending", "failed"]
    read(played, tool_result("x", "t2"), tool_result("x", "t1"))
    assert [played.statuses(name)[-1] for name in ("t1", "t2")] == ["completed", "completed"]


def test_what_a_sub_agent_has_started_ends_with_it_however_deep() -> None:
    lines = [
        assistant(use("Agent", "t0")),
        assistant(use("Agent", "t1"), parent="t0"),
        assistant(use("Read", "t2"), parent="t1"),
        tool_result("done", "t0"),
    ]
    played = play("go", init(), *lines)
    assert [played.statuses(name)[-1] for name in ("t0", "t1", "t2")] == ["completed", "failed", "failed"]


def test_what_runs_in_the_background_ends_with_the_cli() -> None:
    started = system("task_started", task_id="a1", tool_use_id="t0", task_type="local_agent", is_backgrounded=True)
    played = play("go", init(), started, assistant(use("Read", "t1"), parent="t0"), result())
    played.take(played.translator.died(1))
    assert played.statuses("t1") == ["pending", "failed"]


def test_a_second_result_says_nothing_again() -> None:
    played = play("go", init(), assistant(text("Here.")), result(result="Here."), result(result="Here."))
    assert played.text() == "Here."
    assert played.translator.late == 1


def test_what_comes_of_a_turn_that_was_given_up_is_not_shown_twice() -> None:
    played = play("go", init(), message_start(), block_start("text"), delta("One, "))
    played.take(played.translator.interrupt())
    played.take(played.translator.abandon())
    read(played, delta("two."), assistant(text("One, two.")), result(result="One, two."))
    assert played.text() == "One, two."


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "ended with exit code 3"), (-9, "was ended by SIGKILL"), (-60, "was ended by signal 60")],
)
def test_the_death_of_the_cli_says_what_ended_it(code: int, words: str) -> None:
    played = play("go", init())
    played.take(played.translator.died(code))
    (ended,) = played.ended
    assert ended.failure is not None
    assert ended.failure.message == f"Claude Code {words}."
