"""The pictures of the documentation are those that `make screenshots` makes, and small."""

from __future__ import annotations

from tests.support.pictures.__main__ import FOLDER, SCHEMES
from tests.support.pictures.album import PICTURES

MOST = 2_200_000


def test_the_pictures_are_those_that_the_tool_makes() -> None:
    made = {f"{one.name}-{size}-{scheme}.png" for one in PICTURES for size in one.sizes for scheme in SCHEMES}
    assert {path.name for path in FOLDER.iterdir()} == made


def test_all_of_them_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST
