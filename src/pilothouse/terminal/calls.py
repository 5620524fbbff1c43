"""Tool calls, approvals and questions in a terminal: the running ones, and how each is printed for good.

Rules a change must not break: a call is printed once, when everything that belongs to its end has come (changed files,
a warning). Where a user decides, the whole request is shown and no character of it is hidden; elsewhere a long text may
lose its middle, never its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from ..dialects.texts import duration, shown, title_of
from ..dialects.transcript import ToolCallEntry, entry_of, shorten_lines, shorten_middle
from ..model.events import ApprovalRequestedEvent, ApprovalResolvedEvent, UserQuestionEvent
from ..model.previews import list_unshown_members, list_unshown_of_questions, split_command
from ..model.records import CommandPreview, DiffPreview
from ..model.session import Session
from .drawing import OUTPUT_LINES, Quoted, counts, diff_text, headline, one_line, output_tail, risk_text, title_line
from .printing import Printer

DIFF_LINES = 30
DEEPEST = 5
ENDED = {"completed": ("✓", "green"), "failed": ("✗", "red"), "cancelled": ("⊘", "yellow")}
OPEN = ("…", "yellow")
"""Of a call of which no end is known: it waits for somebody, or goes on elsewhere."""
UNSHOWN = ("file_read", "search", "web")
"""Calls whose output is not worth the room: files that were read, lists of hits, pages."""
LIVE = ("terminal", "other")
"""Calls whose output is shown while they run: commands, and what may be one; some agents do not say."""


class Calls:
    """Of the session that `session` gives. `ended` is the call that has ended and is not printed yet."""

    def __init__(self, printer: Printer, session: Callable[[], Session], clock: Callable[[], float]) -> None:
        self._printer = printer
        self._session = session
        self._clock = clock
        self._running: dict[str, float] = {}
        self._notes: dict[str, str] = {}
        self._warnings: dict[str, str] = {}
        self._unbegun: set[str] = set()
        self._seen: set[str] = set()
        self.ended: str | None = None

    @property
    def root(self) -> str:
        """Where the session works."""
        session = self._session()
        return session.working_directory or session.project_path

    def entry(self, call_id: str) -> ToolCallEntry | None:
        session = self._session()
        call = session.tool_call(call_id)
        entry = entry_of(call, session) if call is not None else None
        return entry if isinstance(entry, ToolCallEntry) else None

    # -- what happens to them --

    def known(self, call_id: str) -> None:
        """Something was told of a call."""
        call = self._session().tool_call(call_id)
        if call is not None and not call.ended:
            self._running.setdefault(call_id, self._clock())

    def asked(self, call_id: str) -> None:
        """It does not begin before somebody has allowed it."""
        self._unbegun.add(call_id)

    def allowed(self, call_id: str) -> None:
        """It begins only now."""
        self._unbegun.discard(call_id)
        if call_id in self._running:
            self._running[call_id] = self._clock()

    def note(self, call_id: str, text: str) -> None:
        """Something to be said with it, when it is printed."""
        self._notes[call_id] = text

    def warn(self, call_id: str, text: str) -> None:
        self._warnings[call_id] = text

    def seen(self, call_id: str) -> None:
        """What it changes was shown already."""
        self._seen.add(call_id)

    # -- printed for good --

    def flush(self) -> None:
        """Print the call that has ended: nothing more is known of it for now."""
        if self.ended is not None:
            call_id, self.ended = self.ended, None
            self._print(call_id)
            self._running.pop(call_id, None)

    def leave(self, *, over: bool) -> None:
        """None runs any more; those that did are printed if all is `over`."""
        for call_id in tuple(self._running) if over else ():
            self._print(call_id)
        self._running.clear()

    def _print(self, call_id: str) -> None:
        entry = self.entry(call_id)
        if entry is None or entry.tool == "TodoWrite":
            return  # the plan says it
        icon, style = ENDED.get(entry.status, OPEN)
        # a call that was never let begin has only waited
        took = 0 if call_id in self._unbegun else entry.duration or 0
        suffix = [_exit_code(entry), counts(entry.diffs), duration(took) if took >= 100 else ""]
        suffix.append(self._notes.pop(call_id, ""))
        body = [part for part in self._body(entry) if part]
        depth = self._depth(entry)
        warning = self._warnings.pop(call_id, "")
        line = title_line(icon, style, headline(entry), depth, " · ".join(filter(None, suffix)), warning)
        self._printer.put(line, "call body" if body else "call")
        for part in body:
            self._printer.indented(part, 1 + depth)

    def _depth(self, entry: ToolCallEntry) -> int:
        depth, parent = 0, entry.parent_tool_call_id
        while parent is not None and depth < DEEPEST:
            call = self._session().tool_call(parent)
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

    # -- while they run --

    def running(self, frame: str) -> Iterator[RenderableType]:
        """Each as it looks now, behind a `frame` of the spinner."""
        now = self._clock()
        for call_id, since in tuple(self._running.items()):
            entry = self.entry(call_id)
            if entry is None or entry.tool == "TodoWrite":
                continue
            has_taken = call_id not in self._unbegun and now - since >= 1
            suffix = duration((now - since) * 1000) if has_taken else ""
            yield title_line(frame, "yellow", headline(entry), self._depth(entry), suffix)
            if entry.output and entry.category in LIVE:
                yield Padding(output_tail(entry.output, lines=5), (0, 0, 0, 2))


def _exit_code(entry: ToolCallEntry) -> str:
    """How a command ended that failed and has printed something; of one that has not, the error says it."""
    details = entry.error.details if entry.error is not None else None
    code = details.get("exitCode") if isinstance(details, dict) else None
    return f"exit code {code}" if isinstance(code, int) and code and entry.output else ""


ASKED_BY_HUB = "The agent did not request approval. Pilothouse asks before it does this."
LONGEST_LINE = 1000
"""Characters of one line of a request, where no user decides on it."""
REASONS = 4
"""Reasons for a risk, where no user decides."""
ALWAYS = re.compile(r"always:(rule_\w+)")
HOW = {"allowed": "green", "denied": "red", "cancelled": "yellow"}


class Decisions:
    """Shows approvals and questions; pending ones are kept until they are shown. `rules` has the texts of the stored
    rules by their ids."""

    def __init__(self, printer: Printer, calls: Calls) -> None:
        self._printer = printer
        self._calls = calls
        self._open: dict[str, ApprovalRequestedEvent | UserQuestionEvent] = {}
        self.rules: Mapping[str, str] = {}

    def requested(self, event: ApprovalRequestedEvent) -> None:
        self._open[event.request_id] = event
        self._calls.asked(event.tool_call_id)

    def questioned(self, event: UserQuestionEvent) -> None:
        self._open[event.question_id] = event

    def approval(self, event: ApprovalRequestedEvent, *, whole: bool) -> None:
        """The hub's notes, then what is requested, what it would do, and its risk. `whole`: nothing is left out."""
        printer = self._printer
        self._open.pop(event.request_id, None)
        entry = self._calls.entry(event.tool_call_id)
        title = headline(entry) if entry is not None else one_line(event.description or event.tool_name)
        title = _without_fence(title, event)
        printer.gap("question")
        for note in event.notes or ([ASKED_BY_HUB] if event.origin == "hub" else []):
            printer.out(Quoted(Text(shown(note), style="yellow"), Text("! ", style="bold yellow")))
        printer.out(title_line("?", "bold yellow", title, wraps=True))
        self._preview(event, title, whole=whole)
        printer.out(Quoted(risk_text(event.risk_level, event.risk_reasons, None if whole else REASONS), line="  "))

    def _preview(self, event: ApprovalRequestedEvent, title: str, *, whole: bool) -> None:
        printer, preview, root = self._printer, event.preview, self._calls.root
        if isinstance(preview, DiffPreview):
            printer.indented(diff_text(preview.diff, preview.path, root, None if whole else DIFF_LINES))
            self._calls.seen(event.tool_call_id)
            self._members("Other arguments", list_unshown_members(event.tool_input, preview, root), whole=whole)
            return
        if isinstance(preview, CommandPreview):
            command, _ = split_command(preview.command, event.tool_input)
            if command and ("\n" in command or f"`{shown(command)}`" != title):
                line = Text(_lines(command.rstrip("\n"), whole=whole), style="cyan")
                printer.out(Quoted(line, Text("  $ ", style="dim")))
            if preview.working_dir and preview.working_dir.rstrip("/") != root.rstrip("/"):
                printer.out(Quoted(Text(f"in {title_of(preview.working_dir)}", style="dim")))
            self._members("Other arguments", list_unshown_members(event.tool_input, preview, root), whole=whole)
            return
        text = preview.text if preview is not None else ""
        if text and not _is_repeated(text, title, event):
            is_name = title_of(text) == event.tool_name
            first = "  Tool: " if is_name else "  │ "
            printer.out(Quoted(Text(_lines(text, whole=whole), style="dim"), Text(first, style="dim")))
        if event.question_ids:
            members = list_unshown_of_questions(event.tool_input)
        else:
            given = list_unshown_members(event.tool_input, preview, root).items()
            members = {name: value for name, value in given if str(value).strip() != title.strip()}
        self._members("Arguments", members, whole=whole)

    def _members(self, label: str, members: Mapping[str, Any], *, whole: bool) -> None:
        """Arguments of a call below a label, each as `name: value`."""
        if members:
            self._printer.out(Text(f"  {label}:", style="dim"))
        for name, value in members.items():
            self._printer.out(member_line(name, value, "    ", whole=whole))

    def resolved(self, event: ApprovalResolvedEvent) -> None:
        asked = self._open.pop(event.request_id, None)
        if event.approved:
            self._calls.allowed(event.tool_call_id)
        if event.approved and event.resolved_by == "policy":
            self._calls.note(event.tool_call_id, f"allowed by {self._decider(event.decided_by or 'policy')}")
            return
        if isinstance(asked, ApprovalRequestedEvent):
            self.approval(asked, whole=False)
        how = "allowed" if event.approved else "cancelled" if event.resolved_by == "cancelled" else "denied"
        by = event.decided_by or event.resolved_by
        who = f" by {self._decider(by)}" if by not in ("user", how) else ""
        why = f": {title_of(event.reason)}" if event.reason and how != "allowed" else ""
        self._printer.out(Text(f"  {how}{who}{why}", style=HOW[how]))
        self._printer.last = "question"

    def _decider(self, by: str) -> str:
        """Who or what decided, in words: a rule is called what it allows, not by its id."""
        return title_of(ALWAYS.sub(lambda found: self.rules.get(found[1], "a rule of yours (always)"), by))

    def question(self, event: UserQuestionEvent) -> None:
        """Show a question of the agent."""
        self._open.pop(event.question_id, None)
        self._printer.put(Quoted(Text(shown(event.question)), Text("? ", style="bold yellow")), "question")
        if event.url:
            self._printer.out(Quoted(Text(shown(event.url), style="cyan underline")))

    def answered(self, data: Mapping[str, Any]) -> None:
        asked = self._open.pop(str(data.get("questionId")), None)
        if isinstance(asked, UserQuestionEvent):
            self.question(asked)
        self._printer.out(Text(f"  {_answer(data)}", style="yellow"))

    def print_open(self) -> None:
        """Pending approvals and questions of a session that is only read. Questions of an approval follow it."""
        pending = tuple(self._open.values())
        approvals = [event for event in pending if isinstance(event, ApprovalRequestedEvent)]
        questions = {event.question_id: event for event in pending if isinstance(event, UserQuestionEvent)}
        for approval in approvals:
            self.approval(approval, whole=False)
            for question_id in approval.question_ids:
                if (question := questions.pop(question_id, None)) is not None:
                    self.question(question)
            self._printer.out(Text("  waiting for an answer", style="bold yellow"))
        for question in questions.values():
            self.question(question)
            self._printer.out(Text("  waiting for an answer", style="bold yellow"))


