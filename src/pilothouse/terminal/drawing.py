"""How single things look: a tool call, a diff, a plan, a risk, a block of Markdown. All text in them is harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.text import Text

from ..dialects.transcript import FileDiffView, ToolCallEntry
from ..model.records import Todo
from .texts import clean, shown, title_of

__all__ = [
    "RISK_STYLES",
    "Prose",
    "Trimmed",
    "counts",
    "diff_text",
    "display_path",
    "headline",
    "output_tail",
    "plan_step",
    "risk_text",
    "title_line",
]

OUTPUT_LINES = 12
DIFF_STYLES = {"+": "green", "-": "red", "@": "dim cyan"}
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
        return f"`{title_of(entry.detail)}`" if entry.detail else title_of(entry.title or entry.verb)
    title = title_of(entry.title or "")
    unsaid = {entry.name.lower(), entry.tool.lower(), entry.kind.lower(), "terminal"}
    if title and title.lower() not in unsaid and not (entry.detail and title.endswith("…")):  # it is being prepared
        return title
    return f"{entry.verb} {title_of(entry.detail)}".strip()


def title_line(icon: str, style: str, title: str, depth: int = 0, suffix: str = "", warning: str = "") -> Text:
    """A tool call on one line; what stands in backticks is code, the suffix is less important, a warning more."""
    line = Text("  " * depth, no_wrap=True, overflow="ellipsis")
    if icon:
        line.append(f"{icon} ", style=style)
    pieces = [title] if title.count("`") == 1 else re.split(r"`([^`]+)`", title)
    if title.startswith("`") and title.endswith("`") and len(title) > 1:
        pieces = ["", title[1:-1], ""]  # a command may have backticks of its own
    for index, part in enumerate(pieces):
        if index % 2 and index == 1 and not pieces[0]:
            line.append("$ ", style="dim")
        line.append(part, style="cyan" if index % 2 else "")
    if suffix:
        line.append(f"  {suffix}", style="dim")
    if warning:
        line.append(f"  ⚠ {warning}", style="bold yellow")
    return line


def counts(diffs: Iterable[FileDiffView]) -> str:
    """Lines added and removed, all files together."""
    added = removed = 0
    for diff in diffs:
        added, removed = added + diff.lines_added, removed + diff.lines_removed
    return f"+{added} −{removed}" if added or removed else ""


def diff_text(diff: str, path: str, root: str = "", limit: int | None = None) -> Text:
    """A unified diff in colour, each file under its name, at most `limit` lines of it."""
    text = Text(overflow="fold")
    left = limit
    for name, lines in split_diff(shown(diff)):
        created = name is not None and name.startswith("+")
        where = display_path(path if name is None else name.lstrip("+"), root)
        text.append(f"{chr(10) if text else ''}{title_of(where)}{' (new)' if created else ''}", style="bold dim")
        while lines and lines[0].startswith("@@"):
            del lines[0]
        for line in lines[:left]:
            text.append("\n⋮" if line.startswith("@@") else f"\n{line}", style=DIFF_STYLES.get(line[:1], ""))
        if left is not None:
            if len(lines) > left:
                text.append(f"\n… {len(lines) - left:,} more lines", style="dim")
            left = max(0, left - len(lines))
    return text


def split_diff(diff: str) -> list[tuple[str | None, list[str]]]:
    """The files of a diff: a name, with a `+` before that of a new file, and the lines below it.

    Only a header that a hunk follows is one: a line that was taken out may begin with `--- ` as well.
    """
    files: list[tuple[str | None, list[str]]] = []
    lines = diff.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    index = 0
    while index < len(lines):
        head = lines[index : index + 3]
        if len(head) == 3 and head[0][:4] == "--- " and head[1][:4] == "+++ " and head[2][:2] == "@@":
            old, new = head[0][4:], head[1][4:]
            gone = new == "/dev/null"
            name = ("+" if old == "/dev/null" else "") + re.sub(r"^[ab]/", "", old if gone else new)
            files.append((name, []))
            index += 2
            continue
        if not files:
            files.append((None, []))
        files[-1][1].append(lines[index])
        index += 1
    return files


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
        text.append(f"\n  · … {len(reasons) - limit} more; ? shows them", style="dim")
    return text
