"""The preview of a request: its commands in every shape, and diffs against the real files."""

from __future__ import annotations

import functools
import time
from typing import Any

import msgspec
import pytest

from pilothouse.acp import schema
from pilothouse.dialects.acp.call import Call
from pilothouse.dialects.acp.effects import _locate_commands
from pilothouse.model.records import CommandPreview, DescriptionPreview, DiffPreview
from tests.support.scenario import Drive, only

VICTIM = "rm -rf victim"
TEXT = {"type": "content", "content": {"type": "text", "text": ""}}


def text(value: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": value}}]


SHAPES: dict[str, dict[str, Any]] = {
    "string": {"rawInput": {"command": VICTIM}},
    "other key": {"rawInput": {"cmd": VICTIM}},
    "list": {"rawInput": {"command": ["rm", "-rf", "victim"]}},
    "wrapped list": {"rawInput": {"command": ["bash", "-lc", VICTIM]}},
    "env list": {"rawInput": {"command": ["env", "A=1", "rm", "-rf", "victim"]}},
    "program and args": {"rawInput": {"command": "rm", "args": ["-rf", "victim"]}},
    "commands beside command": {"rawInput": {"command": "ls", "commands": ["true", VICTIM]}},
    "commands": {"rawInput": {"commands": [VICTIM]}},
    "objects in commands": {"rawInput": {"commands": [{"command": VICTIM}]}},
    "nested in arguments": {"rawInput": {"arguments": {"command": VICTIM}}},
    "nested in input": {"rawInput": {"input": {"cmd": VICTIM}}},
    "nested twice": {"rawInput": {"params": {"arguments": {"command": VICTIM}}}},
    "json string": {"rawInput": f'{{"command": "{VICTIM}"}}'},
    "json string nested": {"rawInput": {"arguments": f'{{"command": "{VICTIM}"}}'}},
    "streamed json": {"rawInput": f'{{"command": "{VICTIM}'},
    "streamed as text": {"content": text(f'{{"command": "{VICTIM}"}}')},
    "fenced": {"content": text(f"I will run\n```sh\n{VICTIM}\n```\n")},
    "prompt": {"content": text(f"$ {VICTIM}")},
    "label": {"content": text(f"Command: {VICTIM}")},
    "plain content": {"content": text(VICTIM)},
    "standard input": {"rawInput": {"command": "sh", "stdin": VICTIM}},
    "input of a running program": {"rawInput": {"session_id": "7", "chars": VICTIM}},
    "arguments as text": {"rawInput": {"command": "sh", "args": f"-c '{VICTIM}'"}},
    "other members of commands": {"rawInput": {"command": "ls", "commands": [{"run": VICTIM}]}},
    "standard input as JSON": {"rawInput": {"command": "bash", "stdin": f'{{"x": "{VICTIM}"}}'}},
    "editor's verb": {"rawInput": {"command": "view", "path": "a.txt", "stdin": VICTIM}},
    "member next to the command": {"rawInput": {"command": "ls", "then": VICTIM}},
    "json in content": {"rawInput": {"command": "ls", "content": f'{{"command": "{VICTIM}"}}'}},
    "deep": {"rawInput": functools.reduce(lambda inner, _: {"arguments": inner}, range(20), {"command": VICTIM})},
    "code": {"title": "Look around", "rawInput": {"code": VICTIM}},
    "unknown member": {"title": "ls", "rawInput": {"job": {"steps": [{"body": VICTIM}]}}},
    "list next to the command": {"rawInput": {"command": "ls", "then": ["rm", "-rf", "victim"]}},
    "limit that is no limit": {"rawInput": {"command": "ls", "async_next": ["rm", "-rf", "victim"]}},
    "list as a description": {"rawInput": {"command": "ls", "description": ["rm", "-rf", "victim"]}},
    "words of the command": {"rawInput": {"command": "echo rm -rf victim", "then": VICTIM}},
    "pieces next to the command": {"rawInput": {"command": "ls", "then": {"a": "rm", "b": "-rf", "c": "victim"}}},
    "split JSON": {"content": [*text('{"command": "r'), *text('m -rf victim"}')]},
    "split text": {"content": [*text("rm -rf vi"), *text("ctim")]},
    "split fence": {"content": [*text("```sh"), *text(VICTIM), *text("```")]},
    "prompt after a fence": {"content": text(f"```\nls\n```\n$ {VICTIM}")},
    "label after a fence": {"content": text(f"```\nls\n```\nCommand: {VICTIM}")},
    "prompts in a fence": {"content": text(f"```\n$ ls\n$ {VICTIM}\n```")},
    "title": {"title": VICTIM},
    "title in backticks": {"title": f"`{VICTIM}`"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_command_is_shown_in_whatever_shape_it_comes(shape: str) -> None:
    asked = only(Drive().ask("c1", **{"title": "Bash", "kind": "execute", **SHAPES[shape]}), "approval:requested")
    assert isinstance(asked.preview, CommandPreview)
    assert VICTIM in asked.preview.command
    assert asked.risk_level == "high"


@pytest.mark.parametrize("name", ["BashOutput", "KillShell"])
@pytest.mark.parametrize("call", [{"title": VICTIM}, {"title": f"`{VICTIM}`"}, {"rawInput": {"run": VICTIM}}])
def test_a_tool_that_is_named_as_harmless_does_not_hide_its_command(name: str, call: dict[str, Any]) -> None:
    asked = only(Drive().ask("c1", **{"title": name, "name": name, "kind": "execute", **call}), "approval:requested")
    assert isinstance(asked.preview, CommandPreview)
    assert asked.risk_level == "high"


@pytest.mark.parametrize("title", ["KillShell", "Kill shell 3", "kill_shell", ""])
def test_a_tool_that_stops_a_shell_runs_nothing(title: str) -> None:
    given = {"title": title, "name": "KillShell", "kind": "execute", "rawInput": {"shell_id": "bash_3"}}
    asked = only(Drive().ask("c1", **given), "approval:requested")
    assert not isinstance(asked.preview, CommandPreview)


def test_a_request_without_a_command_says_so() -> None:
    asked = only(Drive().ask("c1", title="Bash", kind="execute"), "approval:requested")
    assert isinstance(asked.preview, DescriptionPreview)
    assert asked.preview.text == "The agent did not show its command."
    assert asked.risk_level == "high"


def test_content_without_text_is_named() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "resource_link", "uri": "file:///tmp/evil.sh", "name": "notes"},
        {"type": "resource", "resource": {"uri": "file:///x.sh", "blob": "cm0gLXJmIHZpY3RpbQ=="}},
        {"type": "resource", "resource": {"uri": "file:///y.txt", "text": "plain"}},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    ]
    content = [{"type": "content", "content": block} for block in blocks]
    asked = only(Drive().ask("c1", title="Work", content=content), "approval:requested")
    shown = "a link to `file:///tmp/evil.sh`, the file `file:///x.sh`, a picture"
    assert asked.notes == [f"Not shown here: the request also contains {shown}."]
    assert only(Drive().ask("c1", title="Work", content=text("plain")), "approval:requested").notes == []


@pytest.mark.parametrize(("title", "is_sentence"), [("List files", True), ("Run the tests", True), ("ls -la", False)])
def test_a_title_that_is_a_sentence_is_not_a_command_that_was_shown(title: str, is_sentence: bool) -> None:
    asked = only(Drive().ask("c1", title=title, kind="execute"), "approval:requested")
    assert ("The agent did not show its command." in asked.risk_reasons) == is_sentence
    assert asked.risk_level == ("high" if is_sentence else "medium")


def test_a_command_that_only_the_request_shows_is_shown() -> None:
    drive = Drive()
    drive.call("c1", title="List files", kind="execute", rawInput={"description": "List files"})
    asked = only(drive.ask("c1", title="ls", kind="execute", rawInput={"command": "ls"}), "approval:requested")
    assert "The agent did not show its command." not in asked.risk_reasons


def test_text_next_to_a_title_is_shown() -> None:
    drive = Drive()
    asked = only(drive.ask("c1", title="List files", kind="execute", content=text(VICTIM)), "approval:requested")
    shown = f"{asked.preview} {asked.notes}"
    assert "List files" in shown
    assert VICTIM in shown


def test_variables_and_another_directory_are_shown() -> None:
    raw = {"command": "make", "cwd": "/elsewhere", "env": {"LD_PRELOAD": "x.so"}}
    asked = only(Drive().ask("c1", kind="execute", rawInput=raw), "approval:requested")
    assert asked.preview.command == "LD_PRELOAD=x.so make"
    assert asked.preview.working_dir == "/elsewhere"


def test_a_variable_with_an_odd_name_is_quoted() -> None:
    asked = only(
        Drive().ask("c1", kind="execute", rawInput={"command": "make", "env": {"A; x": "1"}}), "approval:requested"
    )
    assert asked.preview.command == "'A; x'=1 make"


def test_an_edit_that_also_carries_a_command_shows_both() -> None:
    raw = {"file_path": "/work/app/a", "content": "x\n", "command": VICTIM}
    diff = {"type": "diff", "path": "/work/app/a", "oldText": None, "newText": "x\n"}
    asked = only(Drive().ask("c1", kind="edit", rawInput=raw, content=[diff]), "approval:requested")
    assert isinstance(asked.preview, DiffPreview)
    assert any(VICTIM in reason for reason in asked.risk_reasons)


# -- files --


def ask_edit(files: dict[str, str | None], **tool: Any) -> Any:
    drive = Drive()
    params = {"toolCall": {"toolCallId": "c1", "kind": "edit", "title": "Edit", **tool}, "options": []}
    events = drive.translator.permission(params, drive.now(), request_id="r", files=files)
    return only(events, "approval:requested")


def diff_of(old: str | None, new: str) -> list[dict[str, Any]]:
    return [{"type": "diff", "path": "/work/app/a", "oldText": old, "newText": new}]


def test_a_snippet_is_shown_in_its_file() -> None:
    asked = ask_edit({"/work/app/a": "one\ntwo\nthree\n"}, content=diff_of("two", "TWO"))
    assert " one\n-two\n+TWO\n three" in asked.preview.diff
    assert asked.risk_level == "medium"


def test_a_text_that_is_not_there_is_flagged() -> None:
    asked = ask_edit({"/work/app/a": "secret\n"}, content=diff_of("harmless\n", "x\n"))
    assert any("does not hold the text" in reason for reason in asked.risk_reasons)
    assert asked.risk_level == "high"


def test_an_existing_file_that_is_claimed_as_new_is_flagged_with_its_real_diff() -> None:
    asked = ask_edit({"/work/app/a": "precious\n"}, content=diff_of(None, "x\n"))
    assert "-precious" in asked.preview.diff
    assert any("exists" in reason for reason in asked.risk_reasons)


def test_a_whole_text_is_shown_against_the_file() -> None:
    asked = ask_edit({"/work/app/a": "old\n"}, rawInput={"file_path": "/work/app/a", "content": "new\n"})
    assert "-old\n+new" in asked.preview.diff


def test_a_long_headline_keeps_its_end() -> None:
    command = "echo " + "x" * 5000 + "; rm -rf victim"
    asked = only(Drive().ask("c1", title=command, kind="execute", rawInput={"command": command}), "approval:requested")
    assert asked.description.endswith("rm -rf victim")
    assert asked.preview.command == command


HARMLESS_NAMES = ["Read", "Grep", "LS", "WebFetch", "Task", "TodoWrite", "ExitPlanMode", "AskUserQuestion", "Think"]


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_the_name_of_a_tool_does_not_lower_the_risk_of_its_command(name: str) -> None:
    asked = only(Drive().ask("c1", title=name, name=name, rawInput={"command": "rm -rf ~"}), "approval:requested")
    assert asked.risk_level == "critical"
    assert asked.chooses_mode is False


def test_the_name_of_a_tool_does_not_lower_the_risk_of_its_edit() -> None:
    diff = [{"type": "diff", "path": ".git/hooks/pre-commit", "oldText": None, "newText": "x"}]
    asked = only(Drive().ask("c1", title="Read", name="Read", kind="read", content=diff), "approval:requested")
    assert asked.risk_level == "high"


@pytest.mark.parametrize("kind", ["text", "resource"])
def test_text_next_to_a_command_is_shown_and_judged(kind: str) -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": "rm -rf ~"}}
    content = text("rm -rf ~") if kind == "text" else [{"type": "content", "content": resource}]
    asked = only(
        Drive().ask("c1", title="ls", kind="execute", rawInput={"command": "ls"}, content=content), "approval:requested"
    )
    assert any("rm -rf ~" in note for note in asked.notes)
    assert asked.risk_level == "critical"


def test_text_next_to_a_diff_is_shown() -> None:
    diff = [{"type": "diff", "path": "a.txt", "oldText": None, "newText": "x"}, *text("and then I deploy")]
    asked = only(Drive().ask("c1", title="Write a.txt", kind="edit", content=diff), "approval:requested")
    assert asked.notes == ["The agent adds: and then I deploy"]


def test_a_description_of_the_command_is_not_repeated_as_a_note() -> None:
    given = {"command": "ls", "description": "List files"}
    asked = only(
        Drive().ask("c1", title="`ls`", kind="execute", rawInput=given, content=text("List files")),
        "approval:requested",
    )
    assert (asked.notes, asked.risk_level) == ([], "low")


@pytest.mark.parametrize(
    "command", [VICTIM, "reboot", "git push --force", "Rm -rf victim", "List files\nrm -rf victim"]
)
def test_a_description_that_is_a_command_is_shown_and_judged(command: str) -> None:
    given = {"command": "ls", "description": command}
    asked = only(Drive().ask("c1", kind="execute", rawInput=given, content=text(command)), "approval:requested")
    assert any(command in note for note in asked.notes)
    assert command[0].isupper() or asked.risk_level == "high"


@pytest.mark.parametrize("pieces", [("reb", "oot"), ("git push --for", "ce origin main"), ("$ rm -rf vi", "ctim")])
def test_a_command_in_pieces_next_to_another_is_shown_in_one(pieces: tuple[str, ...]) -> None:
    content = [item for piece in pieces for item in text(piece)]
    asked = only(Drive().ask("c1", kind="execute", rawInput={"command": "ls"}, content=content), "approval:requested")
    whole = "".join(pieces).removeprefix("$ ")
    assert whole in f"{asked.preview} {asked.notes}"
    assert asked.risk_level == "high"


UNKNOWN: list[dict[str, Any]] = [{"network": True}, {"uid": 0}, {"target": "production"}, {"then": "true"}, {"x": [1]}]


@pytest.mark.parametrize("more", UNKNOWN, ids=str)
def test_an_unknown_member_next_to_a_command_is_shown_with_at_least_medium_risk(more: dict[str, Any]) -> None:
    asked = only(Drive().ask("c1", kind="execute", rawInput={"command": "ls", **more}), "approval:requested")
    assert f"{next(iter(more))}: " in asked.preview.command
    assert asked.risk_level != "low"


@pytest.mark.parametrize("shell", ["/tmp/evil/bash", "./bash", "evil", "/bin/../tmp/sh"])
def test_an_unusual_shell_is_shown(shell: str) -> None:
    given = {"command": "ls", "shell": shell}
    asked = only(Drive().ask("c1", kind="execute", rawInput=given), "approval:requested")
    assert f"shell: {shell}" in asked.preview.command
    assert asked.risk_level != "low"


@pytest.mark.parametrize("shell", ["bash", "/bin/sh", "/usr/bin/zsh", "/opt/homebrew/bin/bash", "/usr/local/bin/bash"])
def test_a_usual_shell_is_not(shell: str) -> None:
    given = {"command": "ls", "shell": shell}
    asked = only(Drive().ask("c1", kind="execute", rawInput=given), "approval:requested")
    assert (asked.preview.command, asked.risk_level) == ("ls", "low")


@pytest.mark.parametrize(
    "described",
    [
        "[current working directory /etc/evil] (Install it)",
        "[current working directory /etc/evil]",
        "[in /etc/evil] (Install it)",
        "[current working directory /etc/evil] (Install it) [background]",
    ],
)
def test_a_directory_in_the_content_is_that_of_the_command(described: str) -> None:
    drive = Drive()
    asked = only(drive.ask("c1", title="make install", kind="execute", content=text(described)), "approval:requested")
    assert asked.preview.working_dir == "/etc/evil"
    assert asked.notes == []
    assert any("outside the workspace" in reason for reason in asked.risk_reasons)
    assert [act.cwd for act in drive.translator.requested[asked.request_id].shown.commands] == ["/etc/evil"]


def test_a_command_in_the_remark_next_to_a_directory_is_shown() -> None:
    content = text(f"[current working directory /work/app] ({VICTIM})")
    asked = only(Drive().ask("c1", title="make", kind="execute", content=content), "approval:requested")
    assert asked.notes == [f"The agent adds: {VICTIM}"]
    assert asked.risk_level == "high"


@pytest.mark.parametrize(
    "line", ["```a\n", "$ a\n", "command: a " + " " * 50, "`" * 50, "[in a", "command:" + " " * 99, "{"]
)
def test_long_content_is_read_in_linear_time(line: str) -> None:
    content = text(line * (1_000_000 // len(line)))
    call = Call("c1", "")
    call.content = [msgspec.convert(content[0], schema.ContentToolCallContent)]
    started = time.process_time()
    _locate_commands(call, [], [])
    assert time.process_time() - started < 20  # quadratic time would be many minutes


def test_a_command_in_two_forms_is_shown_once() -> None:
    given = {"command": ["bash", "-lc", "touch made"], "cwd": "/w/sub"}
    fence = text("```sh\ntouch made\n```")
    asked = only(Drive().ask("c1", title="x", kind="execute", rawInput=given, content=fence), "approval:requested")
    assert asked.preview == CommandPreview(command="bash -lc 'touch made'", working_dir="/w/sub")


CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "a diff and a text": {
        "rawInput": {"file_path": "a.txt", "content": "evil\n"},
        "content": [{"type": "diff", "path": "a.txt", "oldText": "1\n", "newText": "2\n"}],
    },
    "a diff and a text without a path": {
        "rawInput": {"content": "evil\n"},
        "content": [{"type": "diff", "path": "a.txt", "oldText": "1\n", "newText": "2\n"}],
    },
    "a diff and an edit": {
        "rawInput": {"file_path": "a.txt", "old_string": "1", "new_string": "evil"},
        "content": [{"type": "diff", "path": "a.txt", "oldText": "1\n", "newText": "2\n"}],
    },
    "a diff and a unified diff": {
        "rawInput": {"file_path": "a.txt", "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+evil\n"},
        "content": [{"type": "diff", "path": "a.txt", "oldText": "1\n", "newText": "2\n"}],
    },
    "a diff and a patch": {
        "rawInput": {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-1\n+evil\n*** End Patch"},
        "content": [{"type": "diff", "path": "a.txt", "oldText": "1\n", "newText": "2\n"}],
    },
    "an edit and a text": {"rawInput": {"file_path": "a.txt", "old_string": "1", "new_string": "2", "content": "evil"}},
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_an_input_that_contradicts_its_diff_is_flagged(case: str) -> None:
    drive = Drive()
    root = drive.translator.workspace or ""
    asked = only(
        drive.ask("c1", title="Edit", kind="edit", files={f"{root}/a.txt": "1\n"}, **CONTRADICTIONS[case]),
        "approval:requested",
    )
    assert asked.risk_level == "high"
    assert any("evil" in reason for reason in asked.risk_reasons)


@pytest.mark.parametrize(
    "given",
    [
        {"file_path": "a.txt", "old_string": "1", "new_string": "2", "replace_all": False},
        {"file_path": "a.txt", "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+2\n"},
        {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-1\n+2\n*** End Patch"},
        {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n   other context\n-1\n+2\n*** End Patch"},
        {"patch": "*** Begin Patch\n*** Add File: a.txt\n+2\n*** End Patch"},
    ],
)
def test_an_input_that_agrees_with_its_diff_is_not_flagged(given: dict[str, Any]) -> None:
    drive = Drive()
    root = drive.translator.workspace or ""
    diff = [{"type": "diff", "path": "a.txt", "oldText": "1\n", "newText": "2\n"}]
    asked = only(
        drive.ask("c1", title="Edit", kind="edit", rawInput=given, content=diff, files={f"{root}/a.txt": "1\n"}),
        "approval:requested",
    )
    assert asked.risk_level == "medium"


PATCH = "--- a/victim.txt\n+++ b/victim.txt\n@@ -1 +1 @@\n-x\n+evil\n"


@pytest.mark.parametrize(
    "given", [{"path": "a.txt", "diff": PATCH}, {"patch": PATCH}, {"arguments": {"unified_diff": PATCH}}, PATCH]
)
def test_a_patch_of_another_file_next_to_a_diff_is_shown(given: Any) -> None:
    diff = [{"type": "diff", "path": "a.txt", "oldText": "1\n", "newText": "2\n"}]
    asked = only(Drive().ask("c1", title="Edit", kind="edit", rawInput=given, content=diff), "approval:requested")
    assert "+++ b/victim.txt" in asked.preview.diff


@pytest.mark.parametrize(
    "outside", ["/x/y/src/lib/main.py", "/home/u/sessions/0f6b1c7e-1111-4222-8333-444455556666/a.txt"]
)
def test_a_file_outside_the_workspace_is_named_by_its_whole_path(outside: str) -> None:
    inside = {"type": "diff", "path": "/work/app/b.txt", "oldText": "1\n", "newText": "2\n"}
    content = [{**inside, "path": outside}, inside]
    asked = only(Drive().ask("c1", title="Edit", kind="edit", content=content), "approval:requested")
    assert f"+++ b/{outside}\n" in asked.preview.diff
    assert "+++ b/b.txt\n" in asked.preview.diff
    asked = only(Drive().ask("c1", title="Edit", kind="edit", content=content, files={}), "approval:requested")
    assert any(reason.startswith(f"{outside} could not be read as text.") for reason in asked.risk_reasons)


@pytest.mark.parametrize("name", ["Edit", "apply_patch", "Write"])
def test_the_risk_of_every_file_in_the_diffs_counts(name: str) -> None:
    content = [{"type": "diff", "path": "/home/u/.bashrc", "oldText": "1\n", "newText": "2\n"}]
    given = {"file_path": "/work/app/a.txt"}
    asked = only(
        Drive().ask("c1", title="Edit", name=name, kind="edit", rawInput=given, content=content), "approval:requested"
    )
    assert asked.risk_level == "high"
    assert any(".bashrc" in reason for reason in asked.risk_reasons)
