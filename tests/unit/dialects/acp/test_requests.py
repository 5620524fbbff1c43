"""Approvals as requests to an ACP client: Pilothouse's labels, its notes and preview before the agent's own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.acp import schema
from pilothouse.acp.lenient import dec_hook
from pilothouse.dialects.acp.requests import permission_request
from pilothouse.model.diffs import unified_diff
from pilothouse.model.events import ApprovalRequestedEvent
from pilothouse.model.records import CommandPreview, DescriptionPreview, DiffPreview, Option, RuleOffer

decode = msgspec.json.Decoder(schema.RequestPermissionRequest, dec_hook=dec_hook).decode
KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


def asked(call: Any = None, options: Any = None, **fields: Any) -> ApprovalRequestedEvent:
    """An approval, by the agent's request if there is one of its own."""
    given: dict[str, Any] = {
        "request_id": "apr_1",
        "tool_call_id": "call",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "description": "Run: make",
        "risk_level": "low",
        "options": [Option(option_id=kind, name=kind, kind=kind) for kind in KINDS],
    }
    event = ApprovalRequestedEvent(seq=3, session_id="ses", timestamp="t", **{**given, **fields})
    if call is not None:
        listed = options or [{"optionId": kind, "name": kind, "kind": kind} for kind in KINDS]
        wire = {"sessionId": "theirs", "toolCall": {"toolCallId": "call", **call}, "options": listed}
        event.source = msgspec.json.encode(wire)
    return event


def made(event: ApprovalRequestedEvent) -> dict[str, Any]:
    params = permission_request(event, "ses")
    assert params is not None
    decode(msgspec.json.encode(params))
    return params


def texts(params: dict[str, Any]) -> list[str]:
    content = params["toolCall"].get("content") or []
    return [item["content"]["text"] for item in content if item["type"] == "content"]


# -- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [
        ("allow_once", "allow ONCE", "Allow once"),
        ("allow_once", "", "Allow once"),
        ("allow_once", "Yes", "Allow once (agent: “Yes”)"),
        ("allow_always", "Yes, and auto-accept edits", "Always allow (agent: “Yes, and auto-accept edits”)"),
        ("allow_always", "Deny", "Always allow (the agent calls this “Deny”)"),
        ("reject_once", "Allow", "Deny (the agent calls this “Allow”)"),
        ("reject_always", "Never", "Always deny (agent: “Never”)"),
        ("allow_once", "Y\u202ees\u200b", "Allow once (agent: “Y⟨U+202E⟩es⟨U+200B⟩”)"),
        ("allow_once", "a ”) Deny (agent: “b\n c", 'Allow once (the agent calls this “a ") Deny (agent: "b c”)'),
    ],
)
def test_options_are_named_in_our_words(kind: str, name: str, ours: str) -> None:
    option = {"optionId": "its own", "name": name, "kind": kind, "extra": [1]}
    assert made(asked({"title": "x"}, [option]))["options"] == [{**option, "name": ours}]
    plain = asked()
    plain.options = [Option(option_id="its own", name=name, kind=kind)]
    assert made(plain)["options"] == [{"optionId": "its own", "name": ours, "kind": kind}]


def test_long_label_of_an_agent_loses_its_middle() -> None:
    option = {"optionId": "y", "name": "Sure " + "x" * 500 + " end", "kind": "allow_once"}
    (named,) = made(asked({"title": "x"}, [option]))["options"]
    assert named["name"].startswith("Allow once (agent: “Sure xx")
    assert "409 characters left out" in named["name"]
    assert named["name"].endswith("xx end”)")


def test_critical_request_offers_denying_first_and_no_always() -> None:
    params = made(asked({"title": "x"}, risk_level="critical", risk_reasons=["It deletes the disk."]))
    assert [option["kind"] for option in params["options"]] == ["reject_once", "reject_always", "allow_once"]
    assert texts(params)[0] == "Critical risk: It deletes the disk."


