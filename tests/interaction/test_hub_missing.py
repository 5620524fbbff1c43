"""Watched sessions that have no record, or whose adapter does not follow them: they cost next to nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.contract import AdapterError, AgentSession
from pilothouse.adapters.discovery.finder import Finder
from pilothouse.hub.external import watch as feed
from pilothouse.hub.hub import Hub
from pilothouse.model.discovery import DiscoveredSession
from tests.interaction.test_hub_packages import Packaged
from tests.support.hubs import PATIENCE
from tests.support.records import DemoStore, append, says, write_record
from tests.support.watching import ID, TOUR, found, open_hub, told

FEW = 5
MANY = 100
"""Tries after which a feed is known to spin."""


class Counted(DemoStore):
    """Counts how often a record is looked for."""

    tries = 0

    def reader(self, session_id: str) -> Any:
        type(self).tries += 1
        return super().reader(session_id)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[Counted]:
    monkeypatch.setattr("tests.support.records.DemoStore", Counted)
    monkeypatch.setattr(Counted, "tries", 0)
    return Counted


async def looks(hub: Hub) -> None:
    """So much time that a feed which does not wait has made hundreds of tries."""
    for _ in range(MANY):
        await hub.discovery.found(refresh=True)


async def test_a_watched_session_whose_record_is_gone_is_hardly_looked_for(
    tmp_path: Path, place: Path, counted: type[Counted]
) -> None:
    path = write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "Done.")
    path.unlink()
    counted.tries = 0
    async with open_hub(tmp_path, place) as hub:
        await hub.discovery.told(session.id)
        await looks(hub)
        assert 0 < counted.tries <= FEW
        again = await hub.session(session.id)
        write_record(place, ID, tmp_path, [*TOUR, says("Back.", "a3")])
        await told(again, "Back.")
        append(path, {"update": says("Later.", "a4")})
        await told(again, "Later.")


async def test_a_session_that_a_hook_asks_for_before_it_has_a_record_is_hardly_looked_for(
    tmp_path: Path, place: Path, counted: type[Counted]
) -> None:
    place.mkdir()
    at = "2026-01-01T00:00:00Z"
    about = {"project_path": str(tmp_path), "project_name": "p", "created_at": at, "last_activity": at}
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(DiscoveredSession(id=ID, agent="demo", **about))
        for _ in range(2):
            await hub.discovery.told(session.id)
        await looks(hub)
        assert 0 < counted.tries <= FEW
        write_record(place, ID, tmp_path, TOUR)
        await told(session, "Done.")


class Refusing(Packaged):
    """One that lists a session and does not follow it, as an adapter may."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    async def attach_to_session(self, session_id: str) -> AgentSession:
        self.tries += 1
        if self.tries > MANY:  # else nobody would ever hear that it spins
            raise asyncio.CancelledError
        raise AdapterError("it cannot be followed")


@pytest.mark.parametrize("is_installed", [True, False])
async def test_an_adapter_that_does_not_follow_a_session_leaves_the_hub_free(
    tmp_path: Path, is_installed: bool
) -> None:
    adapter = Refusing()
    async with Hub(home=tmp_path, agents={}) as hub:
        hub.discovery.prepare(lambda: Finder([], [adapter]), None)
        session = await hub.watch_session(await hub.discovery.find("packaged", "x"))
        async with asyncio.timeout(PATIENCE):
            await hub.discovery.told(session.id)
        await looks(hub)
        assert 0 < adapter.tries <= FEW
    adapter.tries = 0
    async with Hub(home=tmp_path, agents={}) as hub, asyncio.timeout(PATIENCE):
        hub.discovery.prepare(lambda: Finder([], [adapter] if is_installed else []), None)
        await hub.discovery.begin()
        await hub.discovery.told(session.id)
        await looks(hub)
        assert adapter.tries <= FEW


async def test_a_feed_that_is_woken_all_the_time_does_not_spin(
    tmp_path: Path, place: Path, counted: type[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "BREATH", PATIENCE)
    place.mkdir()
    write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        one = await found(hub)
        (place / f"{ID}.jsonl").unlink()
        await hub.watch_session(one)
        for _ in range(MANY):
            hub.discovery._feeds.wake_all()
            await hub.discovery.found(refresh=True)
        assert counted.tries <= FEW
