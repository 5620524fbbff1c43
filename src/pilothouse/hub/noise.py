"""What an agent says that is no message: some of it is kept word for word, a flood of it is counted.

A program that prints its progress where messages belong must not fill the log with it, nor be passed over in silence:
whatever is not kept is told of, as a number, within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Noise"]

BURST = 50
PER_SECOND = 5.0
TELL_AFTER = 1.0


class Noise:
    """Lets through a burst, and afterwards a few a second. `tell` is called with the text and why it is noise."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._allowance = float(BURST)
        self._since = 0.0
        self._left_out = 0
        self._example = ("", "")
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, text: str, reason: str, *, is_behind: bool = False) -> None:
        """Something unreadable came; when the log `is_behind`, it is only counted."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._allowance = min(BURST, self._allowance + (now - self._since) * PER_SECOND)
        self._since = now
        if self._allowance >= 1 and not is_behind:
            self._allowance -= 1
            self._tell(text, reason)
            return
        self._left_out += 1
        self._example = (text, reason)
        if self._timer is None:
            self._timer = loop.call_later(TELL_AFTER, self.count)

    def count(self) -> None:
        """Tell of what was left out so far, by the last of it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._left_out:
            (text, reason), number, self._left_out = self._example, self._left_out, 0
            more = f"; {number - 1} more before it were not kept" if number > 1 else ""
            self._tell(text, f"{reason}{more}")