def test_critical_request_with_nothing_left_to_offer_is_not_sent() -> None:
    option = {"optionId": "y", "name": "Yes", "kind": "allow_always"}
    event = asked({"title": "x"}, [option], risk_level="critical")
    event.options = [Option(option_id="y", name="Yes", kind="allow_always")]
    assert permission_request(event, "ses") is None


def test_options_that_share_an_id_and_have_opposite_effects_are_not_offered() -> None:
    options = [
        {"optionId": "x", "name": "Allow", "kind": "allow_once"},
        {"optionId": "x", "name": "Deny", "kind": "reject_once"},
        {"optionId": "y", "name": "Deny", "kind": "reject_once"},
        {"optionId": "y", "name": "Never", "kind": "reject_always"},
    ]
    assert [option["optionId"] for option in made(asked({"title": "x"}, options))["options"]] == ["y", "y"]
    event = asked({"title": "x"}, options[:2])
    event.options = [Option(option_id="x", name="x", kind=kind) for kind in ("allow_once", "reject_once")]
    assert permission_request(event, "ses") is None


# -- the tool call ------------------------------------------------------------------------------------------------


def test_title_hides_no_character() -> None:
    assert made(asked({"title": "ls \u202e\x1b[8m"}))["toolCall"]["title"] == "ls ⟨U+202E⟩⟨U+001B⟩[8m"
    assert made(asked(description="ls\u200b"))["toolCall"]["title"] == "ls⟨U+200B⟩"


def test_notes_come_before_the_agents_own_content() -> None:
    own = [{"type": "content", "content": {"type": "text", "text": "my words"}}]
    notes = ["The agent did not ask.", "Denied before in this turn.\u202e"]
    params = made(asked({"title": "x", "content": own}, notes=notes, origin="hub"))
    assert texts(params) == ["The agent did not ask.\n\nDenied before in this turn.⟨U+202E⟩", "my words"]
    assert params["toolCall"]["_meta"]["pilothouse"]["notes"] == notes
    assert params["toolCall"]["_meta"]["pilothouse"]["origin"] == "hub"


def test_note_that_quotes_the_agent_stays_one_line() -> None:
    params = made(asked({"title": "x"}, notes=["The agent adds: please\n\nApproved by Pilothouse."]))
    assert texts(params) == ["The agent adds: please Approved by Pilothouse."]


def test_reach_of_always_is_shown_where_it_is_offered() -> None:
    offer = RuleOffer(offer_id="exact", text="Run exactly `make`", subject="commands", pattern="make")
    told = "“Always” stores a rule for this session: Run exactly `make`"
    assert texts(made(asked({"title": "x"}, rule_offers=[offer]))) == [told]
    refusal = "No rule can cover this request, because it runs several commands."
    told = "“Always” stores no rule, because it runs several commands."
    assert texts(made(asked({"title": "x"}, rule_refusal=refusal))) == [told]
    once = [Option(option_id="y", name="Yes", kind="allow_once")]
    for fields in ({"options": once}, {"chooses_mode": True}):
        event = asked({"title": "x"}, rule_offers=[offer])
        for name, value in fields.items():
            setattr(event, name, value)
        assert "content" not in made(event)["toolCall"]


def test_call_without_content_gets_the_preview_with_the_notes() -> None:
    """Content that is sent replaces what the client shows of the call."""
    params = made(asked({"title": "make"}, notes=["A note."], preview=CommandPreview(command="make", working_dir="")))
    assert texts(params) == ["A note.", "```sh\nmake\n```"]


@pytest.mark.parametrize("title", ["make", "`make`"])
def test_command_that_the_title_shows_is_not_repeated(title: str) -> None:
    params = made(asked({"title": title}, preview=CommandPreview(command="make", working_dir="")))
    assert "content" not in params["toolCall"]


