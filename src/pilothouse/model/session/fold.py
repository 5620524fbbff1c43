"""The fold: events in, session out; its summary; and the items that a long-lived session drops from memory.

`Session.apply` costs what the event brings, however long the session is. Applying events one by one, in any number of
batches, or with the session stored and read back in between gives the same session. Items that no later event changes,
and that the log has, may be dropped; they stay counted, so the summary remains right. The rule a change must not break:
open, pending and unfinished items stay, and so does everything that later events look up by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..errors import ACPError, ValidationError
from ..events import (
    ContextWindowEvent,
    CostUpdateEvent,
    EnvironmentInfoEvent,
    Event,
    MessageDeltaEvent,
    NotificationEvent,
    PlanModeEvent,
    RateLimitEvent,
    SessionCompletedEvent,
    SessionErrorEvent,
    SessionStartedEvent,
    ThinkingDeltaEvent,
    TodoUpdateEvent,
    TokenUsageEvent,
)
from ..records import FileChangeSummary, SessionStatus, SessionSummary, TokenUsage
from . import calls, customs, messages
from .items import (
    Approval,
    Failure,
    Message,
    Notification,
    Plan,
    SessionItem,
    TextRun,
    Thought,
    ToolCall,
    counted,
    decode_text,
    encode_text,
    sound,
)
from .state import ContextWindow, RateLimit, State
from .status import TRANSITIONS, status_after


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


class Session(State):
    """A session as its events tell it. Start with an empty one, then `apply` events in the order of their `seq`."""

    def apply(self, event: Event) -> None:
        """Take in one event.

        An event whose number is not above the last one was applied before and is passed over. Events without a
        number (0) always count.
        """
        seq = event.seq
        if seq > 0:
            if seq <= self.seq:
                return
            self.seq = seq
        if not self.id:
            self.id = event.session_id
        if event.timestamp:
            self.started_at = self.started_at or event.timestamp
            self.updated_at = event.timestamp
        kind = type(event)
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, event)
        if kind is not MessageDeltaEvent and kind is not ThinkingDeltaEvent:  # nearly all events; they move nothing
            self.status = self._status_after(event)

    def apply_next(self, events: Sequence[Event], start: int) -> int:
        """Take in the event at `start`, and with it those behind it that go on with the same text.

        Returns how many these are. The outcome is that of `apply` for each of them.
        """
        taken = messages.take_pieces(self, events, start)
        if not taken:
            self.apply(events[start])
            return 1
        last = events[start + taken - 1]
        self.seq = last.seq
        self.started_at = self.started_at or events[start].timestamp
        self.updated_at = last.timestamp
        return taken

    def _status_after(self, event: Event) -> SessionStatus:
        turn = self.turn.open if self.turn is not None else None
        status = status_after(self.status, event, pending=bool(self.index.pending), turn=turn)
        return status if status in TRANSITIONS else self.status

    def snapshot(self, *, items: bool = True) -> dict[str, Any]:
        """The session as plain values in wire names, and beside them what is pending and the summary so far.

        Later events do not change it. Without `items` it is small, whatever the session's length.
        """
        kept, whole = self.items, self
        if not items:
            whole = msgspec.structs.replace(self, items=[], turns_ended=[])
        plain: dict[str, Any] = _plain(whole)
        if not items:
            del plain["items"], plain["turnsEnded"]
        plain["pendingApprovals"] = _plain(self.pending_approvals)
        plain["pendingQuestions"] = _plain(self.pending_questions)
        plain["summary"] = _plain(summary(self))
        plain["itemsCount"] = self.index.shed.items + len(kept)
        return plain


def fold(events: Iterable[Event], into: Session | None = None) -> Session:
    """Apply all events, to a new session or to `into`, and give the session back."""
    session = Session() if into is None else into
    for event in events:
        session.apply(event)
    return session


# -- storage ---------------------------------------------------------------------------------------------------------

_encode = msgspec.json.Encoder(enc_hook=encode_text).encode
_decode = msgspec.json.Decoder(Session, dec_hook=decode_text).decode


def dump(session: Session) -> bytes:
    """The whole state as JSON, for `load`. Half a surrogate pair, which UTF-8 cannot carry, becomes U+FFFD."""
    try:
        return _encode(session)
    except UnicodeEncodeError:
        return _encode(sound(_plain(session)))


def load(data: bytes) -> Session:
    """The session that `dump` wrote. Raises ValidationError for anything else."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        raise ValidationError(f"Expected a stored session: {exc}") from None


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=encode_text)


# -- what concerns the session as a whole ------------------------------------------------------------------------------


def _started(state: State, event: SessionStartedEvent) -> None:
    for name in ("agent", "project_path", "project_name", "working_directory", "model", "environment"):
        value = getattr(event, name)
        if value:
            setattr(state, name, value)


def _environment(state: State, event: EnvironmentInfoEvent) -> None:
    context = state.environment = event.context
    state.agent = state.agent or context.agent.name
    state.project_path = context.project.path or state.project_path
    state.project_name = context.project.name or state.project_name
    if context.model is not None:
        state.model = context.model.id or state.model


