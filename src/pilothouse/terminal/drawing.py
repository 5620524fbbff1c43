"""How single things look: a tool call, a diff, a plan, a risk, a block of Markdown.

All text of agents and tools passes through here: no escape sequence reaches the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.text import Text

from ..dialects.texts import clean, shown, title_of, unfenced
from ..dialects.transcript import FileDiffView, ToolCallEntry, shorten_lines
from ..model.previews import split_sections
from ..model.records import Todo

LIMIT = 16 * 1024
"""Characters after which a block is given up as one: a flood must not be held back for its end."""


def size_of(count: float) -> str:
    """A number of bytes."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000 or unit == "MB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:,.1f} {unit}"


class Blocks:
    """Collects streamed Markdown; a blank line outside of a code fence closes a block."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line = ""
        self._size = 0
        self._fence = ""

    def feed(self, text: str) -> list[str]:
        """Add text; the answer is the blocks that it closed."""
        closed = []
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._follow_fence(line)
            if line.strip() or self._fence:
                self._lines.append(line)
                self._size += len(line) + 1
            if self._lines and (not (line.strip() or self._fence) or self._size > LIMIT):
                closed.append(self._take())
        if len(self._line) > LIMIT:
            closed.append(self.close())
        return closed

    def close(self) -> str:
        """Take what is left: nothing more will come."""
        if self._line:
            self._lines.append(self._line)
        self._line, self._fence = "", ""
        return self._take()

    def tail(self, size: int) -> str:
        """The end of the open block."""
        if self._size + len(self._line) <= size:
            return "\n".join([*self._lines, self._line]).strip("\n")
        return "\n".join([*self._lines[-8:], self._line])[-size:]

    def _follow_fence(self, line: str) -> None:
        found = re.match(r"\s*(`{3,}|~{3,})(.*)", line)
        if found is None:
            return
        if not self._fence:
            self._fence = found[1]
        elif found[1].startswith(self._fence) and not found[2].strip():
            self._fence = ""

    def _take(self) -> str:
        lines, self._lines, self._size = self._lines, [], 0
        return "\n".join(lines)


OUTPUT_LINES = 12
DIFF_STYLES = {"+": "green", "-": "red", "@": "dim cyan", "…": "dim"}
UNSHOWN_CHANGE = "The change of this file is not shown."
SHORTEST_ENDS = 16
"""Columns that the two ends of a title need; where there are fewer, the title is not cut but wrapped."""
BOXES = {"completed": ("☑", "green"), "in_progress": ("▸", "yellow"), "pending": ("☐", "dim")}
RISK_STYLES: Mapping[str, str] = {
    "low": "green",
    "medium": "yellow",
    "high": "bold red",
    "critical": "bold white on red",
}


class LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class Prose(Markdown):
    """Markdown with headings where text begins."""

    elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 - as the base class has it


class Trimmed:
    """Something without the empty lines that it puts before and after itself."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._inner, options, pad=False)
        filled = [index for index, line in enumerate(lines) if "".join(segment.text for segment in line).strip()]
        for line in lines[filled[0] : filled[-1] + 1] if filled else ():
            yield from line
            yield Segment.line()


# -- tool calls ---------------------------------------------------------------------------------------------------


def headline(entry: ToolCallEntry) -> str:
    """What a call does, in one line: its command in backticks, else the agent's own title if that says anything."""
    if entry.tool == "Bash" or entry.category == "terminal":
        return code_title(entry.detail) if entry.detail else one_line(entry.title or entry.verb)
    title = one_line(entry.title or "")
    unsaid = {entry.name.lower(), entry.tool.lower(), entry.kind.lower(), "terminal"}
    if title and title.lower() not in unsaid and not (entry.detail and title.endswith("…")):  # it is being prepared
        return title
    return f"{entry.verb} {title_of(entry.detail)}".strip()


def one_line(title: str) -> str:
    """A title on one line; the code in a fence becomes code in a line."""
    text, _ = unfenced(title)
    return title_of(title) if text == title else code_title(text)


def code_title(code: str) -> str:
    """A command as a title: in backticks, on one line, without a fence around it."""
    return f"`{title_of(unfenced(code)[0])}`"


class TitleLine:
    """A tool call on one line: its icon, its title and its suffix.

    A title that is too long for the line loses its middle, never its end. With `wraps` it takes more lines instead.
    """

    def __init__(self, icon: Text, title: Text, suffix: Text, *, wraps: bool = False) -> None:
        self._icon = icon
        self._title = title
        self._suffix = suffix
        self._wraps = wraps

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._wraps:
            yield Quoted(Text.assemble(self._title, self._suffix), self._icon)
            return
        title = self._title
        if options.overflow != "ignore":  # a pipe takes lines of any length
            title = cut_middle(title, options.max_width - self._icon.cell_len - self._suffix.cell_len)
        yield Text.assemble(self._icon, title, self._suffix, overflow="fold")


