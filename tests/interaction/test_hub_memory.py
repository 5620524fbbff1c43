"""What a hub keeps in memory: the newest of live sessions, and nothing of those that nobody needs."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path

from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.log.sqlite.reader import LogArchive
from pilothouse.model.session import Session, fold
from tests.support.hubs import PATIENCE, history, odd_hub, said

LONG = "echo " + "word " * 20_000


async def slept(hub: Hub, session_id: str) -> None:
    """Until the hub holds the session no longer."""
    while session_id in hub._sessions._held:
        await asyncio.sleep(0.01)


async def test_a_live_session_keeps_the_newest_and_its_whole_is_what_the_log_tells(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        for _ in range(3):
            await session.prompt(LONG)
        await session.prompt("echo last")
        whole = fold(await history(hub.log, session.id), Session(id=session.id))
        assert [message.text for message in session.state.messages] == ["echo last", "last"]
        assert session.snapshot(items=False) == {**whole.snapshot(items=False), "queue": []}
        assert await session.whole_snapshot() == {**whole.snapshot(), "queue": []}
        assert len(whole.messages) == 8
        await session.prompt("echo more")
        again = await session.whole_snapshot()  # from where it was folded to
        assert again == {**fold(await history(hub.log, session.id)).snapshot(), "queue": []}


async def test_the_whole_of_a_short_session_is_at_hand(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo one")
        assert await session.transcript() is session.state
        assert await session.whole_snapshot() == session.snapshot()


async def test_a_session_taken_up_from_the_log_is_as_one_that_stayed(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        for _ in range(2):
            await session.prompt(LONG)
        before = await session.whole_snapshot()
        await hub.release(session.id)
        again = await hub.session(session.id)
        assert again is not session
        after = await again.whole_snapshot()
        assert after["items"] == before["items"]
        assert after["summary"]["messagesCount"] == before["summary"]["messagesCount"] == 4
        assert (await again.prompt("echo on")).stop_reason == "end_turn"
        assert said(await history(hub.log, session.id)).endswith("on")


async def test_a_session_that_nobody_needs_leaves_memory_and_is_taken_up_again(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", idle_timeout=0.2) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo one")
        session_id, gone = session.id, weakref.ref(session)
        await slept(hub, session_id)
        del session
        while gone() is not None:
            gc.collect()
            await asyncio.sleep(0.01)
        assert session_id not in hub.live
        again = await hub.session(session_id)
        assert (await again.prompt("echo two")).stop_reason == "end_turn"
        assert said(await history(hub.log, session_id)) == "onetwo"
    async with LogArchive(tmp_path / "home" / "pilothouse.db") as archive:
        assert await archive.problems() == []


async def test_a_session_that_somebody_has_stays_the_one_of_its_id(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", idle_timeout=0.2) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo one")
        await slept(hub, session.id)
        gc.collect()
        assert hub.live[session.id] is session
        assert await hub.session(session.id) is session
        await slept(hub, session.id)
        turn = await session.send("deaf")  # set to work without asking the hub for it
        while session.id not in hub._sessions._held:
            await asyncio.sleep(0.01)
        assert not turn.done.done()
    assert session.agent_pid is None


async def test_a_hub_closes_what_it_only_remembers(tmp_path: Path) -> None:
    kept: list[HubSession] = []
    async with odd_hub(tmp_path / "home", "resume", idle_timeout=0.5) as hub, asyncio.timeout(PATIENCE):
        kept.append(await hub.start_session("odd", tmp_path))
        await slept(hub, kept[0].id)
        await kept[0].send("deaf")
        while kept[0].agent_pid is None:
            await asyncio.sleep(0.01)
    assert kept[0].agent_pid is None
    assert kept[0].is_idle


async def test_a_deleted_session_is_gone_also_while_it_sleeps(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", idle_timeout=0.1) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await slept(hub, session.id)
        await hub.delete_session(session.id)
        assert list(hub.live) == []
