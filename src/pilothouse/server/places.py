"""Where a session may work: in any directory, but for the hub's own.

The owner's token lies there, and an agent reads what is in its directory without asking, for whoever prompts it. So
that directory is for those who may do everything anyway.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from ..hub.hub import Hub
from .callers import Caller

__all__ = ["may_work_in"]


async def may_work_in(hub: Hub, caller: Caller, cwd: str) -> bool:
    """Whether a caller may have a session in a directory, whatever way leads there."""
    return hub.home is None or caller.may("admin") or not await asyncio.to_thread(_is_same, cwd, hub.home)


def _is_same(cwd: str, home: Path) -> bool:
    try:
        return Path(cwd).samefile(home)
    except (OSError, ValueError):  # what is no directory is refused for that
        return False
