"""For tests of editors with real processes: a home of which nothing may be left, a directory to work in, and kinds of
editors. Tests of other things have fixtures of their own by these names, or none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

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
