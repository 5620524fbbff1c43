"""How the end of a turn, and a session as a whole, is told in a line."""

from __future__ import annotations

from ..model.session import Session, milliseconds_between
from .texts import duration, title_of

__all__ = ["ENDINGS", "ending", "totals"]

ENDINGS = {
    "end_turn": ("Done", "dim"),
    "cancelled": ("Cancelled", "yellow"),
    "max_tokens": ("Stopped at the limit of tokens", "yellow"),
    "max_turn_requests": ("Stopped at the limit of requests", "yellow"),
    "refusal": ("The agent refused", "yellow"),
    "error": ("Failed", "red"),
    "interrupted": ("Interrupted: the hub was stopped", "yellow"),
}


def ending(session: Session) -> tuple[str, str]:
    """How the last turn ended, and in which style that is said."""
    turn = session.turn
    reason = turn.stop_reason if turn is not None else None
    text, style = ENDINGS.get(reason or "error", (title_of(reason or ""), "yellow"))
    facts = []
    if turn is not None and turn.ended_at:
        facts.append(duration(milliseconds_between(turn.started_at, turn.ended_at)))
    return " · ".join([text, *facts, *totals(session)]), style


def totals(session: Session) -> list[str]:
    """What the session used and changed so far."""
    facts = []
    if session.usage is not None:
        facts.append(f"{session.usage.input_tokens + session.usage.output_tokens:,} tokens")
    if session.cost is not None and session.cost.total:
        facts.append(f"{session.cost.total:.4f} {title_of(session.cost.currency)}")
    if session.context_window is not None and session.context_window.limit:
        facts.append(f"context {session.context_window.percentage:.0f} %")
    if session.files:
        added = sum(file.lines_added for file in session.files.values())
        removed = sum(file.lines_removed for file in session.files.values())
        count = len(session.files)
        facts.append(f"{count} file{'s' * (count > 1)} changed +{added} −{removed}")
    return facts
