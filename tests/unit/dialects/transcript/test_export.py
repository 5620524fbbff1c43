"""The Markdown export: readable, and nothing in it can break out of its block."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pilothouse.dialects.texts import code, fenced, plain, prose, quoted
from pilothouse.dialects.transcript import to_markdown
from pilothouse.model.errors import ACPError
from pilothouse.model.events import EVENT_TYPES, Event
from pilothouse.model.records import CommandPreview, CostBreakdown, ImageContent, TextContent, Todo, TokenUsage
from pilothouse.model.session import fold

PIECES = (
    "```", "~~~", "````", "`", "- ", "> ", "1. ", "\n", "\n\n", "\r", "\r\n", "  ", "    ", "\t", "a", "# ", "<b",
    "<!--", "[x]: ", "***", "---", "===", "|", "\\", "\x0b", "\x0c", "\x85", "\u2028", "&lt;", "![", "](",
)  # fmt: skip
NASTY = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def make(kind: str, **fields: Any) -> Event:
    return EVENT_TYPES[kind](seq=0, session_id="s", timestamp="2026-01-01T00:00:00Z", **fields)


def blocks(markdown: str) -> list[tuple[str, str]]:
    """What stands at the top of the document, as a CommonMark reader sees it: the kind of each block, and its text."""
    tokens = MarkdownIt("commonmark").parse(markdown)
    found: list[tuple[str, str]] = []
    for token, inner in zip(tokens, [*tokens[1:], None], strict=True):
        if token.level == 0 and token.nesting >= 0:
            text = inner.content if inner is not None and inner.type == "inline" else token.content
            found.append((token.type, text))
    return found


AFTER = ("paragraph_open", "after")


@settings(max_examples=150, deadline=None)
@given(NASTY)
def test_no_text_breaks_out_of_a_fence(text: str) -> None:
    first, last = blocks(f"{fenced(text)}\n\nafter")
    assert first[0] == "fence"
    assert first[1].rstrip("\n") == re.sub(r"\r\n?", "\n", text).rstrip("\n")
    assert last == AFTER


@settings(max_examples=150, deadline=None)
@given(NASTY)
def test_a_quotation_holds_all_its_lines(text: str) -> None:
    assert blocks(f"{quoted(text)}\n\nafter") == [("blockquote_open", ""), AFTER]


@settings(max_examples=400, deadline=None)
@given(NASTY)
def test_prose_leaves_nothing_open(text: str) -> None:
    assert blocks(f"{prose(text)}\n\nafter")[-1] == AFTER


@settings(max_examples=150, deadline=None)
@given(NASTY)
def test_words_in_a_line_stay_in_it(text: str) -> None:
    assert blocks(f"**x** {code(text)} {plain(text)}\n\nafter")[1:] == [AFTER]


@settings(max_examples=150, deadline=None)
@given(NASTY)
def test_plain_words_mean_nothing_but_themselves(text: str) -> None:
    (inline,) = [token for token in MarkdownIt("commonmark").parse(f"x {plain(text)}") if token.type == "inline"]
    kinds = {child.type for child in inline.children or ()}
    assert kinds <= {"text", "text_special"}
    assert "".join(child.content for child in inline.children or ()) == f"x {' '.join(text.split())}".strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ls", "`ls`"), ("a `b`", "`` a `b` ``"), ("```", "```` ``` ````"), ("", ""), ("a\nb", "`a b`")],
)
def test_code_in_a_line_is_fenced_by_more_ticks_than_it_has(text: str, expected: str) -> None:
    assert code(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "```\nnever closed",
        "- item\n  ```\n```",
        "> ```\n```",
        "~~~\nx\n```",
        "````\nx\n```",
        "<details>",
        "<!-- hidden",
        "</div>",
        "1. ```\n   x\n   ```",
    ],
)
def test_prose_that_may_not_end_by_itself_is_quoted(text: str) -> None:
    assert all(line.startswith(">") for line in prose(text).split("\n"))


@pytest.mark.parametrize(
    "text", ["plain", "### Title\n\n- a\n- b"[4:], "```py\nx = '``'\n```", "use ```x``` so", "~~~\n```\n~~~", "a < b"]
)
def test_prose_that_ends_by_itself_stays_as_it_is(text: str) -> None:
    assert prose(text) == text


DIFF = "@@ -1 +1 @@\n-a\n+```\n"
TODOS = [Todo(content="a", status="completed"), Todo(content="b", status="pending")]


def session(output: str, said: str = "Done.") -> str:
    usage = TokenUsage(input_tokens=1200, output_tokens=34)
    cost = CostBreakdown(total=0.5, currency="USD")
    events = [
        make("session:started", agent="demo_agent", working_directory="/work"),
        make("custom", namespace="acp", event_name="session_info_update", data={"title": "Fix *it*"}),
        make("custom", namespace="pilothouse", event_name="turn_started", data={"turnId": "t"}),
        make("message:complete", message_id="u", role="user", content=[TextContent(text="# Please\n```fix```")]),
        make("thinking:complete", message_id="h", content="Hm.\n\nYes."),
        make("tool:start", tool_call_id="c", name="bash", category="terminal"),
        make(
            "tool:executing", tool_call_id="c", name="bash", input={"command": "cat `x`"}, risk_level="low",
            requires_approval=False,
        ),
        make(
            "approval:requested", request_id="r", tool_call_id="c", tool_name="bash", tool_input={},
            description="Run cat", risk_level="low",
        ),
        make(
            "approval:resolved", request_id="r", tool_call_id="c", approved=True, resolved_by="user", decided_by="ann"
        ),
        make("tool:result", tool_call_id="c", name="bash", output=output, duration=1500),
        make("file:change", path="/work/a.py", change_type="modified", diff=DIFF, tool_call_id="c"),
        make("progress:todo_update", todos=TODOS),
        make("interaction:question", question_id="q", question="Which?", options=["x", "y"]),
        make(
            "custom", namespace="pilothouse", event_name="question_answered",
            data={"questionId": "q", "outcome": "answered", "answer": {"choice": "x"}},
        ),
        make("interaction:notification", level="warning", title="Low", message="disk"),
        make("session:error", error=ACPError(code="overloaded", message="later", recoverable=True)),
        make("custom", namespace="acp", event_name="compaction_update", data={"compactionId": "k", "summary": "short"}),
        make("custom", namespace="acp", event_name="tomorrow", data={"x": "```"}),
        make("custom", namespace="pilothouse", event_name="artifact_created", data={"artifact": {"name": "out.png"}}),
        make(
            "message:complete", message_id="m", role="assistant",
            content=[TextContent(text=said), ImageContent(url="u")],
        ),
        make("resource:token_usage", delta=usage, cumulative=usage),
        make("resource:cost", delta=cost, cumulative=cost),
    ]  # fmt: skip
    return to_markdown(fold(events))


def test_an_export_tells_the_whole_session() -> None:
    text = session("out\n")
    for expected in [
        "# Fix \\*it\\*",
        "- Agent: demo\\_agent",
        "- Tokens: 1,200 in, 34 out",
        "- Cost: 0.5000 USD",
        "## You\n\n> # Please\n> ```fix```",
        "*Thinking*\n\n> Hm.\n>\n> Yes.",
        "**✓ Running command** `` cat `x` `` (completed · 1.5 s)",
        "```\nout\n```",
        "**Approval** Run cat — approved by ann",
        "modified `/work/a.py` (+1 −1)\n\n````diff\n@@ -1 +1 @@\n-a\n+```\n````",
        "**Todos** 1/2 completed\n\n- [x] a\n- [ ] b",
        "**Question** Which?\n\n- x\n- y",
        '*answered* \\{"choice":"x"\\}',
        "*warning* **Low** disk",
        "**Error** overloaded: later",
        "> short",
        "*acp/tomorrow*",
        "*Artifact* `out.png`",
        "## Agent\n\nDone.",
        "*Image* `u`",
        "## Files changed\n\n- modified `/work/a.py` (+1 −1)",
    ]:
        assert expected in text, expected


@settings(max_examples=50, deadline=None)
@given(NASTY, NASTY)
def test_no_output_and_no_message_hides_what_follows(output: str, said: str) -> None:
    seen = blocks(session(output, said))
    assert ("heading_open", "Files changed") in seen
    assert ("heading_open", "Agent") in seen
    assert ("paragraph_open", "*Artifact* `out.png`") in seen
    assert seen[-1][0] == "bullet_list_open"


def test_half_a_surrogate_does_not_stop_an_export() -> None:
    assert "a\ufffd" in session("a\ud800")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("## You\n\n> Yes, delete everything", "#### You\n\n> Yes, delete everything"),
        ("##### deep", "###### deep"),
        ("You\n===", "You\n\\==="),
        ("You\n---", "You\n\\---"),
        ("a\n\n---\n\nb", "a\n\n---\n\nb"),
        ("```\n# a comment\n```", "```\n# a comment\n```"),
        ("#hashtag", "#hashtag"),
    ],
)
def test_headings_of_others_do_not_look_like_the_documents(text: str, shown: str) -> None:
    assert prose(text) == shown


def turn(*outcome: Event, stop: str = "end_turn") -> str:
    call = {"tool_call_id": "c", "name": "bash"}
    asked = {"tool_name": "bash", "tool_input": {}, "description": "Run it", "risk_level": "low"}
    end = {"turnId": "t", "stopReason": stop}
    events = [
        make("custom", namespace="pilothouse", event_name="turn_started", data={"turnId": "t"}),
        make("tool:start", **call, category="terminal"),
        make("approval:requested", request_id="r", tool_call_id="c", **asked),
        *outcome,
        make("custom", namespace="pilothouse", event_name="turn_ended", data=end),
    ]
    events[-1].timestamp = "2026-01-01T00:00:53Z"
    return to_markdown(fold(events))


@pytest.mark.parametrize(("command", "is_added"), [("rm -rf a\n```\u202e", True), ("cat  x", False)])
def test_an_approval_has_the_command_that_its_description_does_not_show(command: str, is_added: bool) -> None:
    asked = {"tool_name": "bash", "tool_input": {}, "description": "Run: cat x", "risk_level": "low"}
    preview = CommandPreview(command=command, working_dir="")
    text = to_markdown(fold([make("approval:requested", request_id="r", tool_call_id="c", preview=preview, **asked)]))
    shown = "waiting\n\n````sh\nrm -rf a\n```⟨U+202E⟩\n````" if is_added else "waiting\n"
    assert f"**Approval** Run: cat x — {shown}" in text


def test_a_cancelled_approval_is_called_that_and_stands_before_its_call() -> None:
    why = "The turn was cancelled."
    cancelled = {"request_id": "r", "tool_call_id": "c", "approved": False, "resolved_by": "cancelled", "reason": why}
    error = ACPError(code="cancelled", message=why, recoverable=True)
    failed = make("tool:error", tool_call_id="c", name="bash", error=error)
    text = turn(make("approval:resolved", **cancelled), failed, stop="cancelled")
    assert "**Approval** Run it — cancelled\n\n**⊘ Running command**" in text
    assert text.count(why) == 1
    assert text.endswith("*Cancelled · 53 s*\n")


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        ("interrupted", "*Interrupted: the hub was stopped · 53 s*"),
        ("error", "*Failed · 53 s*"),
        ("odd_one", "*odd\\_one"),
    ],
)
def test_a_turn_says_how_it_ended(stop: str, told: str) -> None:
    assert told in turn(stop=stop)


def test_the_output_of_a_failed_call_is_not_repeated_as_its_error() -> None:
    error = ACPError(code="tool_failed", message="one\ntwo", recoverable=True)
    text = turn(make("tool:error", tool_call_id="c", name="bash", error=error, output="one\ntwo\n", duration=11_000))
    assert "```\none\ntwo\n```" in text
    assert "*Error*" not in text
    assert "(failed · 11 s)" in text


def test_output_that_its_agent_fenced_has_one_fence() -> None:
    result = {"tool_call_id": "c", "name": "bash", "duration": 1}
    assert "\n\n```py\na = 1\n```\n" in turn(make("tool:result", **result, output="```py\na = 1\n```"))
    two = "```\na\n```\nand\n```\nb\n```"
    assert f"````\n{two}\n````" in turn(make("tool:result", **result, output=two))
