"""Tool calls: announced with what they will do, ended with what they did."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.agents.claude_bridge.actions import Ask
from tests.unit.agents.claude_bridge.lines import (
    ask,
    assistant,
    block_start,
    delta,
    init,
    message_start,
    result,
    text,
    tool_result,
    use,
    user,
)
from tests.unit.agents.claude_bridge.playing import Play, play

PATCH = [{"oldStart": 2, "oldLines": 1, "newStart": 2, "newLines": 2, "lines": ["-two", "+TWO", "+more"]}]


def called(name: str, *lines: Any, **given: Any) -> Play:
    return play("go", init(), assistant(use(name, **given)), *lines)


@pytest.mark.parametrize(
    ("name", "given", "kind", "title"),
    [
        ("Read", {"file_path": "/work/src/a.py"}, "read", "Read src/a.py"),
        ("Read", {"file_path": "/etc/hosts", "offset": 5, "limit": 3}, "read", "Read /etc/hosts (5–7)"),
        ("Write", {"file_path": "/work/a.py", "content": ""}, "edit", "Write a.py"),
        ("Edit", {"file_path": "/work/a.py"}, "edit", "Edit a.py"),
        ("NotebookEdit", {"notebook_path": "/work/a.ipynb"}, "edit", "Edit a.ipynb"),
        ("Bash", {"command": "npm test\nnpm run x"}, "execute", "npm test …"),
        ("Grep", {"pattern": "TODO", "path": "/work/src"}, "search", "Search for TODO in src"),
        ("Glob", {"pattern": "**/*.py"}, "search", "Find **/*.py"),
        ("WebFetch", {"url": "https://example.com"}, "fetch", "Fetch https://example.com"),
        ("Agent", {"description": "Look around", "prompt": "Look"}, "think", "Look around"),
        ("Task", {"description": "Look around"}, "think", "Look around"),
        ("ExitPlanMode", {"plan": "1. do"}, "switch_mode", "Approve the plan"),
        ("TodoWrite", {"todos": []}, "think", "Update the plan"),
        ("TaskCreate", {"subject": "Look"}, "think", "Add to the plan: Look"),
        ("TaskUpdate", {"taskId": "1"}, "think", "Update the plan"),
        ("TaskList", {}, "think", "Read the plan"),
        ("TaskGet", {"taskId": "1"}, "think", "Read the plan"),
        ("mcp__calc__add", {"a": 1}, "other", "add (calc)"),
        ("FromTomorrow", {"x": 1}, "other", "FromTomorrow"),
    ],
)
def test_a_call_is_announced_by_kind_and_title(name: str, given: dict[str, Any], kind: str, title: str) -> None:
    call = called(name, **given).call("t1")
    assert (call["kind"], call["title"], call["status"]) == (kind, title, "pending")
    assert call["rawInput"] == given
    assert call["_meta"] == {"claudeCode": {"toolName": name}}


def test_a_call_says_where_it_works() -> None:
    assert called("Read", file_path="/work/a", offset=7).call("t1")["locations"] == [{"path": "/work/a", "line": 7}]
    assert "locations" not in called("Bash", command="ls").call("t1")


@pytest.mark.parametrize(
    ("name", "given", "diffs"),
    [
        ("Write", {"file_path": "/work/a", "content": "x\n"}, [(None, "x\n")]),
        ("Edit", {"file_path": "/work/a", "old_string": "x", "new_string": "y"}, [("x", "y")]),
        (
            "MultiEdit",
            {"file_path": "/work/a", "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c"}]},
            [("a", "b")],
        ),
        ("NotebookEdit", {"notebook_path": "/work/a", "new_source": "print()"}, [(None, "print()")]),
    ],
)
def test_a_change_to_a_file_is_shown_before_it_is_made(name: str, given: dict[str, Any], diffs: Any) -> None:
    content = called(name, **given).calls()["t1"][0]["content"]
    assert [(item["oldText"], item["newText"]) for item in content] == diffs
    assert {(item["type"], item["path"]) for item in content} == {("diff", "/work/a")}


def test_a_cell_that_is_deleted_is_not_shown_as_a_new_file() -> None:
    played = called("NotebookEdit", notebook_path="/work/a", new_source="", edit_mode="delete")
    assert "content" not in played.calls()["t1"][0]


def test_a_call_with_a_long_input_is_announced_while_the_input_grows() -> None:
    grown = [delta("x" * 600, kind="input_json"), delta("x" * 600, kind="input_json")]
    start = block_start("tool_use", id="t1", name="Write", input={})
    played = play("go", init(), message_start(), start, *grown)
    assert played.kinds() == ["tool_call"]
    assert "rawInput" not in played.call("t1")
    whole = assistant(use("Write", file_path="/work/a", content="x"))
    played = play("go", init(), message_start(), start, *grown, whole, whole)
    assert played.kinds() == ["tool_call", "tool_call_update"]
    assert played.call("t1")["content"][0]["newText"] == "x"
    assert played.call("t1")["title"] == "Write a"


def test_a_call_with_a_long_input_that_is_streamed_again_is_announced_once() -> None:
    once = [message_start(), block_start("tool_use", id="t1", name="Write"), delta("x" * 2000, kind="input_json")]
    played = play("go", init(), *once, *once, assistant(use("Write", file_path="/work/a", content="b")), result())
    assert [update["sessionUpdate"] for update in played.calls()["t1"]].count("tool_call") == 1


def test_a_call_with_a_short_input_is_announced_once_with_everything() -> None:
    start = block_start("tool_use", id="t1", name="Bash", input={})
    lines = [message_start(), start, delta('{"command":"ls"}', kind="input_json"), assistant(use("Bash", command="ls"))]
    assert play("go", init(), *lines).kinds() == ["tool_call"]


# -- results --


def test_text_and_blocks_are_the_content_of_a_call_that_ended() -> None:
    played = called("Grep", tool_result("a.py:1: x"))
    assert played.call("t1")["status"] == "completed"
    assert played.call("t1")["content"] == [{"type": "content", "content": text("a.py:1: x")}]
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    content = called("Read", tool_result([text("one"), picture])).call("t1")["content"]
    assert content[1]["content"] == {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def test_what_is_written_for_the_model_is_not_shown() -> None:
    reminded = "out\n\n<system-reminder>\nbe nice\n</system-reminder>"
    assert called("Bash", tool_result(reminded)).call("t1")["content"][0]["content"]["text"] == "out"
    failed = called("Edit", tool_result("<tool_use_error>No such file</tool_use_error>", error=True)).call("t1")
    assert (failed["status"], failed["content"][0]["content"]["text"]) == ("failed", "No such file")


def test_a_reminder_in_the_middle_of_an_output_is_part_of_it() -> None:
    quoted = "a <system-reminder>quoted</system-reminder> b"
    assert called("Bash", tool_result(quoted)).call("t1")["content"][0]["content"]["text"] == quoted


def test_all_results_of_one_line_end_their_calls() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": call_id, "content": call_id, "is_error": call_id == "t2"}
        for call_id in ("t1", "t2", "t3")
    ]
    calls = assistant(*(use("Bash", call_id, command="x") for call_id in ("t1", "t2", "t3")))
    played = play("go", init(), calls, user(blocks))
    assert [played.call(call_id)["status"] for call_id in ("t1", "t2", "t3")] == ["completed", "failed", "completed"]


def test_the_real_change_replaces_the_announced_one() -> None:
    told = {"filePath": "/work/a", "originalFile": "one\ntwo\n", "structuredPatch": PATCH, "oldString": "?"}
    call = called("Edit", tool_result("ok", told=told), file_path="/work/a", old_string="t", new_string="T").call("t1")
    assert (call["content"][0]["oldText"], call["content"][0]["newText"]) == ("one\ntwo\n", "one\nTWO\nmore\n")
    assert call["locations"] == [{"path": "/work/a", "line": 2}]
    assert "originalFile" not in call["rawOutput"]


@pytest.mark.parametrize(
    ("told", "diffs"),
    [
        ({"type": "create", "content": "x", "originalFile": None, "structuredPatch": []}, [(None, "x")]),
        ({"type": "update", "content": "new", "originalFile": "old", "structuredPatch": []}, [("old", "new")]),
        ({"originalFile": "a b a", "oldString": "a", "newString": "c", "replaceAll": True}, [("a b a", "c b c")]),
        ({"originalFile": "a b a", "oldString": "a", "newString": "c"}, [("a b a", "c b a")]),
        (
            {"originalFileContents": "a b", "edits": [{"old_string": "a", "new_string": "c"}]},
            [("a b", "c b")],
        ),
        ({"originalFile": "tab\n", "structuredPatch": PATCH}, [("two", "TWO\nmore")]),
        ({"structuredPatch": PATCH}, [("two", "TWO\nmore")]),
        ({"originalFile": "x" * 300_000, "content": "y" * 300_000, "structuredPatch": PATCH}, [("two", "TWO\nmore")]),
    ],
)
def test_a_change_is_told_from_whatever_the_result_says_of_it(told: dict[str, Any], diffs: Any) -> None:
    played = called("Edit", tool_result("ok", told={"filePath": "/work/a", **told}), file_path="/work/a")
    content = played.call("t1")["content"]
    assert [(item["oldText"], item["newText"]) for item in content] == diffs


def test_a_change_that_the_result_does_not_tell_stays_as_it_was_announced() -> None:
    call = called("Write", tool_result("done"), file_path="/work/a", content="x").call("t1")
    assert (call["status"], call["content"][0]["newText"]) == ("completed", "x")


def test_a_change_that_failed_is_not_shown_as_made() -> None:
    call = called("Write", tool_result("denied", error=True), file_path="/work/a", content="x").call("t1")
    assert (call["status"], call["content"]) == ("failed", [{"type": "content", "content": text("denied")}])


def test_a_command_tells_how_it_ended() -> None:
    told = {"stdout": "out", "stderr": "err", "interrupted": False}
    done = called("Bash", tool_result("out\nerr", told=told), command="x").call("t1")
    assert {"stdout": "out", "stderr": "err", "exitCode": 0}.items() <= done["rawOutput"].items()
    failed = called("Bash", tool_result("Exit code 3\nboom", error=True, told="Error: Exit code 3"), command="x")
    assert (failed.call("t1")["status"], failed.call("t1")["rawOutput"]) == ("failed", {"exitCode": 3})
    stopped = called("Bash", tool_result("", told={**told, "interrupted": True}), command="x").call("t1")
    assert (stopped["status"], "exitCode" in stopped["rawOutput"]) == ("failed", False)


@pytest.mark.parametrize("unsure", [{"backgroundTaskId": "b1"}, {"returnCodeInterpretation": "No matches found"}])
def test_an_exit_code_that_nobody_told_is_not_made_up(unsure: dict[str, Any]) -> None:
    told = {"stdout": "", "stderr": "", "interrupted": False, **unsure}
    assert "exitCode" not in called("Bash", tool_result("", told=told), command="x").call("t1")["rawOutput"]


def test_a_file_is_shown_without_line_numbers() -> None:
    told = {"type": "text", "file": {"filePath": "/work/a", "content": "x\ny\n", "numLines": 2, "startLine": 1}}
    call = called("Read", tool_result("1\tx\n2\ty", told=told), file_path="/work/a").call("t1")
    assert call["content"][0]["content"]["text"] == "x\ny\n"
    assert call["rawOutput"]["file"] == {"filePath": "/work/a", "numLines": 2, "startLine": 1}


def test_search_results_of_the_model_itself_are_links() -> None:
    search = {"type": "server_tool_use", "id": "t1", "name": "web_search", "input": {"query": "x"}}
    hit = {"type": "web_search_result", "title": "Hit", "url": "https://example.com"}
    found = {"type": "web_search_tool_result", "tool_use_id": "t1", "content": [hit]}
    call = play("go", init(), assistant(search, found)).call("t1")
    assert call["status"] == "completed"
    assert call["content"][0]["content"]["uri"] == "https://example.com"


def test_a_call_that_ended_stays_so() -> None:
    played = called("Bash", tool_result("a"), tool_result("b"), assistant(use("Bash")), result())
    assert played.statuses("t1") == ["pending", "completed"]


def test_a_result_of_a_call_that_nobody_announced_is_shown() -> None:
    played = play("go", init(), tool_result("x", "t9"))
    assert played.kinds() == ["tool_call"]
    assert played.call("t9")["status"] == "completed"


def test_what_is_open_ends_with_the_turn() -> None:
    played = called("Bash", result("error_max_turns"), command="x")
    assert played.statuses("t1") == ["pending", "failed"]
    assert played.call("t1")["_meta"]["claudeCode"]["unfinished"] is True


def test_what_the_user_stopped_is_told_in_words_for_the_user() -> None:
    said = "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing."
    shown = called("Bash", tool_result(said, error=True), command="x").call("t1")["content"][0]["content"]["text"]
    assert shown == "The user rejected this tool call; it did not run."


# -- plans --

TODOS = [{"content": "Look", "status": "completed", "activeForm": "Looking"}, {"content": "Act", "status": "odd"}]


def plans(played: Play) -> list[Any]:
    return [update["entries"] for update in played.updates if update["sessionUpdate"] == "plan"]


def test_a_list_of_todos_is_the_plan() -> None:
    played = called("TodoWrite", tool_result("ok", told={"newTodos": TODOS}), todos=TODOS)
    looked, act = plans(played)[0]
    assert looked == {
        "content": "Look",
        "priority": "medium",
        "status": "completed",
        "_meta": {"claudeCode": {"activeForm": "Looking"}},
    }
    assert act == {"content": "Act", "priority": "medium", "status": "pending"}


def test_todos_that_were_not_written_are_not_the_plan() -> None:
    assert plans(called("TodoWrite", tool_result("no", error=True), todos=TODOS)) == []


def test_tasks_make_up_the_plan_one_by_one() -> None:
    lines: list[Any] = []
    for number, (name, given, told) in enumerate(
        [
            ("TaskCreate", {"subject": "Look"}, {"task": {"id": "1", "subject": "Look"}}),
            ("TaskCreate", {"subject": "Act"}, {"task": {"id": "2", "subject": "Act"}}),
            ("TaskUpdate", {"taskId": "1", "status": "completed"}, {}),
            ("TaskUpdate", {"taskId": "2", "status": "deleted"}, {}),
            ("TaskUpdate", {"taskId": "9", "status": "completed"}, {}),
        ]
    ):
        lines += [assistant(use(name, f"t{number}", **given)), tool_result("ok", f"t{number}", told=told)]
    found = plans(play("go", init(), *lines))
    assert [[(item["content"], item["status"]) for item in entries] for entries in found] == [
        [("Look", "pending")],
        [("Look", "pending"), ("Act", "pending")],
        [("Look", "completed"), ("Act", "pending")],
        [("Look", "completed")],
    ]


def test_a_sub_agents_list_is_not_the_sessions_plan() -> None:
    lines = [assistant(use("TodoWrite", todos=TODOS), parent="t0"), tool_result("ok", told={"newTodos": TODOS})]
    assert plans(play("go", init(), *lines)) == []


def test_calls_that_a_gateway_gave_the_same_id_are_calls_of_their_own() -> None:
    lines: list[Any] = ["go", init()]
    for number in ("one", "two", "three"):
        lines += [assistant(use("Bash", "call_0", command=f"echo {number}"), message_id=f"m-{number}")]
        lines += [tool_result(number, "call_0")]
    played = play(*lines, result())
    shown = {call: played.call(call) for call in played.calls()}
    assert [call["rawInput"]["command"] for call in shown.values()] == ["echo one", "echo two", "echo three"]
    assert [call["content"][0]["content"]["text"] for call in shown.values()] == ["one", "two", "three"]
    assert all(played.statuses(call) == ["pending", "completed"] for call in shown)


def test_a_permission_for_an_id_that_was_used_before_is_about_the_new_call() -> None:
    again = assistant(use("Bash", "call_0", command="rm two"), message_id="m2")
    first = assistant(use("Bash", "call_0", command="ls"), message_id="m1")
    asked = ask("Bash", "call_0", given={"command": "rm two"})
    played = play("go", init(), first, tool_result("ok", "call_0"), again, asked)
    (question,) = played.of(Ask)
    assert question.params["toolCall"]["toolCallId"] == list(played.calls())[-1] != "call_0"
    assert question.params["toolCall"]["rawInput"] == {"command": "rm two"}


def test_a_call_that_is_said_again_after_its_end_is_the_same_call() -> None:
    said = assistant(use("Bash", command="ls"))
    played = play("go", init(), said, tool_result("ok"), said, result())
    assert list(played.calls()) == ["t1"]
    assert played.statuses("t1") == ["pending", "completed"]


def test_a_call_whose_result_came_first_says_afterwards_what_it_was() -> None:
    played = play("go", init(), tool_result("early"), assistant(use("Bash", command="ls")), result())
    call = played.call("t1")
    assert (call["title"], call["kind"], call["rawInput"]) == ("ls", "execute", {"command": "ls"})
    assert call["content"] == [{"type": "content", "content": {"type": "text", "text": "early"}}]
    assert played.statuses("t1") == ["completed"]
