"""What a program prints, in bounded memory: its end for whoever asks, and pieces of it for whoever follows.

`Tail` keeps the last bytes; `Pieces` hands text on as it comes. Both take any amount of any bytes: whole UTF-8
characters stay whole however the reads fall, and what is no UTF-8 becomes U+FFFD. No loop, no clock: the time comes in
as an argument.
"""

from __future__ import annotations

import codecs
from collections import deque

__all__ = ["Pieces", "Tail"]

CHUNK = 16 * 1024
"""Small writes are put together to pieces of this size, so that a program that prints single bytes costs no more."""
PIECE = 64 * 1024
"""Bytes of one piece of followed output."""
BURST = 256 * 1024
RATE = 256
"""Bytes that are handed on at once, and then per second; a flood beyond is left out of the pieces and counted.

A build log passes whole; what a program prints in a day of flooding comes to some 20 MB in an event log."""
GLIMPSE = 4 * 1024
"""Bytes of the end of a flood that are shown now and then."""


class Tail:
    """The last `limit` bytes of an output as text; its UTF-8 is never longer than that."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytearray] = deque()
        self._size = 0
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes ever added."""
        return self._total

    def add(self, data: bytes) -> None:
        self._total += len(data)
        if self._chunks and len(self._chunks[-1]) + len(data) <= CHUNK:
            self._chunks[-1] += data
        else:
            self._chunks.append(bytearray(data))
        self._size += len(data)
        while self._chunks and self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())

    def read(self, *, complete: bool) -> tuple[str, bool]:
        """The text, and whether its beginning is missing. Unless `complete`, half a character at the end waits."""
        data = b"".join(self._chunks)
        excess = len(data) - self._limit
        if excess > 0:
            data = _from_character(data, excess)
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=complete)
        encoded = text.encode()
        if len(encoded) > self._limit:  # the marks for what is no UTF-8 are longer than that was
            text = _from_character(encoded, len(encoded) - self._limit).decode()
            return text, True
        return text, self._total > len(data)


class Pieces:
    """Output on its way to a follower: bytes in, text out, at a rate that a flood does not raise.

    `add` bytes, then `take` text at intervals until there is none. What had to be left out is said in its place.
    """

    def __init__(self, *, burst: int = BURST, rate: int = RATE, piece: int = PIECE, glimpse: int = GLIMPSE) -> None:
        self._burst = burst
        self._rate = rate
        self._piece = piece
        self._glimpse = min(glimpse, piece)
        self._waiting = bytearray()
        self._left_out = 0
        self._allowance = float(burst)
        self._last: float | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_full(self) -> bool:
        """Whether a piece is ready before its time."""
        return len(self._waiting) >= self._piece and self._allowance >= self._piece

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def add(self, data: bytes) -> None:
        """Take bytes in, not more than a piece at a time. When two pieces wait, the older one is left out."""
        self._waiting += data
        if len(self._waiting) > 2 * self._piece:
            self._leave_out(len(self._waiting) - self._piece)

    def _leave_out(self, count: int) -> None:
        if count > 0:
            self._left_out += count
            del self._waiting[:count]

    def take(self, now: float, *, final: bool = False) -> str:
        """The next piece, or nothing for now. Of a flood it is a glimpse of its end; the last comes at any rate."""
        if self._last is not None:
            self._allowance = min(self._burst, self._allowance + (now - self._last) * self._rate)
        self._last = now
        if self._allowance < min(len(self._waiting), self._piece):
            if not final and self._allowance < self._glimpse:
                return ""
            self._leave_out(len(self._waiting) - self._glimpse)
        size = min(len(self._waiting), self._piece)
        self._allowance -= size
        data = bytes(self._waiting[:size])
        del self._waiting[:size]
        if not self._left_out:
            return self._decoder.decode(data, final=final and not self._waiting)
        whole = _from_character(data, 0)
        left_out = len(self._decoder.getstate()[0]) + self._left_out + len(data) - len(whole)
        self._left_out = 0
        self._decoder.reset()
        text = self._decoder.decode(whole, final=final and not self._waiting)
        return f"\n… {left_out:,} bytes left out …\n{text}"


def _from_character(data: bytes, start: int) -> bytes:
    """What follows from `start` on, without the rest of a character that began before it."""
    end = min(start + 3, len(data))
    while start < end and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
