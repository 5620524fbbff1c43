"""Unified diffs and line counts between two texts.

A line ends at `\\n` and nowhere else: a carriage return, form feed or U+2028 is part of its line, or applying the diff
would not give the new text back. Diffs of large texts are made on an event loop: what is equal at both ends is not even
split into lines, the search for what else is in common is bounded (`common_lines.py`), and of a change that is too long
only as much is written as is shown. What was not searched is replaced as a whole; the diff then says `truncated`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from .common_lines import Block, Search
from .records import ChangeType

__all__ = ["DEFAULT_LIMIT", "HUNK_HEADER", "Diff", "change_type", "list_changed_lines", "split_lines", "unified_diff"]

DEFAULT_LIMIT = 256 * 1024
"""Characters of diff text; beyond it lines are left out."""

LINES = 100_000
"""Lines of both texts, without what is equal at their ends, beyond which they are not compared."""
_NO_NEWLINE = "\\ No newline at end of file\n"
HUNK_HEADER = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")

Opcode = tuple[str, int, int, int, int]


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """A diff and its counts. `truncated`: coarser than it could be, or cut at the limit; counts are of the whole."""

    text: str
    added: int
    removed: int
    truncated: bool = False


def split_lines(text: str) -> list[str]:
    """The lines with their `\\n`; the last one may be without."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def list_changed_lines(diff: str) -> list[str]:
    """The added and removed lines of a unified diff, each with its mark; never the names of the files.

    The counts of a hunk say which lines are in it. Lines outside of all hunks count unless they look like a header.
    """
    found: list[str] = []
    removed = added = 0
    for line in diff.split("\n"):
        mark = line[:1]
        if removed > 0 or added > 0:
            removed -= mark in ("-", " ", "")
            added -= mark in ("+", " ", "")
        elif (hunk := HUNK_HEADER.match(line)) is not None:
            removed, added = int(hunk[1] or 1), int(hunk[2] or 1)
            continue
        elif line.startswith(("--- ", "+++ ")):
            continue
        if mark in ("+", "-"):
            found.append(line)
    return found


def change_type(old: str | None, new: str | None) -> ChangeType:
    """Agents write "no file before" as null or as an empty text, and "no file after" as null."""
    if new is None:
        return "deleted"
    return "modified" if old else "created"


def unified_diff(
    old: str | None,
    new: str | None,
    path: str,
    *,
    context: int = 3,
    limit: int = DEFAULT_LIMIT,
    new_path: str | None = None,
) -> Diff:
    """The change of one file with `a/` and `b/` headers, or `/dev/null` for a file that was not or is no more.

    Equal texts give an empty diff, also where a file is created empty.
    """
    context = max(context, 0)
    skipped, old_part, new_part = _differing(old or "", new or "", context)
    removed, added = map(_count, (old_part, new_part))
    search = Search()
    if is_whole := removed + added > LINES:  # the hunk is cut at the limit, so no more than that is needed of either
        before, after = split_lines(old_part[:limit]), split_lines(new_part[:limit])
        codes: list[Opcode] = [("replace", 0, len(before), 0, len(after))]
    else:
        before, after = split_lines(old_part), split_lines(new_part)
        codes = list(_between(search.blocks(before, after), len(before), len(after)))
        added = sum(j2 - j1 for tag, _, _, j1, j2 in codes if tag != "equal")
        removed = sum(i2 - i1 for tag, i1, i2, _, _ in codes if tag != "equal")
    if not added and not removed:
        return Diff(text="", added=0, removed=0)
    kind = change_type(old, new)
    head = f"--- {'/dev/null' if kind == 'created' else _label('a', path)}\n"
    head += f"+++ {'/dev/null' if kind == 'deleted' else _label('b', new_path or path)}\n"
    room = limit - len(head)
    hunks = (_hunk(group, before, after, skipped, room) for group in _groups(codes, context))
    body, cut = _within(room, hunks)
    return Diff(text=head + body, added=added, removed=removed, truncated=is_whole or search.is_coarse or cut)


