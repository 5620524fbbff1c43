"""`pilothouse approvals`, `approve` and `deny` against a hub that keeps what it is sent."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pilothouse.cli.commands import approvals as commands
from pilothouse.cli.commands.approvals import split_questions
from pilothouse.cli.exits import Exit, Failure
from pilothouse.cli.output import escape_hidden

SQLITE = {
    "kind": "question",
    "id": "call:0",
    "sessionId": "ses_1",
    "question": "Which?",
    "options": ["SQLite", "files"],
}
SEVERAL = {"kind": "question", "id": "call:1", "sessionId": "ses_1", "question": "What else?", "options": []}
OTHER = {"kind": "question", "id": "qst_9", "sessionId": "ses_1", "question": "Your na\u202eme?", "options": []}
QUESTIONS: list[dict[str, Any]] = [
    {**SQLITE, "multiSelect": False, "created": "1"},
    {**SEVERAL, "multiSelect": True, "created": "2"},
    {**OTHER, "multiSelect": False, "created": "3", "toolCallId": "call"},
]


def approval(approval_id: str = "apr_1234", **request: Any) -> dict[str, Any]:
    given = {
        "type": "approval:requested",
        "sessionId": "ses_1",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "requestId": approval_id,
        "toolCallId": "call",
        "toolName": "Bash",
        "toolInput": {"command": "make"},
        "description": "Run: make",
        "riskLevel": "medium",
        "preview": {"type": "command", "command": "make", "workingDir": ""},
    }
    options = [{"optionId": "yes-always", "name": "Deny", "kind": "allow_always"}]
    row = {"id": approval_id, "sessionId": "ses_1", "state": "pending", "created": "2026-01-01T00:00:00.000Z"}
    return {**row, "request": {**given, **request}, "options": options, "decision": None, "decidedBy": None}


class Hub:
    """A hub with pending approvals. `decision` is what it makes of the next one."""

    def __init__(self) -> None:
        self.pending = [approval()]
        self.decided: list[tuple[str, dict[str, Any]]] = []
        self.decision: dict[str, Any] = {}

    async def approvals(self) -> list[dict[str, Any]]:
        return self.pending

    async def decide(self, approval_id: str, **decision: Any) -> dict[str, Any]:
        self.decided.append((approval_id, {key: value for key, value in decision.items() if value is not None}))
        row = next(one for one in self.pending if one["id"] == approval_id)
        return {**row, "decision": {"approved": decision["approved"] is not False, **self.decision}}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    found = Hub()

    async def find_hub(config: Any) -> Hub:
        return found

    @contextlib.asynccontextmanager
    async def open_archive(config: Any) -> AsyncIterator[None]:
        yield None

    async def all_questions(archive: Any) -> list[dict[str, Any]]:
        return [dict(question) for question in QUESTIONS]

    monkeypatch.setattr("pilothouse.app.stored_sessions.find_hub", find_hub)
    monkeypatch.setattr("pilothouse.app.stored_sessions.open_archive", open_archive)
    monkeypatch.setattr(commands, "all_questions", all_questions)
    return found


def run(command: Any, *words: str) -> Result:
    return CliRunner().invoke(command, words)


# -- the list -----------------------------------------------------------------------------------------------------


def test_list_shows_every_approval_and_every_question(hub: Hub) -> None:
    done = run(commands.approvals)
    assert done.exit_code == 0
    assert "? Run: make" in done.output
    for question in ("? Which?", "? What else?", "? Your na⟨U+202E⟩me?"):
        assert question in done.output
    assert "3 questions wait in ses_1" in done.output


def test_list_shows_questions_of_an_approval_as_part_of_it(hub: Hub) -> None:
    hub.pending = [approval(questionIds=["call:1", "call:0"])]
    done = run(commands.approvals)
    assert "  call:0: Which? (SQLite / files)" in done.output
    assert done.output.index("call:1: What else?") < done.output.index("call:0: Which?")
    assert "? Which?" not in done.output
    assert "1 question waits in ses_1" in done.output
    first, second = json.loads(run(commands.approvals, "--json").output)
    assert (first["kind"], second["kind"], second["id"]) == ("approval", "question", "qst_9")
    assert [question["id"] for question in first["questions"]] == ["call:1", "call:0"]


def test_list_shows_notes_rules_and_options_in_our_words(hub: Hub) -> None:
    offers = [
        {"offerId": "exact", "text": "exactly `make`", "subject": "commands", "pattern": "make"},
        {"offerId": "any_arguments", "text": "`make` with any arguments", "subject": "tools", "pattern": "make"},
    ]
    hub.pending = [
        approval(notes=["Denied before in this turn."], ruleOffers=offers),
        approval("apr_9", ruleRefusal="Critical requests have no rules."),
    ]
    shown = run(commands.approvals).output
    assert shown.index("! Denied before in this turn.") < shown.index("? Run: make")
    assert "--rule exact: exactly `make`" in shown
    assert "--rule any-arguments: `make` with any arguments" in shown
    assert "No rule: Critical requests have no rules." in shown
    assert "--option yes-always: Always allow. The agent labels this “Deny”, but it allows the request." in shown


def test_many_options_and_long_labels_leave_the_command_in_sight(hub: Hub) -> None:
    hub.pending[0]["options"] = [
        {"optionId": f"o{number}", "name": "Yes " * 1000, "kind": "allow_once"} for number in range(50)
    ]
    listed = run(commands.approvals).output
    assert "--option o9: " in listed
    assert "--option o10: " not in listed
    assert "… 40 more options; `pilothouse approvals ID` shows them" in listed
    assert len(listed) < 3000
    whole = run(commands.approvals, "apr_1234").output
    assert "--option o49: " in whole
    assert "more options" not in whole


def test_empty_option_id_is_an_option(hub: Hub) -> None:
    hub.pending[0]["options"] = [{"optionId": "", "name": "No", "kind": "reject_once"}]
    run(commands.approve, "apr_1234", "--option", "")
    assert hub.decided == [("apr_1234", {"option_id": "", "remember": "once"})]


def test_empty_list_says_so(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_questions(archive: Any) -> list[dict[str, Any]]:
        return []

    hub.pending = []
    monkeypatch.setattr(commands, "all_questions", no_questions)
    assert "No pending approvals" in run(commands.approvals).output


def test_question_belongs_to_an_approval_of_its_own_session_only() -> None:
    other = {**QUESTIONS[0], "sessionId": "ses_2"}
    owned, rest = split_questions([approval(questionIds=["call:0"])], [other])
    assert owned == {"apr_1234": []}
    assert rest == [other]


# -- decisions ----------------------------------------------------------------------------------------------------


def test_approval_without_questions_needs_no_answers(hub: Hub) -> None:
    done = run(commands.approve, "1234")
    assert done.output == "Allowed: Run: make\n"
    assert hub.decided == [("apr_1234", {"approved": True, "remember": "once"})]
    refused = run(commands.approve, "1234", "--answer", "x")
    assert refused.exit_code == Exit.USAGE
    assert "this one has none" in refused.output


@pytest.mark.parametrize(
    ("decision", "line"),
    [
        ({"rule": {"id": "rule_1", "text": "exactly `make`"}}, "Rule stored: exactly `make`"),
        ({"ruleRefusal": "It is critical."}, "No rule was stored: It is critical."),
    ],
)
def test_rule_is_chosen_and_its_reach_is_printed(hub: Hub, decision: dict[str, Any], line: str) -> None:
    hub.decision = decision
    done = run(commands.approve, "apr_1234", "--always", "project", "--rule", "any-arguments")
    assert done.output.splitlines() == ["Allowed: Run: make", line]
    assert hub.decided[0][1] == {"approved": True, "remember": "project", "rule": "any_arguments"}


def test_rule_without_always_is_refused(hub: Hub) -> None:
    done = run(commands.approve, "apr_1234", "--rule", "exact")
    assert done.exit_code == Exit.USAGE
    assert "--rule needs --always" in done.output
    assert hub.decided == []


def test_approval_with_questions_says_which_answers_it_needs(hub: Hub) -> None:
    hub.pending = [approval(questionIds=["call:0", "call:1"])]
    done = run(commands.approve, "apr_1234")
    assert done.exit_code == Exit.USAGE
    assert "apr_1234 needs an answer to each of its questions:" in done.output
    assert "call:0: Which? (SQLite / files)" in done.output
    assert "pilothouse approve apr_1234 --answer 'call:0=TEXT' --answer 'call:1=TEXT'" in done.output
    assert hub.decided == []


def test_approval_with_questions_sends_the_answers(hub: Hub) -> None:
    hub.pending = [approval(questionIds=["call:0", "call:1"])]
    given = ("--answer", "call:0=a=b", "--answer", "call:1=x", "--answer", "call:1=y")
    assert run(commands.approve, "apr_1234", *given).exit_code == 0
    assert hub.decided[0][1]["answers"] == {"call:0": "a=b", "call:1": ["x", "y"]}


def test_only_question_needs_no_id(hub: Hub) -> None:
    hub.pending = [approval(questionIds=["call:0"])]
    assert "--answer TEXT" in run(commands.approve, "apr_1234").output
    assert run(commands.approve, "apr_1234", "--answer", "SQLite").exit_code == 0
    assert hub.decided[0][1]["answers"] == {"call:0": "SQLite"}


def test_question_that_is_not_in_the_log_can_be_answered_by_its_id(hub: Hub) -> None:
    hub.pending = [approval(questionIds=["gone:0"])]
    assert run(commands.approve, "apr_1234", "--answer", "gone:0=x").exit_code == 0
    assert hub.decided[0][1]["answers"] == {"gone:0": "x"}


def test_option_that_may_deny_needs_no_answers(hub: Hub) -> None:
    hub.pending = [approval(questionIds=["call:0"])]
    assert run(commands.approve, "apr_1234", "--option", "no").exit_code == 0
    assert hub.decided[0][1] == {"option_id": "no", "remember": "once"}


def test_option_that_allows_needs_answers(hub: Hub) -> None:
    hub.pending = [approval(questionIds=["call:0"])]
    assert run(commands.approve, "apr_1234", "--option", "yes-always").exit_code == 2
    assert hub.decided == []


def test_denial_needs_no_answers(hub: Hub) -> None:
    hub.pending = [approval(questionIds=["call:0"])]
    assert run(commands.deny, "apr_1234", "--reason", "not now").output == "Denied: Run: make\n"
    assert hub.decided == [("apr_1234", {"approved": False, "reason": "not now"})]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["SQLite"], "names none of the questions"),
        (["call:0=x"], "needs an answer"),
        (["call:0=x", "call:0=y", "call:1=z"], "takes one answer, got 2"),
    ],
)
def test_answers_that_do_not_fit_are_refused(given: list[str], message: str) -> None:
    with pytest.raises(Failure, match=message):
        commands.read_answers("apr_1", QUESTIONS[:2], given)


@pytest.mark.parametrize("odd", ["\x9b2J", "\x85", "\u202e", "\u200b", "\U000e0041", "\x7f", "\u2028"])
def test_json_escapes_hidden_characters(odd: str) -> None:
    value = {"name": f"Grüße, 日本 {odd}\n"}
    text = escape_hidden(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(text) == value
    assert odd[0] not in text
    assert "Grüße, 日本" in text
