"""How one hub follows another on the same log: who was here before, and the end of what that one left.

Rules a change must not break: processes are ended only if they bear the mark of a hub of this log; one session that
cannot be recovered keeps no other away; that a hub left in order is stored last, and forgotten by the next one first.
"""

from __future__ import annotations

import asyncio
import logging
import secrets

from msgspec import Struct

from ..log.base import EventLog
from ..log.errors import LogError
from ..log.records import SessionPage, SessionRecord
from .orphans import end_orphans
from .recovery import LEFT_OPEN, end_open

__all__ = ["Inheritance", "leave_in_order", "take_over"]

logger = logging.getLogger(__name__)

HUB_ID = "hub.id"
CLEAN = "hub.closed"
"""Settings: whose processes are ours, and whether the last hub came to an orderly end."""
UNTIDY = (*LEFT_OPEN, "paused", "error")
"""Statuses that may have something open after a crash: a pause or an error outlives its turn."""
PAGE = 200


class Inheritance(Struct):
    """What a hub has from those before it. `hub_id` is that of all hubs on this log; `orphans_ended` counts the
    processes that a dead one had left, `recovered` are the sessions in which it had left something open, and `notices`
    tell what could not be recovered."""

    hub_id: str
    orphans_ended: int = 0
    recovered: list[str] = []
    notices: list[str] = []


async def take_over(log: EventLog) -> Inheritance:
    """Find out who was here before, and put an end to what a hub that died left open or running."""
    before = await log.settings.get(HUB_ID)
    was_clean = await log.settings.remove(CLEAN)
    had = Inheritance(before or f"hub_{secrets.token_hex(8)}")
    if before is None:
        await log.settings.set(HUB_ID, had.hub_id)
    else:  # also after an orderly end: looking costs little, and nobody else ever would
        had.orphans_ended = await asyncio.to_thread(end_orphans, before)
    for status in LEFT_OPEN if was_clean else UNTIDY:
        for record in await _all_with(log, status):
            await _recover(log, record, had)
    return had


async def leave_in_order(log: EventLog) -> None:
    """Nothing is left open; the next one need not look for it."""
    try:
        await log.settings.set(CLEAN, True)
    except LogError as exc:
        logger.info("the log could not be told of the orderly end: %s", exc)


async def _all_with(log: EventLog, status: str) -> list[SessionRecord]:
    found: list[SessionRecord] = []
    page: SessionPage | None = None
    while page is None or page.next is not None:
        before = page.next if page is not None else None
        page = await log.sessions.list(archived=None, status=status, before=before, limit=PAGE)
        found += page.sessions
    return found


async def _recover(log: EventLog, record: SessionRecord, had: Inheritance) -> None:
    try:
        state = await end_open(log, record)
    except Exception as exc:  # a session of which nothing can be read; the others can
        logger.info("session %s could not be recovered", record.id, exc_info=exc)
        had.notices.append(f"session {record.id} could not be recovered: {exc}")
        return
    if state.seq > record.last_seq:
        had.recovered.append(record.id)
