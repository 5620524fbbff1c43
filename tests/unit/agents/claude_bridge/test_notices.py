"""What the CLI tells beside the conversation: each shown as what it is, nothing lost, nothing fatal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.agents.claude_bridge.actions import Note
from pilothouse.agents.claude_bridge.speech import REMEMBERED, Repeats
from tests.unit.agents.claude_bridge.lines import assistant, init, result, stream, system, text, tool_result, use, user
from tests.unit.agents.claude_bridge.playing import Play, checked, play

WINDOW = {"opus": {"contextWindow": 1000}, "haiku": {"contextWindow": 200}}


def notes(played: Play) -> list[str]:
    return [note.method for note in played.of(Note)]


# -- hooks --


def test_a_hook_that_failed_is_a_notice_and_one_that_worked_is_a_note() -> None:
    bad = system("hook_response", hook_name="PreToolUse:Bash", stderr="no\n", exit_code=2, outcome="error")
    good = system("hook_response", hook_name="Stop", stdout="fine", exit_code=0, outcome="success")
    played = play(system("hook_started", hook_name="Stop"), bad, good, init())
    assert played.notices() == ["Hook PreToolUse:Bash failed"]
    assert played.updates[0]["description"] == "no"
    assert notes(played) == ["_claude/hook", "_claude/hook"]


@pytest.mark.parametrize(
    ("level", "severity"), [("notice", "info"), ("warning", "warning"), ("error", "error"), (5, "info")]
)
def test_information_is_a_notice_of_its_level(level: Any, severity: str) -> None:
    played = play(system("informational", content="Mind the gap", level=level))
    assert (played.notices(), played.updates[0]["severity"]) == (["Mind the gap"], severity)


# -- trouble --


def test_a_retry_says_why_and_when() -> None:
    retry = {"attempt": 2, "max_retries": 5, "retry_delay_ms": 600}
    played = play(
        system("api_retry", **retry, error_status=429, error="rate_limit"),
        system("api_retry", **retry, error_status=529, error="server_error"),
        system("api_retry", **retry, error_status=None, error="unknown"),
    )
    assert played.notices() == [
        "Rate limit (429)",
        "The model is overloaded (529)",
        "The connection to the model broke",
    ]
    first = played.updates[0]
    assert first["description"] == "Trying again, attempt 2 of 5."
    assert (first["_meta"]["errorKind"], first["_meta"]["retryAfterMs"]) == ("rate_limit", 600)


def test_a_limit_of_the_plan_is_told_when_it_is_near_and_when_it_is_reached() -> None:
    played = play(*({"type": "rate_limit_event", "rate_limit_info": {"status": status}} for status in LIMITS))
    assert [update["severity"] for update in played.updates] == ["warning", "error"]
    assert notes(played) == ["_claude/rate_limit"]


LIMITS = ("allowed", "allowed_warning", "rejected")


@pytest.mark.parametrize(
    ("at", "told"),
    [(1_800_000_000, "It is lifted on 2027-01-15 at 08:00 UTC."), (10**14, None), ("soon", None), (None, None)],
)
def test_a_limit_says_when_it_is_lifted_if_that_is_known(at: Any, told: str | None) -> None:
    played = play({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": at}})
    assert played.updates[0].get("description") == told


def test_a_tool_that_was_refused_without_asking_is_told() -> None:
    denied = system("permission_denied", tool_name="Write", tool_use_id="t1", message="not granted")
    assert play(init(), denied).notices() == ["Write was not permitted"]


def test_a_server_that_does_not_run_is_told_once() -> None:
    begin = init(mcp_servers=[{"name": "gone", "status": "failed"}, {"name": "here", "status": "connected"}, 5])
    assert play("go", begin, result(), "go", begin).notices() == ["MCP server gone: failed"]


def test_signing_in_that_failed_is_told() -> None:
    played = play({"type": "auth_status", "error": "no key"}, {"type": "auth_status", "isAuthenticating": True})
    assert (played.notices(), notes(played)) == (["Signing in failed"], ["_claude/auth_status"])


def test_a_failure_that_was_got_over_is_told() -> None:
    said = assistant(text("API Error: try"), error="server_error")
    assert play("go", init(), said, assistant(text("Hello")), result(result="Hello")).notices() == ["API Error: try"]


# -- compaction --


def compactions(played: Play) -> list[tuple[str, str]]:
    found = [update for update in played.updates if update["sessionUpdate"] == "compaction_update"]
    return [(update["compactionId"], update["status"]) for update in found]


def test_a_compaction_is_told_from_its_start_to_its_summary() -> None:
    lines = [
        system("status", status="compacting"),
        system("status", status=None, compact_result="success"),
        system("compact_boundary", compact_metadata={"trigger": "manual", "pre_tokens": 900, "post_tokens": 50}),
        user("The story so far.", isSynthetic=True),
        user("<local-command-stdout>Compacted </local-command-stdout>", isReplay=True),
    ]
    played = play("/compact", init(), *lines, result(modelUsage=WINDOW))
    assert compactions(played) == [
        ("compaction-1", "in_progress"),
        ("compaction-1", "completed"),
        ("compaction-1", "completed"),
    ]
    assert played.updates[2]["summary"] == [{"type": "text", "text": "The story so far."}]
    assert played.text() == "Compacted"
    assert played.updates[-1] == {"sessionUpdate": "usage_update", "used": 50, "size": 1000}


def test_what_a_compaction_kept_is_not_told_again() -> None:
    """The CLI writes it again, under the ids that it had; also what was said before this process."""
    login = assistant(text("/login is not available."), uuid="u1")
    failed = assistant(text("API Error"), uuid="u2", error="server_error")
    kept = system("compact_boundary", compact_metadata={"preserved_messages": {"uuids": ["u0", "u1", 7, "u2"]}})
    again = [assistant(text("Set model."), message_id="m9", uuid="u0"), {**login, "session_id": "s"}, failed]
    ended = [user("<local-command-stdout>Compacted</local-command-stdout>", uuid="u3"), result()]
    played = play("/login", init(), login, result(), "/compact", init(), kept, *again, *ended)
    assert played.text() == "/login is not available.Compacted"
    assert [each.failure for each in played.ended] == [None, None]
    assert played.notices() == []


def test_a_message_is_forgotten_when_many_came_after_it() -> None:
    repeats = Repeats()
    assert [repeats.take(uuid) for uuid in ("a", "b", "a", None, None, "")] == [False, False, True, False, False, False]
    assert not any(repeats.take(str(number)) for number in range(REMEMBERED))
    assert not repeats.take("a")


@pytest.mark.parametrize(("told", "status"), [("failed", "failed"), ("aborted", "cancelled")])
def test_a_compaction_that_did_not_work_is_told(told: str, status: str) -> None:
    lines = [system("status", status="compacting"), system("status", status=None, compact_result=told)]
    assert compactions(play("go", init(), *lines))[-1] == ("compaction-1", status)


def test_a_compaction_ends_with_its_turn() -> None:
    played = play("go", init(), system("status", status="compacting"), result())
    assert compactions(played) == [("compaction-1", "in_progress"), ("compaction-1", "cancelled")]


def test_each_compaction_has_its_own_id() -> None:
    played = play("go", init(), system("compact_boundary"), result(), "go", init(), system("compact_boundary"))
    assert compactions(played) == [("compaction-1", "completed"), ("compaction-2", "completed")]


# -- modes, models, commands --


def test_a_mode_is_told_when_it_changes() -> None:
    played = play("go", init(), system("status", status=None, permissionMode="acceptEdits"), result(), "go")
    played.take(played.translator.read(json.dumps(init(permissionMode="acceptEdits"))))
    played.take(played.translator.read(json.dumps(init(permissionMode="plan"))))
    assert played.updates == [
        {"sessionUpdate": "current_mode_update", "currentModeId": "acceptEdits"},
        {"sessionUpdate": "current_mode_update", "currentModeId": "plan"},
    ]


def test_commands_are_told_when_they_change_with_what_is_known_of_them() -> None:
    begin = init(slash_commands=["review", "compact"])
    changed = system("commands_changed", commands=[{"name": "review", "description": "Look", "argumentHint": "<pr>"}])
    played = play("go", begin, begin, changed, begin)
    offered = [update["availableCommands"] for update in played.updates]
    review = {"name": "review", "description": "Look", "input": {"hint": "<pr>"}}
    assert offered == [
        [{"name": "review", "description": ""}, {"name": "compact", "description": ""}],
        [review],
        [review, {"name": "compact", "description": ""}],
    ]


# -- usage --


def test_the_context_is_told_with_its_size_and_the_cost() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 3}
    played = play(
        "go",
        init(),
        stream("message_delta", delta={}, usage=usage),
        result(modelUsage=WINDOW, total_cost_usd=0.25),
    )
    cost = {"amount": 0.25, "currency": "USD"}
    assert played.updates == [{"sessionUpdate": "usage_update", "used": 33, "size": 1000, "cost": cost}]


def test_a_sub_agents_context_is_not_the_sessions() -> None:
    usage = {"input_tokens": 10}
    lines = [stream("message_delta", parent="t0", delta={}, usage=usage), assistant(text("x"), parent="t0")]
    lines[1]["message"]["usage"] = usage
    played = play("go", init(), *lines, result(modelUsage=WINDOW))
    assert played.updates[-1]["used"] == 0


def test_without_a_known_window_nothing_is_made_up() -> None:
    assert play("go", init(), result(total_cost_usd=0.1)).updates == []


# -- the rest --


def test_a_cleared_conversation_has_no_plan() -> None:
    todos = [{"content": "Look", "status": "pending"}]
    lines = [assistant(use("TodoWrite", todos=todos)), tool_result("ok")]
    played = play("go", init(), *lines, {"type": "conversation_reset", "trigger": "clear"}, result())
    assert [update["entries"] for update in played.updates if update["sessionUpdate"] == "plan"][-1] == []
    assert played.notices() == ["The conversation was cleared"]


def test_words_in_the_users_name_are_shown_unless_the_cli_put_them_there() -> None:
    played = play(
        "go",
        init(),
        user("go", isReplay=True),
        user([text("[Request interrupted by user]")]),
        user("Go on.", isSynthetic=True),
        user("typed elsewhere"),
    )
    assert played.kinds() == ["user_message_chunk"]
    assert played.updates[0]["content"]["text"] == "typed elsewhere"


def test_a_tool_that_runs_long_says_so() -> None:
    progress = {"type": "tool_progress", "tool_use_id": "t1", "elapsed_time_seconds": 12}
    played = play("go", init(), assistant(use("Bash")), progress, tool_result("x"), progress)
    assert played.statuses("t1") == ["pending", "in_progress", "completed"]
    assert played.calls()["t1"][1]["_meta"]["claudeCode"]["elapsedSeconds"] == 12


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"type": "from_tomorrow", "x": 1}, "from_tomorrow"),
        ({"type": 7}, "no type"),
        ({}, "no type"),
        (system("from_tomorrow", x=1), "system/from_tomorrow"),
        ({"type": "assistant", "message": 5}, "assistant"),
        (assistant({"type": "hologram", "x": 1}), "assistant/hologram"),
        ({"type": "stream_event", "event": "?"}, "stream_event"),
    ],
)
def test_what_is_not_known_is_kept_and_counted(line: dict[str, Any], kind: str) -> None:
    played = play("go", init(), line, line, assistant(text("Still here.")))
    assert played.translator.unknown == {kind: 2}
    assert [note.method for note in played.of(Note)] == ["_claude/unknown"] * 2
    kept = played.of(Note)[0].params["line"]
    assert kept in (line, line.get("message", {}).get("content", [0])[0] if kind == "assistant/hologram" else line)
    assert played.text() == "Still here."


@pytest.mark.parametrize("line", ["", "no json", "[]", "5", "\ufeff{}", '{"type":'])
def test_what_is_no_message_is_kept_with_the_reason(line: str) -> None:
    played = play("go", init())
    played.take(played.translator.read(line))
    (note,) = checked(played).of(Note)
    assert (note.method, note.params["text"]) == ("_claude/unreadable", line)
    assert note.params["reason"]
    assert played.translator.unknown == {"unreadable": 1}


def test_a_flood_of_unknown_types_is_counted_in_bounded_room() -> None:
    played = play("go")
    for number in range(1000):
        played.translator.read(json.dumps({"type": f"type {number}"}))
    assert sum(played.translator.unknown.values()) == 1000
    assert len(played.translator.unknown) <= 201


def test_estimates_that_come_with_every_token_are_only_counted() -> None:
    played = play(init(), system("thinking_tokens", estimated_tokens=3), {"type": "keep_alive"})
    assert played.actions == []
    assert played.translator.skipped == {"thinking_tokens": 1, "keep_alive": 1}


def test_a_client_that_knows_neither_notices_nor_compactions_gets_notes() -> None:
    lines = [system("informational", content="x"), system("compact_boundary")]
    played = play("go", init(), *lines, capabilities={})
    assert played.updates == []
    assert notes(played) == ["_claude/notice", "_claude/compaction"]
