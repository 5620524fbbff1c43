"""Lines typed at the terminal, without blocking the event loop.

The terminal delivers single keys and echoes none of them: keys pressed while something is drawn would land in the
drawing. Typed text is echoed here. Pasted text is between marks that the terminal sets, and is part of the line
whatever it holds: only a key ends a line. Key sequences without a meaning here are dropped, so that they never become
text.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import shutil
import sys
from types import ModuleType

from rich.cells import cell_len

PASTE, PASTED = b"\x1b[200~", b"\x1b[201~"
SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;:<=>?]*[ -/]*[@-~]|O[ -~]|[^\[O])", re.DOTALL)
TEXT = re.compile(rb"[^\x00-\x1f\x7f]+")
END_OF_INPUT, ERASE, ERASE_WORD, ERASE_ALL = b"\x04", (b"\x7f", b"\x08"), b"\x17", b"\x15"


class Line:
    """Feed it what comes from the keyboard; `text` is what the line holds. What lies beyond its end is kept."""

    def __init__(self) -> None:
        self.text = ""
        self.is_ended = False
        """Enter was pressed."""
        self.is_over = False
        """Nothing more will be typed: Ctrl-D on an empty line."""
        self._raw = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def begin(self) -> None:
        """The next line; what was typed ahead goes into it."""
        self.text, self.is_ended, self.is_over = "", False, False
        self.feed(b"")

    def put_back(self) -> None:
        """What was typed belongs to the next line: this one is not to be ended."""
        if self.text:
            self._raw = PASTE + self.text.encode() + PASTED + self._raw
            self.text = ""

    def clear(self) -> None:
        """Drop what was typed, also beyond the end."""
        self.text, self._raw = "", b""
        self._decoder.reset()

    def feed(self, data: bytes) -> None:
        self._raw += data
        while self._raw and not (self.is_ended or self.is_over):
            taken = self._take(self._raw)
            if not taken:
                return
            self._raw = self._raw[taken:]

    def _take(self, raw: bytes) -> int:
        """Use the beginning; how much that was, nothing while it is incomplete."""
        if raw.startswith(PASTE):
            end = raw.find(PASTED)
            if end < 0:
                return 0
            self._paste(raw[len(PASTE) : end])
            return end + len(PASTED)
        if raw[:1] == b"\x1b":
            found = SEQUENCE.match(raw)
            return found.end() if found is not None else 0
        if (run := TEXT.match(raw)) is not None:
            self.text += "".join(filter(str.isprintable, self._decoder.decode(run[0])))
            return run.end()
        self._key(raw[:1])
        return 1

    def _paste(self, data: bytes) -> None:
        text = data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        text = text if self.text else text.lstrip("\n")
        self.text += "".join(one for one in text if one.isprintable() or one in "\n\t")

    def _key(self, key: bytes) -> None:
        if key in (b"\r", b"\n"):
            self.is_ended = True
        elif key == END_OF_INPUT:
            self.is_over = not self.text
        elif key in ERASE:
            self.text = self.text[:-1]
        elif key == ERASE_WORD:
            self.text = re.sub(r"\S*\s*\Z", "", self.text)
        elif key == ERASE_ALL:
            self.text = ""
        elif key == b"\t":
            self.text += "\t"


termios: ModuleType | None
try:
    import termios
except ImportError:  # Windows, where a thread reads the lines and the echo stays
    termios = None


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