def _completed(state: State, event: SessionCompletedEvent) -> None:
    customs.close_all(state, "failed", event.timestamp)


def _failed(state: State, event: SessionErrorEvent) -> None:
    """An error after which the session cannot go on is the end of everything that was open."""
    if not event.error.recoverable:
        customs.close_all(state, "failed", event.timestamp)
    last = state.items[-1] if state.items else None
    if isinstance(last, Failure) and _same(last.error, event.error):
        last.count += 1
        return
    state.add(Failure(seq=event.seq, timestamp=event.timestamp, turn_id=state.turn_id, error=event.error))


def _same(one: ACPError, other: ACPError) -> bool:
    return (one.code, one.message, one.recoverable) == (other.code, other.message, other.recoverable)


def _notified(state: State, event: NotificationEvent) -> None:
    last = state.items[-1] if state.items else None
    if isinstance(last, Notification) and all(
        getattr(last, name) == getattr(event, name) for name in ("level", "title", "message", "action_url")
    ):
        last.count += 1
        return
    state.add(
        Notification(
            seq=event.seq,
            timestamp=event.timestamp,
            turn_id=state.turn_id,
            level=event.level,
            title=event.title,
            message=event.message,
            action_url=event.action_url,
        )
    )


def _todos(state: State, event: TodoUpdateEvent) -> None:
    state.todos = customs.plan_of(state, event).todos = event.todos


def _plan_mode(state: State, event: PlanModeEvent) -> None:
    state.plan_mode = event.active
    state.mode = event.mode_id or state.mode
    if event.plan:
        customs.plan_of(state, event).text = event.plan


def _usage(state: State, event: TokenUsageEvent) -> None:
    state.usage = event.cumulative


def _cost(state: State, event: CostUpdateEvent) -> None:
    state.cost = event.cumulative


def _context(state: State, event: ContextWindowEvent) -> None:
    state.context_window = ContextWindow(used=event.used, limit=event.limit, percentage=event.percentage)


def _rate_limit(state: State, event: RateLimitEvent) -> None:
    state.rate_limit = RateLimit(
        retry_after=event.retry_after, limit=event.limit, timestamp=event.timestamp, message=event.message
    )


_HANDLERS: Mapping[type[Event], Callable[[State, Any], None]] = {
    **messages.HANDLERS,
    **calls.HANDLERS,
    **calls.REQUEST_HANDLERS,
    **customs.HANDLERS,
    SessionStartedEvent: _started,
    SessionCompletedEvent: _completed,
    SessionErrorEvent: _failed,
    EnvironmentInfoEvent: _environment,
    NotificationEvent: _notified,
    TodoUpdateEvent: _todos,
    PlanModeEvent: _plan_mode,
    TokenUsageEvent: _usage,
    CostUpdateEvent: _cost,
    ContextWindowEvent: _context,
    RateLimitEvent: _rate_limit,
}
"""Resumed, paused and status changes say nothing but the status, which `status_after` gives."""


KEPT_BYTES = 32 << 10
"""About what is kept of the newest items that could go."""


def shed(state: State, *, newest: int = 0, room: int = KEPT_BYTES) -> None:
    """Let go of finished items, but of none of so many `newest`, nor of those before them that are small enough."""
    kept: list[SessionItem] = []
    gone: list[SessionItem] = []
    last = len(state.items) - 1
    for place, item in zip(range(last, -1, -1), reversed(state.items), strict=True):
        counts_on = place == last and isinstance(item, Failure)  # the same again is counted there
        if place > last - newest or counts_on or not _is_finished(state, item):
            kept.append(item)
        elif room > 0 and (weight := _weight(item)) <= room:
            room -= weight
            kept.append(item)
        else:
            gone.append(item)
    if gone:
        state.items = kept[::-1]
        state.index.shed = counted(gone, state.index.shed)
        for item in gone:
            state.index.forget(item)


def _is_finished(state: State, item: SessionItem) -> bool:
    """Questions, notices and artifacts are few and small, or bounded: they stay."""
    if isinstance(item, (Message, Thought)):
        return item.done
    if isinstance(item, ToolCall):
        return item.ended and not item.unfinished
    if isinstance(item, Approval):
        call = state.index.calls.get(item.tool_call_id)
        return not item.pending and not item.unfinished and (call is None or call.ended)
    if isinstance(item, Plan):
        return item.turn_id != state.turn_id
    return isinstance(item, Failure)


def _weight(item: SessionItem) -> int:
    if isinstance(item, Thought):
        return len(item.text)
    if isinstance(item, Message) and all(isinstance(block, TextRun) for block in item.content):
        return sum(len(block.text) for block in item.content if isinstance(block, TextRun))
    if isinstance(item, ToolCall) and len(item.output) > KEPT_BYTES:
        return len(item.output)
    try:
        return len(_encode(item))
    except (TypeError, ValueError, NotImplementedError, RecursionError):
        return KEPT_BYTES + 1
