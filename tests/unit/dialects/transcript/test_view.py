"""The transcript: what the UI, replays and exports show of a session."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.dialects.texts import clip_lines, clip_values, shorten_lines, shorten_middle
from pilothouse.dialects.transcript import (
    VERBS,
    WHOLE,
    ApprovalEntry,
    CustomEntry,
    Limits,
    NotificationEntry,
    TextEntry,
    TodoListEntry,
    ToolCallEntry,
    ToolGroup,
    clip,
    entry_of,
    group_items,
    to_json,
    to_markdown,
    transcript,
)
from pilothouse.dialects.transcript.html import to_html
from pilothouse.model.errors import ACPError
from pilothouse.model.events import EVENT_TYPES, Event
from pilothouse.model.records import FileChange, FileDiff, ImageContent, Option, RuleOffer, TextContent, Todo
from pilothouse.model.session import Session, dump, fold, load
from tests.unit.model.session.test_fold_properties import EVENTS


class Script:
    """A session written event by event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, kind: str, /, **fields: Any) -> Script:
        head = {"seq": len(self.events) + 1, "session_id": "s", "timestamp": "2026-01-01T00:00:00Z"}
        self.events.append(EVENT_TYPES[kind](**{**head, **fields}))
        return self

    def custom(self, namespace: str, name: str, **data: Any) -> Script:
        return self("custom", namespace=namespace, event_name=name, data=data)

    def turn(self, turn_id: str) -> Script:
        return self.custom("pilothouse", "turn_started", turnId=turn_id)

    def say(self, text: str, role: str = "assistant", message_id: str = "m") -> Script:
        return self("message:complete", message_id=message_id, role=role, content=[TextContent(text=text)])

    def run(
        self, name: str, arguments: dict[str, Any], output: str = "", tool_call_id: str = "c", category: str = "other"
    ) -> Script:
        self("tool:start", tool_call_id=tool_call_id, name=name, category=category)
        self(
            "tool:executing",
            tool_call_id=tool_call_id,
            name=name,
            input=arguments,
            risk_level="low",
            requires_approval=False,
        )
        return self("tool:result", tool_call_id=tool_call_id, name=name, output=output, duration=3)

    def fail(self, name: str = "bash", tool_call_id: str = "c", message: str = "no") -> Script:
        error = ACPError(code="tool_failed", message=message, recoverable=True)
        return self("tool:error", tool_call_id=tool_call_id, name=name, error=error)

    def fold(self) -> Session:
        return fold(self.events)

    def entries(self, **options: Any) -> list[Any]:
        return transcript(self.fold(), **options)


@pytest.fixture
def script() -> Script:
    return Script()


def test_entries_stand_in_the_order_in_which_they_began(script: Script) -> None:
    script.say("do it", role="user").turn("t")("thinking:start", message_id="x").run("bash", {"command": "ls"})
    script.say("done")("interaction:question", question_id="q", question="Sure?")
    script("interaction:notification", level="info", title="t", message="m")
    script("session:error", error=ACPError(code="x", message="y", recoverable=True))
    script.custom("acp", "compaction_update", compactionId="k", status="completed", summary=[{"text": "short"}])
    script.custom("pilothouse", "artifact_created", artifact={"name": "a"})
    kinds = [entry.__struct_config__.tag for entry in script.entries()]
    assert kinds == [
        "text", "thinking", "tool_call", "text", "question", "notification", "error", "compaction", "artifact",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "verb", "detail"),
    [
        ("Glob", {"pattern": "**/*.py"}, "Searching files", "**/*.py"),
        ("grep", {"pattern": "x+", "path": "/w"}, "Searching content", "x+"),
        ("read_file", {"path": "/work/a/b.py"}, "Reading", "a/b.py"),
        ("Write", {"file_path": "/work/n.txt", "content": "x"}, "Writing", "n.txt"),
        ("Edit", {"file_path": "/work/n.txt", "old_string": "a", "new_string": "b"}, "Editing", "n.txt"),
        ("Edit", {"file_path": "/work/n.txt", "old_string": "", "new_string": "b"}, "Writing", "n.txt"),
        ("bash", {"command": "ls\n  -l"}, "Running command", "ls -l"),
        ("Task", {"description": "Look around", "prompt": "long"}, "Running task", "Look around"),
        ("TodoWrite", {"todos": []}, "Updating todos", ""),
        ("WebFetch", {"url": "https://x.example"}, "Fetching web content", "https://x.example"),
        ("WebSearch", {"query": "cats"}, "Searching web", "cats"),
        (
            "apply_patch",
            {"patchText": "*** Begin Patch\n*** Delete File: z.py\n*** End Patch"},
            "Applying patch",
            "z.py",
        ),
        ("list_directory", {"path": "/work/src"}, "Listing files", "src"),
        ("AskUserQuestion", {"question": "Which?"}, "Asking", "Which?"),
        ("frobnicate", {"level": 3}, "Running tool", ""),
        ("mcp__files__read", [1], "Running tool", ""),
    ],
)
def test_a_call_has_a_verb_and_a_detail(script: Script, name: str, arguments: Any, verb: str, detail: str) -> None:
    script("session:started", working_directory="/work")
    category = {"Write": "file_write", "Edit": "file_edit", "apply_patch": "file_edit"}.get(name, "other")
    (entry,) = script.run(name, arguments, category=category).entries()
    assert (entry.verb, entry.detail) == (verb, detail)