@pytest.mark.parametrize("title", ["Remake the world", "make install", "echo hi; make", "Run `make` now", None])
def test_command_that_the_title_does_not_show_is_added(title: str | None) -> None:
    params = made(asked({"title": title}, preview=CommandPreview(command="make", working_dir="")))
    assert texts(params) == ["```sh\nmake\n```"]


HIDDEN_BY_MARKDOWN = [
    "ls '<!--' ; rm -rf victim # '-->'",
    "ls [a](http://x/;rm -rf victim)",
    "rm -rf *a* ~~b~~",
    "ls &nbsp;",
    "echo `id`",
    "ls\nrm -rf victim",
    "ls " + "a " * 100 + "; rm -rf victim",
]


@pytest.mark.parametrize("command", HIDDEN_BY_MARKDOWN)
@pytest.mark.parametrize("place", ["title", "content"])
def test_command_that_an_editor_may_not_show_as_it_is_gets_a_fence(command: str, place: str) -> None:
    own = [{"type": "content", "content": {"type": "text", "text": command}}]
    call = {"title": command} if place == "title" else {"title": "x", "content": own}
    params = made(asked(call, tool_input={"command": command}, preview=CommandPreview(command=command, working_dir="")))
    assert texts(params)[0] == f"```sh\n{command}\n```"


def test_command_in_backticks_is_not_repeated() -> None:
    command = "rm -rf *a* '<!--' # -->"
    params = made(asked({"title": f"`{command}`"}, preview=CommandPreview(command=command, working_dir="")))
    assert "content" not in params["toolCall"]


def test_command_that_the_content_shows_is_not_repeated() -> None:
    own = [{"type": "content", "content": {"type": "text", "text": "```sh\nmake\n```"}}]
    params = made(asked({"title": "x", "content": own}, preview=CommandPreview(command="make", working_dir="")))
    assert params["toolCall"]["content"] == own


def test_preview_cannot_leave_its_fence_or_hide_a_character() -> None:
    command = "echo '\n```\nAll is well.\n```sh\u202e'"
    params = made(asked({"title": "x"}, preview=CommandPreview(command=command, working_dir="")))
    (text,) = texts(params)
    assert text.startswith("````sh\n")
    assert text.endswith("\n````")
    assert "⟨U+202E⟩" in text


def test_correct_diff_of_the_agent_is_not_repeated() -> None:
    own = [{"type": "diff", "path": "/w/a", "oldText": "one\ntwo\n", "newText": "one\n2\n"}]
    true = unified_diff("zero\none\ntwo\n", "zero\none\n2\n", "a").text
    given = {"file_path": "/w/a", "old_string": "two", "new_string": "2"}
    preview = DiffPreview(path="/w/a", diff=true)
    params = made(asked({"title": "x", "content": own}, tool_input=given, preview=preview))
    assert params["toolCall"]["content"] == own


def test_diff_of_the_hub_comes_first_where_the_agents_differs() -> None:
    own = [{"type": "diff", "path": "/w/a", "oldText": "harmless\n", "newText": "new\n"}]
    true = unified_diff("secret\n", "new\n", "a").text
    params = made(asked({"title": "x", "content": own}, preview=DiffPreview(path="/w/a", diff=true)))
    first, second = params["toolCall"]["content"]
    assert "-secret" in first["content"]["text"]
    assert first["content"]["text"].startswith("```diff\n")
    assert second == own[0]


def test_description_is_added_where_the_agent_shows_something_else() -> None:
    shown: dict[str, Any] = {"preview": DescriptionPreview(text="Reads /etc/passwd"), "tool_input": {}}
    assert texts(made(asked({"title": "x"}, **shown))) == ["Reads /etc/passwd"]
    own = [{"type": "content", "content": {"type": "text", "text": "Reads /etc/passwd"}}]
    assert texts(made(asked({"title": "x", "content": own}, **shown))) == ["Reads /etc/passwd"]


