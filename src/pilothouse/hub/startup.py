"""How a hub starts on a log: it finds the hub that had the log before, and ends what that one left running.

Every process that a hub starts, and all its children, carry the hub's id in their environment. The id belongs to one
home, and the log's lock allows one hub per home, so a process with the mark was left by a hub that is gone. This works
on Linux only: elsewhere no process's environment can be read, and agents exit by themselves when their stdin closes.

Rules a change must not break: processes are ended only if they bear the mark of a hub of this log; a session that
cannot be recovered does not keep others away; the record of an orderly stop is written last and deleted first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import time
from pathlib import Path

from msgspec import Struct

from ..log.contract import EventLog
from ..log.errors import LogError
from ..log.records import SessionPage, SessionRecord
from ..model.marks import HUB
from .client.process_tree import LINUX, Entry, all_entries, is_running
from .recording.recovery import LEFT_OPEN, end_open

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


GRACE = 0.5
KILLED = 2.0
STEP = 0.01


def end_orphans(hub_id: str) -> int:
    """End the processes that have the mark of this hub, and their families; how many there were. Blocks."""
    if not LINUX or not hub_id:
        return 0
    known = _find(hub_id, [])
    count = len(known)
    if not known:
        return 0
    _signal(known, signal.SIGTERM)
    _wait_gone(known, GRACE)
    deadline = time.monotonic() + KILLED
    while (known := _find(hub_id, known)) and time.monotonic() < deadline:
        _signal(known, signal.SIGKILL)
        _wait_gone(known, STEP)
    return count


def _find(hub_id: str, known: list[Entry]) -> list[Entry]:
    """Those who have the mark, those who were found before, and whoever is below them or in a group with them.

    A process that was given another environment is known only by its relatives, so it is remembered: they may end
    before it does. Whatever has the mark is in a group that began with an agent or a terminal, never in ours.
    """
    mark = f"{HUB}={hub_id}".encode()
    entries = {entry.pid: entry for entry in all_entries()}
    spared = _lineage(entries)
    own = {entries[pid].group for pid in spared if pid in entries}
    found = {entry.pid for entry in known if entry.pid in entries and entries[entry.pid].start == entry.start}
    found |= {pid for pid in entries if pid not in spared and pid not in found and _has(pid, mark)}
    size = -1
    while size != len(found):
        size = len(found)
        groups = {entries[pid].group for pid in found} - own
        found |= {
            pid
            for pid, entry in entries.items()
            if pid not in spared and (entry.parent in found or entry.group in groups)
        }
    return [entries[pid] for pid in found]


def _lineage(entries: dict[int, Entry]) -> set[int]:
    """This process and those above it: one that was started by an agent may itself become a hub."""
    lineage: set[int] = set()
    pid = os.getpid()
    while pid and pid not in lineage:
        lineage.add(pid)
        pid = entries[pid].parent if pid in entries else 0
    return lineage


def _has(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _signal(entries: list[Entry], number: int) -> None:
    for entry in entries:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(entry.pid, number)


def _wait_gone(entries: list[Entry], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(is_running(entry) for entry in entries) and time.monotonic() < deadline:
        time.sleep(STEP)
