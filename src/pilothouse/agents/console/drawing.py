"""How single things look: a tool call, a diff, a step of a plan, a block of Markdown."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.text import Text

from ...acp import (
    AudioContentBlock,
    CompactionUpdate,
    ConfigOptionUpdate,
    ContentBlock,
    CurrentModeUpdate,
    EmbeddedResourceContentBlock,
    FileEditToolCallContent,
    ImageContentBlock,
    Notice,
    PlanEntry,
    ResourceContentBlock,
    SessionInfoUpdate,
    SessionUpdate,
    UsageUpdate,
)

__all__ = ["Prose", "Trimmed", "block_name", "diff_text", "output_tail", "plan_step", "title_line", "update_note"]

OUTPUT_LINES = 12
DIFF_STYLES = {"+": "green", "-": "red", "@": "dim"}
BOXES = {"completed": ("☑", "green"), "in_progress": ("▸", "yellow"), "pending": ("☐", "dim")}


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


def title_line(icon: str, style: str, title: str, depth: int = 0) -> Text:
    """A tool call on one line; what stands in backticks is code."""
    line = Text("  " * depth, no_wrap=True, overflow="ellipsis")
    if icon:
        line.append(f"{icon} ", style=style)
    for index, part in enumerate(re.split(r"`([^`]+)`", title.replace("\n", " "))):
        if index % 2:
            line.append("$ ", style="dim")
        line.append(part, style="cyan" if index % 2 else "")
    return line


def diff_text(diff: FileEditToolCallContent, root: Path, limit: int | None = None) -> Text:
    """A change as a unified diff, at most `limit` lines of it."""
    old, new = (diff.old_text or "").splitlines(), diff.new_text.splitlines()
    lines = list(difflib.unified_diff(old, new, lineterm="", n=3))[3:]
    path = Path(diff.path)
    name = path.relative_to(root) if path.is_relative_to(root) else path
    text = Text(overflow="fold")
    text.append(f"{name}{' (new)' if diff.old_text is None else ''}", style="bold dim")
    for line in lines[:limit]:
        mark = line[:1]
        text.append("\n⋮" if mark == "@" else f"\n{line}", style=DIFF_STYLES.get(mark, ""))
    if limit is not None and len(lines) > limit:
        text.append(f"\n… {len(lines) - limit} more lines", style="dim")
    return text


def output_tail(output: str, *, style: str = "dim") -> Text:
    lines = [line for line in output.strip().splitlines() if not line.startswith("```")]
    hidden = len(lines) - OUTPUT_LINES
    kept = [f"… {hidden} earlier line{'s' * (hidden > 1)}", *lines[hidden:]] if hidden > 0 else lines
    return Text("\n".join(kept), style=style, no_wrap=True, overflow="ellipsis")


def plan_step(entry: PlanEntry) -> Text:
    icon, style = BOXES[entry.status]
    return Text.assemble((f"{icon} ", style), (entry.content, "dim" if entry.status == "completed" else ""))


def block_name(block: ContentBlock) -> str:
    if isinstance(block, (ImageContentBlock, AudioContentBlock)):
        return f"{block.mime_type}, {len(block.data) * 3 // 4} bytes"
    if isinstance(block, ResourceContentBlock):
        return f"{block.title or block.name}: {block.uri}"
    if isinstance(block, EmbeddedResourceContentBlock):
        return f"embedded: {block.resource.uri}"
    return "content of an unknown kind"


def update_note(update: SessionUpdate) -> tuple[str, str]:
    """The updates that are worth one line."""
    if isinstance(update, CurrentModeUpdate):
        return f"mode: {update.current_mode_id}", "magenta"
    if isinstance(update, ConfigOptionUpdate):
        values = ", ".join(f"{option.id} = {option.current_value}" for option in update.config_options)
        return f"options: {values}", "magenta"
    if isinstance(update, UsageUpdate):
        cost = f" · {update.cost.amount:.6f} {update.cost.currency}" if update.cost is not None else ""
        return f"usage: {update.used} of {update.size} tokens{cost}", "magenta"
    if isinstance(update, SessionInfoUpdate):
        return f"title: {update.title or '(none)'}", "magenta"
    if isinstance(update, Notice):
        style = {"warning": "yellow", "error": "red"}.get(update.severity, "cyan")
        return f"{update.severity}: {update.title}. {update.description or ''}".strip(), style
    if isinstance(update, CompactionUpdate):
        return f"compaction: {update.status}", "magenta"
    return f"{getattr(update, 'session_update', 'unknown')} update", "dim"
