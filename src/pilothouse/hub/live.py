"""The sessions in memory, by their id: those at work are held, those that slept long are only remembered.

One that is only remembered goes when nobody else has it; until then it is found here, so that there are never two of
one session. The rule a change must not break: looking at a session holds it no longer than before, only `wake` does.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from weakref import WeakValueDictionary

from .session import HubSession

__all__ = ["LiveSessions"]


class LiveSessions(MutableMapping[str, HubSession]):
    def __init__(self) -> None:
        self._held: dict[str, HubSession] = {}
        self._remembered: WeakValueDictionary[str, HubSession] = WeakValueDictionary()

    def __getitem__(self, session_id: str) -> HubSession:
        held = self._held.get(session_id)
        return held if held is not None else self._remembered[session_id]

    def __setitem__(self, session_id: str, session: HubSession) -> None:
        self._remembered.pop(session_id, None)
        self._held[session_id] = session

    def __delitem__(self, session_id: str) -> None:
        if self._held.pop(session_id, None) is None:
            del self._remembered[session_id]

    def __iter__(self) -> Iterator[str]:
        found = [*self._held.items(), *self._remembered.items()]  # none of them goes while they are looked at
        for session_id, _ in found:
            yield session_id

    def __len__(self) -> int:
        return len(self._held) + len(self._remembered)

    def clear(self) -> None:
        self._held.clear()
        self._remembered.clear()

    def wake(self, session_id: str) -> HubSession | None:
        """A session that is wanted, held again; None when it is not in memory."""
        session = self.get(session_id)
        if session is not None:
            self[session_id] = session
        return session

    def rest(self, seconds: float) -> None:
        """End agents that had nothing to do for so long, and hold no longer the sessions that nobody needed as long."""
        for session_id, session in list(self.items()):
            session.rest(seconds)
            if not session.has_slept(seconds):
                self[session_id] = session  # somebody who had it may have set it to work
            elif self._held.pop(session_id, None) is not None:
                self._remembered[session_id] = session
