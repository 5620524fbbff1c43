"""The prompt of an approval: Pilothouse's labels, rules confirmed by their exact reach, nothing hidden."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from pilothouse.model.events import ApprovalRequestedEvent, UserQuestionEvent
from pilothouse.model.records import CommandPreview, DescriptionPreview, DiffPreview, Option, RuleOffer
from pilothouse.terminal.asking import Verdict, ask_approval, ask_question, describe_option
from pilothouse.terminal.screen import Screen

ONCE = Option(option_id="once", name="Yes", kind="allow_once")
ALWAYS = Option(option_id="always", name="Yes, always", kind="allow_always")
DENY = Option(option_id="no", name="No", kind="reject_once")
EXACT = RuleOffer(offer_id="exact", text="exactly `make test` in /work", subject="commands", pattern="make test")
ANY = RuleOffer(offer_id="any_arguments", text="`query` with any arguments", subject="tools", pattern="query")


class Lines:
    """A keyboard on which these lines are typed; None is Ctrl-D."""

    def __init__(self, *lines: str | None) -> None:
        self._lines = list(lines)
        self.forgotten = 0

    async def line(self, indent: int = 0) -> str | None:
        assert self._lines, "more was asked than is answered"
        return self._lines.pop(0)

    def forget(self) -> None:
        self.forgotten += 1

    @property
    def is_used_up(self) -> bool:
        return not self._lines


def request(**fields: Any) -> ApprovalRequestedEvent:
    given: dict[str, Any] = {
        "request_id": "apr_1",
        "tool_call_id": "call",
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "description": "Run: make test",
        "risk_level": "medium",
        "preview": CommandPreview(command="make test", working_dir=""),
        "options": [ONCE, ALWAYS, DENY],
        "rule_offers": [EXACT],
    }
    return ApprovalRequestedEvent(seq=1, session_id="s", timestamp="", **{**given, **fields})


async def decide(event: ApprovalRequestedEvent, *lines: str | None, questions: Any = ()) -> tuple[Verdict, str]:
    """The decision of what is typed, and all that was shown."""
    out = io.StringIO()
    screen = Screen(Console(file=out, width=200), live=False)
    keyboard: Any = Lines(*lines)
    verdict = await ask_approval(screen, keyboard, event, questions)
    assert keyboard.is_used_up
    return verdict, out.getvalue()


# -- the prompt ---------------------------------------------------------------------------------------------------


async def test_prompt_offers_our_words() -> None:
    verdict, shown = await decide(request(), "a")
    assert verdict == Verdict(approved=True)
    assert "[a]llow once  [d]eny  [A]lways in this session  [P] in this project  [?]  ›" in shown
    assert "Yes, always" not in shown


async def test_prompt_without_a_rule_to_offer_does_not_offer_always() -> None:
    _, shown = await decide(request(rule_offers=[]), "d")
    assert "[a]llow once  [d]eny  [?]  ›" in shown


@pytest.mark.parametrize("line", ["", "  ", "maybe", "4", "y es"])
async def test_unclear_line_decides_nothing(line: str) -> None:
    verdict, shown = await decide(request(), line, "d too early")
    assert verdict == Verdict(approved=False, reason="too early")
    assert shown.count("[d]eny") == 2


async def test_end_of_input_denies() -> None:
    verdict, _ = await decide(request(), None)
    assert not verdict.approved


async def test_notes_of_the_hub_stand_above_the_request() -> None:
    _, shown = await decide(request(notes=["Denied before in this turn."], origin="hub"), "d")
    lines = shown.splitlines()
    assert lines[0] == "! Denied before in this turn."
    assert lines[1].startswith("? ")


async def test_note_that_quotes_the_agent_cannot_look_like_another_note() -> None:
    _, shown = await decide(request(notes=["The agent adds: x\n! All is well."]), "d")
    assert "\n  │ ! All is well.\n" in shown


async def test_request_of_the_hub_says_that_the_agent_did_not_ask() -> None:
    _, shown = await decide(request(origin="hub"), "d")
    assert shown.startswith("! The agent did not request approval.")


async def test_whole_request_is_shown_with_every_hidden_character() -> None:
    command = "echo " + "x" * 5000 + "\n" * 100 + "rm -rf \u202e/tmp\x1b[8m"
    preview = CommandPreview(command=command, working_dir="/else\u200bwhere")
    _, shown = await decide(request(preview=preview, description="List \u202efiles"), "d")
    assert "x" * 5000 in shown
    assert "rm -rf ⟨U+202E⟩/tmp⟨U+001B⟩[8m" in shown
    assert "in /else⟨U+200B⟩where" in shown
    assert "List ⟨U+202E⟩files" in shown


async def test_command_is_shown_even_if_the_title_contains_it() -> None:
    preview = CommandPreview(command="ls", working_dir="")
    _, shown = await decide(request(preview=preview, description="Show details"), "d")
    assert "\n  $ ls\n" in shown


async def test_arguments_of_other_tools_are_shown_whole() -> None:
    given = {"query": "drop table users", "limit": 5, "where": {"path": "/etc"}, "city": "Ulm and more"}
    preview = DescriptionPreview(text="Looks up Ulm and more")
    _, shown = await decide(request(tool_name="mcp__db__query", tool_input=given, preview=preview), "d")
    assert "  Arguments:" in shown.splitlines()
    for line in ("query: drop table users", "limit: 5", 'where: {"path": "/etc"}', "city: Ulm and more"):
        assert f"    {line}" in shown.splitlines()


async def test_all_reasons_for_the_risk_are_shown() -> None:
    reasons = [f"reason {number}" for number in range(9)]
    _, shown = await decide(request(risk_reasons=reasons), "d")
    assert "reason 8" in shown


async def test_explanation_marks_labels_of_the_agent_as_the_agents() -> None:
    options = [ONCE, Option(option_id="x", name="De\u200bny", kind="allow_once"), DENY]
    options.append(Option(option_id="y", name="Deny", kind="allow_always"))
    _, shown = await decide(request(options=options, risk_reasons=["a reason"]), "?", "d")
    assert "Allow once. Agent's option: Yes" in shown
    assert "Allow once. The agent labels this “De⟨U+200B⟩ny”, but it allows the request." in shown
    assert "Always allow. The agent labels this “Deny”, but it allows the request." in shown
    assert "always: exactly `make test` in /work" in shown
    assert "Tool: Bash. Arguments: command" in shown


def test_misleading_option_that_denies_is_flagged() -> None:
    option = Option(option_id="n", name="Allow", kind="reject_once")
    assert describe_option(option) == "Deny. The agent labels this “Allow”, but it denies the request."
    same = Option(option_id="x", name="allow once", kind="allow_once")
    assert describe_option(same) == "Allow once"


# -- always -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "scope"), [("A", "session"), ("always", "session"), ("P", "project"), ("2", "session")]
)
async def test_always_is_confirmed_by_its_reach(line: str, scope: Any) -> None:
    verdict, shown = await decide(request(), line, "y")
    assert verdict == Verdict(approved=True, remember=scope, rule="exact")
    assert shown.index("exactly `make test` in /work") < shown.index("[y]es, store it  [n]o, go back  ›")


async def test_reach_of_a_rule_hides_no_character() -> None:
    offer = RuleOffer(offer_id="exact", text="exactly `rm \u202ex`", subject="commands", pattern="x")
    _, shown = await decide(request(rule_offers=[offer]), "A", "n", "d")
    assert "exactly `rm ⟨U+202E⟩x`" in shown


@pytest.mark.parametrize("back", ["n", "no", None])
async def test_always_that_is_not_confirmed_decides_nothing(back: str | None) -> None:
    verdict, shown = await decide(request(), "A", "", "what", back, "d")
    assert verdict == Verdict(approved=False)
    assert shown.count("[d]eny") == 2


@pytest.mark.parametrize(("choice", "offer_id"), [("1", "exact"), ("2", "any_arguments")])
async def test_one_of_two_rules_is_chosen(choice: str, offer_id: Any) -> None:
    verdict, shown = await decide(request(rule_offers=[EXACT, ANY]), "P", "y", "3", choice)
    assert verdict == Verdict(approved=True, remember="project", rule=offer_id)
    assert "1  exactly `make test` in /work" in shown
    assert "2  `query` with any arguments" in shown


@pytest.mark.parametrize("line", ["A", "P", "2"])
async def test_always_without_an_offer_says_why_and_goes_back(line: str) -> None:
    verdict, shown = await decide(request(rule_offers=[], rule_refusal="A chain of commands has no rule."), line, "a")
    assert verdict == Verdict(approved=True)
    assert "A chain of commands has no rule." in shown


async def test_agents_always_deny_is_confirmed_by_its_reach_too() -> None:
    never = Option(option_id="never", name="Never", kind="reject_always")
    verdict, shown = await decide(request(options=[never]), "1 not here", "y")
    assert verdict == Verdict(approved=False, remember="session", rule="exact", reason="not here")
    assert "Always deny, in this session:" in shown


async def test_keys_typed_before_the_reach_was_shown_do_not_confirm_it() -> None:
    screen = Screen(Console(file=io.StringIO(), width=200), live=False)
    keyboard: Any = Lines("A", "y")
    await ask_approval(screen, keyboard, request())
    assert keyboard.forgotten == 2


# -- critical requests --------------------------------------------------------------------------------------------


async def test_critical_request_puts_deny_first_and_offers_no_always() -> None:
    verdict, shown = await decide(request(risk_level="critical"), "", "a")
    assert verdict == Verdict(approved=True)
    assert "[d]eny  [a]llow once  [?]  ›" in shown
    assert "[A]lways" not in shown


@pytest.mark.parametrize("line", ["A", "P", "2"])
@pytest.mark.parametrize("tool", ["Bash", "ExitPlanMode"])
async def test_critical_request_refuses_always(line: str, tool: str) -> None:
    verdict, shown = await decide(request(risk_level="critical", tool_name=tool), line, "d")
    assert verdict == Verdict(approved=False)
    assert "it can only be allowed once" in shown


async def test_critical_request_does_not_list_options_that_allow_for_good() -> None:
    _, shown = await decide(request(risk_level="critical"), "?", "d")
    assert "Agent's option: Yes" in shown
    assert "Yes, always" not in shown
    assert "the exact rule is shown first" not in shown


# -- modes --------------------------------------------------------------------------------------------------------


async def test_options_that_choose_a_mode_are_listed_and_sent_as_they_are() -> None:
    verdict, shown = await decide(request(tool_name="ExitPlanMode", chooses_mode=True, rule_offers=[]), "2")
    assert verdict == Verdict(approved=True, option_id="always")
    assert "Always allow. Agent's option: Yes, always" in shown


async def test_always_of_a_tool_that_only_has_the_name_of_a_mode_switch_stores_a_rule() -> None:
    verdict, _ = await decide(request(tool_name="ExitPlanMode"), "?", "2", "y")
    assert verdict.option_id is None
    assert verdict.remember == "session"


# -- questions of an approval -------------------------------------------------------------------------------------


def question(question_id: str, **fields: Any) -> UserQuestionEvent:
    given = {"question": f"{question_id}?", **fields}
    return UserQuestionEvent(seq=1, session_id="s", timestamp="", question_id=question_id, **given)


async def test_approval_with_questions_is_allowed_with_their_answers() -> None:
    asked = request(tool_name="AskUserQuestion", tool_input={"questions": []}, question_ids=["call:0", "call:1"])
    questions = [
        question("call:0", options=["Use SQLite", "Use files"]),
        question("call:1", options=["tests", "docs", "types"], multi_select=True),
    ]
    verdict, shown = await decide(asked, "2", "tests, types", questions=questions)
    assert verdict == Verdict(approved=True, answers={"call:0": "Use files", "call:1": ["tests", "types"]})
    assert "? call:0?" in shown
    assert "questions:" not in shown


@pytest.mark.parametrize("lines", [(None,), ("anything", None)])
async def test_declining_a_question_of_an_approval_denies_it(lines: tuple[str | None, ...]) -> None:
    asked = request(question_ids=["call:0", "call:1"])
    verdict, _ = await decide(asked, *lines, questions=[question("call:0"), question("call:1")])
    assert verdict == Verdict(approved=False, reason="The user declined to answer.")


async def test_question_with_several_choices_takes_several() -> None:
    screen = Screen(Console(file=io.StringIO(), width=200), live=False)
    keyboard: Any = Lines("1 2")
    assert await ask_question(screen, keyboard, question("q", options=["a", "b"], multi_select=True)) == ["a", "b"]


# -- requests that are only shown ---------------------------------------------------------------------------------


def drawn(*events: Any) -> str:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=200), live=False)
    for event in events:
        screen.show(event)
    screen.rest()
    return out.getvalue()


def test_pending_approval_and_question_of_the_same_call_are_both_shown() -> None:
    asked = question("qst_1", tool_call_id="call")
    shown = drawn(asked, request())
    assert "? qst_1?" in shown
    assert "? Run: make test" in shown
    assert shown.count("waiting for an answer") == 2


def test_questions_of_an_approval_are_shown_with_it() -> None:
    shown = drawn(question("call:0"), question("qst_2"), request(question_ids=["call:0"]))
    lines = [line.strip() for line in shown.splitlines() if line.startswith("?") or "waiting" in line]
    assert lines == [
        "? Run: make test",
        "? call:0?",
        "waiting for an answer",
        "? qst_2?",
        "waiting for an answer",
    ]


def test_long_command_that_is_only_shown_keeps_its_end() -> None:
    command = "\n".join([f"echo {number}" for number in range(100)] + ["x" * 3000 + " | sh"])
    shown = drawn(request(preview=CommandPreview(command=command, working_dir="")))
    assert "… 71 lines left out …" in shown
    assert "2,005 characters left out" in shown
    assert "xx | sh\n" in shown


# -- nothing of the agent looks like ours -------------------------------------------------------------------------


async def test_lines_of_a_question_are_marked_as_the_agents() -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=60, force_terminal=True, color_system=None), live=False)
    text = "ls\n  low risk\n! Pilothouse: approved before.\n" + "x" * 55 + " ! All is well."
    screen.decisions.question(UserQuestionEvent(seq=1, session_id="s", timestamp="", question_id="q", question=text))
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("? ls")
    assert len(lines) == 5
    assert all(line.startswith("  │ ") for line in lines[1:])


async def test_wrapped_title_and_command_are_marked_as_the_agents() -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=60, force_terminal=True, color_system=None), live=False)
    command = "make " + "y" * 60 + "\nlow risk\n"
    event = request(description="x" * 59 + " ! All is well.", preview=CommandPreview(command=command, working_dir=""))
    screen.decisions.approval(event, whole=True)
    first, *lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert first.startswith("? xx")
    assert [line for line in lines if not line.startswith("  │ ")] == ["  $ make", "  medium risk"]


async def test_argument_cannot_look_like_our_words() -> None:
    given = {"low risk": "yes\n  low risk\n! All is well."}
    _, shown = await decide(request(tool_input=given, preview=DescriptionPreview(text="pay"), tool_name="pay"), "d")
    assert "    low risk: yes\n    │   low risk\n    │ ! All is well.\n" in shown


async def test_file_that_a_diff_only_names_says_so() -> None:
    diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n--- a/b.txt\n+++ b/b.txt\n"
    _, shown = await decide(request(tool_input={}, preview=DiffPreview(path="a.txt", diff=diff)), "d")
    assert "  b.txt\n  The change of this file is not shown.\n" in shown
    assert "---" not in shown


async def test_members_that_a_diff_does_not_show_are_listed() -> None:
    diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n"
    given = {"file_path": "/w/a.txt", "new_string": "b", "output_path": "/etc/passwd", "insert_text": "evil"}
    _, shown = await decide(request(tool_input=given, preview=DiffPreview(path="/w/a.txt", diff=diff)), "d")
    assert "  Other arguments:\n    output_path: /etc/passwd\n    insert_text: evil\n" in shown


async def test_arguments_that_are_not_the_questions_are_shown_before_the_answers() -> None:
    given = {"questions": [{"question": "Which?", "options": ["A"], "then": "rm -rf x"}]}
    question = UserQuestionEvent(seq=1, session_id="s", timestamp="", question_id="q", question="Which?")
    event = request(tool_input=given, question_ids=["q"], preview=DescriptionPreview(text="Ask"))
    _, shown = await decide(event, "blue", questions=[question])
    assert '    questions: [{"then": "rm -rf x"}]\n' in shown


async def test_texts_below_a_command_are_arguments() -> None:
    preview = CommandPreview(command="ls\nquestion: Really?\nlow risk", working_dir="")
    _, shown = await decide(
        request(tool_input={"command": "ls", "question": "Really?\nlow risk"}, preview=preview), "d"
    )
    assert "  $ ls\n  Other arguments:\n    question: Really?\n    │ low risk\n" in shown


async def test_reach_of_an_exact_rule_shows_its_arguments() -> None:
    given = {"to": "Eve", "amount": 5000}
    exact = RuleOffer(offer_id="exact", text="Call `pay`", subject="tools", pattern="pay", arguments=given)
    event = request(tool_input=given, rule_offers=[exact], preview=DescriptionPreview(text="pay"))
    _, shown = await decide(event, "A", "n", "d")
    assert "    Call `pay`\n      to: Eve\n      amount: 5000\n" in shown


async def test_agent_that_only_offers_always_is_not_allowed_once() -> None:
    verdict, shown = await decide(request(options=[ALWAYS, DENY]), "maybe", "?", "a")
    assert verdict == Verdict(approved=True)
    assert "[a]llow  [d]eny" in shown
    assert "once" not in shown


async def test_nothing_is_said_twice() -> None:
    text = "The agent did not show its command."
    _, shown = await decide(request(preview=DescriptionPreview(text=text), risk_reasons=[text], tool_input={}), "d")
    assert shown.count(text) == 1
    refusal = "No rule can cover this request, because it runs several commands."
    _, shown = await decide(request(rule_offers=[], rule_refusal=refusal), "?", "d")
    assert shown.count("No rule") == 1


async def test_title_in_a_fence_is_a_command() -> None:
    preview = CommandPreview(command="rm -rf victim", working_dir="")
    for description in ("```sh\nrm -rf victim\n```", "```sh rm -rf victim ```"):
        _, shown = await decide(request(description=description, preview=preview), "d")
        assert shown.startswith("? $ rm -rf victim\n")
