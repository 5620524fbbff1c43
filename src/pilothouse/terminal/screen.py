"""What a session looks like in a terminal: events as lines that stay, and a live region for what is still changing.

Text is shown block by block: a closed paragraph is printed for good, the open one lives in the region below together
with running tool calls and the plan. Without a terminal, or for a session that is over, there is no region; everything
is printed once it is final. Whatever an agent or a tool wrote passes through texts.py first.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from ..dialects.transcript import ToolCallEntry, entry_of
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
from ..model.records import CommandPreview, DiffPreview, TextContent, Todo, TokenUsage
from ..model.session import Session
from .drawing import (
    OUTPUT_LINES,
    counts,
    diff_text,
    headline,
    output_tail,
    plan_step,
    risk_text,
    title_line,
)
from .endings import ending
from .printing import Printer
from .speech import Speech
from .texts import duration, shown, title_of

__all__ = ["Screen"]

DIFF_LINES = 30
REFRESH = 1 / 12
ALWAYS = re.compile(r"always:(rule_\w+)")
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ENDED = {"completed": ("✓", "green"), "failed": ("✗", "red"), "cancelled": ("⊘", "yellow")}
LEVELS = {"warning": "yellow", "error": "red", "success": "green"}
UNSHOWN = ("file_read", "search", "web")
"""Calls whose output is not worth the room: files that were read, lists of hits, pages."""
LIVE = ("terminal", "other")
"""Calls whose output is shown while they run: commands, and what may be one; some agents do not say."""
# what follows the end of a call and is shown with it
WITH_CALL = (FileChangeEvent, FileChangeBatchEvent, GitOperationEvent, WebOperationEvent)


class Screen(Printer):
    """Draws one session. `echo` shows what the user said as well; `live` gives what changes a region of its own.

    `hint` is shown while something is under way.
    """

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
        self._speech = Speech(self, echo=echo)
        self.session = Session()
        self._is_live = console.is_terminal if live is None else live
        self._clock = clock
        self.hint = hint
        self.rules: Mapping[str, str] = {}
        """What the rules made by "always" are called, by their ids."""
        self._is_stopping = False
        self._live: Live | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._busy: tuple[str, float] | None = None
        self._calls: dict[str, float] = {}
        self._ended: str | None = None
        self._plan: list[Todo] = []
        self._asks: dict[str, Event] = {}
        self._seen: set[str] = set()
        self._notes: dict[str, str] = {}
        self._warnings: dict[str, str] = {}
        self._unbegun: set[str] = set()
        self._spent: TokenUsage | None = None

    def echo(self, is_on: bool) -> None:
        """Whether what the user says is shown: not what was just typed here."""
        self._speech.echo = is_on

    @property
    def root(self) -> str:
        return self.session.working_directory or self.session.project_path

    # -- the life of a turn --

    def begin(self, doing: str = "working") -> None:
        """Something is under way from now on; the region says what."""
        self._busy, self._is_stopping = (doing, self._clock()), False
        self.resume()

    def stopping(self) -> None:
        """What is under way is being ended; from now on that is what the region says."""
        self._is_stopping = True
        if not self._is_live:
            self.note("Stopping. Ctrl-C again leaves.")
        elif self._live is not None:
            self._live.refresh()

    def pause(self) -> None:
        """Take the region away, so that a question can be asked where it was."""
        self._speech.close()
        self.flush()
        self._stop()

    def resume(self) -> None:
        # A new region each time: an old one would paint over what was printed meanwhile.
        if self._is_live and self._live is None:
            self._live = Live(get_renderable=self._region, console=self.console, transient=True, auto_refresh=False)
            self._live.start()
            self._ticker = asyncio.get_running_loop().create_task(self._refresh(self._live))

    def rest(self, *, over: bool = True) -> None:
        """Print what is still in the region and take it away. Calls under way are at their end if all is `over`."""
        self._busy = None
        self._speech.close()
        self.flush()
        for call_id in tuple(self._calls) if over else ():
            self._print_call(call_id)
        self._calls.clear()
        self._print_plan()
        for ask in tuple(self._asks.values()):
            self._print_open(ask)
        self._stop()

    # -- events --

    def show(self, event: Event) -> None:
        """Draw one event. Call `flush` when no other event is at hand."""
        if self._ended is not None and not isinstance(event, WITH_CALL) and _unasked(event) != self._ended:
            self.flush()
        self.session.apply(event)
        draw = _DRAW.get(type(event))
        if draw is not None:
            draw(self, event)

    def flush(self) -> None:
        """Print the call that has ended: nothing more is known of it for now."""
        if self._ended is not None:
            call_id, self._ended = self._ended, None
            self._print_call(call_id)
            self._calls.pop(call_id, None)

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
        call = self.session.tool_call(event.tool_call_id)
        if call is not None and not call.ended:
            self._calls.setdefault(event.tool_call_id, self._clock())

    def _progress(self, event: ProgressEvent) -> None:
        if event.tool_call_id is None and event.label:
            self._busy = (title_of(event.label), self._busy[1] if self._busy else self._clock())

    def _call_ended(self, event: ToolCallResultEvent | ToolCallErrorEvent) -> None:
        self._speech.close()
        self._ended = event.tool_call_id

    def _entry(self, call_id: str) -> ToolCallEntry | None:
        call = self.session.tool_call(call_id)
        entry = entry_of(call, self.session) if call is not None else None
        return entry if isinstance(entry, ToolCallEntry) else None

    def _print_call(self, call_id: str) -> None:
        entry = self._entry(call_id)
        if entry is None or entry.tool == "TodoWrite":
            return  # the plan says it
        icon, style = ENDED.get(entry.status, ("✗", "red"))  # its end was never reported
        # a call that was never let begin has only waited
        took = 0 if call_id in self._unbegun else entry.duration or 0
        suffix = [counts(entry.diffs), duration(took) if took >= 100 else ""]
        suffix.append(self._notes.pop(call_id, ""))
        body = [part for part in self._body(entry) if part]
        depth = self._depth(entry)
        warning = self._warnings.pop(call_id, "")
        line = title_line(icon, style, headline(entry), depth, " · ".join(filter(None, suffix)), warning)
        self.put(line, "call body" if body else "call")
        for part in body:
            self.indented(part, 1 + depth)

    def _depth(self, entry: ToolCallEntry) -> int:
        depth, parent = 0, entry.parent_tool_call_id
        while parent is not None and depth < 5:
            call = self.session.tool_call(parent)
            depth, parent = depth + 1, call.parent_tool_call_id if call is not None else None
        return depth

    def _body(self, entry: ToolCallEntry) -> Iterable[Text]:
        if entry.status == "completed" and entry.tool_call_id not in self._seen:
            for diff in entry.diffs:
                if diff.diff:
                    yield diff_text(diff.diff, diff.path, self.root, DIFF_LINES)
        if entry.error is not None and not entry.output:
            yield output_tail(entry.error.message, style="red")
        elif entry.output and (entry.status == "failed" or not (entry.diffs or entry.category in UNSHOWN)):
            most = 4 if entry.category == "agent" else OUTPUT_LINES
            yield output_tail(entry.output, style="red" if entry.status == "failed" else "dim", lines=most)

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
        self._asks[event.request_id] = event
        self._unbegun.add(event.tool_call_id)

    def approval(self, event: ApprovalRequestedEvent, *, whole: bool = True) -> None:
        """What is asked for, how risky it is and why, and what it would do."""
        self._asks.pop(event.request_id, None)
        entry = self._entry(event.tool_call_id)
        title = headline(entry) if entry is not None else title_of(event.description or event.tool_name)
        line = title_line("?", "bold yellow", title)
        line.no_wrap = False
        self.put(line, "question")
        preview = event.preview
        if isinstance(preview, DiffPreview):
            # all of it where somebody decides: nothing asked for is hidden
            self.indented(diff_text(preview.diff, preview.path, self.root, None if whole else DIFF_LINES))
            self._seen.add(event.tool_call_id)
        elif isinstance(preview, CommandPreview):
            if "\n" in preview.command or shown(preview.command) not in title:
                self.indented(Text(shown(preview.command), style="cyan", overflow="fold"))
            if preview.working_dir and preview.working_dir.rstrip("/") != self.root.rstrip("/"):
                self.indented(Text(f"in {title_of(preview.working_dir)}", style="dim"))
        elif preview is not None and preview.text and title_of(preview.text) not in title:
            self.indented(Text(shown(preview.text[:2000]), style="dim", overflow="fold"))
        self.indented(risk_text(event.risk_level, event.risk_reasons, 4))

    def _resolved(self, event: ApprovalResolvedEvent) -> None:
        asked = self._asks.pop(event.request_id, None)
        if event.approved:
            self._unbegun.discard(event.tool_call_id)
        if event.approved and event.tool_call_id in self._calls:
            self._calls[event.tool_call_id] = self._clock()  # it begins only now
        if event.approved and event.resolved_by == "policy":
            self._notes[event.tool_call_id] = f"allowed by {self._decider(event.decided_by or 'policy')}"
            return
        if isinstance(asked, ApprovalRequestedEvent):
            self.approval(asked, whole=False)
        how = "allowed" if event.approved else "cancelled" if event.resolved_by == "cancelled" else "denied"
        by = event.decided_by or event.resolved_by
        who = f" by {self._decider(by)}" if by not in ("user", how) else ""
        why = f": {title_of(event.reason)}" if event.reason and how != "allowed" else ""
        style = {"allowed": "green", "denied": "red"}.get(how, "yellow")
        self.out(Text(f"  {how}{who}{why}", style=style))
        self.last = "question"

    def _decider(self, by: str) -> str:
        """Who or what decided, in words: a rule is called what it allows, not by its id."""
        return title_of(ALWAYS.sub(lambda found: self.rules.get(found[1], "a rule of yours (always)"), by))

    def _print_open(self, event: Event) -> None:
        """Somebody else is being asked: a session was read while it waits."""
        if isinstance(event, ApprovalRequestedEvent):
            self.approval(event, whole=False)
        elif isinstance(event, UserQuestionEvent):
            self.question(event)
        self.out(Text("  waiting for an answer", style="bold yellow"))

    def _question(self, event: UserQuestionEvent) -> None:
        self._speech.close()
        self._asks[event.question_id] = event

    def question(self, event: UserQuestionEvent) -> None:
        """What the agent wants to know."""
        self._asks.pop(event.question_id, None)
        self.put(Text.assemble(("? ", "bold yellow"), shown(event.question)), "question")
        if event.url:
            self.indented(Text(shown(event.url), style="cyan underline", overflow="fold"))

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
            asked = self._asks.pop(str(data.get("questionId")), None)
            if isinstance(asked, UserQuestionEvent):
                self.question(asked)
            self.out(Text(f"  {_answer(data)}", style="yellow"))
        elif self._ended is not None and _unasked(event) == self._ended:
            self._warnings[self._ended] = f"ran without asking ({title_of(str(data.get('riskLevel')))} risk)"
        elif (event.namespace, event.event_name) in _FACTS:
            wording, style = _FACTS[event.namespace, event.event_name]
            self.note(wording.format_map(_Words(data)), style)

    # -- drawing --

    async def _refresh(self, live: Live) -> None:
        # Not by the thread that rich would start: its writes could fall between two of ours.
        while True:
            live.refresh()
            await asyncio.sleep(REFRESH)

    def _stop(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _region(self) -> RenderableType:
        parts: list[RenderableType] = []
        if (text := self._speech.open) is not None:
            parts.append(text)
        now = self._clock()
        frame = FRAMES[int(now / REFRESH) % len(FRAMES)]
        for call_id, since in tuple(self._calls.items()):
            entry = self._entry(call_id)
            if entry is None or entry.tool == "TodoWrite":
                continue
            has_taken = call_id not in self._unbegun and now - since >= 1
            suffix = duration((now - since) * 1000) if has_taken else ""
            parts.append(title_line(frame, "yellow", headline(entry), self._depth(entry), suffix))
            if entry.output and entry.category in LIVE:
                parts.append(Padding(output_tail(entry.output, lines=5), (0, 0, 0, 2)))
        if self._plan:
            parts += [Text(), *map(plan_step, self._plan)]
        if self._busy is not None:
            doing, since = self._busy
            doing, hint = ("stopping", "Ctrl-C leaves") if self._is_stopping else (doing, self.hint)
            line = Text.assemble((f"{frame} ", "cyan"), (f"{doing} · {duration((now - since) * 1000)}", "dim"))
            line.append(f" · {hint}", style="dim")
            parts += [Text(), line] if parts or self.last else [line]
        return Group(*parts)


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


def _answer(data: Mapping[str, Any]) -> str:
    answer = data.get("answer")
    if data.get("outcome") != "answered":
        return str(data.get("outcome") or "not answered")
    pairs = answer.items() if isinstance(answer, Mapping) else [("", answer)]
    return title_of(", ".join(f"{key}: {value}" if key else str(value) for key, value in pairs))


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