HIDING_PLACES = {
    "a comment": "I only list files. <!--\nmake\n-->",
    "many lines": "\n".join([*map(str, range(200)), "make", *map(str, range(200))]),
}


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_command_among_other_text_is_repeated_in_the_preview(place: str) -> None:
    own = [{"type": "content", "content": {"type": "text", "text": HIDING_PLACES[place]}}]
    params = made(asked({"title": "List", "content": own}, preview=CommandPreview(command="make", working_dir="")))
    assert texts(params) == ["```sh\nmake\n```", HIDING_PLACES[place]]


def test_directory_and_settings_of_a_command_are_shown() -> None:
    given = {"command": "make", "cwd": "/prod", "host": "db1", "timeout": 5}
    preview = CommandPreview(command="make", working_dir="/prod")
    (text,) = texts(made(asked({"title": "make"}, tool_input=given, preview=preview)))
    assert text.startswith("```sh\nmake\n```\n\nDirectory: /prod")
    assert '"host": "db1"' in text
    assert "timeout" not in text


def test_arguments_of_other_tools_are_shown() -> None:
    given = {"to": "mallory\u202e", "amount": 5}
    call = {"title": "Send 5 to alice (not to mallory)"}
    event = asked(call, tool_name="mcp__bank__pay", tool_input=given, preview=DescriptionPreview(text="Pay"))
    (text,) = texts(made(event))
    assert '"to": "mallory⟨U+202E⟩"' in text


EDIT = {"file_path": "/w/a", "old_string": "two", "new_string": "2"}


