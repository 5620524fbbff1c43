"""Unified diffs and line counts between two texts.

A line ends at `\\n` and nowhere else: a carriage return, form feed or U+2028 is part of its line, or applying the diff
would not give the new text back. The longest common subsequence is difflib's with its junk heuristic off; what is
equal at both ends is stripped first, a large rest is cut into pieces at lines that occur once on either side, and a
piece that is still too large for a quadratic search is replaced as a whole; the diff then says `truncated`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import islice

import msgspec

from .records import ChangeType

__all__ = ["DEFAULT_LIMIT", "Diff", "change_type", "split_lines", "unified_diff"]

DEFAULT_LIMIT = 256 * 1024
"""Characters of diff text; beyond it lines are left out."""

# What one search may cost. A pass of difflib looks at every old line and at every pair of equal lines, and there is a
# pass for each block it finds: with these limits its worst cases stay under a second, and code far below them.
_MAX_PRODUCT = 1_000_000
_MAX_PAIRS = 60_000
# the same for all pieces of a diff together
_MAX_TOTAL = 3_000_000
_NO_NEWLINE = "\\ No newline at end of file\n"

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
    before, after = split_lines(old or ""), split_lines(new or "")
    codes, coarse = _opcodes(before, after)
    added = sum(j2 - j1 for tag, _, _, j1, j2 in codes if tag != "equal")
    removed = sum(i2 - i1 for tag, i1, i2, _, _ in codes if tag != "equal")
    if not added and not removed:
        return Diff(text="", added=0, removed=0)
    kind = change_type(old, new)
    head = f"--- {'/dev/null' if kind == 'created' else _label('a', path)}\n"
    head += f"+++ {'/dev/null' if kind == 'deleted' else _label('b', new_path or path)}\n"
    body, cut = _within(limit - len(head), (_hunk(group, before, after) for group in _groups(codes, max(context, 0))))
    return Diff(text=head + body, added=added, removed=removed, truncated=coarse or cut)


def _label(side: str, path: str) -> str:
    # a line break in a name would forge a line of the diff
    return f"{side}/{path.lstrip('/')}".replace("\n", "\\n").replace("\r", "\\r")


def _opcodes(before: list[str], after: list[str]) -> tuple[list[Opcode], bool]:
    """What is equal and what is replaced, over the whole of both; whether a search was given up."""
    blocks: list[tuple[int, int, int]] = []  # equal lines: where in old, where in new, how many
    budget = _MAX_TOTAL
    coarse = False
    for i1, i2, j1, j2 in _pieces(before, after):
        head = _common(before[i1:i2], after[j1:j2])
        tail = _common(before[i1 + head : i2][::-1], after[j1 + head : j2][::-1])
        blocks.append((i1, j1, head))
        old, new = before[i1 + head : i2 - tail], after[j1 + head : j2 - tail]
        cost = _cost(old, new)
        if cost > budget:
            coarse = True
        elif cost:
            budget -= cost
            matcher = SequenceMatcher(None, old, new, autojunk=False)
            blocks += ((i1 + head + a, j1 + head + b, size) for a, b, size in matcher.get_matching_blocks())
        blocks.append((i2 - tail, j2 - tail, tail))
    return list(_between(blocks, len(before), len(after))), coarse


def _cost(old: list[str], new: list[str]) -> int:
    """Lines old × lines new, or more than all searches may cost when one search of the two would take too long."""
    product = len(old) * len(new)
    if product <= _MAX_PAIRS:
        return product
    counts = Counter(new)
    pairs = sum(counts[line] for line in old)
    return product if product <= _MAX_PRODUCT and pairs <= _MAX_PAIRS else _MAX_TOTAL + 1


def _pieces(before: list[str], after: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """Both texts whole when they are small; else cut before each line that anchors them to one another."""
    i1 = j1 = 0
    if _cost(before, after) > _MAX_TOTAL:
        head = _common(before, after)
        for i2, j2 in _anchors(before, after, head):
            yield i1, i2, j1, j2
            i1, j1 = i2, j2
    yield i1, len(before), j1, len(after)


def _anchors(before: list[str], after: list[str], start: int) -> list[tuple[int, int]]:
    """Lines that occur once on either side, in the longest sequence that is in order on both (patience sorting)."""
    once_old, once_new = _once(before, start), _once(after, start)
    pairs = [(i, once_new[line]) for line, i in once_old.items() if line in once_new]
    tops: list[int] = []  # the smallest place in new that ends a sequence of this length
    piles: list[int] = []  # and which pair that is
    previous: list[int] = []
    for index, (_, j) in enumerate(pairs):
        place = bisect_left(tops, j)
        previous.append(piles[place - 1] if place else -1)
        tops[place : place + 1] = [j]
        piles[place : place + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = piles[-1] if piles else -1
    while index >= 0:
        chain.append(pairs[index])
        index = previous[index]
    return chain[::-1]


def _once(lines: list[str], start: int) -> dict[str, int]:
    counts = Counter(islice(lines, start, None))
    return {line: place for place, line in enumerate(lines) if place >= start and counts[line] == 1}


def _between(blocks: list[tuple[int, int, int]], old_end: int, new_end: int) -> Iterator[Opcode]:
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


def _common(left: Iterable[str], right: Iterable[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


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


def _hunk(group: list[Opcode], before: list[str], after: list[str]) -> Hunk:
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            lines += (_line(" ", line) for line in before[i1:i2])
            continue
        lines += (_line("-", line) for line in before[i1:i2])
        lines += (_line("+", line) for line in after[j1:j2])
    return group[0][1], group[0][3], lines


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
