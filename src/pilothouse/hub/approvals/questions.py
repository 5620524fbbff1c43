"""Questions of one session's agent, by elicitation or by a tool that asks its user: each is answered once.

A question is an event, and so is its answer; the agent gets the answer when it is committed. Answers approve a tool
call only if its tool does nothing but ask (its request lists them as `question_ids`); they decide no other approval.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Literal, NamedTuple

from ...acp.errors import RequestError
from ...model.events import UserQuestionEvent
from ...model.session import sound
from ..errors import DecidedOtherwise, UnknownApproval, Unsupported
from ..recording.recorder import Recorder
from .approvals import Approvals

Action = Literal["accept", "decline", "cancel"]
_OUTCOMES = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}


class Asked(NamedTuple):
    event: UserQuestionEvent
    answer: asyncio.Future[dict[str, Any]]
    timer: asyncio.TimerHandle | None


class Questions:
    """What a session's agent wants to know."""

    def __init__(self, recorder: Recorder, approvals: Approvals, *, timeout: float | None = None) -> None:
        self._recorder = recorder
        self._approvals = approvals
        self._timeout = timeout
        self._asked: dict[str, Asked] = {}
        self._telling: dict[str, tuple[asyncio.Future[dict[str, Any]], Action, Any]] = {}
        self._tool_answers: dict[str, dict[str, Any]] = {}

    async def ask(self, raw: bytes) -> dict[str, Any]:
        """Put an elicitation before a person; returns the ACP result."""
        recorder = self._recorder
        if recorder.failure is not None:
            raise RequestError.internal_error({"details": "nothing can be stored, so nobody can be asked"})
        question_id = f"qst_{secrets.token_hex(8)}"
        events = recorder.translator.question(raw, recorder.now(), question_id=question_id)
        event = next(event for event in events if isinstance(event, UserQuestionEvent))
        recorder.record(events)
        loop = asyncio.get_running_loop()
        timer = None if self._timeout is None else loop.call_later(self._timeout, self._expire, question_id)
        asked = self._asked[question_id] = Asked(event, loop.create_future(), timer)
        if self._approvals.closed is not None:
            self._settle(question_id, "cancel", None)
        try:
            return await asked.answer
        except asyncio.CancelledError:
            self._settle(question_id, "cancel", None)
            raise

    def answer(self, question_id: str, answer: Any, action: Action, by: str, device_id: str | None) -> None:
        """A person answers. The same answer again changes nothing.

        Raises UnknownApproval, DecidedOtherwise, Unsupported.
        """
        answer = sound(answer) if action == "accept" else None
        if question_id in self._asked:
            self._settle(question_id, action, answer)
            return
        _, before, told = self._telling.get(question_id, (None, None, None))
        known = self._recorder.session.index.questions.get(question_id)
        if before is not None:
            outcome = _OUTCOMES[before]
        elif known is None:
            raise UnknownApproval(f"there is no question {question_id!r}", questionId=question_id)
        elif known.pending:
            self._answer_tool(known.tool_call_id or "", question_id, answer, action, by, device_id)
            return
        else:
            outcome, told = known.outcome or "cancelled", known.answer
        if outcome != _OUTCOMES[action] or told != answer:
            message = f"{question_id!r} was {outcome} already"
            raise DecidedOtherwise(message, questionId=question_id, outcome=outcome, answer=told)

    def _answer_tool(
        self, call_id: str, question_id: str, answer: Any, action: Action, by: str, device_id: str | None
    ) -> None:
        """Answer a question of a tool, which gets the answer with its approval.

        A tool that does nothing but ask is approved when all of its questions are answered. For any other call the
        answer decides nothing: the approval stays pending, and carries the answers if it is given.
        """
        request_id = self._approvals.find_approval_of_question(question_id)
        maker: dict[str, Any] = {"by": by, "device_id": device_id}
        if request_id is None:
            outcome = _OUTCOMES[action]
            if not self._approvals.add_answer(call_id, question_id, answer, outcome):
                message = "the agent offers no way to answer this; send it as a prompt"
                raise Unsupported(message, questionId=question_id)
        elif action != "accept":
            self._approvals.resolve(request_id, approved=False, reason="The user did not want to answer.", **maker)
        else:
            answers = self._tool_answers.setdefault(request_id, {})
            answers[question_id] = answer
            asked = self._approvals.questions_of(request_id)
            if all(one in answers for one in asked):
                del self._tool_answers[request_id]
                given = {one: answers[one] for one in asked}
                self._approvals.resolve(request_id, approved=True, **maker, answers=given)

    def _settle(self, question_id: str, action: Action, answer: Any) -> None:
        asked = self._asked.pop(question_id, None)
        if asked is None:
            return
        if asked.timer is not None:
            asked.timer.cancel()
        recorder = self._recorder
        outcome = _OUTCOMES[action]
        events = recorder.translator.answer(question_id, recorder.now(), outcome=outcome, answer=answer)
        self._telling[question_id] = (asked.answer, action, answer)

        def tell() -> None:
            self._telling.pop(question_id, None)
            if not asked.answer.done():
                asked.answer.set_result(_result(asked.event, action, answer))

        recorder.record(events, then=tell)

    def _expire(self, question_id: str) -> None:
        self._settle(question_id, "cancel", None)

    def cancel_all(self) -> None:
        """Nobody will answer any more."""
        for question_id in list(self._asked):
            self._settle(question_id, "cancel", None)
        self._tool_answers.clear()

    def abandon(self) -> None:
        """The log failed: whoever asked is told that there is no answer."""
        for future in [*(asked.answer for asked in self._asked.values()), *(one[0] for one in self._telling.values())]:
            if not future.done():
                future.set_result({"action": "cancel"})
        self._asked.clear()
        self._telling.clear()
        self._tool_answers.clear()


def _result(event: UserQuestionEvent, action: Action, answer: Any) -> dict[str, Any]:
    """The ACP result; an answer that is no object is that of the form's only field."""
    if action != "accept":
        return {"action": action}
    if event.url is not None and answer is None:
        return {"action": "accept"}
    if isinstance(answer, dict):
        return {"action": "accept", "content": answer}
    properties = (event.form or {}).get("properties")
    field = next(iter(properties)) if isinstance(properties, dict) and len(properties) == 1 else "answer"
    return {"action": "accept", "content": {field: answer}}
