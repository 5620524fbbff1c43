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

from .families import LINUX, _Entry, _is_running, _processes
from .link import HUB

__all__ = ["end_orphans"]

GRACE = 0.5
KILLED = 2.0
STEP = 0.01


def end_orphans(hub_id: str) -> int:
    """End the processes that have the mark of this hub, and those below them; how many there were. Blocks."""
    if not LINUX or not hub_id:
        return 0
    found = _find(hub_id)
    count = len(found)
    _signal(found, signal.SIGTERM)
    _wait_gone(found, GRACE)
    deadline = time.monotonic() + KILLED
    while (left := _find(hub_id)) and time.monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        _wait_gone(left, STEP)
    return count


def _find(hub_id: str) -> list[_Entry]:
    mark = f"{HUB}={hub_id}".encode()
    entries = {entry.pid: entry for entry in _processes()}
    spared = _lineage(entries)
    found = {pid for pid in entries if pid not in spared and _has(pid, mark)}
    size = -1
    while size != len(found):
        size = len(found)
        found |= {pid for pid, entry in entries.items() if entry.parent in found and pid not in spared}
    return [entries[pid] for pid in found]


def _lineage(entries: dict[int, _Entry]) -> set[int]:
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


def _signal(entries: list[_Entry], number: int) -> None:
    for entry in entries:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(entry.pid, number)


def _wait_gone(entries: list[_Entry], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(_is_running(entry) for entry in entries) and time.monotonic() < deadline:
        time.sleep(STEP)
