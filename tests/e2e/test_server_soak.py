"""A server with many sessions, consumers that come, stall and vanish, and agents that crash: nobody misses anything.

`make soak` runs ten rounds of a minute, each with 50 sessions and 200 consumers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.soaking import Report, soak

FULL = bool(os.environ.get("PILOTHOUSE_SOAK"))


@pytest.mark.slow
async def test_every_consumer_is_complete_and_the_server_stays_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tell: Callable[[str], None]
) -> None:
    def show(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", flush=True)

    if FULL:
        report = await soak(tmp_path, rounds=10, seconds=60, sessions=50, consumers=200, tell=show)
    else:
        report = await soak(tmp_path, rounds=2, seconds=4, sessions=4, consumers=16)
    tell(str(report))
    assert report.wrong == []
    assert report.counts["consumers complete"] == (2000 if FULL else 32)
    assert report.counts["events seen"] > 0
    if FULL:
        _flat(report)


def _flat(report: Report) -> None:
    """Time does not make it grow: after the last round it is hardly larger than after the third."""
    early, late = report.rests[2], report.rests[-1]
    assert late.memory < early.memory * 1.2 + 20e6
    assert late.files <= early.files + 10
    assert late.threads <= early.threads + 4
