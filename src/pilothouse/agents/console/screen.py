"""What the console shows: updates of a session as lines that stay, and a live region for what is still changing.

Text is shown block by block: a closed paragraph is printed for good, the open one lives in the region below together
with running tool calls and the plan. Without a terminal there is no region and no colour; everything is printed as it
is, once it is final.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.spinner import Spinner
from rich.text import Text

from ...acp import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    CompactionSummaryChunk,
    ContentBlock,
    ContentToolCallContent,
    Diagnostic,
    FileEditToolCallContent,
    PermissionOption,
    PlanEntry,
    PromptResponse,
    SessionUpdate,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UserMessageChunk,
)
from .blocks import Blocks
from .drawing import Prose, Trimmed, block_name, diff_text, output_tail, plan_step, title_line, update_note

__all__ = ["Screen"]

DIFF_LINES = 30
OPEN_TEXT = 1500
"""Characters that are shown of a block while it grows."""
REFRESH = 1 / 12
ENDED = {"completed": ("✓", "green"), "failed": ("✗", "red")}


@dataclass
class Shown:
    """A tool call as far as it is known."""

    title: str = ""
    kind: str = "other"
    status: str = "pending"
    content: list[Any] = field(default_factory=list)
    depth: int = 0
    seen: bool = False  # its diff has been on the screen


class Screen:
    """Draws one session."""

    def __init__(self, console: Console, root: Path, terminal_text: Callable[[str], str]) -> None:
        self.console = console
        self._root = root
        self.plain = not console.is_terminal
        self._terminal_text = terminal_text
        self._live: Live | None = None
        self._ticker: asyncio.Task[None]
        self._last = ""
        self.reset()

    def reset(self) -> None:
        """Forget what was under way; for a new turn, or a new agent."""
        self._blocks = Blocks()
        self._speaker: type | None = None
        self._calls: dict[str, Shown] = {}
        self._plan: list[PlanEntry] = []
        self._plan_shown = True

    # -- the life of a turn --

    def begin(self) -> None:
        self.reset()
        self._last = self._last or ("" if self.plain else "prompt")
        self.resume()

    def pause(self) -> None:
        """Take the region away, so that a question can be asked where it was."""
        self._close_text()
        self._stop()

    def resume(self) -> None:
        # A new region each time: an old one would paint over what was printed meanwhile.
        if not self.plain:
            self._live = Live(get_renderable=self._region, console=self.console, transient=True, auto_refresh=False)
            self._live.start()
            self._ticker = asyncio.get_running_loop().create_task(self._refresh(self._live))

    def close(self) -> None:
        """Print what is still in the region and take it away."""
        self._close_text()
        for call in self._calls.values():
            call.status = "failed"  # its end was never reported
            self._print_call(call)
        self._calls = {}
        self._print_plan()
        self._stop()

    def end(self, outcome: PromptResponse | str) -> None:
        """Say how a turn ended."""
        self.close()
        if isinstance(outcome, str):
            self._print(Text(outcome, style="red"), "end")
            return
        usage = f" · {outcome.usage.total_tokens} tokens" if outcome.usage is not None else ""
        style = "dim" if outcome.stop_reason == "end_turn" else "yellow"
        self._print(Text(f"{outcome.stop_reason}{usage}", style=style), "end")

    # -- updates --

    def show(self, update: SessionUpdate) -> None:
        if isinstance(update, (AgentMessageChunk, AgentThoughtChunk, UserMessageChunk, CompactionSummaryChunk)):
            self._chunk(type(update), update.content)
            return
        if isinstance(update, AvailableCommandsUpdate):
            return  # `help` shows them better
        self._close_text()
        if isinstance(update, (ToolCallStart, ToolCallProgress)):
            self._call(update)
        elif isinstance(update, AgentPlanUpdate):
            self._change_plan(update.entries)
        else:
            self.note(*update_note(update))

    def note(self, text: str, style: str = "dim") -> None:
        self._print(Text(text, style=style), "note")

    def interrupted(self) -> None:
        """The user has asked for the turn to end."""
        self._close_text()
        self.note("Stopping. Ctrl-C again leaves.")

    def diagnostic(self, diagnostic: Diagnostic) -> None:
        text = Text(f"ignored: {str(diagnostic)[:200]}", style="dim yellow", no_wrap=True, overflow="ellipsis")
        self._print(text, "note")

    def _chunk(self, speaker: type, block: ContentBlock) -> None:
        if speaker is not self._speaker:
            self._close_text()
            self._speaker = speaker
        if isinstance(block, TextContentBlock):
            for closed in self._blocks.feed(block.text):
                self._print_text(closed)
        else:
            self._close_text()
            self.note(f"[{block_name(block)}]", "cyan")

    def _close_text(self) -> None:
        self._print_text(self._blocks.close())
        self._speaker = None

    def _print_text(self, text: str) -> None:
        if not text.strip():
            return
        if not self.plain:
            self._print(self._styled(text), "text")
            return
        aside = self._speaker is not AgentMessageChunk
        self._print(Text("\n".join(f"… {line}" for line in text.splitlines()) if aside else text), "text")

    def _styled(self, text: str) -> RenderableType:
        if self._speaker is not AgentMessageChunk:
            return Text(text.strip(), style="dim italic")
        return Trimmed(Prose(text, code_theme="ansi_dark"))

    # -- tool calls --

    def _call(self, update: ToolCallStart | ToolCallProgress) -> None:
        call = self._merge(update)
        if call.status in ENDED:
            self._print_call(call)
            self._calls.pop(update.tool_call_id, None)

    def _merge(self, update: ToolCallStart | ToolCallProgress | ToolCallUpdate) -> Shown:
        call = self._calls.setdefault(update.tool_call_id, Shown())
        call.title = update.title or call.title
        call.kind = update.kind or call.kind
        call.status = update.status or call.status
        call.content = update.content if update.content is not None else call.content
        meta = (update.field_meta or {}).get("pilothouse")
        if isinstance(meta, dict) and meta.get("parentToolCallId") in self._calls:
            call.depth = 1
        return call

    def _print_call(self, call: Shown) -> None:
        icon, style = ENDED[call.status]
        body = [part for part in self._body(call) if part]
        self._print(title_line(icon, style, call.title, call.depth), "call body" if body else "call")
        for part in body:
            self._out_indented(part, 1 + call.depth)

    def _body(self, call: Shown) -> Iterable[Text]:
        for item in call.content:
            if isinstance(item, FileEditToolCallContent) and not call.seen:
                yield diff_text(item, self._root, DIFF_LINES)
            elif isinstance(item, TerminalToolCallContent):
                yield output_tail(self._terminal_text(item.terminal_id))
            elif isinstance(item, ContentToolCallContent) and isinstance(item.content, TextContentBlock):
                text = item.content.text
                if call.kind == "read" and call.status == "completed":
                    continue  # a file that was read is not worth the room
                yield output_tail(text, style="red" if call.status == "failed" else "dim")

    # -- the plan --

    def _change_plan(self, entries: list[PlanEntry]) -> None:
        before, self._plan = self._plan, entries
        self._plan_shown = False
        if self.plain:
            known = {(entry.content, entry.status) for entry in before}
            for entry in entries:
                if (entry.content, entry.status) not in known:
                    self._print(plan_step(entry), "plan")
            self._plan_shown = True
        elif all(entry.status == "completed" for entry in entries):
            self._print_plan()

    def _print_plan(self) -> None:
        if not self._plan_shown:
            self._print(Group(*map(plan_step, self._plan)), "plan")
        self._plan, self._plan_shown = ([] if not self.plain else self._plan), True

    # -- questions --

    def permission(self, tool_call: ToolCallUpdate, options: list[PermissionOption] | None) -> None:
        """What is asked for; with `options` also how to answer."""
        call = self._merge(tool_call)
        title = title_line("?", "bold yellow", call.title, call.depth)
        title.no_wrap = False
        self._print(title, "question")
        if not call.seen:
            for item in call.content:
                if isinstance(item, FileEditToolCallContent):
                    self._out_indented(diff_text(item, self._root))  # all of it: nothing asked for is hidden
            call.seen = True
        for number, option in enumerate(options or (), 1):
            style = "green" if option.kind.startswith("allow") else "red"
            self._out(Text.assemble("  ", (f"{number}", f"bold {style}"), f" {option.name}"))

    def answer(self, text: str) -> None:
        """How a question was answered when nobody was asked."""
        self._out(Text(f"  {text}", style="yellow"))

    def ask(self, text: str) -> None:
        """The line on which an answer is typed."""
        self.console.print(Text.assemble((text, "bold"), " "), end="")
        self._last = "prompt"

    def introduce(self, where: str) -> None:
        lines = Text.assemble(
            "This is the ",
            ("scripted agent", "bold"),
            ": no model, no network, yet its files, commands and questions are real. It works in ",
            (where, "cyan"),
            ".\n\n",
            ("Enter", "bold green"),
            " starts the tour · ",
            ("help", "bold green"),
            " lists what it knows · ",
            ("Ctrl-C", "bold"),
            " stops it · ",
            ("quit", "bold"),
            " leaves",
        )
        self.console.print(Panel(lines, title="Pilothouse", title_align="left", border_style="blue", padding=(0, 1)))

    # -- drawing --

    async def _refresh(self, live: Live) -> None:
        # Not by the thread that rich would start: its writes could fall between two of ours.
        while True:
            live.refresh()
            await asyncio.sleep(REFRESH)

    def _stop(self) -> None:
        if self._live is not None:
            self._ticker.cancel()
            self._live.stop()
            self._live = None

    def _region(self) -> RenderableType:
        parts: list[RenderableType] = []
        if text := self._blocks.tail(OPEN_TEXT).strip():
            parts.append(self._styled(text) if len(text) < OPEN_TEXT else Text(f"…{text}"))
        parts += [
            Spinner("dots", title_line("", "", call.title, call.depth), style="yellow")
            for call in tuple(self._calls.values())
        ]
        if self._plan and not self._plan_shown:
            parts += [Text(), *map(plan_step, self._plan)]
        return Group(*parts)

    def _print(self, renderable: RenderableType, kind: str) -> None:
        """Print something for good, with an empty line where one thing ends and another begins."""
        if self._last and (kind != self._last or kind in ("text", "question", "call body")):
            self._out(Text())
        self._last = kind
        self._out(renderable)

    def _out(self, renderable: RenderableType) -> None:
        # In a group a text keeps its own wrapping; on its own it would take the console's.
        self.console.print(renderable if self.plain else Group(renderable), soft_wrap=self.plain)

    def _out_indented(self, text: Text, depth: int = 1) -> None:
        if not self.plain:
            self._out(Padding(text, (0, 0, 0, 2 * depth)))
            return
        for line in text.split("\n", allow_blank=True):
            self._out(Text("  " * depth).append(line))
