"""Shared by all tests: with PILOTHOUSE_NO_SKIP a skip is a failure, so that CI cannot pass by not looking."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("PILOTHOUSE_NO_SKIP"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which PILOTHOUSE_NO_SKIP forbids: {report.longrepr}"
