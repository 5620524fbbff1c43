"""Lines typed at the terminal, without keeping the event loop from its work.

The terminal hands over single keys and shows none of them by itself: keys pressed while something is being drawn would
land in the drawing. What is typed is shown here, and a paste of many lines is one answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from types import ModuleType

from rich.cells import cell_len

from .editing import Line

termios: ModuleType | None
try:
    import termios
except ImportError:  # Windows, where a thread reads the lines and the echo stays
    termios = None

__all__ = ["Interrupted", "Keyboard"]

PASTES_MARKED, PASTES_PLAIN = "\x1b[?2004h", "\x1b[?2004l"


class Interrupted(Exception):
    """Ctrl-C was pressed where nothing was typed."""


class Keyboard:
    """Reads one line at a time; a read can be cancelled. `close` leaves the terminal as it was."""

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno()
        self._original = termios.tcgetattr(self._descriptor) if termios is not None else None
        self._line = Line()
        self._shown = ""
        self._indent = 0
        self._is_marking = False
        self._typed: asyncio.Future[bytes] | None = None

    async def line(self, indent: int = 0) -> str | None:
        """The next line, or None at its end (Ctrl-D). It begins at a column. Raises Interrupted."""
        if termios is None:
            return await asyncio.to_thread(_blocking_line)
        self.quiet()
        self._indent, self._shown = indent, ""
        self._line.begin()
        self._draw()
        while not (self._line.is_ended or self._line.is_over):
            data = await self._part()
            if not data:  # the terminal was closed
                return None
            self._line.feed(data)
            self._draw()
        if self._line.is_over:
            return None
        _write("\n")
        return self._line.text

    def interrupt(self) -> None:
        """Ctrl-C while a line is read: what was typed is dropped, and where that is nothing the reader is told."""
        if self._typed is None or self._typed.done():
            return
        if self._shown or self._line.text:
            self._line.clear()
            self._draw()
        else:
            self._typed.set_exception(Interrupted())

    def put_back(self) -> None:
        """A line that was being typed and is not read on: the next one begins with it."""
        self._line.put_back()

    def forget(self) -> None:
        """Drop what was typed before anybody asked: it cannot be the answer to a question not yet shown."""
        self._line.clear()
        if termios is not None:
            with contextlib.suppress(termios.error):
                termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def quiet(self) -> None:
        """Take the keys over: from now on the terminal shows none by itself."""
        if termios is None:
            return
        with contextlib.suppress(termios.error):  # the terminal was closed
            attributes = termios.tcgetattr(self._descriptor)
            attributes[3] &= ~(termios.ECHO | termios.ICANON)
            attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self._descriptor, termios.TCSANOW, attributes)
        if not self._is_marking:
            self._is_marking = True
            _write(PASTES_MARKED)

    def close(self) -> None:
        """Leave the terminal as it was, if it is still there."""
        if termios is not None:
            if self._is_marking:
                self._is_marking = False
                _write(PASTES_PLAIN)
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._original)

    async def _part(self) -> bytes:
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[bytes] = loop.create_future()
        self._typed = typed
        loop.add_reader(self._descriptor, _read, self._descriptor, typed)
        try:
            return await typed
        finally:
            self._typed = None
            loop.remove_reader(self._descriptor)

    def _draw(self) -> None:
        """Show the line as it now is."""
        text = self._line.text.replace("\t", "    ")
        if text.startswith(self._shown):
            _write(text[len(self._shown) :])
        else:
            rows = _rows(self._shown, self._indent, shutil.get_terminal_size().columns)
            up = f"\x1b[{rows}A" if rows else ""
            _write(f"{up}\x1b[{self._indent + 1}G\x1b[J{text}")
        self._shown = text


def _rows(text: str, indent: int, columns: int) -> int:
    """How many rows a text goes down from where it begins."""
    first, *others = text.split("\n")
    widths = [indent + cell_len(first), *map(cell_len, others)]
    return len(others) + sum(max(0, width - 1) // columns for width in widths)


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        data = text.encode(errors="replace")
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]


def _read(descriptor: int, typed: asyncio.Future[bytes]) -> None:
    if typed.done():
        return
    try:
        typed.set_result(os.read(descriptor, 65536))
    except OSError:
        typed.set_result(b"")


def _blocking_line() -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\r\n") if line else None
