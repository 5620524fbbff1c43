"""A hub in a process of its own, a Chromium, and people before it.

One browser is for all tests of a process, and one hub for all that only want a session: everybody has a context and a
session of their own, and nothing of either is left for the next test. So all tests here run in one loop, and each
async fixture here has to name it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.support.browsers import Desk, Size, browser, chromium_program
from tests.support.servers import ServerProcess, server_process
from tests.support.web_talk import Talk

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """A hub that nobody else has."""
    async with server_process(tmp_path / "home") as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    async with server_process(tmp_path_factory.mktemp("hub") / "home") as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    if chromium_program() is None:
        pytest.skip("no Chromium here; PILOTHOUSE_CHROMIUM says where one is")
    async with browser() as launched:
        yield launched


@pytest.fixture(params=["desk", "phone"])
def size(request: pytest.FixtureRequest) -> Size:
    chosen: Size = request.param
    return chosen


@pytest_asyncio.fixture(loop_scope="session")
async def talk(shared_server: ServerProcess, chromium: Browser, size: Size, tmp_path: Path) -> AsyncIterator[Talk]:
    """Somebody who is logged in and looks at a new session of the scripted agent."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with Desk(chromium, shared_server.port, size) as desk:
        await desk.log_in()
        try:
            yield await Talk.begin(shared_server, desk, workspace)
        finally:
            await _end_all(shared_server)


async def _end_all(server: ServerProcess) -> None:
    """Those that were begun in the page as well."""
    for row in (await server.client.request("GET", "/sessions?archived=all")).json()["sessions"]:
        await server.client.request("DELETE", f"/sessions/{row['id']}")
