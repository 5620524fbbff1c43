"""What a dead hub left running: found by its mark, and ended.

Every process that a hub starts, and all that those start, have the hub's id in their environment. The id belongs to
one home, and the log's lock sees to it that one hub at a time has that home; so whoever has the mark when a hub starts
was left by one that is gone. Linux only: elsewhere no process's environment can be read, and agents end by themselves
when their stdin does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from .families import LINUX, Entry, all_entries, is_running
from .link import HUB

__all__ = ["end_orphans"]

GRACE = 0.5
KILLED = 2.0
STEP = 0.01


def end_orphans(hub_id: str) -> int:
    """End the processes that have the mark of this hub, and their families; how many there were. Blocks."""
    if not LINUX or not hub_id:
        return 0
    known = _find(hub_id, [])
    count = len(known)
    if not known:
        return 0
    _signal(known, signal.SIGTERM)
    _wait_gone(known, GRACE)
    deadline = time.monotonic() + KILLED
    while (known := _find(hub_id, known)) and time.monotonic() < deadline:
        _signal(known, signal.SIGKILL)
        _wait_gone(known, STEP)
    return count


def _find(hub_id: str, known: list[Entry]) -> list[Entry]:
    """Those who have the mark, those who were found before, and whoever is below them or in a group with them.

    A process that was given another environment is known only by its relatives, so it is remembered: they may end
    before it does. Whatever has the mark is in a group that began with an agent or a terminal, never in ours.
    """
    mark = f"{HUB}={hub_id}".encode()
    entries = {entry.pid: entry for entry in all_entries()}
    spared = _lineage(entries)
    own = {entries[pid].group for pid in spared if pid in entries}
    found = {entry.pid for entry in known if entry.pid in entries and entries[entry.pid].start == entry.start}
    found |= {pid for pid in entries if pid not in spared and pid not in found and _has(pid, mark)}
    size = -1
    while size != len(found):
        size = len(found)
        groups = {entries[pid].group for pid in found} - own
        found |= {
            pid
            for pid, entry in entries.items()
            if pid not in spared and (entry.parent in found or entry.group in groups)
        }
    return [entries[pid] for pid in found]


def _lineage(entries: dict[int, Entry]) -> set[int]:
    """This process and those above it: one that was started by an agent may itself become a hub."""
    lineage: set[int] = set()
    pid = os.getpid()
    while pid and pid not in lineage:
        lineage.add(pid)
        pid = entries[pid].parent if pid in entries else 0
    return lineage


def _has(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _signal(entries: list[Entry], number: int) -> None:
    for entry in entries:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(entry.pid, number)


def _wait_gone(entries: list[Entry], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(is_running(entry) for entry in entries) and time.monotonic() < deadline:
        time.sleep(STEP)