def test_every_verb_of_the_table_is_a_phrase() -> None:
    assert all(verb.split()[0].endswith("ing") for verb in VERBS.values())


def test_a_call_of_an_unknown_tool_takes_its_verb_from_its_kind(script: Script) -> None:
    script("tool:start", tool_call_id="c", name="frob", category="other", kind="search", title="For frobs")
    (entry,) = script.entries()
    assert (entry.verb, entry.detail) == ("Searching", "For frobs")


def test_a_file_that_turned_out_to_be_there_is_edited_not_written(script: Script) -> None:
    script.run("Write", {"file_path": "/a", "content": "x"}, category="file_write")
    script("file:change", path="/a", change_type="modified", diff="@@ -1 +1 @@\n-y\n+x\n", tool_call_id="c")
    (entry,) = script.entries()
    assert (entry.verb, entry.new_file) == ("Editing", False)
    (diff,) = entry.diffs
    assert (diff.lines_added, diff.lines_removed, diff.change_type) == (1, 1, "modified")


def test_arguments_that_are_still_being_written_are_shown_once_they_can_be_read(script: Script) -> None:
    script("tool:args_delta", tool_call_id="c", delta='{"command": "ls')
    assert script.entries()[0].input == '{"command": "ls'
    script("tool:args_delta", tool_call_id="c", delta='"}')
    assert script.entries()[0].input == {"command": "ls"}


# -- diffs -------------------------------------------------------------------------------------------------------------


def test_an_edit_has_its_diff_before_it_ends(script: Script) -> None:
    script("tool:start", tool_call_id="c", name="Edit", category="file_edit")
    arguments = {"file_path": "/a.py", "old_string": "one\ntwo\n", "new_string": "one\n2\nthree\n"}
    script("tool:executing", tool_call_id="c", name="Edit", input=arguments, risk_level="low", requires_approval=False)
    (diff,) = script.entries()[0].diffs
    assert (diff.lines_added, diff.lines_removed) == (2, 1)
    assert "-two\n+2\n+three\n" in diff.diff


def test_an_edit_that_failed_changed_nothing(script: Script) -> None:
    arguments = {"file_path": "/a.py", "old_string": "a", "new_string": "b"}
    script("tool:start", tool_call_id="c", name="Edit", category="file_edit")
    script("tool:executing", tool_call_id="c", name="Edit", input=arguments, risk_level="low", requires_approval=False)
    (entry,) = script.fail("Edit").entries()
    assert entry.diffs == []
    assert entry.attention
    assert entry.error.message == "no"


def test_edits_of_one_file_are_one_diff_and_a_patch_has_one_for_each_file(script: Script) -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}, "junk"]
    script.run("MultiEdit", {"file_path": "/a", "edits": edits}, tool_call_id="1", category="file_edit")
    patch = "*** Begin Patch\n*** Add File: n\n+x\n+y\n*** Update File: o\n@@ def f\n a\n-b\n*** End Patch"
    script.run("apply_patch", {"patchText": patch}, tool_call_id="2", category="file_edit")
    edited, patched = script.entries()
    assert [(d.lines_added, d.lines_removed, d.change_type) for d in edited.diffs] == [(1, 2, "modified")]
    assert [(d.path, d.lines_added, d.lines_removed, d.change_type) for d in patched.diffs] == [
        ("n", 2, 0, "created"),
        ("o", 0, 1, "modified"),
    ]
    assert patched.diffs[1].diff == "@@ def f\n a\n-b\n"


