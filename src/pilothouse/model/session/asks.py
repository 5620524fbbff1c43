"""Approvals and questions: asked once, answered once.

The first decision wins. One that the fold made itself, because the turn was over, gives way to a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..events import ApprovalRequestedEvent, ApprovalResolvedEvent, CustomEvent, UserQuestionEvent
from .items import Approval, Question, ToolCall
from .state import State

__all__ = ["HANDLERS", "answer_question", "link_approval", "withdraw"]

_APPROVAL_FIELDS = (
    *("tool_call_id", "tool_name", "tool_input", "description", "risk_level", "risk_reasons"),
    *("expires_at", "preview", "options", "notes", "origin", "rule_offers", "rule_refusal", "question_ids"),
)
_QUESTION_FIELDS = (
    *("question", "options", "default_value", "expires_at"),
    *("multi_select", "form", "url", "tool_call_id"),
)


def withdraw(state: State, item: Approval | Question, timestamp: str) -> None:
    """Close one that nobody answered."""
    if isinstance(item, Approval):
        item.approved, item.resolved_by, item.resolved_at = False, "cancelled", timestamp
    else:
        item.outcome, item.answered_at = "cancelled", timestamp
    item.unfinished = True
    state.index.closed(item)


def _requested(state: State, event: ApprovalRequestedEvent) -> None:
    known = state.index.approvals.get(event.request_id)
    approval = known if known is not None and known.pending else state.add(_approval(state, event))
    for name in _APPROVAL_FIELDS:
        setattr(approval, name, getattr(event, name))
    call = state.index.calls.get(event.tool_call_id)
    if call is not None:
        link_approval(call, approval)


def link_approval(call: ToolCall, approval: Approval) -> None:
    """The call knows who was asked about it; its own risk, once it has one, counts."""
    if approval.request_id not in call.approval_ids:
        call.approval_ids.append(approval.request_id)
    if call.risk_level is None:
        call.risk_level, call.risk_reasons = approval.risk_level, approval.risk_reasons


def _approval(state: State, event: ApprovalRequestedEvent | ApprovalResolvedEvent) -> Approval:
    return Approval(
        seq=event.seq,
        timestamp=event.timestamp,
        turn_id=state.turn_id,
        request_id=event.request_id,
        tool_call_id=event.tool_call_id,
        tool_name="",
        tool_input={},
        description="",
        risk_level="low",
    )


def _resolved(state: State, event: ApprovalResolvedEvent) -> None:
    """A decision about a request that is not in the log (a rule answered before it was asked) is kept as well."""
    approval = state.index.approvals.get(event.request_id) or state.add(_approval(state, event))
    if not (approval.pending or approval.unfinished):
        return
    approval.approved, approval.resolved_by, approval.resolved_at = event.approved, event.resolved_by, event.timestamp
    approval.reason, approval.option_id, approval.decided_by = event.reason, event.option_id, event.decided_by
    approval.unfinished = False
    state.index.closed(approval)
    call = state.index.calls.get(event.tool_call_id)
    if call is not None and event.approved and call.status == "pending":
        call.status, call.executing_at = "executing", event.timestamp


def _asked(state: State, event: UserQuestionEvent) -> None:
    known = state.index.questions.get(event.question_id)
    question = known if known is not None and known.pending else state.add(_question(state, event, event.question_id))
    for name in _QUESTION_FIELDS:
        setattr(question, name, getattr(event, name))


def _question(state: State, event: UserQuestionEvent | CustomEvent, question_id: str) -> Question:
    return Question(
        seq=event.seq, timestamp=event.timestamp, turn_id=state.turn_id, question_id=question_id, question=""
    )


def answer_question(state: State, event: CustomEvent) -> None:
    """`question_answered` with `questionId`, `outcome` and `answer`."""
    question_id = event.data.get("questionId")
    question = state.index.questions.get(question_id) if isinstance(question_id, str) else None
    if question is None:
        question = state.add(_question(state, event, question_id if isinstance(question_id, str) else ""))
    if not (question.pending or question.unfinished):
        return
    outcome = event.data.get("outcome")
    question.outcome = outcome if isinstance(outcome, str) and outcome else "answered"
    question.answer, question.answered_at = event.data.get("answer"), event.timestamp
    question.unfinished = False
    state.index.closed(question)


HANDLERS: Mapping[type[Any], Callable[[State, Any], None]] = {
    ApprovalRequestedEvent: _requested,
    ApprovalResolvedEvent: _resolved,
    UserQuestionEvent: _asked,
}
