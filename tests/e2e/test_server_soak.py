"""A server with many sessions, consumers that come, stall and vanish, and agents that crash: nobody misses anything.

`make soak` runs it for ten minutes with 50 sessions and 200 consumers.
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
        report = await soak(tmp_path, seconds=600, sessions=50, consumers=200, tell=show)
    else:
        report = await soak(tmp_path, seconds=8, sessions=4, consumers=16)
    tell(str(report))
    assert report.wrong == []
    assert report.counts["consumers complete"] == (200 if FULL else 16)
    assert report.counts["events seen"] > 0
    if FULL:
        _flat(report)


def _flat(report: Report) -> None:
    """Time does not make it grow: in the last fifth it is hardly larger than in the second one."""
    (memory, files, threads), (memory_late, files_late, threads_late) = report.medians()
    assert memory_late < memory * 1.25 + 30e6
    assert files_late < files * 1.25 + 50
    assert threads_late <= threads + 4
