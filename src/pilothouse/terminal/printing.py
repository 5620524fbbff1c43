"""Printed lines, styled for a terminal or plain for a pipe, and the live region at the bottom of a terminal.

The rule a change must not break: nothing is painted while the region is hidden, and each time it is shown it is a new
one; an old one would paint over later output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..dialects.texts import duration, shown

APART = ("text", "question", "call body", "user", "end")
"""Things that have an empty line before them also when one of their kind goes before."""


class Printer:
    """Prints things for good, and leaves room between those of different kinds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.plain = not console.is_terminal
        self.last = ""

    def put(self, renderable: RenderableType, kind: str) -> None:
        """Print something of a kind."""
        self.gap(kind)
        self.out(renderable)

    def gap(self, kind: str) -> None:
        """An empty line where one thing ends and another begins."""
        if self.last and (kind != self.last or kind in APART):
            self.out(Text())
        self.last = kind

    def out(self, renderable: RenderableType) -> None:
        # In a group a text keeps its own wrapping; on its own it would take the console's.
        self.console.print(renderable if self.plain else Group(renderable), soft_wrap=self.plain)

    def indented(self, text: Text, depth: int = 1) -> None:
        if not self.plain:
            self.out(Padding(text, (0, 0, 0, 2 * depth)))
            return
        for line in text.split("\n", allow_blank=True):
            self.out(Text("  " * depth).append(line))

    def listed(self, rows: Iterable[tuple[str, str]]) -> None:
        """Words and what they mean, each meaning in a column of its own."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column()
        for word, meaning in rows:
            grid.add_row(Text(word, style="bold"), Text(meaning, style="dim"))
        self.console.print(Padding(grid, (0, 0, 0, 4)))

    def ask(self, text: str | Text) -> int:
        """The line on which an answer is typed; the answer is the column at which that begins."""
        line = Text.assemble(text if isinstance(text, Text) else (text, "bold"), " ")
        self.console.print(line, end="", soft_wrap=True)
        self.last = "prompt"
        return line.cell_len % self.console.width

    def say(self, text: str, style: str = "dim") -> None:
        """A line that belongs to what was printed last."""
        self.out(Text(shown(text), style=style))

    def verbatim(self, text: str) -> None:
        """Letters as they are, without a line end; only where nothing is drawn."""
        self.console.file.write(text)
        self.console.file.flush()


REFRESH = 1 / 12
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Region:
    """What `parts` gives for a frame of the spinner, and below it what is under way, for how long, and `hint`.

    Without `is_live` there is none, and nothing happens.
    """

    def __init__(
        self,
        printer: Printer,
        parts: Callable[[str], Sequence[RenderableType]],
        *,
        is_live: bool,
        clock: Callable[[], float],
        hint: str,
    ) -> None:
        self.is_live = is_live
        self.hint = hint
        self._printer = printer
        self._parts = parts
        self._clock = clock
        self._live: Live | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._doing: tuple[str, float] | None = None
        self._is_stopping = False

    def begin(self, doing: str) -> None:
        """Something is under way from now on."""
        self._doing, self._is_stopping = (doing, self._clock()), False
        self.show()

    def rename(self, doing: str) -> None:
        """What is under way has another name now."""
        self._doing = (doing, self._doing[1] if self._doing else self._clock())

    def stopping(self) -> None:
        """What is under way is being ended."""
        self._is_stopping = True
        if self._live is not None:
            self._live.refresh()

    def end(self) -> None:
        """Nothing is under way any more."""
        self._doing = None

    def show(self) -> None:
        if self.is_live and self._live is None:
            console = self._printer.console
            self._live = Live(get_renderable=self.drawn, console=console, transient=True, auto_refresh=False)
            self._live.start()
            self._ticker = asyncio.get_running_loop().create_task(self._refresh(self._live))

    def hide(self) -> None:
        """Take it away. Again is no harm."""
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    async def _refresh(self, live: Live) -> None:
        # Not by the thread that rich would start: its writes could fall between two of ours.
        while True:
            live.refresh()
            await asyncio.sleep(REFRESH)

    def drawn(self) -> RenderableType:
        """As it looks now."""
        now = self._clock()
        frame = FRAMES[int(now / REFRESH) % len(FRAMES)]
        parts = list(self._parts(frame))
        if self._doing is not None:
            doing, since = self._doing
            doing, hint = ("stopping", "Ctrl-C leaves") if self._is_stopping else (doing, self.hint)
            line = Text.assemble((f"{frame} ", "cyan"), (f"{doing} · {duration((now - since) * 1000)}", "dim"))
            line.append(f" · {hint}", style="dim")
            parts += [Text(), line] if parts or self._printer.last else [line]
        return Group(*parts)
