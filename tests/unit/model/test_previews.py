"""What a preview shows of a request, and which members of its input it does not show."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.model.diffs import list_changed_lines, unified_diff
from pilothouse.model.previews import list_unshown_members, list_unshown_of_questions, split_command, split_sections
from pilothouse.model.records import CommandPreview, DescriptionPreview, DiffPreview

EDIT = {"file_path": "/w/a.txt", "old_string": "two", "new_string": "TWO", "replace_all": False}
DIFF = unified_diff("one\ntwo\n", "one\nTWO\n", "a.txt").text


# -- changed lines ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("-- drop all\nx\n", "++i;\nx\n", ["--- drop all", "+++i;"]),
        ("-- a/x\n++ b\n", "", ["--- a/x", "-++ b"]),
        ("a", "b", ["-a", "+b"]),
        ("", "@@ -1 +1 @@\n", ["+@@ -1 +1 @@"]),
        ("same\n", "same\n", []),
    ],
)
def test_changed_lines_are_counted_by_hunks(old: str, new: str, lines: list[str]) -> None:
    assert list_changed_lines(unified_diff(old, new, "f").text) == lines


def test_names_between_two_files_are_no_changed_lines() -> None:
    both = unified_diff("a\n", "b\n", "x").text + unified_diff("-- c\n", "d\n", "y").text
    assert list_changed_lines(both) == ["-a", "+b", "--- c", "+d"]
    assert [(one.path, len(one.lines)) for one in split_sections(both)] == [("x", 3), ("y", 3)]


def test_file_that_a_diff_only_names_is_a_section_without_lines() -> None:
    sections = split_sections(DIFF + "--- a/b.txt\n+++ b/b.txt\n--- /dev/null\n+++ b/c.txt\n")
    assert [(one.path, one.is_created, bool(one.lines)) for one in sections] == [
        ("a.txt", False, True),
        ("b.txt", False, False),
        ("c.txt", True, False),
    ]


def test_lines_of_a_hunk_without_counts_are_not_names() -> None:
    (section,) = split_sections("--- a/x\n+++ b/x\n@@\n--- a/y\n+++ b/y\n")
    assert section.lines == ["@@", "--- a/y", "+++ b/y"]


# -- members ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "unshown"),
    [
        ({}, []),
        ({"output_path": "/etc/passwd"}, ["output_path"]),
        ({"output_path": "/w/./sub/../a.txt", "path": "a.txt"}, []),
        ({"paths": ["a.txt", "../a.txt"]}, ["paths"]),
        ({"output_path": "/a.txt"}, ["output_path"]),
        ({"insert_text": "evil", "insert_line": 3}, ["insert_text", "insert_line"]),
        ({"added": "TWO"}, []),
        ({"command": "rm -rf ~"}, ["command"]),
        ({"description": "Fix it", "toolCallId": "x-1"}, []),
        ({"edits": [{"path": "a.txt", "old_text": "two", "new_text": "TWO", "replace_all": True}]}, []),
        ({"changes": {"/w/a.txt": {"update": {"unified_diff": DIFF, "move_path": None}}}}, []),
        ({"files": [{"path": "a.txt", "content": "x"}, "a.txt"]}, []),
        ({"edits": [["bash", "-c", "rm -rf ~"]]}, ["edits"]),
        ({"edits": [{"path": "a.txt", "new_text": {"run": "rm -rf ~"}}]}, ["edits"]),
        ({"changes": {"/etc/passwd": {"add": {"content": "x"}}}}, ["changes"]),
        ({"files": [{"path": "a.txt", "then": "rm -rf ~"}]}, ["files"]),
        ({"path": {"run": "rm -rf ~"}, "paths": [["rm"]]}, ["path", "paths"]),
        ({"content": {"run": "rm -rf ~"}, "text": ["rm"], "replace_all": ["rm"]}, ["content", "text", "replace_all"]),
        ({"description": ["rm"], "reason": '{"run": "rm -rf ~"}'}, ["description", "reason"]),
        ({"message": "rm -rf ~"}, ["message"]),
        ({"replace_all": "rm -rf ~"}, ["replace_all"]),
    ],
)
def test_change_does_not_show_other_members(more: dict[str, Any], unshown: list[str]) -> None:
    preview = DiffPreview(path="/w/a.txt", diff=DIFF)
    assert sorted(list_unshown_members({**EDIT, **more}, preview, "/w")) == sorted(unshown)


def test_other_preview_shows_no_member_but_itself() -> None:
    given = {"plan": "# Plan\n", "limit": 5}
    assert list_unshown_members(given, DescriptionPreview(text="# Plan")) == {"limit": 5}
    assert list_unshown_members(given, DescriptionPreview(text="ExitPlanMode")) == given


def test_texts_below_a_command_are_members() -> None:
    given = {"command": "ls", "question": "Really?\nlow risk", "then": ["rm -rf x", "y z"]}
    command = "ls\nquestion: Really?\nlow risk\nthen: 'rm -rf x' 'y z'"
    assert split_command(command, given) == ("ls", frozenset({"question", "then"}))
    shown = list_unshown_members(given, CommandPreview(command=command, working_dir=""))
    assert list(shown) == ["question", "then"]


@pytest.mark.parametrize("value", [{"new_string": '{"rm -rf x": true}'}, {"rm -rf x": True}])
@pytest.mark.parametrize("name", ["command", "message", "args", "path"])
def test_a_member_in_which_no_command_was_found_is_shown_next_to_one(name: str, value: Any) -> None:
    assert name in list_unshown_members({name: value}, CommandPreview(command="ls", working_dir=""))


def test_line_of_the_command_itself_stays_in_it() -> None:
    command = "ls\nthen: rm -rf x"
    assert split_command(command, {"command": command, "then": "rm -rf x"}) == (command, frozenset())


def test_questions_do_not_show_what_is_not_a_question() -> None:
    question = {
        "question": "Which?",
        "header": "H",
        "options": [{"label": "A", "description": "d"}],
        "multiSelect": True,
    }
    assert list_unshown_of_questions({"questions": [question, "And why?"]}) == {}
    odd = {**question, "then": "rm -rf x", "options": [{"label": "A", "run": "y"}]}
    assert list_unshown_of_questions({"questions": [odd], "sql": "drop"}) == {
        "questions": [{"options": [{"run": "y"}], "then": "rm -rf x"}],
        "sql": "drop",
    }
    assert list_unshown_of_questions({"question": "Which?", "options": ["A"], "text": "other"}) == {"text": "other"}
