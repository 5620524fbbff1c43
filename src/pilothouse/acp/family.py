"""The processes below another one, as Linux tells of them; elsewhere there are none to be known.

An id alone may be another process's tomorrow, so each is known by its id and by when it started.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

__all__ = ["Family", "descendants", "is_marked", "look", "started_at"]

LINUX = sys.platform == "linux"

Family: TypeAlias = dict[int, int]
"""Processes by their ids, with the time of their start in ticks since the machine started."""


def started_at(pid: int) -> int | None:
    """When a process started; None for one that is gone, or that has ended and only waits for its parent to notice."""
    found = _stat(pid) if LINUX else None
    return found[0] if found is not None else None


def _stat(pid: int) -> tuple[int, int] | None:
    """Its start and its parent."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        data = Path(f"/proc/{pid}/stat").read_bytes()
        fields = data[data.rindex(b")") + 2 :].split()  # the name before it may hold anything
        if fields[0] not in (b"Z", b"X"):
            return int(fields[19]), int(fields[1])
    return None


def descendants(roots: Iterable[int]) -> Family:
    """Those below some processes, by what these say of their children; costs no look at any other process."""
    if not LINUX:
        return {}
    found: Family = {}
    queue = list(roots)
    while queue:
        for pid in _children(queue.pop()):
            started = started_at(pid)
            if pid not in found and started is not None:
                found[pid] = started
                queue.append(pid)
    return found


def _children(pid: int) -> list[int]:
    """The children that a process has now; none where the kernel does not tell."""
    found: list[int] = []
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/task") as tasks:
        for task in tasks:
            with contextlib.suppress(OSError, ValueError):  # a thread that has ended; the others still have theirs
                found += map(int, Path(task.path, "children").read_bytes().split())
    return found


def look(roots: Iterable[int], *, mark: bytes = b"", since: int = 0) -> Family:
    """Those below some processes, and those that have `mark` in their environment, with what is below these.

    Nobody who started before `since` is among them. It goes through all processes, which takes a tenth of a second
    where there are a thousand: give it a thread.
    """
    if not LINUX:
        return {}
    starts: Family = {}
    children: dict[int, list[int]] = {}
    given = set(roots)
    kin = set(given)
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are all we need, of hundreds
        found = _stat(int(name)) if name.isdigit() else None
        if found is None or found[0] < since:
            continue
        pid = int(name)
        starts[pid] = found[0]
        children.setdefault(found[1], []).append(pid)
        if mark and is_marked(pid, mark):
            kin.add(pid)
    queue = list(kin)
    while queue:
        fresh = [pid for pid in children.get(queue.pop(), ()) if pid not in kin]
        kin.update(fresh)
        queue += fresh
    return {pid: starts[pid] for pid in kin - given if pid in starts}


def is_marked(pid: int, mark: bytes) -> bool:
    """Whether a process has this mark, alone or among those of others that it descends from."""
    name, _, own = mark.partition(b"=")
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if own in entry and entry.startswith(name + b"="):
                return own in entry[len(name) + 1 :].split(b":")
    return False
