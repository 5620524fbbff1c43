"""Which lines two texts have in common, in order, found with a bounded amount of work.

difflib where its worst case is cheap, as it gives what people expect; a large text is cut into pieces at lines that
occur once on either side, and a piece that is still dear is searched for its shortest edit script (E. Myers, "An O(ND)
Difference Algorithm and Its Variations"). The rule a change must not break: every kind of work is counted, and where
the count is used up the rest is told as not in common, which is coarse and never wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

__all__ = ["Block", "Search"]

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
            tail = _common_end(old, new, i, i2, j, j2)
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
            tail = _common_end(old, new, head, len(old), head, len(new))
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


def _common_end(old: list[int], new: list[int], i1: int, i2: int, j1: int, j2: int) -> int:
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
