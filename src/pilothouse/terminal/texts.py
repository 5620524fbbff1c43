"""Text of agents and tools, made fit for a terminal: no escape sequence reaches it, and streams are cut into blocks."""

from __future__ import annotations

import re

__all__ = ["Blocks", "clean", "duration", "shown", "size_of", "title_of"]

LIMIT = 16 * 1024
"""Characters after which a block is given up as one: a flood must not be held back for its end."""

# sequences with parameters, strings for the terminal (titles, links, clipboard), and two-character ones
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|\x9b[0-?]*[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# characters that turn the direction of text, or cannot be seen: a command must not look like another
_HIDDEN = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def clean(text: str) -> str:
    """What a program printed, without anything that steers a terminal. Lines that were overwritten show their end."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    return _CONTROLS.sub("", text).expandtabs(4)


def shown(text: str) -> str:
    """Text on which somebody decides: what could hide something in it is made visible, nothing is taken away."""
    text = _CONTROLS.sub(lambda found: _picture(found[0]), text.replace("\r\n", "\n"))
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text).expandtabs(4)


def _picture(control: str) -> str:
    code = ord(control)
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def title_of(text: str) -> str:
    """A title on one line."""
    return " ".join(shown(text).split())


def duration(milliseconds: float) -> str:
    seconds = milliseconds / 1000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


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
