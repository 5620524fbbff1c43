"""Rows of sessions as they change: what a consumer gets that comes late, and what is not done for nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.hub import Hub
from pilothouse.server.ws import session_list_feed as roster_module
from pilothouse.server.ws.session_list_feed import Roster
from tests.support.servers import agent_specs

PATIENCE = 60


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with Hub(home=tmp_path / "home", agents=agent_specs(tmp_path)) as opened:
        yield opened


def message(made: bytes) -> dict[str, Any]:
    """What a frame says."""
    value: dict[str, Any] = json.loads(made[made.index(b"{") :])
    return value


async def told(roster: Roster, version: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE):
        await roster.changed(version)
    frames = roster.since(version)
    assert frames is not None
    return [message(made) for made in frames]


async def test_a_session_is_told_once_however_often_it_changed(hub: Hub, tmp_path: Path) -> None:
    roster = Roster(hub)
    async with roster.watched():
        version = roster.version
        session = await hub.start_session("demo", tmp_path)
        for number in range(50):
            session.rename(f"title {number}")
        await session.committed()
        while (rows := await told(roster, version))[-1]["session"]["title"] != "title 49":
            async with asyncio.timeout(PATIENCE):
                await roster.changed(roster.version)
        assert [row["session"]["id"] for row in rows] == [session.id]


async def test_a_deleted_session_is_named(hub: Hub, tmp_path: Path) -> None:
    roster = Roster(hub)
    session = await hub.start_session("demo", tmp_path)
    async with roster.watched():
        version = roster.version
        await hub.delete_session(session.id)
        assert await told(roster, version) == [{"type": "session_deleted", "sessionId": session.id}]


async def test_who_missed_more_than_is_kept_has_to_read_the_list(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster_module, "KEPT", 3)
    roster = Roster(hub)
    async with roster.watched():
        version = roster.version
        for _ in range(4):
            await hub.start_session("demo", tmp_path)
        async with asyncio.timeout(PATIENCE):
            await roster.changed(version + 3)
        assert roster.since(version) is None
        assert len(roster.since(version + 1) or []) == 3


async def test_nothing_is_watched_for_nobody(hub: Hub, tmp_path: Path) -> None:
    roster = Roster(hub)
    async with roster.watched(), roster.watched():
        assert len(hub.log.sessions.watchers) == 1
        watching = roster._tasks
    assert all(task.done() for task in watching)
    assert not hub.log.sessions.watchers
    await hub.start_session("demo", tmp_path)
    async with roster.watched():
        version = roster.version
        later = await hub.start_session("demo", tmp_path)
        assert [row["session"]["id"] for row in await told(roster, version)] == [later.id]
