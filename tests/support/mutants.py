"""Puts defects into a copy of the source, one at a time, and checks that a test fails for each of them.

A mutant that no longer applies is reported as stale, which counts as a failure. The defects are in `binding_mutants`
and `bridge_mutants`; run one of these with numbers to try only those mutants.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PATIENCE = 240


class Mutant(NamedTuple):
    """One defect: its number and description, the source text that it replaces, and the tests that should fail."""

    bug: int
    what: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...] = ()


def verdict(mutant: Mutant, place: Path, tests: Sequence[str]) -> str:
    """Run the tests against one mutant: killed, SURVIVED or STALE."""
    source = place / "pilothouse" / mutant.file
    right = source.read_text(encoding="utf-8")
    if right.count(mutant.right) != 1:
        return f"STALE: its source text occurs {right.count(mutant.right)} times"
    source.write_text(right.replace(mutant.right, mutant.wrong), encoding="utf-8")
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *(mutant.tests or tests)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "killed by the timeout"
    finally:
        source.write_text(right, encoding="utf-8")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"killed by {failed[0].partition('::')[2][:90]}" if done.returncode == 1 and failed else "SURVIVED"


def run(mutants: Sequence[Mutant], tests: Sequence[str]) -> int:
    """Try the mutants that the command line names, or all of them; returns the exit code."""
    chosen = {int(word) for word in sys.argv[1:]}
    wanted = [mutant for mutant in mutants if not chosen or mutant.bug in chosen]
    killed = 0
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src" / "pilothouse", place / "pilothouse", ignore=ignored)
        for mutant in wanted:
            found = verdict(mutant, place, tests)
            killed += found.startswith("killed")
            print(f"{mutant.bug:2} {mutant.what}: {found}", flush=True)
    print(f"{killed} of {len(wanted)} killed")
    return 0 if killed == len(wanted) else 1
