#!/usr/bin/env python3
"""Run a benchmark of this checkout and of another one in turns, and compare the medians.

    git worktree add /tmp/before COMMIT
    python bench/compare.py /tmp/before --runs 10 hub [PART…]

For each figure it prints the range of the other checkout over its runs, both medians, and whether the median of this
checkout is outside of that range. The figure of a line is its first number, which is the product's own side.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
_LINE = re.compile(r"^(?P<label>\S.*?)\s{2,}(?:hub\s+|ours\s+)?(?P<figure>[\d,]+(?:\.\d+)?)")


def figures(tree: Path, bench: str, parts: list[str]) -> dict[str, float]:
    """One run of a benchmark in a checkout."""
    done = subprocess.run(
        [sys.executable, str(tree / "bench" / f"{bench}.py"), *parts],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = {}
    label = ""
    for line in done.stdout.splitlines():
        match = _LINE.match(line.strip())
        if match is not None:
            indented = line.startswith(" ")
            label = label if indented else match["label"]
            name = f"{label} / {match['label']}" if indented else label
            found.setdefault(name, float(match["figure"].replace(",", "")))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("bench", choices=sorted(path.stem for path in (HERE / "bench").glob("*.py")))
    parser.add_argument("parts", nargs="*")
    chosen = parser.parse_args()
    sides: dict[str, list[dict[str, float]]] = {"other": [], "this": []}
    for number in range(chosen.runs):
        for name, tree in (("other", chosen.other.resolve()), ("this", HERE)):
            sides[name].append(figures(tree, chosen.bench, chosen.parts))
        print(f"run {number + 1} of {chosen.runs}", file=sys.stderr, flush=True)
    outside = 0
    for label in sides["other"][0]:
        before = [run[label] for run in sides["other"] if label in run]
        now = [run[label] for run in sides["this"] if label in run]
        if not now:
            continue
        median, usual = statistics.median(now), statistics.median(before)
        is_outside = not min(before) <= median <= max(before)
        outside += is_outside
        spread = f"before {min(before):12,.2f} to {max(before):12,.2f}, median {usual:12,.2f}"
        mark = "   OUTSIDE" if is_outside else ""
        print(f"{label[:44]:44}  {spread}   now {median:12,.2f}   {median / usual:5.2f} ×{mark}", flush=True)
    print(f"{outside} of {len(sides['other'][0])} medians outside of the range before")


if __name__ == "__main__":
    main()
