"""A program and all that it started, as the system knows them, and how they end together.

A process id is only a number that is given away again: a terminal may be released long after its program ended, when
the program's id, or that of its group, is somebody else's. So on Linux a process is known by its id and its start time,
and belongs to the family if it was once seen in the program's group or below a member, or has the mark of the family
in its environment, which also finds those who left. Elsewhere the group is all we know; it is left alone once nobody of
ours is known to be in it. On Windows only the program itself is ended, by whoever started it.

Looking through all processes takes milliseconds, so that is done in a thread: terminals come and go while other
sessions stream. `settle` and `signal` block.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..acp.family import is_marked
from ..acp.process import MARK

__all__ = ["LINUX", "Entry", "Family", "all_entries", "entry_of", "is_running"]

POSIX = os.name == "posix"
LINUX = sys.platform == "linux"
KILLED = 1.0
"""Seconds that killed processes get to be gone, and those they started meanwhile to be found."""
STEP = 0.01


class Entry(NamedTuple):
    """A process as the system lists it; `start` is in ticks since the machine started."""

    pid: int
    start: int
    parent: int
    group: int


class Family:
    """The family of a program that was started with `pid` as its id and as its group, and with `mark`."""

    def __init__(self, pid: int, mark: str) -> None:
        self._pid = pid
        self._mark = f"{MARK}={mark}".encode()
        self._root = entry_of(pid) if LINUX else None  # may have ended already; then the mark tells
        self._known: set[tuple[int, int]] = set() if self._root is None else {(pid, self._root.start)}
        self._is_ours = True

    def is_inhabited(self) -> bool:
        """Whether anybody is in the group, be it ours or another's."""
        if not POSIX:
            return False
        try:
            os.killpg(self._pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def settle(self) -> None:
        """Remember who is in the group, as the program has just ended: from now on its id may become another's."""
        self._is_ours = self.is_inhabited()
        if LINUX and self._is_ours:
            self._find()
        self._is_ours = self._is_ours and not LINUX

    def signal(self, number: int) -> Callable[[], bool]:
        """Signal all of them; the answer, when called, tells whether some of those still run."""
        if not POSIX:
            return lambda: False
        if not LINUX:
            return self._signal_group(number)
        found = self._find()
        for entry in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(entry.pid, number)
        return lambda: any(is_running(entry) for entry in found)

    async def end(self, grace: float) -> None:
        """End all of them: terminate, give them `grace` seconds, kill. Takes no longer than that and a second.

        If it is cancelled, all are killed at once.
        """
        if not POSIX:
            return
        try:
            await _wait_gone(await asyncio.to_thread(self.signal, signal.SIGTERM), grace)
            await _wait_gone(self._kill, KILLED)  # again and again: there may be new ones
        except asyncio.CancelledError:
            self._kill()
            raise

    def _kill(self) -> bool:
        """Kill all of them; whether there was anybody to kill who has not ended yet."""
        return self.signal(signal.SIGKILL)()

    # -- on Linux --

    def _find(self) -> list[Entry]:
        """Those who run. Nobody who is older than the program is of its family, which spares a look at most."""
        oldest = 0 if self._root is None else self._root.start
        entries = [entry for entry in all_entries() if entry.start >= oldest]
        found = {entry.pid for entry in entries if self._is_member(entry)}
        size = -1
        while size != len(found):
            size = len(found)
            found |= {entry.pid for entry in entries if entry.parent in found}
        family = [entry for entry in entries if entry.pid in found]
        self._known |= {(entry.pid, entry.start) for entry in family}
        return family

    def _is_member(self, entry: Entry) -> bool:
        if (entry.pid, entry.start) in self._known or (self._is_ours and entry.group == self._pid):
            return True
        return is_marked(entry.pid, self._mark)

    # -- on other systems --

    def _signal_group(self, number: int) -> Callable[[], bool]:
        if self._is_ours:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, number)
        return lambda: self._is_ours and self.is_inhabited()


async def _wait_gone(remain: Callable[[], bool], seconds: float) -> None:
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    while await asyncio.to_thread(remain):
        if clock() >= deadline:
            return
        await asyncio.sleep(STEP)


def all_entries() -> list[Entry]:
    """All processes that run."""
    names = os.listdir("/proc")  # noqa: PTH208 - names are all we need, of hundreds
    return [entry for name in names if name.isdigit() and (entry := entry_of(int(name))) is not None]


def entry_of(pid: int) -> Entry | None:
    """A process that runs; one that only waits for its parent to take note of its end does not."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        data = Path(f"/proc/{pid}/stat").read_bytes()
        fields = data[data.rindex(b")") + 2 :].split()  # the name before it may hold anything
        if fields[0] not in (b"Z", b"X"):
            return Entry(pid, int(fields[19]), int(fields[1]), int(fields[2]))
    return None


def is_running(entry: Entry) -> bool:
    """Whether this very process still does."""
    now = entry_of(entry.pid)
    return now is not None and now.start == entry.start
