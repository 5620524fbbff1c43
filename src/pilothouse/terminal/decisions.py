"""Approvals and questions in a terminal: what is requested, the hub's notes, and who decided.

The rule a change must not break: where a user decides, the whole request is shown and no character of it is hidden.
Elsewhere a long text may lose its middle, never its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from ..dialects.texts import shown, title_of
from ..dialects.transcript import shorten_lines, shorten_middle
from ..model.events import ApprovalRequestedEvent, ApprovalResolvedEvent, UserQuestionEvent
from ..model.previews import list_unshown_members, list_unshown_of_questions, split_command
from ..model.records import CommandPreview, DiffPreview
from .calls import DIFF_LINES, Calls
from .drawing import Quoted, diff_text, headline, one_line, risk_text, title_line
from .printing import Printer

__all__ = ["Decisions", "member_line"]

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
