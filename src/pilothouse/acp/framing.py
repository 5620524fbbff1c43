"""Bytes to lines. No I/O, no JSON: a chunk goes in, the complete lines come out.

A line longer than the limit is not kept: its bytes are counted and dropped, and an `Oversize` stands in its place,
so that neither a huge nor an endless line can exhaust memory or end the connection.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEFAULT_LINE_LIMIT", "LARGE", "LineFramer", "Oversize", "breath"]

DEFAULT_LINE_LIMIT = 64 * 1024 * 1024
"""Images travel as base64 in one line; agents have been seen to send lines of some tens of megabytes."""

SAMPLE = 200

LARGE = 1 << 20
"""A longer line is handled in steps: each pass over it takes milliseconds in which nothing else can happen."""
PACE = 1e9


def breath(size: int) -> float:
    """Seconds to pause between two passes over so many bytes: about what a pass takes, so that others keep pace."""
    return size / PACE


class Oversize(NamedTuple):
    """A line that was skipped because it was longer than the limit."""

    size: int
    head: bytes

    def __len__(self) -> int:
        """What of it is in memory."""
        return len(self.head)

    def startswith(self, prefix: bytes | tuple[bytes, ...]) -> bool:
        """It stands among lines and begins like none of them."""
        return False


class LineFramer:
    """Splits a byte stream at newlines. After the last chunk call `finish` for a line without its newline."""

    def __init__(self, limit: int = DEFAULT_LINE_LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"the line limit must be positive, got {limit}")
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """The lines that `data` completes, without their newline and without blank ones."""
        end = data.find(b"\n")
        if end < 0:
            self._keep(data)
            return []
        if end == len(data) - 1 and not self._size and 0 < end <= self.limit:
            # one line and nothing else, as in every exchange of question and answer
            line = data[:end]
            return [] if line.isspace() else [line]
        first, *rest = data.split(b"\n")
        self._keep(first)
        tail = rest.pop()
        lines = self._take()
        # whole chunks of well-formed lines are the rule, so the exceptions are looked for all at once
        if len(data) > self.limit or b"" in rest or any(map(bytes.isspace, rest)):
            lines += [self._checked(line) for line in rest if not _is_blank(line)]
        else:
            lines += rest
        if tail:
            self._keep(tail)
        return lines

    def finish(self) -> list[bytes | Oversize]:
        """What is left at the end of the stream."""
        return self._take()

    def _checked(self, line: bytes) -> bytes | Oversize:
        return line if len(line) <= self.limit else Oversize(len(line), line[:SAMPLE])

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._skipping:
            return
        self._parts.append(part)
        if self._size > self.limit:
            self._head = b"".join(self._parts)[:SAMPLE]
            self._parts = []
            self._skipping = True

    def _take(self) -> list[bytes | Oversize]:
        taken: list[bytes | Oversize] = []
        if self._skipping:
            taken.append(Oversize(self._size, self._head))
        elif self._size:
            line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            if not _is_blank(line):
                taken.append(line)
        self._parts = []
        self._size = 0
        self._skipping = False
        return taken


def _is_blank(line: bytes) -> bool:
    return not line or line.isspace()