def test_a_structured_diff_is_used_when_no_change_was_told(script: Script) -> None:
    structured = FileDiff(path="/a", diff="@@ -0,0 +1 @@\n+x\n", change_type="created")
    script("tool:result", tool_call_id="c", name="Write", output="", duration=1, structured=structured)
    (diff,) = script.entries()[0].diffs
    assert (diff.path, diff.lines_added) == ("/a", 1)


def test_a_long_diff_is_cut_between_lines_and_says_so(script: Script) -> None:
    body = "".join(f"+line {number}\n" for number in range(1000))
    changes = [FileChange(path="/a", change_type="created", diff="@@ -0,0 +1,1000 @@\n" + body)]
    script.run("Write", {}, category="file_write")("file:batch", changes=changes, tool_call_id="c")
    (diff,) = script.entries(limits=Limits(diff=200))[0].diffs
    assert len(diff.diff) <= 200
    assert diff.diff.endswith("\n")
    assert diff.diff.count("\n") + diff.omitted == 1001
    assert diff.lines_added == 1000
    assert script.entries(limits=WHOLE)[0].diffs[0].omitted == 0


# -- lists, questions, approvals ---------------------------------------------------------------------------------------


def test_calls_that_write_the_list_become_one_list_per_turn(script: Script) -> None:
    def todos(*statuses: str) -> dict[str, Any]:
        return {"todos": [{"content": str(number), "status": status} for number, status in enumerate(statuses)]}

    script.turn("t1").run("TodoWrite", todos("pending"), tool_call_id="1").say("working")
    script.run("TodoWrite", todos("completed", "pending"), tool_call_id="2")
    script.turn("t2").run("todowrite", todos("completed"), tool_call_id="3")
    entries = script.entries()
    lists = [(entry.id, entry.completed, entry.total) for entry in entries if isinstance(entry, TodoListEntry)]
    assert lists == [("todos:t1", 1, 2), ("todos:t2", 1, 1)]
    assert isinstance(entries[0], TodoListEntry)
    assert not any(isinstance(entry, ToolCallEntry) for entry in entries)


def test_a_list_told_by_its_own_event_hides_the_calls_that_wrote_it(script: Script) -> None:
    script.turn("t").run("TodoWrite", {"todos": [{"content": "a", "status": "pending"}]})
    script("progress:todo_update", todos=[Todo(content="a", status="in_progress")])
    (entry,) = script.entries()
    assert (entry.total, entry.todos[0].status) == (1, "in_progress")


def test_a_call_that_failed_to_write_the_list_is_shown(script: Script) -> None:
    (entry,) = script.turn("t").fail("TodoWrite").entries()
    assert isinstance(entry, ToolCallEntry)


def test_questions_and_approvals_say_whether_they_are_open(script: Script) -> None:
    script.turn("t")("interaction:question", question_id="q", question="?", options=["a"])
    script(
        "approval:requested", request_id="r", tool_call_id="c", tool_name="bash", tool_input={}, description="Run",
        risk_level="high", risk_reasons=["deletes"],
    )  # fmt: skip
    question, approval = script.entries()
    assert (question.pending, question.options) == (True, ["a"])
    assert (approval.pending, approval.risk_reasons) == (True, ["deletes"])
    script.custom("pilothouse", "question_answered", questionId="q", outcome="answered", answer="a")
    script("approval:resolved", request_id="r", tool_call_id="c", approved=False, resolved_by="user", reason="no")
    question, approval = script.entries()
    assert (question.pending, question.answer) == (False, "a")
    assert (approval.pending, approval.approved, approval.reason) == (False, False, "no")


# -- text --------------------------------------------------------------------------------------------------------------


ASKED: dict[str, Any] = {
    "tool_call_id": "c",
    "tool_name": "Bash",
    "tool_input": {},
    "description": "Run: rm \u202ex",
    "risk_level": "high",
}


