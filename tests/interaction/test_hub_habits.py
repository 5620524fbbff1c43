"""Habits of real agents, shown by the odd one, that the hub must live with."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.hub.hub import Hub
from tests.support.hubs import PATIENCE, check, facts, history, odd, odd_hub, said, until


async def test_a_call_that_is_told_to_run_before_it_is_asked_about_did_not_act_without_asking(tmp_path: Path) -> None:
    """OpenCode does so. The next call of the same id, which is not asked about, is still flagged."""
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        prompt = await session.send("runs-then-asks /etc/passwd")
        asked = await until(session, "approval:requested")
        await session.decide(asked.request_id, approved=True)  # type: ignore[attr-defined]
        await prompt.done
        assert facts(await history(hub.log, session.id), "acted_without_asking") == []
        await session.prompt("unasked /etc/passwd w1")
        events = await history(hub.log, session.id)
        assert [data["toolCallId"] for data in facts(events, "acted_without_asking")] == ["w1"]
        check(events)


@pytest.mark.parametrize("how", ["runs-then-asks", "asks-and-does"])
async def test_a_call_that_is_done_although_it_was_denied_is_flagged(tmp_path: Path, how: str) -> None:
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        prompt = await session.send(f"{how} /etc/passwd")
        asked = await until(session, "approval:requested")
        await session.decide(asked.request_id, approved=False)  # type: ignore[attr-defined]
        await prompt.done
        events = await history(hub.log, session.id)
        flagged = {"toolCallId": "w1", "name": "Write", "riskLevel": "critical", "denied": True}
        assert facts(events, "acted_without_asking") == [flagged]
        check(events)


async def test_a_file_that_is_not_there_is_told_by_the_name_that_agents_look_for(tmp_path: Path) -> None:
    """Gemini and those made from it write a new file only if the error of reading it has one of a few words in it."""
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt(f"read {tmp_path}/missing.txt")
        answer = said(await history(hub.log, session.id))
        assert "-32002" in answer
        assert "ENOENT" in answer


async def test_an_agent_that_takes_another_mode_than_the_one_asked_for_is_believed(tmp_path: Path) -> None:
    """Claude's does so for a mode that its model does not have."""
    async with odd_hub(tmp_path / "home", "plans-instead") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        for _ in range(2):
            await session.set_mode("yolo")
            assert session.state.mode == "plan"


async def test_an_agent_that_offers_no_way_to_log_in_is_told_of_with_the_known_one(tmp_path: Path) -> None:
    """Claude's asks for a login and names no method; the user is told what to do."""
    spec = msgspec.structs.replace(odd("auth"), login="run `odd login`")
    async with Hub(home=tmp_path / "home", agents={"odd": spec}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        result = await session.prompt("echo")
        assert result.error == "Authentication required: run `odd login`"
        error: Any = await until(session, "session:error")
        assert error.error.code == "auth_required"
        assert error.error.details["login"] == "run `odd login`"
        check(await history(hub.log, session.id))


async def test_an_agent_that_stops_for_want_of_a_login_is_told_of_as_one_that_says_so(tmp_path: Path) -> None:
    """Some bridges to other programs say so by a stop reason that the protocol does not have."""
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        result = await session.prompt("stop auth_required")
        assert (result.stop_reason, result.error) == ("error", "Authentication required")
        error: Any = await until(session, "session:error")
        assert error.error.code == "auth_required"
        assert (await session.prompt("stop elsewhere")).stop_reason == "elsewhere"
        check(await history(hub.log, session.id))
