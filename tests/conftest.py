"""Shared by all tests: with PILOTHOUSE_NO_SKIP a skip is a failure, so that CI cannot pass by not looking; and figures
that tests tell are shown at the end of a run, also by those that ran in another process.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

# hubs of tests, also those in other processes, must not leave leases among those of whoever runs them
os.environ.setdefault("PILOTHOUSE_LEASES", str(Path(tempfile.gettempdir()) / f"pilothouse-leases-{os.getpid()}"))

# whoever runs this in the background, or by nohup, has these ignored; the programs that tests start are to hear them
for number in {signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT), getattr(signal, "SIGQUIT", signal.SIGINT)}:
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("PILOTHOUSE_NO_SKIP"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which PILOTHOUSE_NO_SKIP forbids: {report.longrepr}"


TOLD = "told"
TALLIED = "tallied"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Says something that whoever ran the tests should read."""
    return lambda text: record_property(TOLD, text)


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """Counts something over all tests of a run; the sum is shown at its end."""
    return lambda what, count: record_property(TALLIED, (what, count))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    ends = [report for report in reports if getattr(report, "when", "") == "teardown"]
    told = [text for report in ends for name, text in report.user_properties if name == TOLD]
    counts: dict[str, list[int]] = {}
    for report in ends:
        for name, value in report.user_properties:
            if name == TALLIED:
                counts.setdefault(value[0], []).append(value[1])
    told += [f"{what}: {sum(each):,} in {len(each)} tests" for what, each in counts.items()]
    if told:
        terminalreporter.section("figures")
        for text in told:
            terminalreporter.write_line(text)
