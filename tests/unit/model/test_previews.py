"""The preview and the option labels of a request: complete, ours, and without hidden text."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pilothouse.model.diffs import list_changed_lines, unified_diff
from pilothouse.model.previews import (
    label_option,
    list_unshown_members,
    list_unshown_of_questions,
    make_visible,
    split_command,
    split_sections,
)
from pilothouse.model.records import CommandPreview, DescriptionPreview, DiffPreview, Option

# -- previews ---------------------------------------------------------------------------------------------------------

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


# -- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("allow_once", "Allow once"),
        ("allow_always", "Always allow"),
        ("reject_once", "Deny"),
        ("reject_always", "Always deny"),
        ("something", "Deny"),
        ("allow_for_ever", "Allow"),
    ],
)
def test_an_option_is_labelled_by_its_kind_whatever_its_agent_calls_it(kind: str, label: str) -> None:
    option = label_option(Option(option_id="x", name="Yes, trust me", kind=kind))
    assert (option.label, option.name) == (label, "Yes, trust me")


@pytest.mark.parametrize(
    ("name", "kind", "is_misleading"),
    [
        ("Deny", "allow_always", True),
        ("No", "allow_once", True),
        ("Cancel", "allow_once", True),
        ("Reject and continue", "allow_once", True),
        ("\u200bDeny", "allow_always", True),
        ("D\u200be\u202eny", "allow_always", True),
        ("Ｄｅｎｙ", "allow_always", True),
        ("D\u0435ny", "allow_always", True),  # with a Cyrillic letter
        ("Skip", "allow_once", True),
        ("\u274c", "allow_once", True),
        ("Allow", "reject_once", True),
        ("Yes", "reject_always", True),
        ("Always allow", "reject_once", True),
        ("Yes", "allow_once", False),
        ("No, and tell Codex what to do differently", "reject_once", False),
        ("Yes, and don't ask again for these files", "allow_always", False),
        ("Keep planning", "reject_once", False),
        ("", "allow_once", False),
    ],
)
def test_a_label_that_says_the_opposite_is_flagged(name: str, kind: str, is_misleading: bool) -> None:
    assert label_option(Option(option_id="x", name=name, kind=kind)).is_misleading is is_misleading


NOES = """
Don’t allow|D3ny|D e n y|D-e-n-y|Dény|N0|N o|Ablehnen|Abbrechen|Rechazar|Nej|нет|拒绝|いいえ|👎|🛑|❎|OK, deny it
Undo|Exit|Allow? No, deny|Do nothing|Disagree|Back|Go back|ᴅᴇɴʏ
🅳🅴🅽🆈|r3j3ct|거부|Recusar|Refuser|Rifiuta|不允许|C@ncel
""".replace("\n", "|")
YESES = """
✅|👍|✔️|☑|Al1ow|A11ow|Zulassen|Erlauben|Sí|はい|允许|Go ahead|Do it|Sure|LGTM|Stop and allow|A l l o w|@llow|Ye5|Always
Tillåt|Разрешить|허용|Autoriser|Permitir|Consenti|No, allow
""".replace("\n", "|")
# labels of real agents
ALLOWING = """
Allow|Allow all server tools for this session|Allow for this session|Allow once|Allow this change|Always Allow
Allow tool for this session|Always allow|Yes|Yes, allow all edits during this session|Yes, proceed|allow_always
allow_once|Yes, and don't ask again for Shout commands|Yes, and don't ask again for these files|Approve for this session
Yes, and don't ask again for commands that start with `git stop no`|Yes, and don’t ask again for exit 3 commands
Yes, but ask before edits|Yes, and auto-accept edits|Yes, and bypass permissions|Yes, and manually approve edits
Yes, allow once|Modify with external editor|Approve|Accept|Always approve|Yes, and never ask again
""".replace("\n", "|")
DENYING = """
No|No, and tell Codex what to do differently|No, and tell Claude what to do differently|No, keep planning|Keep planning
Reject|Skip|Skip this change|reject_once|reject_always|Always reject|Don't allow|Don’t Allow|Do not allow|Abort|Deny
Cancel|No, suggest changes (esc)|No, provide feedback|Reject and continue|Disallow|不允许|許可しない
Nicht zulassen|No permitir
""".replace("\n", "|")


def says_the_opposite(name: str, kind: str) -> bool:
    return label_option(Option(option_id="x", name=name, kind=kind)).is_misleading


@pytest.mark.parametrize("name", [name for name in NOES.split("|") if name])
def test_a_button_that_allows_must_not_say_no(name: str) -> None:
    assert says_the_opposite(name, "allow_once")


@pytest.mark.parametrize("name", [name for name in YESES.split("|") if name])
def test_a_button_that_denies_must_not_say_yes(name: str) -> None:
    assert says_the_opposite(name, "reject_once")


@pytest.mark.parametrize("name", [name for name in ALLOWING.split("|") if name])
def test_the_allowing_labels_of_real_agents_are_not_flagged(name: str) -> None:
    assert not says_the_opposite(name, "allow_once")


@pytest.mark.parametrize("name", [name for name in DENYING.split("|") if name])
def test_the_denying_labels_of_real_agents_are_not_flagged(name: str) -> None:
    assert not says_the_opposite(name, "reject_once")


@pytest.mark.parametrize("part", ["a", "a ", "D e n y ", "1", "no not ", "don't ask again for `", "a1", "$", "e\u0301"])
def test_a_very_long_label_is_read_quickly(part: str) -> None:
    started = time.process_time()
    says_the_opposite(part * (1_000_000 // len(part)), "allow_once")
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    "character",
    [
        *"\x00\x07\x08\x0b\x0c\r\x1b\x7f\x85\x9b",
        *"\u00a0\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d",
        *"\u202e\u202f\u205f\u2060\u2061\u2066\u2067\u2068\u2069\u206f\u2800\u3000\u3164\ufe00\ufe0f\ufeff\uffa0\ufffb",
        *"\ufffc\U00013430\U00016fe4\U0001bca0\U0001d159\u0336\u0489\u20dd\ue0a0\uf8ff\U000f0000",
        "\ud83d",
        "\U000e0041",
    ],
)
def test_a_character_that_hides_is_shown_by_its_code(character: str) -> None:
    assert make_visible(f"rm{character}x") == f"rm⟨U+{ord(character):04X}⟩x"


@pytest.mark.parametrize("before", ["", " ", ">", "1", '"', "a\u0301\u0301\u0301", "\u0e01\u0e47\u0e47\u0e47"])
@pytest.mark.parametrize("mark", ["\u0301", "\u0323", "\u0e47", "\u05b8", "\u0903"])
def test_a_mark_that_covers_other_text_is_shown_by_its_code(before: str, mark: str) -> None:
    assert make_visible(f"{before}{mark}") == f"{before}⟨U+{ord(mark):04X}⟩"


MARKED = ["cafe\u0301", "e\u0302\u0301", "\u05e9\u05c1\u05b8\u0592", "\u0e01\u0e35\u0e48", "\u0921\u093c\u0940\u0902"]


@pytest.mark.parametrize("text", MARKED)
def test_a_letter_keeps_the_marks_of_its_language(text: str) -> None:
    assert make_visible(text) == text


@pytest.mark.parametrize("text", ["npm test", "echo ä 漢 עברית", "a\n\tb", "👍️ ok", "👨‍👩‍👧 family", "naïve"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert make_visible(text) == text
