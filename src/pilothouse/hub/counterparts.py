"""The hub's own sessions of those that were begun elsewhere: which there are, and new ones that only watch.

The rule a change must not break: of a session elsewhere there is one here that is not over, besides its forks.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..log.base import EventLog
from ..log.records import SessionRecord
from ..model.discovery import DiscoveredSession
from .finding import OVER, Key, ids_here, key_of
from .session import HubSession

__all__ = ["Counterparts"]

PAGE = 200


class Counterparts:
    """Of one hub. `open_session` gives a session by its id."""

    def __init__(self, log: EventLog, open_session: Callable[[str], Awaitable[HubSession]]) -> None:
        self._log = log
        self._open_session = open_session

    async def all(self) -> list[SessionRecord]:
        """Those that watch, and those that were adopted."""
        found: list[SessionRecord] = []
        before: str | None = None
        while True:
            page = await self._log.sessions.list(archived=None, before=before, limit=PAGE)
            found += (one for one in page.sessions if one.meta.keys() & {"watched", "adopted"})
            before = page.next
            if before is None:
                return found

    async def ids(self) -> dict[Key, str]:
        """The ids of the hub's own sessions that are not over, by those that agents keep."""
        return ids_here(await self._log.find(SessionRecord, {"deleted": None}))

    async def of(self, found: DiscoveredSession) -> SessionRecord | None:
        """The hub's own session of it, if there is one that is not over."""
        records = await self._log.find(SessionRecord, {"agent_session_id": found.id, "deleted": None})
        fitting = [one for one in records if key_of(one.agent, found.id) == key_of(found.agent, found.id)]
        return next((one for one in reversed(fitting) if one.status != OVER), None)

    async def shown(self, record: SessionRecord) -> HubSession:
        """A session that is there already, among those that are listed."""
        if record.archived is not None:
            await self._log.sessions.update(record.id, archived=False)
        return await self._open_session(record.id)

    async def make(
        self, found: DiscoveredSession, policy: dict[str, Any] | None, *, is_fork: bool = False
    ) -> HubSession:
        """A new one that watches it; one that is to become a fork of it is out of the way until it is whole."""
        about = {"sessionId": found.id, "projectPath": found.project_path, "model": found.model}
        about["createdAt"] = found.created_at
        watched = {key: value for key, value in about.items() if value} | ({"fork": True} if is_fork else {})
        record = await self._log.sessions.create(
            f"ses_{secrets.token_hex(8)}",
            agent=found.agent,
            cwd=found.project_path or str(Path.home()),
            title=found.session_name,
            agent_session_id=None if is_fork else found.id,
            policy=policy,
            meta={"watched": watched},
        )
        if is_fork:
            await self._log.sessions.update(record.id, archived=True)
        return await self._open_session(record.id)
