"""A server to get into, and the count of attempts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from pilothouse.server.limits import Limits
from tests.support.attacks import Attempts, Clock
from tests.support.http_client import Client
from tests.support.servers import Served, serving


@pytest.fixture
def attempts(tally: Callable[[str, int], None]) -> Iterator[Attempts]:
    attempts = Attempts()
    yield attempts
    tally("attempts to get in that were refused", attempts.count)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def served(tmp_path: Path, clock: Clock) -> AsyncIterator[Served]:
    limits = Limits(headers=0.5, body=20_000, frame=20_000)
    async with serving(tmp_path, limits=limits, clock=clock) as served:
        yield served


@pytest.fixture
def nobody(served: Served) -> Client:
    return Client(served.port)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place
