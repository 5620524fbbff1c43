"""What real agents taught the translator: calls, diffs and ends as they are told in practice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.dialects.acp import to_updates
from pilothouse.model.events import encode_event
from pilothouse.model.session import fold
from tests.support.scenario import Drive, ends, only, text, types, wire


def test_an_approval_shows_and_judges_what_is_asked_and_not_what_was_announced() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", title="ls")
    asked = only(drive.ask("c1", title="rm -rf / --no-preserve-root"), "approval:requested")
    assert asked.preview.command == "rm -rf / --no-preserve-root"
    assert asked.description == "rm -rf / --no-preserve-root"
    assert asked.risk_level == "critical"


def test_a_command_that_differs_from_the_announced_one_is_asked_about_with_it() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", title="x", rawInput={"command": "rm -rf /"})
    asked = only(drive.ask("c1", rawInput={"command": "ls"}), "approval:requested")
    assert asked.tool_input["command"] == "rm -rf /\nls"
    assert asked.risk_level in ("high", "critical")


def test_the_diff_of_a_question_is_shown_whatever_the_call_showed_before() -> None:
    drive = Drive()
    drive.call("c1", kind="edit", title="Preparing", content=text("Preparing file…"))
    diff = {"type": "diff", "path": "/work/app/a", "oldText": "a\n", "newText": "b\n"}
    asked = only(drive.ask("c1", content=[diff]), "approval:requested")
    assert "-a\n+b\n" in asked.preview.diff
    assert "--- a/a\n" in asked.preview.diff


def test_a_call_of_no_known_kind_is_what_the_question_says() -> None:
    drive = Drive()
    drive.call("c1", kind="other", title="Do stuff")
    asked = only(drive.ask("c1", kind="execute", title="rm -rf /"), "approval:requested")
    assert (asked.tool_name, asked.preview.command) == ("Bash", "rm -rf /")
    assert asked.risk_level in ("high", "critical")


def test_a_command_known_by_its_title_alone_is_never_harmless() -> None:
    drive = Drive()
    asked = only(drive.ask("run_shell_command__1", title="ls", kind="execute"), "approval:requested")
    assert asked.risk_level == "medium"


def test_a_prompt_after_an_open_message_does_not_send_it_again() -> None:
    drive = Drive()
    drive.say("Old ", "answer.")
    events = drive.prompt("Next")
    told = [json.loads(update)["content"]["text"] for update in to_updates(events)]
    assert told == ["Next"]
    again = Drive()
    again.say("Old ", "answer.")
    resumed = again.keep(again.translator.resumed(again.now()))
    assert to_updates(resumed) == []


def test_output_in_the_last_update_is_kept() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="in_progress", rawInput={"command": "cat x"})
    meta = {"terminal_output_delta": {"data": "cat: x: No such file\n"}, "terminal_exit": {"exit_code": 1}}
    drive.progress("c1", status="failed", _meta=meta)
    error = only(drive.events, "tool:error")
    assert error.output == "cat: x: No such file\n"
    assert error.error.message == "cat: x: No such file\n"


def test_what_is_shown_before_a_tool_runs_is_not_its_output() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="pending", rawInput={"command": "touch a"}, content=text("Run a command"))
    drive.progress("c1", status="completed", rawOutput="(no output)")
    assert only(drive.events, "tool:result").output == "(no output)"
    drive.call("c2", kind="execute", status="pending", title="echo hi", content=text("(Run a command)"))
    drive.progress("c2", status="completed", content=[])
    results = [event for event in drive.events if event.type == "tool:result"]
    assert results[1].output == ""  # type: ignore[attr-defined]
    assert "progress:update" not in drive.types


def test_calls_left_open_by_a_replay_end_when_the_session_is_resumed() -> None:
    drive = Drive()
    drive.call("c1", kind="read", status="pending")
    drive.keep(drive.translator.resumed(drive.now()))
    assert ends(drive.events) == {"c1": 0}


def test_a_result_that_comes_after_the_turn_is_told() -> None:
    drive = Drive()
    drive.prompt()
    diff = {"type": "diff", "path": "/work/app/a", "oldText": None, "newText": "x\n"}
    drive.call("c1", kind="edit", status="in_progress", rawInput={"file_path": "/work/app/a", "content": "x\n"})
    drive.end()
    late = drive.progress("c1", status="completed", content=[diff])
    assert types(late) == ["tool:result", "file:change"]
    (call,) = fold(drive.events).tool_calls
    assert call.status == "completed"
    assert types(drive.progress("c1", status="completed")) == ["progress:update"]


def test_an_id_that_is_used_again_by_an_update_is_another_call() -> None:
    drive = Drive()
    for path in ("a", "b"):
        drive.progress("c1", kind="read", status="in_progress", rawInput={"path": f"/work/app/{path}"})
        drive.progress("c1", status="completed")
    assert drive.types == ["tool:start", "tool:executing", "tool:result"] * 2


@pytest.mark.parametrize(
    "inside",
    [
        {"claudeCode": {"parentToolUseId": "c1"}},
        {"pilothouse": {"parentToolCallId": "c1"}},
        {"parentToolCallId": "c1", "claudeCode": None, "pilothouse": 7},
    ],
)
def test_a_sub_agents_first_call_shows_that_its_parent_runs(inside: dict[str, Any]) -> None:
    drive = Drive()
    drive.call(
        "c1", title="Task", status="pending", rawInput={"description": "Sub", "subagent_type": "x", "prompt": "p"}
    )
    events = drive.call("c2", kind="read", status="pending", rawInput={"path": "/work/app/x"}, _meta=inside)
    assert types(events)[:3] == ["tool:executing", "subagent:spawned", "tool:start"]
    assert only(events, "tool:start").parent_tool_call_id == "c1"


def test_the_time_a_person_takes_is_not_the_tools() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="pending", rawInput={"command": "ls"})
    drive.ask("c1")
    for _ in range(50):
        drive.now()
    drive.decide(approved=True)
    drive.progress("c1", status="completed")
    assert only(drive.events, "tool:result").duration == 100


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        (
            {"rawInput": {"path": "/work/app/n.txt", "content": "a\nb\n"}, "content": text("Created /work/app/n.txt")},
            [("/work/app/n.txt", "created", 2, 0)],
        ),
        (
            {"rawInput": {"path": "/work/app/n.txt", "content": "a\n"}, "content": text("Wrote it")},
            [("/work/app/n.txt", "modified", None, None)],
        ),
        (
            {
                "kind": "delete",
                "content": [{"type": "diff", "path": "/work/app/d", "oldText": "x\ny\n", "newText": ""}],
            },
            [("/work/app/d", "deleted", 0, 2)],
        ),
        (
            {"kind": "move", "rawInput": {"source": "/work/app/a", "destination": "/work/app/b"}},
            [("/work/app/a", "deleted", None, None), ("/work/app/b", "created", None, None)],
        ),
        (
            {
                "rawInput": {
                    "file_path": "/work/app/m",
                    "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}],
                }
            },
            [("/work/app/m", "modified", 2, 2)],
        ),
    ],
    ids=["created by what it said", "unknown before", "deleted", "moved", "several edits"],
)
def test_file_facts_are_what_the_agent_told(fields: Any, changes: Any) -> None:
    drive = Drive()
    drive.call("c1", **{"kind": "edit", "title": "x", "status": "completed", **fields})
    found = []
    for event in drive.events:
        if event.type == "file:change":
            found.append(wire(event))
        elif event.type == "file:batch":
            found += wire(event)["changes"]
    told = [(c["path"], c["changeType"], c.get("linesAdded"), c.get("linesRemoved")) for c in found]
    assert told == changes
    assert not any("No newline" in c.get("diff", "") for c in found)


@pytest.mark.parametrize(
    ("raw", "said"), [({"files": ["a"]}, '{"files":["a"]}'), (5, "5"), ({"data": {"x": 1}}, '{"data":{"x":1}}')]
)
def test_output_of_any_shape_is_told(raw: Any, said: str) -> None:
    drive = Drive()
    drive.call("c1", title="mcp__x__y", status="completed", rawOutput=raw)
    assert only(drive.events, "tool:result").output == said


def test_an_exit_code_fails_commands_only() -> None:
    drive = Drive()
    drive.call("c1", title="mcp__x__y", status="completed", rawOutput={"exit": 5, "content": "fine"})
    assert drive.types[-1] == "tool:result"


def test_a_question_inside_a_permission_gives_way_to_it_again() -> None:
    drive = Drive(status="running")
    drive.ask("c1")
    drive.keep(drive.translator.question({"message": "Which?"}, drive.now(), question_id="q"))
    drive.keep(drive.translator.answer("q", drive.now(), outcome="answered", answer="A"))
    assert drive.translator.status == "waiting_for_approval"


def test_leaving_a_plan_mode_that_a_tool_entered_is_told() -> None:
    drive = Drive()
    drive.call("c1", title="ExitPlanMode", kind="switch_mode", status="in_progress", rawInput={"plan": "1. Look"})
    drive.update("current_mode_update", currentModeId="default")
    assert fold(drive.events).plan_mode is False


def test_an_approval_after_a_rejection_is_forgotten_by_a_later_failure() -> None:
    drive = Drive()
    drive.call("c1", kind="execute", status="pending", rawInput={"command": "ls"})
    drive.ask("c1", "r1")
    drive.decide("r1", approved=False)
    drive.ask("c1", "r2")
    drive.decide("r2", approved=True)
    drive.progress("c1", status="failed")
    assert only(drive.events, "tool:error").error.code == "tool_failed"


def test_a_prompt_that_the_agent_repeats_is_told_once() -> None:
    drive = Drive()
    drive.prompt("Fix the login")
    drive.say("Fix the ", "login", kind="user_message_chunk")
    drive.say("Done.")
    drive.end()
    assert [str(message.role) for message in fold(drive.events).messages] == ["user", "assistant"]
    sent = [json.loads(update) for update in to_updates(drive.events)]
    assert [update["sessionUpdate"] for update in sent] == ["user_message_chunk", "agent_message_chunk"]


def test_a_question_of_a_tool_can_be_answered_before_the_tool_ends() -> None:
    drive = Drive()
    asked = {"questions": [{"question": "Which?", "options": [{"label": "A"}]}]}
    drive.call("c1", title="AskUserQuestion", status="in_progress", rawInput=asked)
    events = drive.keep(drive.translator.answer("c1:0", drive.now(), outcome="answered", answer="A"))
    assert wire(events[0])["data"] == {"questionId": "c1:0", "outcome": "answered", "answer": "A"}


def test_a_question_that_was_elicited_for_a_call_is_not_asked_again_by_the_call() -> None:
    drive = Drive()
    drive.prompt()
    asked = {"questions": [{"question": "Which?", "options": [{"label": "A"}]}]}
    elicitation = {"sessionId": "s", "toolCallId": "c1", "message": "Which?", "mode": "form"}
    drive.call("c1", title="AskUserQuestion", status="pending", rawInput=asked)
    drive.keep(drive.translator.question(elicitation, drive.now(), question_id="q1"))
    drive.keep(drive.translator.answer("q1", drive.now(), outcome="answered", answer="A"))
    drive.progress("c1", status="completed", rawInput=asked)
    assert [question.question_id for question in fold(drive.events).index.questions.values()] == ["q1"]
    drive.call("c2", title="AskUserQuestion", status="in_progress", rawInput=asked)
    assert only(drive.events[-5:], "interaction:question").question_id == "c2:0"  # type: ignore[attr-defined]


PATCH = "*** Begin Patch\n*** Update File: first\n@@\n-x\n+y\n*** Delete File: second\n*** End Patch"


def edits(*paths: str) -> list[dict[str, Any]]:
    return [{"type": "diff", "path": path, "oldText": "a\n", "newText": "b\n"} for path in paths]


@pytest.mark.parametrize(
    ("fields", "headline"),
    [
        ({"title": "Edit cart.py", "content": edits("/work/app/cart.py")}, "Edit cart.py"),
        ({"title": "Edit cart.py", "content": edits("/work/app/cart.py", "/work/app/t.py")}, "Edit cart.py and 1 more"),
        ({"title": "Edit a/x.py", "content": edits("/work/app/a/x.py", "/work/app/b/x.py")}, "Edit a/x.py and 1 more"),
        ({"title": "Edit x.py", "content": edits("/work/app/a/x.py", "/work/app/b/x.py")}, "Edit x.py and 1 more"),
        ({"title": "Set it up", "content": edits("/work/app/a", "/work/app/b", "/c")}, "Set it up (3 files)"),
        ({"title": "Edit a and b", "content": edits("/work/app/a", "/work/app/b")}, "Edit a and b"),
        ({"title": "Edit", "rawInput": {"paths": ["/work/app/a", "/work/app/b"]}}, "Edit: /work/app/a and 1 more"),
        ({"title": "one\n  line", "kind": "execute", "rawInput": {"command": "ls"}}, "one line"),
        ({"title": "Bash", "kind": "execute", "rawInput": {"command": "ls"}}, "Run: ls"),
    ],
)
def test_an_approval_is_called_as_its_call_and_tells_of_every_file(fields: dict[str, Any], headline: str) -> None:
    drive = Drive()
    asked = only(drive.ask("c1", **{"kind": "edit", **fields}), "approval:requested")
    assert asked.description == headline  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "fields",
    [
        {"content": edits("/work/app/first", "/work/app/second")},
        {"rawInput": {"patchText": PATCH}},
        {"rawInput": {"paths": ["/work/app/first", "/work/app/second"]}},
        {"rawInput": {"changes": {"/work/app/first": {"type": "add"}, "/work/app/second": {"type": "delete"}}}},
        {"kind": "delete", "rawInput": {"paths": ["/work/app/first", "/work/app/second"]}},
        {"content": edits("/work/app/first"), "rawInput": {"paths": ["/work/app/first", "/work/app/second"]}},
    ],
)
def test_a_preview_names_every_file(fields: dict[str, Any]) -> None:
    drive = Drive()
    asked = only(drive.ask("c1", **{"title": "Do it", "kind": "edit", **fields}), "approval:requested")
    preview = wire(asked)["preview"]
    shown = preview.get("diff") or preview["text"]
    assert "first" in shown
    assert "second" in shown


def test_half_surrogates_break_nothing() -> None:
    drive = Drive()
    odd = "\udcff"
    drive.keep(drive.translator.died(drive.now(), exit_code=1, stderr_tail=odd))
    drive.keep(drive.translator.unreadable(odd, odd, drive.now()))
    drive.keep(drive.translator.extension("_x", {"a": odd}, drive.now()))
    drive.keep(drive.translator.extension("_x", b'{"a": 1}', drive.now()))
    drive.keep(drive.translator.fact("x", {"a": odd}, drive.now()))
    assert wire(drive.events[-2])["data"] == {"a": 1}
    for event in drive.events:
        encode_event(event)


def test_pictures_and_bytes_of_a_prompt_are_kept() -> None:
    drive = Drive()
    picture = {"type": "image", "data": "AA==", "mimeType": "image/png", "uri": "file:///a.png"}
    blob = {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA", "mimeType": "x/y"}}
    sent = [json.loads(update)["content"] for update in to_updates(drive.prompt([picture, blob]))]
    assert sent == [{"type": "image", "data": "AA==", "mimeType": "image/png"}, blob]


def test_many_short_pieces_stay_one_message() -> None:
    drive = Drive(status="running")
    drive.say(*(f"{number} " for number in range(2_500)))
    drive.end()
    complete = only(drive.events, "message:complete")
    assert complete.content[0].text == "".join(f"{number} " for number in range(2_500))


@pytest.mark.parametrize("answer", [None, "end", {}, {"stopReason": 5}])
def test_an_answer_without_a_stop_reason_is_no_success(answer: Any) -> None:
    drive = Drive()
    drive.prompt()
    events = drive.keep(drive.translator.result(answer, drive.now()))
    names = [event.event_name for event in events if event.type == "custom"]  # type: ignore[attr-defined]
    assert names == ["diagnostic", "turn_ended"]
    assert events[-2].data["stopReason"] == "unknown"  # type: ignore[union-attr]


def test_the_params_of_a_notification_are_understood_too() -> None:
    drive = Drive(status="running")
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}}
    events = drive.keep(drive.translator.update({"sessionId": "s", "update": update}, drive.now()))
    assert types(events) == ["message:start", "message:delta"]


def test_a_decision_by_nobody_is_refused() -> None:
    drive = Drive()
    drive.ask("c1")
    with pytest.raises(ValueError, match="resolved_by"):
        drive.decide(resolved_by="me")
