"""What waits for a decision, in all sessions: watched once, for every consumer that is connected.

A consumer is told what has changed since it was told last, not what happened: whoever is slow gets less, never a
backlog. The watch runs only while somebody is there to be told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator

from ...log.contract import EventLog
from ...log.errors import LogClosed, UnknownRecord
from ...log.records import Approval

logger = logging.getLogger(__name__)

KEPT = 200
"""Decisions that are remembered for those who have not been told yet."""


class Attention:
    """Approvals that are pending now. `pending` and `decided` hold while somebody is within `watched`."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._users = 0
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._changed = asyncio.Event()
        self.pending: dict[str, Approval] = {}
        self.decided: OrderedDict[str, Approval] = OrderedDict()

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Within this block what is pending is known."""
        self._users += 1
        try:
            async with self._starting:
                if self._task is None or self._task.done():
                    await self._start()
            yield
        finally:
            self._users -= 1
            if not self._users and self._task is not None:
                task, self._task = self._task, None
                task.cancel()
                await asyncio.wait((task,))

    async def changed(self) -> None:
        """Wait until something else is pending."""
        await self._changed.wait()

    async def _start(self) -> None:
        position = await self._log.last_position()
        await self._refresh()
        self._task = asyncio.get_running_loop().create_task(self._watch(position), name="watching approvals")

    async def _watch(self, position: int) -> None:
        follower = self._log.follow_all(position)
        try:
            async for batch in follower:
                if any(entry.type.startswith("approval:") for entry in batch):
                    await self._refresh()
        except LogClosed:
            pass
        except Exception:  # whoever connects next begins anew
            logger.exception("approvals can no longer be watched")

    async def _refresh(self) -> None:
        pending = {record.id: record for record in await self._log.approvals.pending()}
        for approval_id in self.pending.keys() - pending.keys():
            with contextlib.suppress(UnknownRecord):  # deleted with its session
                self.decided[approval_id] = await self._log.approvals.get(approval_id)
                if len(self.decided) > KEPT:
                    self.decided.popitem(last=False)
        self.pending = pending
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
