"""What a hub that has gone left in the log, drawn where its stream broke off."""

from __future__ import annotations

import asyncio

from ..app.stored_sessions import Archive
from ..config import Config
from ..log.sqlite.reader import lock_holder
from .conversation import Conversation

__all__ = ["draw_stored", "hub_closed"]

CLOSING = 10.0
"""Seconds that a hub which is closing has to let go of the log, before what it wrote last is read."""
STEP = 0.05


async def hub_closed(config: Config) -> None:
    """Wait until the hub has let go: what it says at its end is stored then."""
    for _ in range(int(CLOSING / STEP)):
        if lock_holder(config.database) is None:
            return
        await asyncio.sleep(STEP)


async def draw_stored(archive: Archive, conversation: Conversation, session_id: str, since: int) -> None:
    """Draw what is stored beyond an event."""
    if conversation.seq < since:
        await conversation.recall(session_id, archive.entries(session_id), since)
    async for entry in archive.entries(session_id, since):
        await conversation.draw_named([entry])
