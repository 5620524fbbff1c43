"""What a session has around it: kept while there is something, whether or not the session is in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pilothouse.hub.agent.inputs import Provisions
from tests.support.hubs import PATIENCE, odd_hub
from tests.support.lending import lending


async def test_what_is_around_a_session_goes_when_it_is_nothing(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", idle_timeout=0.05) as hub, lending(hub, fs=True) as editor:
        plain = (await hub.start_session("odd", tmp_path)).id
        given = await hub.start_session("odd", tmp_path)
        given.provide(Provisions(directories=("/more",)))
        kept = given.id
        edited = await editor.open(tmp_path)
        del given
        for session_id in (plain, kept, edited):
            await hub.release(session_id)
        assert set(hub._surroundings) == {kept, edited}
        await editor.vanish()
        async with asyncio.timeout(PATIENCE):
            while edited in hub._surroundings:
                await asyncio.sleep(0.01)
        assert set(hub._surroundings) == {kept}
        await hub.delete_session(kept)
        assert hub._surroundings == {}