def _label(side: str, path: str) -> str:
    # a line break in a name would forge a line of the diff
    return f"{side}/{path.lstrip('/')}".replace("\n", "\\n").replace("\r", "\\r")


def _count(text: str) -> int:
    return text.count("\n") + (text[-1:] not in ("", "\n"))


def _differing(old: str, new: str, context: int) -> tuple[int, str, str]:
    """The lines of both that may differ, with as many equal ones around them as a hunk shows; how many lines of equal
    text were left out before those."""
    start = old.rfind("\n", 0, _common_start(old, new)) + 1
    for _ in range(context):
        start = old.rfind("\n", 0, max(start - 1, 0)) + 1
    same = _common_end(old, new, start)
    edge = old.find("\n", len(old) - same) if same else -1
    for _ in range(context):
        edge = old.find("\n", edge + 1) if edge >= 0 else -1
    tail = len(old) - edge - 1 if edge >= 0 else 0
    return old.count("\n", 0, start), old[start : len(old) - tail], new[start : len(new) - tail]


def _common_start(old: str, new: str) -> int:
    """How many characters are equal at the beginning, found by halves."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(old: str, new: str, start: int) -> int:
    """The same at the end, behind `start`."""
    low, high = 0, min(len(old), len(new)) - start
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _between(blocks: list[Block], old_end: int, new_end: int) -> Iterator[Opcode]:
    """Equal blocks in order, and what lies between them."""
    i = j = 0
    equal: Opcode | None = None
    for a, b, size in [*blocks, (old_end, new_end, 0)]:
        if i < a or j < b:
            if equal:
                yield equal
            equal = None
            yield "replace" if i < a and j < b else "delete" if i < a else "insert", i, a, j, b
        if size:
            equal = ("equal", equal[1] if equal else a, a + size, equal[3] if equal else b, b + size)
        i, j = a + size, b + size
    if equal:
        yield equal


def _groups(codes: list[Opcode], context: int) -> Iterator[list[Opcode]]:
    """Opcodes by hunk, each with its lines of context."""
    group: list[Opcode] = []
    for index, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        first, last = index == 0, index == len(codes) - 1
        if not first and not last and i2 - i1 <= 2 * context:
            group.append((tag, i1, i2, j1, j2))
            continue
        if not first:
            group.append((tag, i1, min(i2, i1 + context), j1, min(j2, j1 + context)))
            yield group
        group = [] if last else [(tag, max(i1, i2 - context), i2, max(j1, j2 - context), j2)]
    if group:
        yield group


Hunk = tuple[int, int, list[str]]


def _hunk(group: list[Opcode], before: list[str], after: list[str], skipped: int, room: int) -> Hunk:
    """A hunk, or the beginning of one that has more characters than there is room for."""
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in group:
        for mark, source in ((" ", before[i1:i2]),) if tag == "equal" else (("-", before[i1:i2]), ("+", after[j1:j2])):
            for line in source:
                lines.append(_line(mark, line))
                room -= len(lines[-1])
                if room < 0:
                    return skipped + group[0][1], skipped + group[0][3], lines
    return skipped + group[0][1], skipped + group[0][3], lines


def _hunk_text(old: int, new: int, lines: list[str]) -> str:
    removed, added = (sum(line[0] != mark for line in lines) for mark in "+-")
    return f"@@ -{_range(old, removed)} +{_range(new, added)} @@\n" + "".join(lines)


def _line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n{_NO_NEWLINE}"


def _range(start: int, length: int) -> str:
    """POSIX: an empty range is named by the line before it, and a length of one is left out."""
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _within(limit: int, hunks: Iterator[Hunk]) -> tuple[str, bool]:
    """As many lines as fit; the last hunk may be short, with a header that says so, and can still be applied."""
    kept: list[str] = []
    left = limit
    for old, new, lines in hunks:
        left -= sum(map(len, lines))
        if left < 0:
            while lines and left < 0:
                left += len(lines.pop())
            return "".join([*kept, _hunk_text(old, new, lines)] if lines else kept), True
        kept.append(_hunk_text(old, new, lines))
    return "".join(kept), False