def test_an_approval_has_the_notes_rules_and_questions_of_its_request(script: Script) -> None:
    offer = RuleOffer(offer_id="exact", text="only this", subject="commands", pattern="x")
    told: dict[str, Any] = {"notes": ["Denied before in this turn."], "origin": "hub", "question_ids": ["c:0"]}
    script("approval:requested", request_id="a", **ASKED, **told, rule_offers=[offer])
    (entry,) = transcript(fold(script.events))
    assert isinstance(entry, ApprovalEntry)
    assert (entry.notes, entry.origin, entry.question_ids) == (told["notes"], "hub", ["c:0"])
    assert entry.rule_offers == [offer]


def test_options_of_an_old_log_get_a_label(script: Script) -> None:
    options = [Option(option_id="y", name="Deny", kind="allow_once")]
    script("approval:requested", request_id="a", **ASKED, options=options)
    (entry,) = transcript(fold(script.events))
    assert isinstance(entry, ApprovalEntry)
    ((label, is_misleading, name),) = ((one.label, one.is_misleading, one.name) for one in entry.options)
    assert (label, is_misleading, name) == ("Allow once", True, "Deny")


def test_exports_show_notes_and_hide_no_character_of_an_approval(script: Script) -> None:
    script("approval:requested", request_id="a", **ASKED, notes=["Denied before in this turn."])
    session = fold(script.events)
    for text in (to_markdown(session), to_html(session)):
        assert "⟨U+202E⟩" in text
        assert "\u202e" not in text
        assert "Denied before in this turn." in text


def test_a_message_with_pictures_has_its_blocks_in_order(script: Script) -> None:
    content = [TextContent(text="a"), ImageContent(url="u"), TextContent(text="b")]
    script("message:complete", message_id="m", role="assistant", content=content)
    (entry,) = script.entries()
    assert (entry.text, entry.content) == ("ab", content)
    assert script.say("only text", message_id="n").entries()[1].content is None


def test_text_that_still_comes_is_marked(script: Script) -> None:
    script("message:delta", message_id="m", role="assistant", delta="x")
    assert script.entries()[0].streaming
    assert not script.say("x").entries()[0].streaming


def test_a_diagnostic_is_a_notification_and_other_facts_are_kept(script: Script) -> None:
    script.custom("pilothouse", "diagnostic", text="not JSON").custom("acp", "tomorrow", x=1)
    first, second = script.entries()
    assert isinstance(first, NotificationEntry)
    assert first.message == "not JSON"
    assert isinstance(second, CustomEntry)
    assert second.data == {"x": 1}


def test_entries_have_ids_of_their_own_even_if_the_agent_repeats_itself(script: Script) -> None:
    script.run("bash", {}).run("bash", {}).run("bash", {}, tool_call_id="c#2").run("bash", {}).say("a").say(
        "b", message_id="m"
    ).say("c", message_id="")
    entries = script.say("d", message_id="").entries()
    assert len({entry.id for entry in entries}) == len(entries)


def test_an_entry_keeps_its_id_while_it_grows(script: Script) -> None:
    script.turn("t")("tool:start", tool_call_id="c", name="bash", category="terminal")
    before = script.entries()[0].id
    assert script.run("bash", {"command": "ls"}).entries()[0].id == before
    session = script.fold()
    assert entry_of(session.items[0], session).id == before


@settings(max_examples=150, deadline=None)
@given(EVENTS)
def test_any_session_has_a_transcript(events: list[Event]) -> None:
    session = fold(events)
    before = dump(session)
    entries = transcript(session, limits=Limits(output=2, value=2, members=1, diff=2))
    assert len({entry.id for entry in entries}) == len(entries)
    assert len(entries) + sum(call.name == "TodoWrite" for call in session.tool_calls) >= len(session.items)
    assert json.loads(to_json(session))["itemsCount"] == len(session.items)
    assert to_markdown(session).startswith("# ")
    assert group_items(entries) or not entries
    assert dump(session) == before


# -- groups ------------------------------------------------------------------------------------------------------------


def test_calls_that_follow_each_other_are_one_group(script: Script) -> None:
    script.turn("t").run("bash", {}, tool_call_id="1").fail(tool_call_id="2").say("so").run(
        "bash", {}, tool_call_id="3"
    )
    group, text, single = group_items(script.entries())
    assert isinstance(group, ToolGroup)
    assert (group.label, group.calls, group.failed, group.running) == ("Working · 2 calls · 1 failed", 2, 1, False)
    assert isinstance(text, TextEntry)
    assert isinstance(single, ToolCallEntry)


