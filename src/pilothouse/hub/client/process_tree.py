"""A program and all that it started, as the system knows them, and how they end together.

A process id is only a number that is given away again: a terminal may be released long after its program ended, when
the program's id, or that of its group, is somebody else's. So on Linux a process is known by its id and its start time,
and belongs to the family if it was once seen in the program's session or below a member, if it is in one session with a
member, or if it has the mark of the family in its environment, which also finds those who left. The kernel does not
give an id away while it is that of a session or a group, so the session is ours until a look finds it empty after the
program's end. Elsewhere the group is all we know; it is left alone once nobody of ours is known to be in it. On Windows
only the program itself is ended, by whoever started it.

A look takes longer than a process needs to fork and exit, so one that finds no process proves little. Groups are
signalled as a whole, which no fork escapes, and a family counts as ended after several looks in a row that found none.

Looking through all processes takes milliseconds, so that is done in a thread: terminals come and go while other
sessions stream. `settle` and `signal` block.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...acp.process import MARK, is_marked

POSIX = os.name == "posix"
LINUX = sys.platform == "linux"
KILLED = 1.0
"""Seconds that killed processes get to be gone, and those they started meanwhile to be found."""
STEP = 0.01
LOOKS = 5
"""Looks in a row that must find no process before a family counts as ended."""
STRIKES = 20
"""Most times that all processes are listed to kill each one of the session as soon as it is seen."""


class Entry(NamedTuple):
    """A process as the system lists it; `start` is in ticks since the machine started."""

    pid: int
    start: int
    parent: int
    group: int
    session: int


class Family:
    """The family of a program that was started with `pid` as its id and as its group, and with `mark`."""

    def __init__(self, pid: int, mark: str) -> None:
        self._pid = pid
        self._mark = f"{MARK}={mark}".encode()
        self._root = _read_entry(pid, ended=True) if LINUX else None
        self._known: set[tuple[int, int]] = set() if self._root is None else {(pid, self._root.start)}
        self._groups: set[int] = set()  # seen while the family is being ended
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
        """Remember who is left, as the program has just ended: from now on its id may become another's."""
        is_inhabited = self.is_inhabited()
        if LINUX:
            in_session = [entry for entry in self._find() if entry.session == self._pid]
            is_inhabited = is_inhabited or bool(in_session)
        self._is_ours = self._is_ours and is_inhabited

    def signal(self, number: int) -> list[Entry]:
        """Signal all of them; the processes that were found, where these can be listed."""
        if not POSIX:
            return []
        if not LINUX:
            if self._is_ours:
                _signal_group(self._pid, number)
            return []
        if number == signal.SIGKILL:
            self._strike_session()
        found = self._find()
        own = os.getsid(0)
        self._groups |= {entry.group for entry in found if entry.session != own}
        groups = self._groups - {0, os.getpgrp()} | ({self._pid} if self._is_ours else set())
        singles = [entry.pid for entry in found if entry.group not in groups]
        # those who have stopped cannot start others while the rest is being killed
        for one in (signal.SIGSTOP, number) if number == signal.SIGKILL else (number,):
            for group in groups:
                _signal_group(group, one)
            for pid in singles:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, one)
        return found

    async def end(self, grace: float) -> None:
        """End all of them: terminate, give them `grace` seconds, kill. Takes no longer than that and a second.

        If it is cancelled, all are killed at once.
        """
        if not POSIX:
            return
        self._groups.clear()
        try:
            found = await asyncio.to_thread(self.signal, signal.SIGTERM)
            await self._wait_gone(found, grace)
            was_alone = not found and len(self._known) <= 1 and not self.is_inhabited()
            await self._kill(1 if was_alone else LOOKS)
        except asyncio.CancelledError:
            self.signal(signal.SIGKILL)
            raise

    async def _wait_gone(self, found: list[Entry], seconds: float) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        while await asyncio.to_thread(self._are_running, found):
            if clock() >= deadline:
                return
            await asyncio.sleep(STEP)

    async def _kill(self, looks: int) -> None:
        """Kill all of them again and again, as there may be new ones, until `looks` in a row have found none."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + KILLED
        remaining = looks
        while remaining > 0:
            found = await asyncio.to_thread(self.signal, signal.SIGKILL)
            if LINUX:
                remaining = looks if found else remaining - 1
            elif not self._are_running(found):
                return
            if clock() >= deadline:
                return
            if remaining > 0:
                await asyncio.sleep(STEP)
        self._is_ours = False  # none is left, so the id may become another's

    def _are_running(self, found: list[Entry]) -> bool:
        return any(map(is_running, found)) if LINUX else self._is_ours and self.is_inhabited()

    # -- on Linux --

    def _find(self) -> list[Entry]:
        """Those who run. Nobody who is older than the program is of its family, which spares a look at most."""
        self._check_leader()
        oldest = 0 if self._root is None else self._root.start
        entries = [entry for entry in all_entries() if entry.start >= oldest]
        found = {entry.pid for entry in entries if self._is_member(entry)}
        foreign = {0, os.getsid(0)}  # 0 is a session outside of our container
        size = -1
        while size != len(found):
            size = len(found)
            sessions = {entry.session for entry in entries if entry.pid in found} - foreign
            found |= {entry.pid for entry in entries if entry.parent in found or entry.session in sessions}
        family = [entry for entry in entries if entry.pid in found]
        self._known |= {(entry.pid, entry.start) for entry in family}
        return family

    def _check_leader(self) -> None:
        """Check whether the program's id is another's by now; then no process of the session is ours."""
        leader = entry_of(self._pid)
        if leader is not None and self._root is not None and leader.start != self._root.start:
            self._is_ours = False

    def _strike_session(self) -> None:
        """Kill each process of the session in the moment it is seen, as it may be in another group soon."""
        self._check_leader()
        for _ in range(STRIKES if self._is_ours else 0):
            is_empty = True
            for entry in _iter_entries():
                if entry.session == self._pid:
                    is_empty = False
                    _signal_group(entry.group, signal.SIGKILL)
            if is_empty:
                return

    def _is_member(self, entry: Entry) -> bool:
        if (entry.pid, entry.start) in self._known or (self._is_ours and entry.session == self._pid):
            return True
        return is_marked(entry.pid, self._mark)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def all_entries() -> list[Entry]:
    """All processes that run."""
    return list(_iter_entries())


def _iter_entries() -> Iterator[Entry]:
    """All processes that run, the newest first, as they may be the shortest lived."""
    for name in reversed(os.listdir("/proc")):  # noqa: PTH208 - names are all we need, of hundreds
        if name.isdigit() and (entry := entry_of(int(name))) is not None:
            yield entry


def entry_of(pid: int) -> Entry | None:
    """A process that runs; one that only waits for its parent to take note of its end does not."""
    return _read_entry(pid)


def _read_entry(pid: int, *, ended: bool = False) -> Entry | None:
    """A process that runs, or that its parent has not taken note of yet if `ended`."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        data = Path(f"/proc/{pid}/stat").read_bytes()
        fields = data[data.rindex(b")") + 2 :].split()  # the name before it may hold anything
        if ended or fields[0] not in (b"Z", b"X"):
            return Entry(pid, int(fields[19]), int(fields[1]), int(fields[2]), int(fields[3]))
    return None


def is_running(entry: Entry) -> bool:
    """Whether this very process still does."""
    now = entry_of(entry.pid)
    return now is not None and now.start == entry.start
