"""For tests of editors with real processes: a home of which nothing may be left, a directory to work in, and kinds of
editors. For those of commands: the command line on a home of its own, and somebody who types at it. For those of the
scripted agent: sessions with it. Tests of other things have fixtures of their own by these names, or none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.cli import Cli, Typist
from tests.support.demo_talk import Connected, FullClient, MinimalClient, Talk, connected
from tests.support.editors import Home
from tests.support.foreign_clients import KINDS, home_left_clean


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    async with home_left_clean(tmp_path) as made:
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Of an editor on an official SDK."""
    return str(request.param)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
def at_terminal(cli: Cli) -> Iterator[Callable[..., Typist]]:
    """Starts a command that somebody types at; with `terminal=False` it only writes to a pipe."""
    typists: list[Typist] = []

    def start(*args: object, terminal: bool = True) -> Typist:
        typists.append(Typist(cli, *args, terminal=terminal))
        return typists[-1]

    yield start
    for typist in typists:
        typist.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full_agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Connected]:
    async with connected(tmp_path_factory.mktemp("full"), FullClient) as agent:
        yield agent


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def minimal_agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Connected]:
    async with connected(tmp_path_factory.mktemp("minimal"), MinimalClient) as agent:
        yield agent


@pytest_asyncio.fixture(loop_scope="module")
async def full(full_agent: Connected, tmp_path: Path) -> AsyncIterator[Talk]:
    """A client that can do everything."""
    async with full_agent.session(tmp_path) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def minimal(minimal_agent: Connected, tmp_path: Path) -> AsyncIterator[Talk]:
    """A client that advertises nothing."""
    async with minimal_agent.session(tmp_path) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module", params=["full", "minimal"])
async def either(request: pytest.FixtureRequest, full: Talk, minimal: Talk) -> Talk:
    return full if request.param == "full" else minimal
