"""What a session did, counted from its state."""

from __future__ import annotations

from datetime import UTC, datetime

from ..records import FileChangeSummary, SessionSummary, TokenUsage
from .counts import counted
from .state import State

__all__ = ["milliseconds_between", "summary"]


def summary(session: State) -> SessionSummary:
    """The summary of `session:completed`.

    Messages are the user's and the agent's. Errors are those of the session and the calls that failed; a call that
    was cancelled is not one.
    """
    count = counted(session.items, session.index.shed)
    return SessionSummary(
        files_changed=[
            FileChangeSummary(
                path=file.path,
                change_type=file.change_type,
                lines_added=file.lines_added,
                lines_removed=file.lines_removed,
            )
            for file in session.files.values()
        ],
        token_usage=session.usage or TokenUsage(input_tokens=0, output_tokens=0),
        duration=milliseconds_between(session.started_at, session.updated_at),
        tool_calls_count=count.calls,
        messages_count=count.messages,
        error_count=count.errors,
        cost=session.cost,
    )


def milliseconds_between(first: str, last: str) -> int:
    """From one timestamp to another; 0 when either cannot be read or they are the wrong way round."""
    start, end = _parse(first), _parse(last)
    if start is None or end is None:
        return 0
    try:
        return max(0, round((end - start).total_seconds() * 1000))
    except OverflowError:  # a year at the edge of the calendar, moved beyond it by its zone
        return 0


def _parse(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
