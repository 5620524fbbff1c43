"""After a crash: what was open when the hub died ends by an event, and what it left running is ended.

The log is the truth. A session whose last events say that a turn was under way gets the events that a hub would have
written had it known that it was going to die.
"""

from __future__ import annotations

from typing import Any

from ..model.errors import ACPError
from ..model.events import (
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    MessageCompleteEvent,
    SessionStatusChangedEvent,
    ThinkingCompleteEvent,
    ToolCallErrorEvent,
)
from ..model.records import TextContent
from ..model.session import ACTIVE, Message, Session, TextRun, Thought

__all__ = ["closing_events"]

MESSAGE = "The hub was stopped before this ended."


def closing_events(session: Session, now: str) -> list[Event]:
    """The events that end everything that is open; none for a session at rest."""
    events: list[Event] = []

    def emit(cls: type[Event], **fields: Any) -> None:
        events.append(cls(seq=0, session_id=session.id, timestamp=now, **fields))

    for item in session.items:
        if isinstance(item, Message) and not item.done:
            texts = "".join(str(block.text) for block in item.content if isinstance(block, TextRun))
            content = [TextContent(text=texts)] if texts else []
            emit(MessageCompleteEvent, message_id=item.message_id, role=item.role, content=content)
        elif isinstance(item, Thought) and not item.done:
            emit(ThinkingCompleteEvent, message_id=item.message_id, content=str(item.text))
    for approval in session.pending_approvals:
        emit(
            ApprovalResolvedEvent,
            request_id=approval.request_id,
            tool_call_id=approval.tool_call_id,
            approved=False,
            resolved_by="cancelled",
            reason=MESSAGE,
        )
    for question in session.pending_questions:
        data = {"questionId": question.question_id, "outcome": "cancelled", "answer": None}
        emit(CustomEvent, namespace="pilothouse", event_name="question_answered", data=data)
    for call in session.tool_calls:
        if call.status not in ("completed", "failed", "cancelled"):
            error = ACPError(code="interrupted", message=MESSAGE, recoverable=True)
            emit(ToolCallErrorEvent, tool_call_id=call.tool_call_id, name=call.name, error=error)
    if session.turn is not None and session.turn.open:
        data = {"turnId": session.turn.turn_id, "stopReason": "interrupted"}
        emit(CustomEvent, namespace="pilothouse", event_name="turn_ended", data=data)
    if session.status in ACTIVE or session.status == "starting":
        emit(SessionStatusChangedEvent, from_=session.status, to="idle", reason="interrupted")
    return events