def test_a_group_runs_while_one_of_its_calls_does(script: Script) -> None:
    script.turn("t").run("bash", {}, tool_call_id="1")
    script("tool:start", tool_call_id="2", name="bash", category="terminal")
    (group,) = group_items(script.entries())
    assert isinstance(group, ToolGroup)
    assert (group.label, group.running) == ("Working · 2 calls", True)


def test_a_decided_approval_stays_in_the_group_and_an_open_one_does_not(script: Script) -> None:
    asked = {"tool_call_id": "1", "tool_name": "bash", "tool_input": {}, "description": "", "risk_level": "low"}
    script.turn("t").run("bash", {}, tool_call_id="1")("approval:requested", request_id="r", **asked)
    script.run("bash", {}, tool_call_id="2")
    waiting, group = group_items(script.entries())
    assert isinstance(waiting, ApprovalEntry)
    assert isinstance(group, ToolGroup)
    script("approval:resolved", request_id="r", tool_call_id="1", approved=True, resolved_by="user")
    (group,) = group_items(script.entries())
    assert isinstance(group, ToolGroup)
    assert (group.calls, len(group.entries)) == (2, 3)


def test_a_call_stands_behind_the_approval_that_it_waited_for(script: Script) -> None:
    asked = {"tool_call_id": "1", "tool_name": "bash", "tool_input": {}, "description": "", "risk_level": "low"}
    script.turn("t")("tool:start", tool_call_id="1", name="bash", category="terminal").say("Meanwhile.")
    script("approval:requested", request_id="r", **asked)
    script("approval:requested", request_id="other", **{**asked, "tool_call_id": "2"})
    assert [entry.id for entry in script.entries()] == [
        "message:assistant:m",
        "approval:r",
        "tool:1",
        "approval:other",
    ]


def test_each_turn_says_how_it_ended_behind_all_that_belongs_to_it(script: Script) -> None:
    script.turn("a").say("one", message_id="1").custom("pilothouse", "turn_ended", turnId="a", stopReason="cancelled")
    script.turn("b").say("two", message_id="2").custom("pilothouse", "turn_ended", turnId="b", stopReason="end_turn")
    script.turn("c").say("three", message_id="3")
    found = [(entry.id, getattr(entry, "stop_reason", None)) for entry in script.entries()]
    assert found == [
        ("message:assistant:1", None),
        ("turn_end:a", "cancelled"),
        ("message:assistant:2", None),
        ("turn_end:b", "end_turn"),
        ("message:assistant:3", None),
    ]
    half = len(script.events) // 2
    again = fold(script.events[half:], load(dump(fold(script.events[:half]))))
    assert again.turns_ended == script.fold().turns_ended
    assert "turnsEnded" not in again.snapshot(items=False)


def test_grouping_loses_nothing(script: Script) -> None:
    for number in range(9):
        script.run("bash", {}, tool_call_id=str(number))
        if number % 3 == 2:
            script.say(str(number), message_id=str(number))
    entries = script.entries()
    flat: list[Any] = []
    for entry in group_items(entries):
        flat += entry.entries if isinstance(entry, ToolGroup) else [entry]
    assert flat == entries


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_long_command_keeps_its_end(script: Script) -> None:
    command = "echo " + "x" * 500 + "\n; rm -rf /"
    entry = transcript(fold(script.run("Bash", {"command": command}, category="terminal").events))[-1]
    assert isinstance(entry, ToolCallEntry)
    assert entry.detail.startswith("echo xx")
    assert "… 316 characters left out …" in entry.detail
    assert entry.detail.endswith("x ; rm -rf /")


@pytest.mark.parametrize("size", [10, 1599, 1601, 100_000])
def test_the_detail_of_any_command_has_both_of_its_ends(script: Script, size: int) -> None:
    command = "first " + "x" * size + " last"
    entry = transcript(fold(script.run("Bash", {"command": command}, category="terminal").events))[-1]
    assert isinstance(entry, ToolCallEntry)
    assert entry.detail.startswith("first x")
    assert entry.detail.endswith("x last")
    assert len(entry.detail) < 300


