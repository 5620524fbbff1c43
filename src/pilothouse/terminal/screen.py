"""A session in a terminal: events as lines that stay, and a live region for everything that still changes.

Text is shown block by block: a closed paragraph is printed for good, the open one is in the region below together with
running tool calls and the plan. Without a terminal, or for a session that is over, there is no region; everything is
printed once it is final. The rule a change must not break: all text of an agent or a tool passes through `drawing`
first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ..dialects.texts import duration, shown, standing, title_of, tokens
from ..model.events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    FileChangeBatchEvent,
    FileChangeEvent,
    GitOperationEvent,
    MessageCompleteEvent,
    MessageDeltaEvent,
    MessageStartEvent,
    NotificationEvent,
    PlanModeEvent,
    ProgressEvent,
    RateLimitEvent,
    SessionErrorEvent,
    SubAgentSpawnedEvent,
    ThinkingCompleteEvent,
    ThinkingDeltaEvent,
    TodoUpdateEvent,
    TokenUsageEvent,
    ToolCallArgsDeltaEvent,
    ToolCallErrorEvent,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserQuestionEvent,
    WebOperationEvent,
)
from ..model.records import TextContent, Todo, TokenUsage
from ..model.session import Session, milliseconds_between
from .calls import Calls, Decisions
from .drawing import output_tail, plan_step
from .printing import Printer, Region
from .speech import Speech

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


LEVELS = {"warning": "yellow", "error": "red", "success": "green"}
# what follows the end of a call and is shown with it
WITH_CALL = (FileChangeEvent, FileChangeBatchEvent, GitOperationEvent, WebOperationEvent)


class Screen(Printer):
    """Draws one session. `echo` shows what the user said as well; `live` gives what changes a region of its own, with
    `hint` while something is under way."""

    def __init__(
        self,
        console: Console,
        *,
        echo: bool = False,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        hint: str = "Ctrl-C stops",
    ) -> None:
        super().__init__(console)
        self.session = Session()
        self._speech = Speech(self, echo=echo)
        self._calls = Calls(self, lambda: self.session, clock)
        self.decisions = Decisions(self, self._calls)
        is_live = console.is_terminal if live is None else live
        self.region = Region(self, self._changing, is_live=is_live, clock=clock, hint=hint)
        self._plan: list[Todo] = []
        self._spent: TokenUsage | None = None

    def echo(self, is_on: bool) -> None:
        """Whether what the user says is shown: not what was just typed here."""
        self._speech.echo = is_on

    # -- the life of a turn --

    def begin(self, doing: str = "working") -> None:
        """Something is under way from now on; the region says what."""
        self.region.begin(doing)

    def stopping(self) -> None:
        """What is under way is being ended; from now on that is what the region says."""
        self.region.stopping()
        if not self.region.is_live:
            self.note("Stopping. Ctrl-C again leaves.")

    def pause(self) -> None:
        """Take the region away, so that a question can be asked where it was."""
        self._speech.close()
        self.flush()
        self.region.hide()

    def resume(self) -> None:
        self.region.show()

    def rest(self, *, over: bool = True) -> None:
        """Print what is still in the region and take it away. Calls under way are at their end if all is `over`."""
        self.region.end()
        self._speech.close()
        self.flush()
        self._calls.leave(over=over)
        self._print_plan()
        self.decisions.print_open()
        self.region.hide()

    def _changing(self, frame: str) -> list[RenderableType]:
        """What the region shows besides what is under way."""
        text = self._speech.open
        parts = [*([text] if text is not None else []), *self._calls.running(frame)]
        return [*parts, Text(), *map(plan_step, self._plan)] if self._plan else parts

    # -- events --

    def show(self, event: Event) -> None:
        """Draw one event. Call `flush` when no other event is at hand."""
        ended = self._calls.ended
        if ended is not None and not isinstance(event, WITH_CALL) and _unasked(event) != ended:
            self.flush()
        self.session.apply(event)
        draw = _DRAW.get(type(event))
        if draw is not None:
            draw(self, event)

    def flush(self) -> None:
        """Print the call that has ended: nothing more is known of it for now."""
        self._calls.flush()

    def note(self, text: str, style: str = "dim") -> None:
        self._speech.close()
        self.put(Text(shown(text), style=style), "note")

    # text

    def _message_start(self, event: MessageStartEvent) -> None:
        self._speech.close()

    def _message_delta(self, event: MessageDeltaEvent) -> None:
        self._speech.add(event.role, event.message_id, event.delta, event.content)

    def _message_complete(self, event: MessageCompleteEvent) -> None:
        if not self._speech.knows(event.role, event.message_id):
            for block in event.content:
                text = block.text if isinstance(block, TextContent) else ""
                self._speech.add(event.role, event.message_id, text, block)
        self._speech.close()

    def _thinking_delta(self, event: ThinkingDeltaEvent) -> None:
        self._speech.add("thought", event.message_id, event.delta, event.content)

    def _thinking_complete(self, event: ThinkingCompleteEvent) -> None:
        if not self._speech.knows("thought", event.message_id):
            self._speech.add("thought", event.message_id, event.content)
        self._speech.close()

    # tool calls

    def _call_known(self, event: ToolCallStartEvent | ToolCallExecutingEvent | ToolCallArgsDeltaEvent) -> None:
        self._speech.close()
        self._calls.known(event.tool_call_id)

    def _call_ended(self, event: ToolCallResultEvent | ToolCallErrorEvent) -> None:
        self._speech.close()
        self._calls.ended = event.tool_call_id

    def _progress(self, event: ProgressEvent) -> None:
        if event.tool_call_id is None and event.label:
            self.region.rename(title_of(event.label))

    # the plan

    def _todos(self, event: TodoUpdateEvent) -> None:
        self._plan = event.todos
        if all(todo.status == "completed" for todo in event.todos):
            self._print_plan()

    def _print_plan(self) -> None:
        if self._plan:
            self._speech.close()
            self.put(Group(*map(plan_step, self._plan)), "plan")
        self._plan = []

    # approvals and questions

    def _asked(self, event: ApprovalRequestedEvent) -> None:
        self._speech.close()
        self.decisions.requested(event)

    def _resolved(self, event: ApprovalResolvedEvent) -> None:
        self.decisions.resolved(event)

    def _question(self, event: UserQuestionEvent) -> None:
        self._speech.close()
        self.decisions.questioned(event)

    # the rest

    def _error(self, event: SessionErrorEvent) -> None:
        self._speech.close()
        self.put(Text.assemble(("✗ ", "bold red"), (shown(event.error.message), "red")), "error")
        details = event.error.details if isinstance(event.error.details, Mapping) else {}
        tail = details.get("stderrTail") or details.get("stderr")
        if isinstance(tail, str) and tail.strip():
            self.indented(output_tail(tail))

    def _notification(self, event: NotificationEvent) -> None:
        self.note(f"{event.title}. {event.message}".strip(". "), LEVELS.get(event.level, "cyan"))

    def _mode(self, event: PlanModeEvent) -> None:
        self.note(f"mode: {event.mode_id or ('plan' if event.active else 'normal')}", "magenta")

    def _rate_limit(self, event: RateLimitEvent) -> None:
        wait = f"; it may go on in {event.retry_after:g} s" if event.retry_after else ""
        self.note(f"The provider is limiting{': ' + event.message if event.message else ''}{wait}", "yellow")

    def _used(self, event: TokenUsageEvent) -> None:
        """The tokens of the turn that is about to end."""
        self._spent = event.delta

    def _spawned(self, event: SubAgentSpawnedEvent) -> None:
        self.note(f"↳ {title_of(event.task)}")

    def _custom(self, event: CustomEvent) -> None:
        data = event.data if isinstance(event.data, dict) else {}
        if event.namespace == "pilothouse" and event.event_name == "turn_ended":
            self.rest()
            text, style = ending(self.session, self._spent)
            self._spent = None
            self.put(Text(text, style=style), "end")
        elif event.namespace == "pilothouse" and event.event_name == "question_answered":
            self.decisions.answered(data)
        elif (ended := self._calls.ended) is not None and _unasked(event) == ended:
            how = "although it was denied" if data.get("denied") else "without asking"
            self._calls.warn(ended, f"ran {how} ({title_of(str(data.get('riskLevel')))} risk)")
        elif (event.namespace, event.event_name) in _FACTS:
            wording, style = _FACTS[event.namespace, event.event_name]
            self.note(wording.format_map(_Words(data)), style)


def _unasked(event: Event) -> str | None:
    """The call that this event says was never asked for."""
    if isinstance(event, CustomEvent) and event.event_name == "acted_without_asking":
        return str(event.data.get("toolCallId"))
    return None


class _Words(dict[str, Any]):
    """The data of a fact, for a sentence about it."""

    def __missing__(self, key: str) -> str:
        return "?"


_FACTS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("pilothouse", "agent_killed"): ("The agent was ended: {reason}.", "yellow"),
    ("pilothouse", "acted_without_asking"): ("⚠ {name} ran without asking ({riskLevel} risk).", "bold yellow"),
    ("pilothouse", "session_reset"): ("The agent had forgotten this session and begins anew.", "yellow"),
    ("acp", "compaction_update"): ("The agent shortens its memory of the conversation: {status}", "magenta"),
}


_DRAW: Mapping[type[Event], Callable[[Screen, Any], None]] = {
    MessageStartEvent: Screen._message_start,
    MessageDeltaEvent: Screen._message_delta,
    MessageCompleteEvent: Screen._message_complete,
    ThinkingDeltaEvent: Screen._thinking_delta,
    ThinkingCompleteEvent: Screen._thinking_complete,
    ToolCallStartEvent: Screen._call_known,
    ToolCallArgsDeltaEvent: Screen._call_known,
    ToolCallExecutingEvent: Screen._call_known,
    ToolCallResultEvent: Screen._call_ended,
    ToolCallErrorEvent: Screen._call_ended,
    ProgressEvent: Screen._progress,
    TodoUpdateEvent: Screen._todos,
    ApprovalRequestedEvent: Screen._asked,
    ApprovalResolvedEvent: Screen._resolved,
    UserQuestionEvent: Screen._question,
    SessionErrorEvent: Screen._error,
    NotificationEvent: Screen._notification,
    PlanModeEvent: Screen._mode,
    RateLimitEvent: Screen._rate_limit,
    SubAgentSpawnedEvent: Screen._spawned,
    TokenUsageEvent: Screen._used,
    CustomEvent: Screen._custom,
}