class Quoted:
    """A text of an agent where a user decides: only its first line has no mark, so no line of it looks like ours.

    `first` stands before the first line, `rest` before every other one, wrapped lines included. Lines that are ours
    begin with `line`; then only wrapped ones have a mark.
    """

    def __init__(self, text: Text, first: Text | str = "  ", rest: str = "  │ ", line: str | None = None) -> None:
        self._text = text
        self._first = first if isinstance(first, Text) else Text(first)
        self._rest = Text(rest, style="dim")
        self._line = self._rest if line is None else Text(line)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(options.max_width - max(self._first.cell_len, self._rest.cell_len), SHORTEST_ENDS)
        for number, line in enumerate(self._text.split("\n", allow_blank=True)):
            prefix = self._line if number else self._first
            wrapped = None if options.no_wrap else line.wrap(console, room, overflow="fold")
            for part in wrapped or [line]:
                yield Text.assemble(prefix, part, overflow="ignore", no_wrap=True)
                prefix = self._rest


def cut_middle(text: Text, room: int) -> Text:
    """Shorten a text to `room` columns by its middle, if it does not fit and there is room for both ends."""
    if text.cell_len <= room:
        return text
    ends = room - len(_omission_note(len(text)))
    if ends < SHORTEST_ENDS:
        return text
    head, tail = _count_fitting(text.plain, ends - ends // 2), _count_fitting(text.plain[::-1], ends // 2)
    note = Text(_omission_note(len(text) - head - tail), style="dim")
    return Text.assemble(text[:head], note, text[len(text) - tail :])


def _omission_note(count: int) -> str:
    return f" … {count:,} characters … "


def _count_fitting(letters: str, columns: int) -> int:
    """How many of the first letters fit into `columns`."""
    used = 0
    for count, letter in enumerate(letters):
        used += cell_len(letter)
        if used > columns:
            return count
    return len(letters)


def title_line(
    icon: str,
    style: str,
    title: str,
    depth: int = 0,
    suffix: str = "",
    warning: str = "",
    *,
    wraps: bool = False,
) -> TitleLine:
    """A tool call on one line; what stands in backticks is code, the suffix is less important, a warning more."""
    start, line, end = Text("  " * depth), Text(), Text()
    if icon:
        start.append(f"{icon} ", style=style)
    pieces = [title] if title.count("`") == 1 else re.split(r"`([^`]+)`", title)
    if title.startswith("`") and title.endswith("`") and len(title) > 1:
        pieces = ["", title[1:-1], ""]  # a command may have backticks of its own
    for index, part in enumerate(pieces):
        if index % 2 and index == 1 and not pieces[0]:
            line.append("$ ", style="dim")
        line.append(part, style="cyan" if index % 2 else "")
    if suffix:
        end.append(f"  {suffix}", style="dim")
    if warning:
        end.append(f"  ⚠ {warning}", style="bold yellow")
    return TitleLine(start, line, end, wraps=wraps)


def counts(diffs: Iterable[FileDiffView]) -> str:
    """Lines added and removed, all files together."""
    added = removed = 0
    for diff in diffs:
        added, removed = added + diff.lines_added, removed + diff.lines_removed
    return f"+{added} −{removed}" if added or removed else ""


def diff_text(diff: str, path: str, root: str = "", limit: int | None = None) -> Text:
    """A unified diff in colour, each file under its name; one with more than `limit` lines loses its middle."""
    text = Text(overflow="fold")
    left = limit
    for section in split_sections(shown(diff)):
        lines = section.lines
        where = display_path(path if section.path is None else section.path, root)
        is_new = section.is_created
        text.append(f"{chr(10) if text else ''}{title_of(where)}{' (new)' if is_new else ''}", style="bold dim")
        if not lines:
            text.append(f"\n{UNSHOWN_CHANGE}", style="yellow")
        while lines and lines[0].startswith("@@"):
            del lines[0]
        for line in lines if left is None else shorten_lines(lines, left):
            text.append("\n⋮" if line.startswith("@@") else f"\n{line}", style=DIFF_STYLES.get(line[:1], ""))
        if left is not None:
            left = max(0, left - len(lines))
    return text


def display_path(path: str, root: str) -> str:
    """A path inside of `root` without it; diffs write it without its first slash."""
    base = root.strip("/") + "/"
    bare = path.lstrip("/")
    return bare[len(base) :] if root and bare.startswith(base) else path


def output_tail(output: str, *, style: str = "dim", lines: int = OUTPUT_LINES) -> Text:
    """The end of what a tool printed."""
    kept = [line for line in clean(output).strip("\n").splitlines() if not line.startswith("```")]
    while kept and not kept[-1].strip():
        kept.pop()
    hidden = len(kept) - lines
    if hidden > 0:
        kept = [f"… {hidden:,} earlier line{'s' * (hidden > 1)}", *kept[hidden:]]
    return Text("\n".join(kept), style=style, no_wrap=True, overflow="ellipsis")


# -- the rest -----------------------------------------------------------------------------------------------------


def plan_step(todo: Todo) -> Text:
    icon, style = BOXES.get(todo.status, BOXES["pending"])
    return Text.assemble((f"{icon} ", style), (title_of(todo.content), "dim" if todo.status == "completed" else ""))


def risk_text(level: str, reasons: Sequence[str], limit: int | None = None) -> Text:
    """A level of risk and why, one reason a line when there are several."""
    text = Text.assemble((f"{level} risk", RISK_STYLES.get(level, "")))
    chosen = [title_of(reason) for reason in reasons[:limit]]
    if len(reasons) == 1:
        return text.append(f": {chosen[0]}")
    for reason in chosen:
        text.append(f"\n  · {reason}")
    if limit is not None and len(reasons) > limit:
        text.append(f"\n  · … {len(reasons) - limit} more", style="dim")
    return text
