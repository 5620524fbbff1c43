"""A hub in a process of its own, a Chromium, and people before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.support.browsers import Desk, Size, browser, chromium_program
from tests.support.servers import ServerProcess, server_process
from tests.support.web_talk import Talk


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with server_process(tmp_path / "home") as server:
        yield server


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    if chromium_program() is None:
        pytest.skip("no Chromium here; PILOTHOUSE_CHROMIUM says where one is")
    async with browser() as launched:
        yield launched


@pytest.fixture(params=["desk", "phone"])
def size(request: pytest.FixtureRequest) -> Size:
    chosen: Size = request.param
    return chosen


@pytest.fixture
async def talk(server: ServerProcess, chromium: Browser, size: Size, tmp_path: Path) -> AsyncIterator[Talk]:
    """Somebody who is logged in and looks at a new session of the scripted agent."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with Desk(chromium, server.port, size) as desk:
        await desk.log_in()
        yield await Talk.begin(server, desk, workspace)
