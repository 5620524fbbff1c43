"""How the end of a turn is told in a line."""

from __future__ import annotations

from ..dialects.texts import duration, standing, title_of, tokens
from ..model.records import TokenUsage
from ..model.session import Session, milliseconds_between

__all__ = ["ENDINGS", "ending"]

ENDINGS = {
    "end_turn": ("Done", "dim"),
    "cancelled": ("Cancelled", "yellow"),
    "max_tokens": ("Stopped at the limit of tokens", "yellow"),
    "max_turn_requests": ("Stopped at the limit of requests", "yellow"),
    "refusal": ("The agent refused", "yellow"),
    "error": ("Failed", "red"),
    "interrupted": ("Interrupted: the hub was stopped", "yellow"),
}


def ending(session: Session, spent: TokenUsage | None = None) -> tuple[str, str]:
    """How the last turn ended and what it spent, how the session stands, and in which style that is said."""
    turn = session.turn
    reason = turn.stop_reason if turn is not None else None
    text, style = ENDINGS.get(reason or "error", (title_of(reason or ""), "yellow"))
    facts = []
    if turn is not None and turn.ended_at:
        facts.append(duration(milliseconds_between(turn.started_at, turn.ended_at)))
    in_all = standing(session)
    if in_all and session.turns > 1:
        in_all[0] = f"session: {in_all[0]}"
    return " · ".join([text, *facts, *tokens(spent), *in_all]), style
