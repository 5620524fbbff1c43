"""Text of agents and tools, made fit for a terminal: no escape sequence reaches it, and streams are cut into blocks."""

from __future__ import annotations

import re

__all__ = ["Blocks", "size_of"]

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
