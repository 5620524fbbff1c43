"""The live region: the lines at the bottom of a terminal that are painted anew while something changes.

The rule a change must not break: nothing is painted while it is away, and each time it comes it is a new one; an old
one would paint over what was printed meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ..dialects.texts import duration
from .printing import Printer

__all__ = ["Region"]

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
