"""Make the pictures. `python -m tests.support.pictures [FOLDER [NAME …]]`; by default all, into docs/images."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import get_args

from ..browsers import Size, browser
from ..servers import ROOT
from .album import PICTURES, Sitting
from .stage import stage

FOLDER = ROOT / "docs" / "images"
SCHEMES = ("light", "dark")


async def make(folder: Path, names: list[str]) -> int:
    """Write the pictures; gives their size in bytes."""
    wanted = [one for one in PICTURES if not names or one.name in names]
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    with tempfile.TemporaryDirectory(prefix="pilothouse-") as root:
        async with stage(Path(root).resolve()) as shown, browser() as chromium:
            for size in get_args(Size):
                for scheme in SCHEMES:
                    async with Sitting(chromium, shown, size, scheme) as sitting:
                        for picture in (one for one in wanted if size in one.sizes):
                            path = await sitting.take(picture, folder)
                            total += path.stat().st_size
                            print(f"{path.stat().st_size / 1024:6.1f} KB  {path}")
    return total


if __name__ == "__main__":
    given = sys.argv[1:]
    bytes_in_all = asyncio.run(make(Path(given[0]) if given else FOLDER, given[1:]))
    print(f"{bytes_in_all / 1024:6.1f} KB in all")
