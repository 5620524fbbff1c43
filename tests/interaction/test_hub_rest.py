"""Sessions that nobody works in: what they are called, where they stand, and agents that have nothing to do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.hub import Hub
from pilothouse.hub.session.prompt_queue import title_of
from pilothouse.hub.session.session import HubSession
from pilothouse.log.sqlite.log import SQLiteLog
from tests.support.hubs import PATIENCE, check, fact, facts, history, odd_hub, said, until

SHORT = 0.05


async def listed(hub: Hub) -> tuple[str | None, str]:
    (record,) = (await hub.sessions()).sessions
    return record.title, record.status


# -- titles --------------------------------------------------------------------------------------------------------


async def test_a_session_is_called_by_its_first_prompt_until_it_is_named(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert await listed(hub) == (None, "idle")
        await session.prompt("echo one\n\x1b[2Jtwo")
        assert (await listed(hub))[0] == session.state.title == "echo one [2Jtwo"
        await session.prompt("echo other")
        assert session.state.title == "echo one [2Jtwo"
        session.rename("Mine")
        await session.prompt("echo third")
        assert (await listed(hub))[0] == session.state.title == "Mine"
        session.rename(None)
        await session.prompt("echo fourth")
        assert (await listed(hub))[0] is session.state.title is None


async def test_a_session_that_was_named_before_its_first_prompt_keeps_that_name(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        session.rename("Mine")
        await session.prompt("echo one")
        assert (await listed(hub))[0] == session.state.title == "Mine"


async def test_a_title_given_at_the_start_is_kept_and_told_by_an_event(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path, title="Given")
        await session.prompt("echo one")
        assert (await listed(hub))[0] == session.state.title == "Given"
        assert facts(await history(hub.log, session.id), "session_info_update") == [{"title": "Given"}]


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ([{"type": "text", "text": "x" * 80}], "x" * 80),
        ([{"type": "text", "text": "word " * 40}], "word " * 15 + "word…"),
        ([{"type": "image", "url": "u"}, {"type": "text", "text": " \n "}, {"type": "text", "text": "a\tb"}], "a b"),
        ([{"type": "text", "text": "a\u202eb\x00c"}], "a b c"),
        ([{"type": "image", "url": "u"}], None),
        ([], None),
    ],
)
def test_a_title_is_one_line_of_words_that_can_be_seen(content: list[dict[str, Any]], title: str | None) -> None:
    assert title_of(content) == title
    assert title is None or len(title) <= 80


# -- where they stand ------------------------------------------------------------------------------------------------


async def test_a_session_that_was_never_prompted_is_idle_also_after_a_restart(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        assert (session.status, session.snapshot()["status"], await listed(hub)) == ("idle", "idle", (None, "idle"))
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        assert await listed(hub) == (None, "idle")
        session = await hub.session(session.id)
        await session.start()
        assert session.status == "idle"
        await session.prompt("echo one")
        check(await history(hub.log, session.id))


async def test_a_session_that_an_older_hub_left_as_starting_is_idle(tmp_path: Path) -> None:
    async with SQLiteLog(tmp_path / "home" / "pilothouse.db") as log:
        await log.sessions.create("ses_old", agent="odd", cwd=str(tmp_path), title=None, status="starting")
    async with odd_hub(tmp_path / "home") as hub:
        assert await listed(hub) == (None, "idle")
        assert hub.recovered == []


# -- agents that have nothing to do ----------------------------------------------------------------------------------


async def rested(session: HubSession) -> None:
    await until(session, fact("agent_rested"))
    assert session.agent_pid is None


async def test_an_idle_agent_is_ended_quietly_and_the_next_prompt_resumes_it(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", idle_timeout=SHORT) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo one")
        await rested(session)
        assert (await session.prompt("echo two")).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        assert said(events) == "onetwo"
        assert [event.type for event in events].count("session:resumed") == 1
        assert [event for event in events if event.type == "session:error"] == []
        check(events)


async def test_an_agent_that_cannot_come_back_is_kept(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "forgets", idle_timeout=0) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo one")
        pid = session.agent_pid
        session.rest(0)
        assert session.agent_pid == pid is not None


async def test_an_agent_with_something_to_do_is_kept(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", idle_timeout=0) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        turn = await session.send("deaf")
        await until(session, lambda event: getattr(event, "delta", "") == "deaf")
        session.rest(0)
        assert session.agent_pid is not None
        await session.cancel()
        assert turn.done.done()
        await session.start()
        session.rest(PATIENCE)
        assert session.agent_pid is not None


async def test_a_prompt_that_comes_while_an_idle_agent_ends_waits_for_that(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", idle_timeout=0) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo one")
        session.rest(0)
        assert session.agent_pid is None
        assert (await session.prompt("echo two")).stop_reason == "end_turn"
        assert said(await history(hub.log, session.id)) == "onetwo"


async def test_a_hub_may_close_while_an_idle_agent_ends(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume", idle_timeout=0) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo one")
        session.rest(0)
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        assert hub.orphans_ended == 0
