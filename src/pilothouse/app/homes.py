"""Whether the home of a hub is still the one that it was opened on.

A file that is open can be written to after it was deleted, so a hub whose home is gone would go on for ever, in a log
that nobody can read, unreachable by whoever makes the home anew.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["gone"]

LOOK = 2.0
"""Seconds between two looks, of two system calls each."""


async def gone(*paths: Path) -> None:
    """Wait until one of these, which are there now, is not there any more, or is another one of that name."""
    known = {path: await asyncio.to_thread(path.stat) for path in paths}
    while not await asyncio.to_thread(_are_gone, known):  # noqa: ASYNC110 - nobody tells that a directory was deleted
        await asyncio.sleep(LOOK)


def _are_gone(known: Mapping[Path, os.stat_result]) -> bool:
    return any(_is_gone(path, before) for path, before in known.items())


def _is_gone(path: Path, before: os.stat_result) -> bool:
    try:
        return not os.path.samestat(path.stat(), before)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # out of reach for a while, such as on a network
        return False
