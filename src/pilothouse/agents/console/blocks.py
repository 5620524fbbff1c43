"""Streamed Markdown cut into blocks, so that each can be printed as soon as it is whole."""

from __future__ import annotations

__all__ = ["Blocks"]

LIMIT = 16 * 1024
"""Characters after which a block is given up as one: a flood must not be held back for its end."""


class Blocks:
    """Collects text; a blank line outside of a code fence closes a block."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line = ""
        self._size = 0
        self._fenced = False

    def feed(self, text: str) -> list[str]:
        """Add text; the answer is the blocks that it closed."""
        closed = []
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.lstrip().startswith("```"):
                self._fenced = not self._fenced
            if line.strip() or self._fenced:
                self._lines.append(line)
                self._size += len(line) + 1
            if self._lines and (not (line.strip() or self._fenced) or self._size > LIMIT):
                closed.append(self._take())
        if len(self._line) > LIMIT:
            closed.append(self.close())
        return closed

    def close(self) -> str:
        """Take what is left: nothing more will come."""
        if self._line:
            self._lines.append(self._line)
        self._line, self._fenced = "", False
        return self._take()

    def tail(self, size: int) -> str:
        """The end of the open block."""
        if self._size + len(self._line) <= size:
            return "\n".join([*self._lines, self._line]).strip("\n")
        return "\n".join([*self._lines[-8:], self._line])[-size:]

    def _take(self) -> str:
        lines, self._lines, self._size = self._lines, [], 0
        return "\n".join(lines)