def own_diff(path: str, old: str, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def test_file_that_the_agents_diffs_do_not_name_is_shown() -> None:
    diff = unified_diff("two\n", "2\n", "a").text + "--- a/b\n+++ b/b\n"
    own = [own_diff("/w/a", "two\n", "2\n")]
    event = asked({"title": "x", "content": own}, tool_input=EDIT, preview=DiffPreview(path="/w/a", diff=diff))
    (text,) = texts(made(event))
    assert "+++ b/b" in text
    assert "The change of `b` is not shown." in text


def test_same_change_of_another_file_is_shown() -> None:
    own = [own_diff("/w/sub/a", "two\n", "2\n")]
    preview = DiffPreview(path="/w/a", diff=unified_diff("two\n", "2\n", "a").text)
    assert texts(made(asked({"title": "x", "content": own}, tool_input=EDIT, preview=preview)))


def test_changes_of_several_files_are_not_repeated_unless_they_are_swapped() -> None:
    own = [own_diff("/w/a", "1\n", "2\n"), own_diff("/w/b", "3\n", "4\n")]
    for paths, is_repeated in (("ab", False), ("ba", True)):
        diff = unified_diff("1\n", "2\n", paths[0]).text + unified_diff("3\n", "4\n", paths[1]).text
        preview = DiffPreview(path=f"/w/{paths[0]}", diff=diff)
        params = made(asked({"title": "x", "content": own}, tool_input={}, preview=preview))
        assert bool(texts(params)) is is_repeated


@pytest.mark.parametrize("old", ["-- drop table\nx\n", "++ i;\nx\n"])
def test_lines_that_look_like_headers_are_compared(old: str) -> None:
    preview = DiffPreview(path="/w/a", diff=unified_diff(old, "x\n", "a").text)
    own = [own_diff("/w/a", "x\n", "x\n"), own_diff("/w/a", old, "x\n")]
    for content, is_repeated in ((own[:1], True), (own[1:], False)):
        params = made(asked({"title": "x", "content": content}, tool_input=EDIT, preview=preview))
        assert bool(texts(params)) is is_repeated


@pytest.mark.parametrize("more", [{"output_path": "/etc/passwd"}, {"insert_text": "evil"}, {"path": "../a"}])
def test_members_that_a_diff_does_not_show_are_shown(more: dict[str, Any]) -> None:
    own = [own_diff("/w/a", "two\n", "2\n")]
    preview = DiffPreview(path="/w/a", diff=unified_diff("two\n", "2\n", "a").text)
    (text,) = texts(made(asked({"title": "x", "content": own}, tool_input={**EDIT, **more}, preview=preview)))
    assert "Arguments:" in text
    assert next(iter(more)) in text


def test_plan_that_is_only_in_the_arguments_is_shown() -> None:
    given = {"plan": "1. delete it"}
    event = asked(
        {"title": "Ready?"}, tool_input=given, chooses_mode=True, preview=DescriptionPreview(text="ExitPlanMode")
    )
    assert "1. delete it" in texts(made(event))[0]
    shown = [{"type": "content", "content": {"type": "text", "text": "1. delete it"}}]
    event = asked(
        {"title": "Ready?", "content": shown}, tool_input=given, preview=DescriptionPreview(text="1. delete it")
    )
    assert texts(made(event)) == ["1. delete it"]


def test_arguments_that_are_not_the_questions_are_shown() -> None:
    given = {"questions": [{"question": "Which?", "options": ["A"], "then": "rm -rf x"}]}
    event = asked({"title": "Ask"}, tool_input=given, question_ids=["q"], preview=DescriptionPreview(text="Ask"))
    (text,) = texts(made(event))
    assert "rm -rf x" in text
    assert "Which?" not in text


HIDDEN = "The agent's text contains hidden characters."


@pytest.mark.parametrize("odd", ["\u202e", "\u2066", "\u200b", "\U000e0041", "\x1b"])
def test_hidden_characters_of_the_agent_are_shown_and_noted(odd: str) -> None:
    command, code = f"make {odd}x", f"make ⟨U+{ord(odd):04X}⟩x"
    preview = CommandPreview(command=command, working_dir="")
    given = {"command": command}
    own = [{"type": "content", "content": {"type": "text", "text": command}}]
    for call in ({"title": command}, {"title": "x", "content": own}):
        assert texts(made(asked(call, tool_input=given, preview=preview)))[:2] == [HIDDEN, f"```sh\n{code}\n```"]
    diff = DiffPreview(path="/w/a", diff=unified_diff("two\n", f"2{odd}\n", "a").text)
    content = [own_diff("/w/a", "two\n", f"2{odd}\n")]
    note, text = texts(made(asked({"title": "x", "content": content}, tool_input=EDIT, preview=diff)))
    assert note == HIDDEN
    assert f"+2⟨U+{ord(odd):04X}⟩" in text


def test_line_ends_of_windows_are_not_hidden_characters() -> None:
    own = [own_diff("/w/a", "one\r\n", "two\r\n")]
    preview = DiffPreview(path="/w/a", diff=unified_diff("one\n", "two\n", "a").text)
    params = made(asked({"title": "x", "content": own}, tool_input=EDIT, preview=preview))
    assert HIDDEN not in texts(params)


def test_several_reasons_have_a_line_each() -> None:
    params = made(asked({"title": "x"}, risk_level="high", risk_reasons=["runs `a`", "deletes\nit"]))
    assert texts(params)[0] == "High risk:\n- runs `a`\n- deletes it"


def test_reasons_of_a_high_risk_are_shown() -> None:
    params = made(asked({"title": "x"}, risk_level="high", risk_reasons=["a.txt does not hold the text."]))
    assert texts(params)[0] == "High risk: a.txt does not hold the text."


def test_approval_with_questions_stays_a_permission_request() -> None:
    assert made(asked({"title": "x"}, question_ids=["call:0"]))["options"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(content=JSON | st.lists(st.fixed_dictionaries({"type": st.sampled_from(["content", "diff"]), "content": JSON})))
def test_any_content_of_an_agent_gives_a_request_that_fits_the_schema(content: Any) -> None:
    event = asked({"title": "x", "content": content}, notes=["A note."], preview=DescriptionPreview(text="does it"))
    params = permission_request(event, "ses")
    if params is not None:
        decode(msgspec.json.encode(params))
        assert "A note." in texts(params)[0]
