"""The whole of a session, for whoever asks: folded from the log, and kept for a moment in case it is asked for again.

A live session has only its newest items in memory. The rule a change must not break: what is folded here is brought up
to the log's end before it is handed out, and nobody but this module changes it.
"""

from __future__ import annotations

import asyncio

from ..log.base import EventLog
from ..model.session import Session
from .recovery import fold

__all__ = ["Transcript"]

KEPT = 20.0
"""Seconds that a folded session is kept after it was last asked for."""


class Transcript:
    def __init__(self, log: EventLog, session_id: str) -> None:
        self._log = log
        self._id = session_id
        self._whole: Session | None = None
        self._folding = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None

    async def get(self) -> Session:
        """The session with all its items; it is good until the next `await`. Raises UnknownSession, LogClosed."""
        async with self._folding:
            whole = self._whole or Session(id=self._id)
            await fold(self._log, self._id, into=whole)
            self._whole = whole
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(KEPT, self.forget)
            return whole

    def forget(self) -> None:
        """Let go of it."""
        if self._timer is not None:
            self._timer.cancel()
        self._whole = self._timer = None
