"""The hub that another process runs on a home, found or not.

The lock says whether there is one; the place it wrote says how to speak with it. Between taking the lock and being
reachable a hub needs a moment, in which it is waited for.
"""

from __future__ import annotations

import asyncio

from ..config import Config
from ..log.errors import LogLocked
from ..remote.errors import NoHub
from ..remote.hub import RemoteHub, reach
from .archive import lock_holder

__all__ = ["find_hub"]

PATIENCE = 5.0
"""Seconds that a hub has from taking the lock until it answers; recovery after a crash is part of that."""
STEP = 0.03


async def find_hub(config: Config, *, patience: float = PATIENCE) -> RemoteHub | None:
    """The hub that runs on this home; None when none does. Raises LogLocked for one that does not answer."""
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        holder = lock_holder(config.database)
        try:
            # where there are no locks, only an answer tells
            return await reach(config.home)
        except NoHub:
            if holder is None:
                return None
        if asyncio.get_running_loop().time() > deadline:
            raise LogLocked(config.database, holder or None)
        await asyncio.sleep(STEP)