def _without_fence(title: str, event: ApprovalRequestedEvent) -> str:
    """A title that is only the command in a fence, as code in a line."""
    found = re.fullmatch(r"(`{3,})([\w+#.-]*) (.*?) ?\1", title)
    if found is None or not isinstance(event.preview, CommandPreview):
        return title
    command = title_of(event.preview.command)
    return f"`{command}`" if command in (found[3], f"{found[2]} {found[3]}") else title


def _is_repeated(text: str, title: str, event: ApprovalRequestedEvent) -> bool:
    """Whether the title or a reason for the risk says the same as a preview."""
    line = title_of(text)
    return (line in (title, event.tool_name) and line in title) or line in map(title_of, event.risk_reasons)


def member_line(name: str, value: Any, indent: str, *, whole: bool = True) -> Quoted:
    """One argument of a call: no line of it looks like another argument."""
    text = value if isinstance(value, str) else _json(value)
    line = Text.assemble((f"{title_of(str(name))}: ", "dim"), _lines(text, whole=whole))
    return Quoted(line, indent, f"{indent}│ ")


def _lines(text: str, *, whole: bool) -> str:
    """A text with hidden characters made visible; without `whole` only its head and its tail, if it is long."""
    text = shown(text)
    if whole:
        return text
    return "\n".join(shorten_middle(line, LONGEST_LINE) for line in shorten_lines(text.split("\n"), DIFF_LINES))


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _answer(data: Mapping[str, Any]) -> str:
    answer = data.get("answer")
    if data.get("outcome") != "answered":
        return str(data.get("outcome") or "not answered")
    pairs = answer.items() if isinstance(answer, Mapping) else [("", answer)]
    return title_of(", ".join(f"{key}: {value}" if key else str(value) for key, value in pairs))
