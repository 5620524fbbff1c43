"""The adopted sessions that are in memory: read on when their records change, and those told who write to them.

What is done elsewhere in one is told by `elsewhere`. The rule a change must not break: a record that changes all the
time, as the hub's own agent writes to it, costs one reading at a time, and none while a turn runs here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from ..adapters.discovery.store import Reader
from .finding import Finding
from .session import HubSession

__all__ = ["Adopted"]


class Adopted:
    """Of one hub. `finder` gives who reads records; None when none does. `look` finds out who writes to a session."""

    def __init__(self, finder: Callable[[], Finding | None], look: Callable[[str, str, str], Awaitable[None]]) -> None:
        self._finder = finder
        self._look = look
        self._sessions: WeakValueDictionary[str, HubSession] = WeakValueDictionary()
        self._reading: dict[str, bool] = {}

    def begin(self, session: HubSession) -> bool:
        """Read the record of a session from now on, if it was adopted; whether that is new."""
        elsewhere = session.elsewhere
        if elsewhere is None or elsewhere.open_reader is not None or (finder := self._finder()) is None:
            return False

        async def open_reader() -> Reader | None:
            return await finder.reader(elsewhere.agent, elsewhere.session_id)

        elsewhere.open_reader = open_reader
        self._sessions[session.id] = session
        return True

    @property
    def sessions(self) -> list[str]:
        """Their ids."""
        return list(self._sessions)

    def is_due(self, session_id: str) -> bool:
        """Whether a session whose record changed has to be read; one that is being read is read again."""
        session = self._sessions.get(session_id)
        if session is None or not session.is_idle:
            return False  # a turn that begins reads it
        is_new = session_id not in self._reading
        self._reading[session_id] = True
        return is_new

    async def read_on(self, session_id: str) -> None:
        """Read one that is due, for as long as it changes."""
        try:
            while self._reading[session_id]:
                self._reading[session_id] = False
                session = self._sessions.get(session_id)
                elsewhere = session.elsewhere if session is not None else None
                if session is not None and elsewhere is not None and await session.read_on(waits=True):
                    await self._look(session_id, elsewhere.agent, elsewhere.session_id)
        finally:
            del self._reading[session_id]

    async def tell(self, session_id: str) -> None:
        """Tell what was done elsewhere in one so far, up to what is being done. While something that was asked there
        waits for its answer nothing is told: the end of what is told would be the end of that."""
        session = self._sessions.get(session_id)
        if session is not None and not session.state.index.pending:
            await session.read_on(holds=True)

    async def end(self, session_id: str) -> None:
        """A session leaves memory."""
        session = self._sessions.pop(session_id, None)
        if session is not None and session.elsewhere is not None:
            await session.elsewhere.close()

    async def close(self) -> None:
        for session_id in list(self._sessions):
            await self.end(session_id)
