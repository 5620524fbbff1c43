"""Unified diffs and line counts between two texts.

A line ends at `\\n` and nowhere else: a carriage return, form feed or U+2028 is part of its line, or applying the diff
would not give the new text back. Diffs of large texts are made on an event loop, so the work is bounded: equal lines at
both ends are not searched; difflib is used where its worst case is cheap; a large text is cut at lines that occur once
on either side, and a piece that is still expensive is searched for its shortest edit script (E. Myers, "An O(ND)
Difference Algorithm and Its Variations"). When the budget is used up, the rest is replaced as a whole, which is coarse
and never wrong; the diff then says `truncated`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import msgspec

from .records import ChangeType

COMPARISONS = 400_000
"""What difflib may do in its worst cases, for all pieces of a pair of texts together; some 100 ns each."""
STEPS = 100_000
"""What the search for shortest scripts may do, for all pieces together."""

Block = tuple[int, int, int]
"""Equal lines: where in the old text, where in the new one, how many."""
Piece = tuple[int, int, int, int]


class Search:
    """One search. `comparisons` and `steps` are what is left to be spent; `is_coarse` when that did not do."""

    def __init__(self, comparisons: int = COMPARISONS, steps: int = STEPS) -> None:
        self.comparisons = comparisons
        self.steps = steps
        self.is_coarse = False

    def blocks(self, before: Sequence[str], after: Sequence[str]) -> list[Block]:
        """Equal lines in order, on both sides."""
        numbers: dict[str, int] = {}
        old = [numbers.setdefault(line, len(numbers)) for line in before]
        new = [numbers.setdefault(line, len(numbers)) for line in after]
        found: list[Block] = []
        for i1, i2, j1, j2 in self._pieces(old, new):
            head = _common(old, new, i1, i2, j1, j2)
            i, j = i1 + head, j1 + head
            tail = _count_common_end(old, new, i, i2, j, j2)
            found.append((i1, j1, head))
            if i < i2 - tail and j < j2 - tail:
                found += ((i + a, j + b, size) for a, b, size in self._within(old[i : i2 - tail], new[j : j2 - tail]))
            found.append((i2 - tail, j2 - tail, tail))
        return found

    def _within(self, old: list[int], new: list[int]) -> Sequence[Block]:
        cost = _cost(old, new)
        if cost <= self.comparisons:
            self.comparisons -= cost
            return SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        either = set(old) & set(new)  # a line that the other side has not is in no block
        places_old = [place for place, line in enumerate(old) if line in either]
        places_new = [place for place, line in enumerate(new) if line in either]
        found = self._shortest([old[place] for place in places_old], [new[place] for place in places_new])
        return [(places_old[a + step], places_new[b + step], 1) for a, b, size in found for step in range(size)]

    def _pieces(self, old: list[int], new: list[int]) -> Iterator[Piece]:
        """Both texts whole when they are cheap; else cut at lines that anchor them to one another."""
        i1 = j1 = 0
        if _cost(old, new) > self.comparisons:
            head = _common(old, new, 0, len(old), 0, len(new))
            tail = _count_common_end(old, new, head, len(old), head, len(new))
            for i2, j2 in _anchors(old, new, head, tail):
                yield i1, i2, j1, j2
                i1, j1 = i2, j2
        yield i1, len(old), j1, len(new)

    def _shortest(self, old: list[int], new: list[int]) -> list[Block]:
        """The shortest script, or the beginning of one that came furthest when the steps are used up."""
        if self.steps <= 0:
            self.is_coarse = True
            return []
        n, m = len(old), len(new)
        reach = [0] * (2 * min(n + m, self.steps) + 5)  # by diagonal: how far in old; negative ones count from the end
        trail: list[tuple[int, list[int]]] = []
        for distance in range(n + m + 1):
            low, high = -min(distance, 2 * m - distance), min(distance, 2 * n - distance)
            trail.append((low, [reach[k] for k in range(low - 1, high + 2)]))
            for k in range(low, high + 1, 2):
                down = k == -distance or (k != distance and reach[k - 1] < reach[k + 1])
                x = start = reach[k + 1] if down else reach[k - 1] + 1
                y = x - k
                while x < n and y < m and old[x] == new[y]:
                    x += 1
                    y += 1
                reach[k] = x
                self.steps -= 1 + x - start
                if x >= n and y >= m:
                    return _trace(trail, x, y)
                if self.steps <= 0:
                    self.is_coarse = True
                    ends = ((reach[one], reach[one] - one) for one in range(low, k + 1, 2))
                    x, y = max((end for end in ends if end[0] <= n and end[1] <= m), key=sum, default=(0, 0))
                    return _trace(trail, x, y) if x + y else []
        raise AssertionError("can't happen: a script of all lines is always one")


def _trace(trail: list[tuple[int, list[int]]], x: int, y: int) -> list[Block]:
    """The runs of equal lines on the way to a point, from what was reached before each round."""
    found: list[Block] = []
    for distance in range(len(trail) - 1, 0, -1):
        low, before = trail[distance]
        k = x - y
        at = k - low + 1
        down = k == -distance or (k != distance and before[at - 1] < before[at + 1])
        start = before[at + 1] if down else before[at - 1] + 1
        if x > start:
            found.append((start, start - k, x - start))
        x = start if down else start - 1
        y = start - k - 1 if down else start - k
    if x:
        found.append((0, 0, x))
    return found[::-1]


def _cost(old: Sequence[int], new: Sequence[int]) -> int:
    """What difflib does in the worst case: a pass over the old lines and all pairs of equal ones, for each block."""
    shorter = min(len(old), len(new))
    most = (len(old) + len(old) * len(new)) * shorter
    if most <= 10_000:
        return most
    counts = Counter(new)
    return (len(old) + sum(map(counts.__getitem__, old))) * shorter


def _anchors(old: list[int], new: list[int], head: int, tail: int) -> list[tuple[int, int]]:
    """Lines that occur once on either side, in the longest sequence that is in order on both (patience sorting).

    Of those that follow one another on both sides only the first is given, and the place after the last.
    """
    once = _once(new, head, len(new) - tail)
    pairs = [(i, once[line]) for line, i in _once(old, head, len(old) - tail).items() if line in once]
    ordered = [j for _, j in pairs]
    if ordered != sorted(ordered):
        pairs = _longest_rise(pairs)
    ends: list[tuple[int, int]] = []
    i2 = j2 = -1
    for i, j in pairs:
        if (i, j) != (i2, j2):
            ends += ((i2, j2), (i, j)) if i2 >= 0 else ((i, j),)
        i2, j2 = i + 1, j + 1
    return [*ends, (i2, j2)] if pairs else []


def _once(lines: list[int], start: int, end: int) -> dict[int, int]:
    """Where each line is that occurs once in a range."""
    counts = Counter(lines[start:end])
    return {line: place for place, line in enumerate(lines[start:end], start) if counts[line] == 1}


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []  # the smallest place in new that ends a sequence of this length
    piles: list[int] = []  # and which pair that is
    previous: list[int] = []
    for index, (_, j) in enumerate(pairs):
        place = bisect_left(tops, j)
        previous.append(piles[place - 1] if place else -1)
        if place == len(tops):
            tops.append(j)
            piles.append(index)
        else:
            tops[place], piles[place] = j, index
    chain: list[tuple[int, int]] = []
    index = piles[-1] if piles else -1
    while index >= 0:
        chain.append(pairs[index])
        index = previous[index]
    return chain[::-1]


def _common(old: list[int], new: list[int], i1: int, i2: int, j1: int, j2: int) -> int:
    """How many lines are equal at the beginning of two ranges; runs are compared, not lines."""
    count, most = 0, min(i2 - i1, j2 - j1)
    size = 1
    while count < most and size:
        size = min(size, most - count)
        if old[i1 + count : i1 + count + size] == new[j1 + count : j1 + count + size]:
            count += size
            size *= 2
        else:
            size //= 2
    return count


def _count_common_end(old: list[int], new: list[int], i1: int, i2: int, j1: int, j2: int) -> int:
    """The same at the end."""
    count, most = 0, min(i2 - i1, j2 - j1)
    size = 1
    while count < most and size:
        size = min(size, most - count)
        if old[i2 - count - size : i2 - count] == new[j2 - count - size : j2 - count]:
            count += size
            size *= 2
        else:
            size //= 2
    return count


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
