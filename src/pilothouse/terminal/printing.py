"""Where lines go: to a terminal with its styles, or plain to whoever reads a pipe."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..dialects.texts import shown

__all__ = ["Printer"]

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