def test_the_detail_of_a_command_keeps_odd_white_space_to_be_shown(script: Script) -> None:
    entry = transcript(fold(script.run("Bash", {"command": "ls\xa0\u2028-la"}, category="terminal").events))[-1]
    assert isinstance(entry, ToolCallEntry)
    assert entry.detail == "ls\xa0\u2028-la"


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_shortened_line_accounts_for_every_character(text: str, limit: int) -> None:
    short = shorten_middle(text, limit)
    if len(text) <= limit:
        assert short == text
        return
    head, tail = text[: limit - limit // 2], text[len(text) - limit // 2 :]
    assert short.startswith(f"{head} … {len(text) - limit:,} character")
    assert short.endswith(f" left out … {tail}")


@given(st.lists(st.text(max_size=3), max_size=20), st.integers(0, 12))
def test_shortened_lines_keep_head_and_tail_and_say_how_many_are_missing(lines: list[str], limit: int) -> None:
    short = shorten_lines(lines, limit)
    omitted = len(lines) - limit
    if omitted <= 0:
        assert short == lines
        return
    assert len(short) == limit + 1
    (index,) = [at for at, line in enumerate(short) if line.startswith(f"… {omitted:,} line")]
    assert short[:index] + short[index + 1 :] == lines[:index] + lines[len(lines) - (limit - index) :]


def test_a_long_output_keeps_head_and_tail_and_says_what_is_missing(script: Script) -> None:
    output = "".join(f"line {number}\n" for number in range(10_000))
    (entry,) = script.run("bash", {"command": "x"}, output).entries(limits=Limits(output=900))
    assert entry.output.startswith("line 0\n")
    assert entry.output.endswith("line 9999\n")
    assert f"… {entry.output_omitted:,} characters in " in entry.output
    assert len(entry.output) < 1000
    (whole,) = script.entries(limits=WHOLE)
    assert (whole.output, whole.output_omitted) == (output, 0)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab\n", max_size=300), st.integers(-1, 320))
def test_a_cut_accounts_for_every_character(text: str, limit: int) -> None:
    cut = clip(text, limit)
    if len(text) <= limit:
        assert cut == (text, 0)
        return
    note = cut.text.index("… ")
    head, tail = cut.text[:note], cut.text[cut.text.index(" left out …\n") + len(" left out …\n") :]
    assert text.startswith((head, head[:-1]))
    assert text.endswith(tail)
    kept = len(text) - cut.omitted
    assert kept - len(tail) in (len(head), len(head) - 1)
    assert 0 <= kept <= max(limit, 0) + max(limit, 0) // 4


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab\n", max_size=100), st.integers(0, 120))
def test_lines_are_cut_whole(text: str, limit: int) -> None:
    kept, omitted = clip_lines(text, limit)
    assert text.startswith(kept)
    assert len(kept) <= max(limit, 0) or kept == text
    assert len(kept.splitlines()) + omitted == len(text.splitlines())


def test_long_inputs_are_cut_member_by_member_with_notes() -> None:
    deep: Any = "end"
    for _ in range(200):
        deep = [deep]
    value = {
        "text": "x" * 100,
        "list": list(range(10)),
        "deep": deep,
        "number": 10**40,
        **{str(n): n for n in range(9)},
    }
    cut = clip_values(value, Limits(value=10, members=5))
    assert "90 characters left out" in cut["text"]
    assert cut["list"] == [0, 1, 2, 3, 4, "… 5 more left out …"]
    assert cut["number"] == 10**40
    assert cut["…"] == "8 more left out"
    assert "more levels left out" in json.dumps(cut["deep"])
    assert clip_values(value["text"], WHOLE) == value["text"]


# -- as JSON -----------------------------------------------------------------------------------------------------------


def test_the_json_export_has_the_session_and_its_transcript(script: Script) -> None:
    script("session:started", agent="demo").run("bash", {"command": "ls"}, "a\ud800")
    read = json.loads(to_json(script.fold()))
    assert (read["agent"], read["seq"], "items" in read) == ("demo", 4, False)
    (entry,) = read["transcript"]
    assert (entry["type"], entry["toolCallId"], entry["output"]) == ("tool_call", "c", "a\ufffd")


def test_entries_are_ready_for_the_wire(script: Script) -> None:
    entry = msgspec.to_builtins(script.say("hi", role="user").entries()[0])
    assert entry == {
        "type": "text", "id": "message:user:m", "seq": 1, "timestamp": "2026-01-01T00:00:00Z", "role": "user",
        "text": "hi",
    }  # fmt: skip
