"""What several changes of one file amount to."""

from __future__ import annotations

import re

from ..records import ChangeType, FileChange
from .state import FileState

__all__ = ["line_counts", "merge_change"]

_HUNK = re.compile(r"^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.MULTILINE | re.ASCII)

_MERGED: dict[tuple[ChangeType, ChangeType], ChangeType] = {
    ("created", "modified"): "created",
    ("created", "created"): "created",
    ("modified", "created"): "modified",  # written anew, but it was there before
    ("modified", "modified"): "modified",
    ("modified", "deleted"): "deleted",
    ("deleted", "created"): "modified",
    ("deleted", "modified"): "modified",
    ("deleted", "deleted"): "deleted",
}
"""Made and then deleted is not here: the session leaves no trace of such a file, so it is forgotten."""


def merge_change(files: dict[str, FileState], change: FileChange) -> None:
    """Add one change to what is known of its file."""
    if not change.path:
        return
    added, removed = line_counts(change)
    known = files.get(change.path)
    if known is None:
        files[change.path] = FileState(
            path=change.path, change_type=change.change_type, lines_added=added, lines_removed=removed, changes=1
        )
        return
    merged = _MERGED.get((known.change_type, change.change_type))
    if merged is None:
        del files[change.path]
        return
    known.change_type = merged
    known.lines_added += added
    known.lines_removed += removed
    known.changes += 1


def line_counts(change: FileChange) -> tuple[int, int]:
    """Lines added and removed: as told, else counted in the diff."""
    added, removed = change.lines_added, change.lines_removed
    if (added is None or removed is None) and change.diff:
        plus, minus = _count(change.diff)
        added, removed = plus if added is None else added, minus if removed is None else removed
    return max(added or 0, 0), max(removed or 0, 0)


def _count(diff: str) -> tuple[int, int]:
    """Lines by their mark. A hunk says how long it is; only so is a removed `-- x` told from the name of a file."""
    plus = minus = old = new = 0
    bare = not _HUNK.search(diff)
    for line in diff.split("\n"):
        if bare:
            plus += line.startswith("+") and not line.startswith("+++ ")
            minus += line.startswith("-") and not line.startswith("--- ")
        elif old > 0 or new > 0:
            mark = line[:1]
            plus, minus = plus + (mark == "+"), minus + (mark == "-")
            old, new = old - (mark not in ("+", "\\")), new - (mark not in ("-", "\\"))
        elif found := _HUNK.match(line):
            old, new = int(found[1] or 1), int(found[2] or 1)
    return plus, minus
