"""Tool calls in a terminal: those that run, the one that has just ended, and how a call is printed for good.

The rule a change must not break: a call is printed once, when all that belongs to its end has come; what follows its
result (files that changed, a warning) is shown with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from ..dialects.texts import duration
from ..dialects.transcript import ToolCallEntry, entry_of
from ..model.session import Session
from .drawing import OUTPUT_LINES, counts, diff_text, headline, output_tail, title_line
from .printing import Printer

__all__ = ["DIFF_LINES", "Calls"]

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
