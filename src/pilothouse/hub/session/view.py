"""The view that clients get of a session: its state, its events, its transcript and its pending requests.

A live session keeps only its newest items in memory, so the whole transcript is folded from the log and cached for a
moment. Rules a change must not break: nothing is shown that the log does not have; a cached fold is brought up to the
log's end before it is returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ...log.contract import EventLog
from ...log.errors import LogClosed
from ...log.follow import Follower
from ...model.events import Event, decode_event
from ...model.session import Session
from ..recording.recorder import Recorder
from ..recording.recovery import fold
from .prompt_queue import PromptQueue, shown

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


class SessionView:
    """Of one session; `prompts` are those that wait for the running turn to end."""

    def __init__(self, log: EventLog, session_id: str, recorder: Recorder, prompts: PromptQueue) -> None:
        self.id = session_id
        self._log = log
        self._recorder = recorder
        self._prompts = prompts
        self._transcript = Transcript(log, session_id)

    @property
    def state(self) -> Session:
        """The session as its committed events tell it; of finished items it has the newest, `transcript` has all."""
        return self._recorder.session

    @property
    def status(self) -> str:
        return self.state.status

    def follow(self, after: int = 0) -> Follower:
        """Batches of stored entries beyond a seq: history, then live."""
        return self._log.follow(self.id, after)

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Events beyond a seq: history, then live, until the hub closes."""
        follower = self.follow(after)
        while True:
            try:
                batch = await follower.next()
            except LogClosed:
                return
            for entry in batch:
                event = decode_event(entry.data)
                event.source = entry.source
                yield event

    def snapshot(self, *, items: bool = True) -> dict[str, Any]:
        """The session as its committed events tell it, with the `seq` to go on from, and the queue.

        Its items are those in memory; `whole_snapshot` has all. Without `items` it is small, whatever its length.
        """
        return {**self.state.snapshot(items=items), "queue": self.queue}

    async def whole_snapshot(self) -> dict[str, Any]:
        """The same with all items, which are read from the log. Raises UnknownSession, LogClosed."""
        whole = await self.transcript()
        return {**whole.snapshot(), "queue": self.queue}

    async def transcript(self) -> Session:
        """The session with all its items, to be read before the next `await`. Raises UnknownSession, LogClosed."""
        return await self._transcript.get() if self.state.index.shed.items else self.state

    @property
    def queue(self) -> list[dict[str, Any]]:
        """The prompts that wait, the next one first: those that the log knows of."""
        known = [prompt for prompt in self._prompts if prompt.queued and 0 < prompt.queued.seq <= self.state.seq]
        return [{"promptId": prompt.turn_id, "content": shown(prompt.content)} for prompt in known]

    async def committed(self) -> int:
        """Wait until all that was done so far is stored; the last seq. Raises NotStored."""
        return await self._recorder.commit()
