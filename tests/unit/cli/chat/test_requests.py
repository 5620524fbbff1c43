"""Pending approvals and questions of a conversation: asked separately, decided once, and the output after it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Sequence
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from pilothouse.cli.chat.backends import DecisionRefused, Here, There
from pilothouse.cli.chat.requests import Asks, Manners, describe_stored_rule
from pilothouse.hub.errors import DecidedOtherwise, IllegalCommand, UnknownApproval, Unsupported
from pilothouse.model.events import ApprovalRequestedEvent, CustomEvent, Event, UserQuestionEvent, encode_event
from pilothouse.model.records import CommandPreview, Option, RuleOffer
from pilothouse.remote.errors import Conflict, NotFound, Refused
from pilothouse.terminal.screen import Screen

EXACT = RuleOffer(offer_id="exact", text="exactly `make`", subject="commands", pattern="make")


class Entry(NamedTuple):
    seq: int
    data: bytes


class Lines:
    """A keyboard on which these lines are typed; after them nothing more is."""

    def __init__(self, *lines: str | None) -> None:
        self.lines = list(lines)

    async def line(self, indent: int = 0) -> str | None:
        if not self.lines:
            await asyncio.Event().wait()
        return self.lines.pop(0)

    def forget(self) -> None:
        pass


class Session:
    """A side that keeps what it is sent. `decision` is what the hub answers; `later` are events that follow."""

    id, agent_name, cwd = "ses_1", "demo", "/work"

    def __init__(self, *, is_elsewhere: bool = False, later: Sequence[Event] = ()) -> None:
        self.is_elsewhere = is_elsewhere
        self.later = later
        self.decided: list[tuple[str, dict[str, Any]]] = []
        self.answered: list[tuple[str, Any]] = []
        self.answers: list[dict[str, Any] | Exception] = []

    async def follow(self, after: int, lost: Any = None) -> AsyncGenerator[Sequence[Entry], None]:
        for event in self.later:
            yield [Entry(after + 1, encode_event(event))]
        await asyncio.Event().wait()

    async def decide(self, request_id: str, **decision: Any) -> dict[str, Any]:
        self.decided.append((request_id, {key: value for key, value in decision.items() if value is not None}))
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def answer(self, question_id: str, answer: Any) -> None:
        self.answered.append((question_id, answer))
        outcome = self.answers.pop(0) if self.answers else {}
        if isinstance(outcome, Exception):
            raise outcome


def request(request_id: str = "apr_1", **fields: Any) -> ApprovalRequestedEvent:
    given: dict[str, Any] = {
        "tool_call_id": "call",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "description": "Run: make",
        "risk_level": "medium",
        "options": [Option(option_id="y", name="Yes", kind="allow_once")],
    }
    return ApprovalRequestedEvent(seq=1, session_id="s", timestamp="", request_id=request_id, **{**given, **fields})


def question(question_id: str, **fields: Any) -> UserQuestionEvent:
    return UserQuestionEvent(
        seq=2, session_id="s", timestamp="", question_id=question_id, question=f"{question_id}?", **fields
    )


class Talk:
    """`Asks` at a terminal with a keyboard, or without either."""

    def __init__(self, *lines: str | None, session: Session | None = None, **manners: Any) -> None:
        self.out = io.StringIO()
        self.session = session or Session()
        screen = Screen(Console(file=self.out, width=200), live=False) if lines else None
        self.keyboard = Lines(*lines)
        keyboard: Any = self.keyboard if lines else None
        self.asks = Asks(Manners(**manners), screen, keyboard, lambda: False)

    async def take(self, *events: Event) -> None:
        for event in events:
            self.asks.learn(event)
        side: Any = self.session
        async with asyncio.timeout(10):
            await self.asks.see_to(side, 2)


# -- separate prompts --------------------------------------------------------------------------------------------


async def test_question_and_approval_of_one_call_are_asked_separately() -> None:
    talk = Talk("a", "blue")
    await talk.take(question("qst_1", tool_call_id="call"), request())
    assert [request_id for request_id, _ in talk.session.decided] == ["apr_1"]
    assert talk.session.answered == [("qst_1", "blue")]
    assert talk.asks.are_seen_to


async def test_denied_approval_leaves_its_question_to_the_user() -> None:
    talk = Talk("d", "still blue")
    await talk.take(request(), question("qst_1", tool_call_id="call"))
    assert talk.session.decided[0][1]["approved"] is False
    assert talk.session.answered == [("qst_1", "still blue")]


async def test_questions_of_an_approval_are_sent_with_it() -> None:
    talk = Talk("red", "no")
    listed = ["call:0", "call:1"]
    await talk.take(question("call:0", tool_call_id="call"), question("call:1"), request(question_ids=listed))
    ((request_id, decision),) = talk.session.decided
    assert request_id == "apr_1"
    assert (decision["approved"], decision["answers"]) == (True, {"call:0": "red", "call:1": "no"})
    assert talk.session.answered == []
    assert talk.asks.are_seen_to


async def test_declining_a_question_of_an_approval_denies_it() -> None:
    talk = Talk(None)
    await talk.take(question("call:0", tool_call_id="call"), request(question_ids=["call:0"]))
    ((_, decision),) = talk.session.decided
    assert decision["approved"] is False
    assert "answers" not in decision
    assert talk.session.answered == []


async def test_question_of_a_tool_waits_for_the_approval_that_follows() -> None:
    approval = request(question_ids=["call:0"])
    talk = Talk("green", session=Session(later=[approval]))
    await talk.take(question("call:0", tool_call_id="call"))
    assert (talk.session.answered, talk.session.decided) == ([], [])
    await talk.take(approval)
    assert talk.session.decided[0][1]["answers"] == {"call:0": "green"}


async def test_question_of_a_tool_without_an_approval_is_asked() -> None:
    talk = Talk("green")
    await talk.take(question("call:0", tool_call_id="call"))
    assert talk.session.answered == [("call:0", "green")]


async def test_prompt_closes_when_an_approval_claims_its_question() -> None:
    approval = request(question_ids=["call:0"])
    talk = Talk("x", session=Session(later=[approval]))
    talk.keyboard.lines.clear()
    await talk.take(question("call:0"))  # its id does not say whose it is
    assert talk.session.answered == []
    talk.session.later = ()
    talk.keyboard.lines.append("green")
    await talk.take(approval)
    assert talk.session.decided[0][1]["answers"] == {"call:0": "green"}


async def test_question_that_is_settled_is_not_asked_again() -> None:
    talk = Talk("a")
    data = {"questionId": "call:0", "outcome": "answered", "answer": "x"}
    told = CustomEvent(
        seq=3, session_id="s", timestamp="", namespace="pilothouse", event_name="question_answered", data=data
    )
    await talk.take(question("call:0"), told)
    assert talk.asks.are_seen_to
    assert talk.session.answered == []


# -- options of the command ---------------------------------------------------------------------------------------


async def test_approve_all_allows_approvals() -> None:
    talk = Talk(approve_all=True)
    await talk.take(request(risk_level="critical"))
    ((_, decision),) = talk.session.decided
    assert (decision["approved"], decision["by"], decision["remember"]) == (True, "--approve-all", "once")


async def test_approve_reads_allows_reads_only() -> None:
    talk = Talk(approve_reads=True)
    read = request("apr_2", tool_name="Read", tool_input={"file_path": "/work/a.py"})
    await talk.take(request(), read)
    assert [decision["approved"] for _, decision in talk.session.decided] == [False, True]
    assert talk.asks.denied


async def test_approve_reads_checks_the_preview_of_the_hub() -> None:
    talk = Talk(approve_reads=True)
    preview = CommandPreview(command="rm a.py", working_dir="")
    await talk.take(request(tool_name="Read", tool_input={"file_path": "/work/a.py"}, preview=preview))
    assert [decision["approved"] for _, decision in talk.session.decided] == [False]


async def test_approve_all_answers_no_questions() -> None:
    talk = Talk(approve_all=True)
    await talk.take(question("call:0"), request(question_ids=["call:0"]))
    ((_, decision),) = talk.session.decided
    assert decision["approved"] is False
    assert "answer" in decision["reason"]
    assert not talk.asks.denied


async def test_approve_all_at_a_terminal_asks_the_questions() -> None:
    talk = Talk("blue", approve_all=True)
    await talk.take(question("call:0"), request(question_ids=["call:0"]), request("apr_2"))
    assert [decision.get("answers") for _, decision in talk.session.decided] == [{"call:0": "blue"}, None]


async def test_parked_request_prints_the_commands_that_decide_it(capsys: pytest.CaptureFixture[str]) -> None:
    talk = Talk(parks=True, session=Session(is_elsewhere=True))
    await talk.take(question("call:0"), request(), request("apr_2", question_ids=["call:0"]))
    told = capsys.readouterr().err
    assert "Decide with: `pilothouse approve apr_1` or `pilothouse deny apr_1`" in told
    assert "`pilothouse approve apr_2 --answer TEXT`" in told
    assert talk.session.decided == []


# -- always -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "line"),
    [
        ({"rule": {"id": "rule_1", "text": "exactly `make`, in this session"}}, "Rule stored: exactly `make`"),
        ({"ruleRefusal": "The file is outside the project."}, "No rule was stored: The file is outside the project."),
    ],
)
async def test_stored_rule_or_its_refusal_is_printed(decision: dict[str, Any], line: str) -> None:
    talk = Talk("A", "y")
    talk.session.answers.append(decision)
    await talk.take(request(rule_offers=[EXACT]))
    ((_, sent),) = talk.session.decided
    assert (sent["remember"], sent["rule"]) == ("session", "exact")
    assert "option_id" not in sent
    assert line in talk.out.getvalue()


async def test_decision_for_once_reports_no_rule() -> None:
    talk = Talk("a")
    talk.session.answers.append({"ruleRefusal": "none"})
    await talk.take(request())
    assert "No rule" not in talk.out.getvalue()


def test_hub_that_names_neither_rule_nor_refusal_gives_no_line() -> None:
    assert describe_stored_rule({"approved": True}) == ""


async def test_refused_decision_is_reported_and_asked_again() -> None:
    talk = Talk("a", "d")
    talk.session.answers.append(DecisionRefused("give answers"))
    await talk.take(request())
    assert [decision["approved"] for _, decision in talk.session.decided] == [True, False]
    assert "The hub did not accept this: give answers" in talk.out.getvalue()


async def test_refused_denial_is_not_asked_again() -> None:
    talk = Talk("d")
    talk.session.answers.append(DecisionRefused("too late"))
    await talk.take(request())
    assert len(talk.session.decided) == 1


@pytest.mark.parametrize("lines", [(), ("unused",)])
async def test_refused_decision_of_an_option_denies(lines: tuple[str, ...]) -> None:
    talk = Talk(*lines, approve_all=True)
    talk.session.answers.append(DecisionRefused("the agent offers no option that allows it"))
    await talk.take(request())
    assert [decision["approved"] for _, decision in talk.session.decided] == [True, False]
    assert talk.session.decided[1][1]["reason"] == "the agent offers no option that allows it"
    assert talk.asks.denied


async def test_refused_answer_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    talk = Talk()
    talk.session.answers.append(DecisionRefused("the agent offers no way to answer this"))
    await talk.take(question("qst_1"))
    assert "no way to answer this" in capsys.readouterr().err


# -- refusals of the hub -----------------------------------------------------------------------------------------


class Refusing:
    """A session of a hub that fails with an error."""

    id, agent_name, cwd = "ses_1", "demo", "/work"

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def decide(self, request_id: str, **decision: Any) -> Any:
        raise self._error

    def answer(self, question_id: str, answer: Any) -> Any:
        raise self._error


class RefusingThere(Refusing):
    async def answer(self, question_id: str, answer: Any) -> Any:
        raise self._error


DECISION: dict[str, Any] = {"approved": True, "option_id": None, "reason": None, "by": None, "remember": "once"}


@pytest.mark.parametrize(
    ("error", "is_refused"),
    [
        (UnknownApproval("x"), False),
        (DecidedOtherwise("x"), False),
        (IllegalCommand("it needs answers"), True),
        (Unsupported("it needs answers"), True),
        (NotFound(404, "unknown_approval", "x"), False),
        (Conflict(409, "conflict", "x"), False),
        (Conflict(409, "illegal_command", "it needs answers"), True),
        (Refused(422, "invalid", "it needs answers"), True),
    ],
)
async def test_late_decision_is_ignored_and_a_refused_one_raises(error: Exception, is_refused: bool) -> None:
    session: Any = (RefusingThere if isinstance(error, Refused) else Refusing)(error)
    side: Any = (There if isinstance(error, Refused) else Here)(session)
    if not is_refused:
        assert await side.decide("apr_1", **DECISION) == {}
        assert await side.answer("q", "x") is None
        return
    with pytest.raises(DecisionRefused, match="it needs answers"):
        await side.decide("apr_1", **DECISION)
    with pytest.raises(DecisionRefused, match="it needs answers"):
        await side.answer("q", "x")


async def test_failing_hub_is_an_error() -> None:
    session: Any = RefusingThere(Refused(507, "not_stored", "the disk is full"))
    with pytest.raises(Refused, match="the disk is full"):
        await There(session).decide("apr_1", **DECISION)
