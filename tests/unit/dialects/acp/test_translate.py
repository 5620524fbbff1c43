"""The translator in detail: what the events say, and that whatever starts ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.dialects.acp import Translator, to_updates
from pilothouse.model.events import encode_event
from pilothouse.model.records import CostBreakdown, TokenUsage
from pilothouse.model.session import fold
from tests.support.scenario import NOW, Drive, ends, only, text, types, wire

# -- words --------------------------------------------------------------------------------------------------------


def test_chunks_are_joined_when_the_message_is_complete() -> None:
    drive = Drive(status="running")
    drive.say("Hel", "lo")
    drive.update("agent_message_chunk", content={"type": "image", "data": "AA==", "mimeType": "image/png"})
    drive.say("!")
    drive.end()
    complete = only(drive.events, "message:complete")
    assert wire(complete)["content"] == [
        {"type": "text", "text": "Hello"},
        {"type": "image", "url": "data:image/png;base64,AA==", "mimeType": "image/png"},
        {"type": "text", "text": "!"},
    ]
    assert complete.stop_reason == "end_turn"


def test_the_agents_own_message_id_is_kept_and_numbered_when_it_comes_again() -> None:
    drive = Drive(status="running")
    drive.say("a", messageId="m")
    drive.call("c1", status="completed")
    drive.say("b", messageId="m")
    drive.say("c", messageId="n")
    ids = [event.message_id for event in drive.events if event.type == "message:start"]  # type: ignore[attr-defined]
    assert ids == ["m", "m.2", "n"]


def test_messages_that_the_agent_does_not_name_get_ids_with_the_given_prefix() -> None:
    drive = Drive(status="running", prefix="7.")
    drive.say("a")
    drive.say("b", kind="agent_thought_chunk")
    assert [e.message_id for e in drive.events if e.type.endswith(":start")] == ["7.m1", "7.m2"]  # type: ignore[attr-defined]


def test_a_block_of_an_unknown_kind_is_kept_whole() -> None:
    drive = Drive(status="running")
    block = {"type": "hologram", "beam": [1, 2]}
    drive.update("agent_message_chunk", content=block)
    drive.end()
    assert wire(only(drive.events, "message:complete"))["content"] == [{"type": "other", "block": block}]


@pytest.mark.parametrize(
    ("prompt", "content"),
    [
        ("Hi", [{"type": "text", "text": "Hi"}]),
        ([{"type": "text", "text": "a"}, "b"], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        (
            [{"type": "resource_link", "uri": "file:///a.py", "name": "a.py"}],
            [{"type": "resource", "uri": "file:///a.py", "name": "a.py"}],
        ),
        (
            [{"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}],
            [{"type": "resource", "uri": "file:///a", "text": "x"}],
        ),
        ([42], [{"type": "other", "block": {"type": "other", "value": "42"}}]),
        ("half \ud83d", [{"type": "text", "text": "half \ufffd"}]),
    ],
)
def test_a_prompt_is_a_user_message(prompt: Any, content: Any) -> None:
    drive = Drive()
    events = drive.prompt(prompt)
    complete = only(events, "message:complete")
    assert complete.role == "user"
    assert wire(complete)["content"] == content
    assert [json.loads(u)["sessionUpdate"] for u in to_updates(events)] == ["user_message_chunk"] * len(content)


# -- tool calls ---------------------------------------------------------------------------------------------------


def test_arguments_joined_are_the_json_of_the_input() -> None:
    drive = Drive()
    drive.call("c1", kind="edit", status="pending", rawInput={})
    drive.progress("c1", rawInput={"file_path": "/a"})
    drive.progress("c1", rawInput={"file_path": "/a", "content": "x"})
    held = ""
    for event in drive.events:
        if event.type == "tool:args_delta":
            held = ("" if event.replace else held) + event.delta  # type: ignore[attr-defined]
    assert json.loads(held) == {"file_path": "/a", "content": "x"}


def test_output_that_grows_is_sent_as_what_is_new_and_output_that_changes_is_replaced() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="in_progress", rawInput={"command": "make"})
    for said in ("one\n", "one\ntwo\n", "other"):
        drive.progress("c1", content=text(said))
    progress = [event for event in drive.events if event.type == "progress:update"]
    told = [(event.output, event.replace) for event in progress]  # type: ignore[attr-defined]
    assert told == [("one\n", False), ("two\n", False), ("other", True)]


def test_a_hundred_pieces_of_output_cost_a_hundred_pieces() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="in_progress", rawInput={"command": "make"})
    for count in range(1, 101):
        drive.progress("c1", content=text("x" * 100 * count))
    assert sum(len(encode_event(event)) for event in drive.events) < 100 * 400


def test_titles_change_and_names_do_not() -> None:
    drive = Drive()
    drive.call("c1", title="todowrite", kind="other", status="pending", rawInput={})
    drive.progress("c1", status="in_progress", rawInput={"todos": [{"content": "a", "status": "pending"}]})
    drive.progress("c1", status="completed", title="1 todos")
    assert {event.name for event in drive.events if hasattr(event, "name")} == {"TodoWrite"}


def test_duration_is_measured_from_the_moment_the_tool_runs() -> None:
    drive = Drive()
    drive.call("c1", status="pending", kind="execute", rawInput={"command": "ls"})
    drive.now()
    drive.progress("c1", status="in_progress")
    drive.progress("c1", status="completed")
    assert only(drive.events, "tool:result").duration == 100


def test_a_write_changes_a_file_with_a_diff_and_counts() -> None:
    drive = Drive()
    diff = {"type": "diff", "path": "/work/app/a.py", "oldText": "a\nb\n", "newText": "a\nc\nd\n"}
    drive.call("c1", kind="edit", status="completed", content=[diff], rawInput={"file_path": "/work/app/a.py"})
    change = wire(only(drive.events, "file:change"))
    assert change.pop("diff").splitlines()[2:] == ["@@ -1,2 +1,3 @@", " a", "-b", "+c", "+d"]
    assert change == {
        "path": "/work/app/a.py",
        "changeType": "modified",
        "language": "python",
        "linesAdded": 2,
        "linesRemoved": 1,
        "toolCallId": "c1",
    }
    assert wire(only(drive.events, "tool:result"))["structured"]["type"] == "file_diff"


def test_a_refused_or_failed_write_changes_no_file() -> None:
    drive = Drive()
    diff = {"type": "diff", "path": "/work/app/a.py", "oldText": "a", "newText": "b"}
    drive.call("c1", kind="edit", status="pending", content=[diff])
    drive.ask("c1")
    drive.decide(approved=False, reason="no")
    drive.progress("c1", status="failed", content=[diff])
    assert "file:change" not in drive.types
    assert only(drive.events, "tool:error").error.code == "rejected"


@pytest.mark.parametrize(
    ("raw_output", "content", "code"),
    [
        ({"stdout": "out", "stderr": "err", "exit_code": 0}, [], 0),
        ({"output": "out", "metadata": {"exit": 0}}, [], 0),
        ("out", text("out"), None),
        (None, [], None),
    ],
)
def test_a_commands_output_is_structured_only_when_its_exit_code_is_known(
    raw_output: Any, content: Any, code: int | None
) -> None:
    drive = Drive()
    drive.call(
        "c", kind="execute", status="completed", rawInput={"command": "x"}, rawOutput=raw_output, content=content
    )
    structured = only(drive.events, "tool:result").structured
    assert (structured.exit_code if structured else None) == code


def test_search_hits_are_read_from_the_output() -> None:
    drive = Drive()
    said = "src/a.py:12: TODO one\nsrc/b.py\nNo files found"
    drive.call("c1", title="grep", kind="search", status="completed", rawInput={"pattern": "TODO"}, content=text(said))
    assert wire(only(drive.events, "tool:result"))["structured"] == {
        "type": "search_results",
        "results": [
            {"file": "src/a.py", "line": 12, "content": "TODO one"},
            {"file": "src/b.py", "line": 0, "content": ""},
        ],
    }


@pytest.mark.parametrize(
    ("command", "output", "operations"),
    [
        ("git checkout -b topic main", "", [{"kind": "branch_create", "name": "topic", "from": "main"}]),
        ("git switch topic", "", [{"kind": "branch_switch", "name": "topic"}]),
        ("git checkout topic", "Switched to branch 'topic'", [{"kind": "branch_switch", "name": "topic"}]),
        ("git checkout README.md", "Updated 1 path from the index", []),
        ("git checkout .", "", []),
        ("git checkout -- a.py", "", []),
        ("git commit --dry-run -m x", "", []),
        ("git push --dry-run", "", []),
        ("git push origin --delete topic", "", []),
        (
            "git commit -m one && git commit -m two",
            "[main 1111111] one\n 1 file changed\n[main 2222222] two\n 3 files changed",
            [
                {"kind": "commit", "message": "one", "hash": "1111111", "filesChanged": 1},
                {"kind": "commit", "message": "two", "hash": "2222222", "filesChanged": 3},
            ],
        ),
        (
            'git commit -m "$(cat msg)"',
            "[main 3333333] From a file",
            [{"kind": "commit", "message": "From a file", "hash": "3333333", "filesChanged": 0}],
        ),
        ("git branch topic", "", [{"kind": "branch_create", "name": "topic"}]),
        ("git branch -D topic", "", []),
        ("git stash", "", [{"kind": "stash", "action": "push"}]),
        ("git stash pop", "", [{"kind": "stash", "action": "pop"}]),
        ("git stash drop", "", []),
        ("git -C sub push", "", [{"kind": "push", "remote": "origin", "branch": "HEAD"}]),
        ("git -c a=b push up topic", "", [{"kind": "push", "remote": "up", "branch": "topic"}]),
        (
            "git commit -m 'One; two'",
            "[main 1a2b3c4] One; two\n 1 file changed",
            [{"kind": "commit", "message": "One; two", "hash": "1a2b3c4", "filesChanged": 1}],
        ),
        (
            "gh pr create --title 'Fix' --body x",
            "https://github.com/o/r/pull/12",
            [{"kind": "pr_create", "number": 12, "title": "Fix", "url": "https://github.com/o/r/pull/12"}],
        ),
        ("echo git push", "", []),
        ("grep -r 'git commit' .", "", []),
        ("sudo git push", "", [{"kind": "push", "remote": "origin", "branch": "HEAD"}]),
    ],
)
def test_git_operations_are_read_from_the_command_and_its_output(command: str, output: str, operations: Any) -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="completed", rawInput={"command": command}, content=text(output))
    done = [wire(event)["operation"] for event in drive.events if event.type == "git:operation"]
    assert done == operations


# -- whatever starts ends -----------------------------------------------------------------------------------------


def left_open(drive: Drive) -> None:
    drive.prompt()
    drive.call("silent", kind="read", status="pending")
    drive.call("running", kind="execute", status="in_progress", rawInput={"command": "sleep 100"})
    drive.call("asked", kind="edit", status="pending")
    drive.ask("asked")
    drive.say("And now")


@pytest.mark.parametrize(
    ("ending", "code", "reason"),
    [
        (lambda d: d.end("cancelled"), "cancelled", "cancelled"),
        (lambda d: d.end("end_turn"), "unfinished", "end_turn"),
        (lambda d: d.end("max_tokens"), "unfinished", "max_tokens"),
        (lambda d: d.keep(d.translator.died(d.now(), exit_code=1, stderr_tail="boom")), "agent_died", "error"),
        (lambda d: d.keep(d.translator.failed({"code": -32603, "message": "x"}, d.now())), "turn_failed", "error"),
        (lambda d: d.keep(d.translator.interrupted(d.now())), "interrupted", "interrupted"),
    ],
    ids=["cancelled", "end_turn", "max_tokens", "died", "failed", "interrupted"],
)
def test_every_tool_call_that_starts_ends(ending: Any, code: str, reason: str) -> None:
    drive = Drive()
    left_open(drive)
    events = ending(drive)
    assert ends(drive.events) == {"silent": 0, "running": 0, "asked": 0}
    errors = [event for event in events if event.type == "tool:error"]
    assert [event.error.code for event in errors] == [code] * 3  # type: ignore[attr-defined]
    assert only(events, "approval:resolved").resolved_by == "cancelled"
    assert only(events, "message:complete").content[0].text == "And now"
    assert events[-2].data == {"turnId": "t1", "stopReason": reason}  # type: ignore[attr-defined]
    status = "error" if reason == "error" else "idle"
    assert (events[-1].to, events[-1].reason) == (status, reason)  # type: ignore[attr-defined]
    failed = [json.loads(update) for update in to_updates(events)]
    assert [(u["toolCallId"], u["status"]) for u in failed if u.get("status") == "failed"] == [
        ("silent", "failed"),
        ("running", "failed"),
        ("asked", "failed"),
    ]
    session = fold(drive.events)
    assert session.status == status
    assert all(call.status in ("completed", "failed", "cancelled") for call in session.tool_calls)
    drive.prompt()  # a turn that failed is no hindrance to the next one
    drive.end()
    assert fold(drive.events).status == "idle"


def test_a_dead_agent_leaves_its_last_words() -> None:
    drive = Drive()
    drive.prompt()
    events = drive.keep(drive.translator.died(drive.now(), exit_code=137, stderr_tail="out of memory"))
    error = only(events, "session:error").error
    assert (error.code, error.details) == ("agent_died", {"exitCode": 137, "stderrTail": "out of memory"})
    assert error.recoverable


def test_an_agent_that_dies_between_turns_ends_no_turn() -> None:
    drive = Drive()
    assert types(drive.keep(drive.translator.died(drive.now(), exit_code=0))) == ["session:error"]


def test_an_agent_that_a_signal_ended_is_said_to_be_ended_by_it() -> None:
    drive = Drive()
    error = only(drive.keep(drive.translator.died(drive.now(), exit_code=-9)), "session:error").error
    assert error.message == "The agent was ended by SIGKILL."


def test_updates_before_the_start_start_the_call() -> None:
    drive = Drive()
    drive.progress("c1", status="in_progress", kind="execute", rawInput={"command": "ls"})
    drive.call("c1", title="ls", kind="execute", status="in_progress", rawInput={"command": "ls"})
    drive.progress("c1", status="completed")
    assert ends(drive.events) == {"c1": 0}
    assert drive.types.count("tool:start") == 1


def test_an_update_that_is_the_only_one_makes_a_whole_call() -> None:
    drive = Drive()
    drive.progress("c1", status="failed", content=text("Subagent not found."), kind="think")
    assert drive.types == ["tool:start", "tool:executing", "tool:error"]


def test_a_repeated_id_is_another_call_once_the_first_has_ended() -> None:
    drive = Drive()
    for path in ("/work/app/a", "/work/app/b"):
        drive.call("read", kind="read", status="in_progress", rawInput={"path": path})
        drive.progress("read", status="completed")
    assert drive.types == ["tool:start", "tool:executing", "tool:result"] * 2
    assert len(fold(drive.events).tool_calls) == 2


def test_a_call_told_again_after_its_end_is_not_another_one() -> None:
    drive = Drive()
    for _ in range(2):
        drive.call("c1", title="x", kind="read", status="completed", rawInput={"path": "/work/app/a"})
    drive.progress("c1", title="A better title")
    drive.progress("c1", status="failed")
    assert drive.types == ["tool:start", "tool:executing", "tool:result", *["progress:update"] * 3]


def test_late_updates_do_not_wake_a_session() -> None:
    drive = Drive()
    drive.prompt()
    drive.end()
    drive.say("One more thing")
    drive.call("c1", status="completed")
    drive.update("usage_update", used=1, size=2)
    assert drive.translator.status == "idle"


# -- questions ----------------------------------------------------------------------------------------------------


def test_a_permission_request_shows_what_would_happen() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="pending", rawInput={"command": "rm -rf build"})
    asked = only(drive.ask("c1", title="rm -rf build"), "approval:requested")
    assert wire(asked) == {
        "requestId": "r1",
        "toolCallId": "c1",
        "toolName": "Bash",
        "toolInput": {"command": "rm -rf build"},
        "description": "rm -rf build",
        "riskLevel": "high",
        "preview": {"type": "command", "command": "rm -rf build", "workingDir": "/work/app"},
        "options": [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once", "label": "Allow once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once", "label": "Deny"},
        ],
        "riskReasons": asked.risk_reasons,
    }
    assert asked.risk_reasons
    assert json.loads(asked.source)["toolCall"]["toolCallId"] == "c1"


def test_a_permission_request_for_an_edit_shows_its_diff() -> None:
    drive = Drive()
    drive.call("c1", kind="edit", status="pending", rawInput={"file_path": "/work/app/a", "content": "new\n"})
    diff = {"type": "diff", "path": "/work/app/a", "oldText": "old\n", "newText": "new\n"}
    asked = only(drive.ask("c1", content=[diff]), "approval:requested")
    assert asked.preview.path == "/work/app/a"
    assert "-old\n+new\n" in asked.preview.diff


def test_a_permission_request_for_an_edit_too_large_to_compare_says_so() -> None:
    drive = Drive()
    drive.call("c1", kind="edit", status="pending", rawInput={"file_path": "/work/app/a"})
    diff = {"type": "diff", "path": "/work/app/a", "oldText": "old\n" * 200_000, "newText": "new\n" * 200_000}
    asked = only(drive.ask("c1", content=[diff]), "approval:requested")
    assert "too large to show" in asked.preview.text


def test_a_permission_request_for_a_write_without_a_diff_shows_the_text_that_would_be_written() -> None:
    drive = Drive()
    drive.call("c1", title="write", kind="other", rawInput={"path": "/work/app/a", "content": "all\nof it\n"})
    asked = only(drive.ask("c1"), "approval:requested")
    assert asked.preview.text.endswith("The whole file would become:\nall\nof it\n")
    assert "allow it unseen" not in asked.preview.text


def test_the_question_about_a_call_does_not_change_what_the_call_is() -> None:
    drive = Drive()
    drive.call("c1", title="write", kind="edit", rawInput={"filePath": "/work/app/a", "content": "x"})
    asked = only(drive.ask("c1", kind="edit", rawInput={"filepath": "/work/app/a", "diff": "+x"}), "approval:requested")
    assert asked.tool_name == "Write"
    assert asked.tool_input == {"filePath": "/work/app/a", "content": "x", "filepath": "/work/app/a", "diff": "+x"}


def test_a_command_known_only_by_its_title_is_judged_by_it_and_matched_by_nothing() -> None:
    drive = Drive()
    events = drive.ask("run_shell_command__1", title="rm -rf /work/other", kind="execute", content=[])
    asked = only(events, "approval:requested")
    assert asked.tool_name == "Bash"
    assert asked.tool_input == {}, "a title is no input: a rule must not be matched on it"
    assert asked.risk_level in ("high", "critical")
    assert asked.preview.command == "rm -rf /work/other"


def test_a_file_known_only_by_its_diff_is_the_input() -> None:
    drive = Drive()
    diff = {"type": "diff", "path": "/work/app/.env", "oldText": "", "newText": "x"}
    asked = only(drive.ask("write_file__1", title="Writing", kind="edit", content=[diff]), "approval:requested")
    assert asked.tool_input == {"file_path": "/work/app/.env"}


def test_a_decision_counts_once() -> None:
    drive = Drive()
    drive.ask("c1")
    first = drive.decide(approved=True, option_id="yes", decided_by="phone")
    assert wire(only(first, "approval:resolved")) == {
        "requestId": "r1",
        "toolCallId": "c1",
        "approved": True,
        "resolvedBy": "user",
        "optionId": "yes",
        "decidedBy": "phone",
    }
    assert drive.decide(approved=False) == []


def test_a_session_waits_while_any_question_is_open() -> None:
    drive = Drive(status="running")
    drive.ask("c1", "r1")
    drive.ask("c2", "r2")
    drive.decide("r1")
    assert drive.translator.status == "waiting_for_approval"
    drive.decide("r2")
    assert drive.translator.status == "running"


def test_a_question_after_the_turn_leads_back_to_rest() -> None:
    drive = Drive()
    drive.prompt()
    drive.end()
    drive.ask("background")
    assert drive.translator.status == "waiting_for_approval"
    drive.decide()
    assert drive.translator.status == "idle"


@pytest.mark.parametrize("params", [None, 7, [], {}, {"toolCall": 3}, {"toolCall": {"toolCallId": 5}, "options": 4}])
def test_a_permission_request_of_any_shape_becomes_an_approval(params: Any) -> None:
    drive = Drive()
    events = drive.keep(drive.translator.permission(params, drive.now(), request_id="r"))
    assert only(events, "approval:requested").request_id == "r"


# -- the rest -----------------------------------------------------------------------------------------------------


def test_tokens_add_up_over_turns_and_over_restarts() -> None:
    spent = TokenUsage(input_tokens=100, output_tokens=10, cache_read_tokens=5)
    drive = Drive(usage=spent)
    for turn in ("t1", "t2"):
        drive.prompt(turn_id=turn)
        drive.end(usage={"inputTokens": 10, "outputTokens": 1, "totalTokens": 11})
    last = [event for event in drive.events if event.type == "resource:token_usage"][-1]
    assert wire(last) == {
        "delta": {"inputTokens": 10, "outputTokens": 1},
        "cumulative": {"inputTokens": 120, "outputTokens": 12, "cacheReadTokens": 5},
    }


def test_the_cost_of_a_session_is_told_as_it_grows() -> None:
    drive = Drive(cost=CostBreakdown(total=1.0, currency="USD"))
    drive.update("usage_update", used=1, size=4, cost={"amount": 1.25, "currency": "USD"})
    cost = only(drive.events, "resource:cost")
    assert (cost.delta.total, cost.cumulative.total) == (0.25, 1.25)
    assert only(drive.events, "resource:context_window").percentage == 25.0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": -32000, "message": "Login"}, "auth_required"),
        ({"code": 429, "message": "Slow down"}, "rate_limited"),
        ({"code": -32603, "message": "Internal error: rate limit"}, "rate_limited"),
        ({"code": -32603, "message": "Internal"}, "agent_error"),
        ({"code": [1], "message": 5}, "agent_error"),
        ("text", "agent_error"),
        (None, "agent_error"),
    ],
)
def test_a_failed_prompt_says_why(error: Any, code: str) -> None:
    drive = Drive()
    drive.prompt()
    failed = drive.keep(drive.translator.failed(error, drive.now()))
    assert only(failed, "session:error").error.code == code


def test_a_failed_prompt_says_the_cause_that_came_along() -> None:
    drive = Drive()
    drive.prompt()
    error = {"code": -32603, "message": "Internal error", "data": {"details": "the key is not valid"}}
    failed = drive.keep(drive.translator.failed(error, drive.now()))
    assert only(failed, "session:error").error.message == "Internal error: the key is not valid"


@pytest.mark.parametrize("line", [b"", b"\xff\xfe", b"{", b"nul"])
def test_what_is_no_json_becomes_a_diagnostic_with_its_text(line: bytes) -> None:
    events = Translator("s").update(line, NOW)
    assert types(events) == ["custom"]
    assert events[0].event_name == "diagnostic"  # type: ignore[attr-defined]
    assert to_updates(events) == []


@pytest.mark.parametrize("line", [b"null", b"42", b"[]", b'"text"'])
def test_json_that_is_no_object_becomes_a_diagnostic_too(line: bytes) -> None:
    events = Translator("s").update(line, NOW)
    assert events[0].data["text"] == line.decode()  # type: ignore[attr-defined]


def test_repairs_are_reported() -> None:
    repairs: list[Any] = []
    translator = Translator("s", on_repair=repairs.append)
    entries = [{"id": "1", "content": "Step", "status": "pending"}]
    update = json.dumps({"sessionUpdate": "plan", "entries": entries}).encode()
    assert types(translator.update(update, NOW)) == ["progress:todo_update"]
    assert [repair.path for repair in repairs] == ["update.entries[0]"]


def test_an_extension_is_kept_and_is_no_update() -> None:
    drive = Drive()
    events = drive.keep(drive.translator.extension("_agent/heartbeat", {"n": 1}, drive.now()))
    assert wire(events[0]) == {"namespace": "acp", "eventName": "_agent/heartbeat", "data": {"n": 1}}
    assert to_updates(events) == []


def test_updates_may_be_given_as_bytes_text_dicts_or_objects() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}}
    raw = json.dumps(update)
    for given in (raw, raw.encode(), bytearray(raw.encode()), memoryview(raw.encode()), update):
        assert types(Translator("s").update(given, NOW)) == ["message:start", "message:delta"]


def test_a_title_that_is_taken_away_is_told_as_such() -> None:
    drive = Drive()
    drive.update("session_info_update", title="Login")
    drive.update("session_info_update", title=None)
    assert wire(drive.events[1])["data"] == {"title": None}
    assert fold(drive.events).title is None


CHUNK = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"},"_meta":{"x":"%s"}}'


@pytest.mark.parametrize("odd", [b"\xff", b"\\ud83d", b"caf\xe9", b"\xed\xa0\x80"], ids=repr)
@pytest.mark.parametrize("where", ["text", "skipped field"])
def test_text_that_utf8_cannot_carry_is_replaced_and_nothing_else_is_lost(odd: bytes, where: str) -> None:
    repairs: list[Any] = []
    line = CHUNK % ((b"a" + odd + b"b", b"") if where == "text" else (b"ab", odd))
    events = Translator("s", on_repair=repairs.append).update(line, NOW)
    assert types(events) == ["message:start", "message:delta"]
    delta = wire(events[1])["delta"]
    assert (delta[0], delta[-1]) == ("a", "b")
    source = events[0].source
    assert source is not None
    assert json.loads(source.decode())["content"]["text"] == delta
    assert len(repairs) == 1


def test_text_beyond_ascii_is_kept_as_it_came() -> None:
    line = CHUNK % ("日本 \U0001f600 é".encode(), b"\\u00e9")
    events = Translator("s").update(line, NOW)
    assert wire(events[1])["delta"] == "日本 \U0001f600 é"
    assert events[0].source == line


def test_a_turn_that_goes_on_while_nobody_hears_it_ends_as_it_is_told_later() -> None:
    call = json.dumps({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Look", "kind": "read"}).encode()
    said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hm"}}
    first = Translator("s")
    events = [*first.began(NOW, turn_id="t"), *first.update(call, NOW), *first.update(said, NOW)]
    heard = first.unheard(NOW)
    assert types(heard) == ["message:complete"]
    assert (first.turn, first.unheard(NOW)) == ("t", [])
    second = Translator("s", status=first.status, prefix="9.")
    second.taken_up("t", [call], NOW)
    assert (second.turn, second.status) == ("t", first.status)
    told = second.update({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}, NOW)
    told += second.result({"stopReason": "end_turn"}, NOW)
    assert "tool:start" not in types(told)
    session = fold([*events, *heard, *told])
    assert [(one.title, one.status) for one in session.tool_calls] == [("Look", "completed")]
    assert session.turn is not None
    assert (session.turn.turn_id, session.turn.stop_reason, session.status) == ("t", "end_turn", "idle")
