"""Whether somebody beside the hub writes to a session that the hub has adopted: looked at when its record changes.

The rule a change must not break: about one session one look at a time is under way, and they are far enough apart to
cost nothing, however often a record changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ..log.errors import LogError
from .errors import HubError
from .holding import Holding
from .session import HubSession

if TYPE_CHECKING:  # a start does not need what looks through processes
    from ..adapters.discovery.processes import Holder

__all__ = ["Writers"]

logger = logging.getLogger(__name__)

APART = 10.0
"""Seconds between two looks at who has a session."""


class Writers:
    """Of one hub. `open_session` gives a session by its id."""

    def __init__(self, holding: Holding, open_session: Callable[[str], Awaitable[HubSession]]) -> None:
        self._holding = holding
        self._open_session = open_session
        self._checking: dict[str, bool] = {}

    def is_new(self, session_id: str) -> bool:
        """Whether a session that changed has to be checked; one that is being checked is looked at again."""
        is_new = session_id not in self._checking
        self._checking[session_id] = True
        return is_new

    async def check(self, session_id: str, agent: str, foreign_id: str) -> None:
        """Find out who writes to a session that is new, now, and again as long as it changes."""
        try:
            while self._checking[session_id]:
                self._checking[session_id] = False
                await self.look(session_id, agent, foreign_id)
                await asyncio.sleep(APART)
        finally:
            del self._checking[session_id]

    async def look(self, session_id: str, agent: str, foreign_id: str) -> None:
        """If another program than the hub's has the session, it is told."""
        try:
            holder = await self._holding.holder(agent, foreign_id)
            session = await self._open_session(session_id)
            session.warn(_two_writers(holder) if holder is not None else None)
        except (HubError, LogError) as exc:
            logger.info("who has session %s is not known: %s", session_id, exc)


def _two_writers(holder: Holder) -> str:
    what = "writes to it as well" if holder.is_sure else "runs in the same directory and may write to it as well"
    return f"Process {holder.pid} {what}; end that, or what both say gets mixed up."
