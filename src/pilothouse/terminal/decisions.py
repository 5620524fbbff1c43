"""What a person decides, in a terminal: approvals and questions, open or settled, and who settled them.

The rule a change must not break: where somebody decides, all that is asked for is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from ..model.events import ApprovalRequestedEvent, ApprovalResolvedEvent, UserQuestionEvent
from ..model.records import CommandPreview, DiffPreview
from .calls import DIFF_LINES, Calls
from .drawing import diff_text, headline, risk_text, title_line
from .printing import Printer
from .texts import shown, title_of

__all__ = ["Decisions"]

ALWAYS = re.compile(r"always:(rule_\w+)")
HOW = {"allowed": "green", "denied": "red", "cancelled": "yellow"}


class Decisions:
    """Those that nobody has answered are kept until they are shown. `rules` are what the rules made by "always" are
    called, by their ids."""

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
        """What is asked for, how risky it is and why, and what it would do."""
        printer = self._printer
        self._open.pop(event.request_id, None)
        entry = self._calls.entry(event.tool_call_id)
        title = headline(entry) if entry is not None else title_of(event.description or event.tool_name)
        line = title_line("?", "bold yellow", title)
        line.no_wrap = False
        printer.put(line, "question")
        self._preview(event, title, whole=whole)
        printer.indented(risk_text(event.risk_level, event.risk_reasons, 4))

    def _preview(self, event: ApprovalRequestedEvent, title: str, *, whole: bool) -> None:
        printer, preview, root = self._printer, event.preview, self._calls.root
        if isinstance(preview, DiffPreview):
            printer.indented(diff_text(preview.diff, preview.path, root, None if whole else DIFF_LINES))
            self._calls.seen(event.tool_call_id)
        elif isinstance(preview, CommandPreview):
            if "\n" in preview.command or shown(preview.command) not in title:
                printer.indented(Text(shown(preview.command), style="cyan", overflow="fold"))
            if preview.working_dir and preview.working_dir.rstrip("/") != root.rstrip("/"):
                printer.indented(Text(f"in {title_of(preview.working_dir)}", style="dim"))
        elif preview is not None and preview.text and title_of(preview.text) not in title:
            printer.indented(Text(shown(preview.text if whole else _head(preview.text)), style="dim", overflow="fold"))

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
        """What the agent wants to know."""
        self._open.pop(event.question_id, None)
        self._printer.put(Text.assemble(("? ", "bold yellow"), shown(event.question)), "question")
        if event.url:
            self._printer.indented(Text(shown(event.url), style="cyan underline", overflow="fold"))

    def answered(self, data: Mapping[str, Any]) -> None:
        asked = self._open.pop(str(data.get("questionId")), None)
        if isinstance(asked, UserQuestionEvent):
            self.question(asked)
        self._printer.out(Text(f"  {_answer(data)}", style="yellow"))

    def print_open(self) -> None:
        """Somebody else is being asked: a session was read while it waits."""
        for event in tuple(self._open.values()):
            if isinstance(event, ApprovalRequestedEvent):
                self.approval(event, whole=False)
            else:
                self.question(event)
            self._printer.out(Text("  waiting for an answer", style="bold yellow"))


def _head(text: str) -> str:
    """The first lines of a text, for who is not deciding on it just now."""
    lines = text.split("\n")
    return "\n".join(lines[:DIFF_LINES] + [f"… {len(lines) - DIFF_LINES:,} more lines"] * (len(lines) > DIFF_LINES))


def _answer(data: Mapping[str, Any]) -> str:
    answer = data.get("answer")
    if data.get("outcome") != "answered":
        return str(data.get("outcome") or "not answered")
    pairs = answer.items() if isinstance(answer, Mapping) else [("", answer)]
    return title_of(", ".join(f"{key}: {value}" if key else str(value) for key, value in pairs))
