"""A session that another program runs, and a hub that looks on: its record, and what is to be known of it there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pilothouse.hub.external.writer_lock import Leases
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.discovery import DiscoveredSession
from pilothouse.model.events import Event
from tests.support.hubs import PATIENCE, until
from tests.support.records import Holders, finder, says
from tests.support.servers import agent_specs

ID = "demo-1-0123abcd"
TOUR = [
    says("Fix it", "u1", user=True),
    says("I look. ", "a1"),
    {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Read a file", "kind": "read", "status": "pending"},
    {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"},
    says("Done.", "a2"),
]


@contextlib.asynccontextmanager
async def open_hub(home: Path, place: Path, holders: Holders | None = None) -> AsyncIterator[Hub]:
    async with Hub(home=home, agents=agent_specs(home)) as hub:
        made = finder(place, home, holders)
        hub.discovery.prepare(lambda: made, Leases(home / "leases", home))
        await hub.discovery.begin()
        yield hub


async def found(hub: Hub, session_id: str = ID) -> DiscoveredSession:
    return await hub.discovery.find("demo", session_id)


async def told(session: HubSession, text: str) -> Event:
    """Wait until it was said."""
    return await until(session, lambda event: text in str(getattr(event, "delta", "")))


def prompts(events: list[Event]) -> list[str]:
    """What its user said."""
    done: Any = [event for event in events if event.type == "message:complete"]
    return ["".join(part.text for part in event.content) for event in done if event.role == "user"]


async def idle(session: HubSession) -> None:
    async with asyncio.timeout(PATIENCE):
        while session.status != "idle" or not session.state.seq:
            await asyncio.sleep(0.01)
