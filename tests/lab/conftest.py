"""The lab runs when PILOTHOUSE_LAB names the directory of its agents (`make lab`); otherwise nothing here is collected.

PILOTHOUSE_LAB_AGENTS chooses among them. At the end a table says what each agent did in each case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.agents import AGENTS, programs, spec
from tests.lab.model.server import Server, model_server
from tests.lab.table import Table

LAB = os.environ.get("PILOTHOUSE_LAB")
WANTED = os.environ.get("PILOTHOUSE_LAB_AGENTS", "").split() or list(AGENTS)
TABLE = Table()

collect_ignore_glob = [] if LAB else ["test_*.py"]


@pytest.fixture(scope="session")
def model() -> Iterator[Server]:
    with model_server() as server:
        yield server
    TABLE.refused = sorted(set(server.refused))
    assert server.problems == []


@pytest.fixture(params=WANTED, scope="session")
def agent(request: pytest.FixtureRequest, model: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One of the real agents, as a hub starts it."""
    found = AGENTS[request.param]
    lab = Path(str(LAB))
    if not (programs(lab, found.name) / found.command[0]).exists():
        pytest.fail(f"{found.name} is not installed below {lab}")
    return spec(found, lab, tmp_path_factory.mktemp(f"home-{found.name}"), model.url)


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Any:
    """Says in the table what an agent did differently, where that is no fault."""
    return lambda text: TABLE.note(*_cell(request.node), text)


def _cell(item: pytest.Item) -> tuple[str, str]:
    params = item.callspec.params  # type: ignore[attr-defined]
    case = item.originalname.removeprefix("test_")  # type: ignore[attr-defined]
    return params["agent"], f"{case} ({params['way']})" if "way" in params else case


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    params = item.callspec.params if hasattr(item, "callspec") else {}
    if "agent" in params and (report.when == "call" or report.failed):
        error = str(call.excinfo.value).partition("\n")[0] if call.excinfo else ""
        TABLE.done(*_cell(item), f"{type(call.excinfo.value).__name__}: {error}" if call.excinfo else "")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in TABLE.lines():
        terminalreporter.write_line(line)
