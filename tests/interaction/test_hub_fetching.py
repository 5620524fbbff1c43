"""Agents that a package runner fetches first: whoever follows the session is told, and a failure says what to do."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from pilothouse.adapters import running
from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import AgentFailed
from pilothouse.hub.hub import Hub
from pilothouse.model.events import NotificationEvent
from tests.support.hubs import ODD, history, until
from tests.support.lending import Lender, lending

FETCHED = AgentSpec(name="fetched", command=("npx", "-y", "@some/agent"))
TITLE = "Fetching @some/agent with npx"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npx that waits until `fetched` is there, and a hub that has little patience."""
    place = tmp_path / "bin"
    place.mkdir()
    npx(place, f"while ! test -e {tmp_path}/fetched; do sleep 0.05; done; exec {sys.executable} -S -E {ODD} resume")
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.setattr(running, "PATIENCE", 0.1)
    return place


def npx(place: Path, code: str) -> None:
    (place / "npx").write_text(f"#!/bin/sh\n{code}\n")
    (place / "npx").chmod(0o700)


async def test_who_waits_for_an_agent_that_is_fetched_is_told_so(tmp_path: Path, runner: Path) -> None:
    async with Hub(home=tmp_path / "home", agents={"fetched": FETCHED}) as hub:
        session = await hub.start_session("fetched", str(tmp_path))
        turn = asyncio.create_task(session.prompt("echo hello"))
        told = await until(session, "interaction:notification")
        assert isinstance(told, NotificationEvent)
        assert (told.level, told.title, told.message) == ("info", TITLE, "The first time takes a while")
        (tmp_path / "fetched").touch()
        assert (await turn).stop_reason == "end_turn"


async def test_an_agent_that_answers_at_once_needs_no_word(
    tmp_path: Path, runner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fetched").touch()
    monkeypatch.setattr(running, "PATIENCE", 3600.0)
    async with Hub(home=tmp_path / "home", agents={"fetched": FETCHED}) as hub:
        session = await hub.start_session("fetched", str(tmp_path))
        await session.prompt("echo hello")
        assert not [one for one in await history(hub.log, session.id) if isinstance(one, NotificationEvent)]


async def test_an_editor_is_told_in_words_when_it_knows_no_notices(tmp_path: Path, runner: Path) -> None:
    def words(editor: Lender) -> list[str]:
        return [one["content"]["text"] for one in editor.updates if one["sessionUpdate"] == "agent_message_chunk"]

    async with Hub(home=tmp_path / "home", agents={"fetched": FETCHED}) as hub, lending(hub) as editor:
        (tmp_path / "fetched").touch()
        session_id = await editor.open(tmp_path, agent="fetched")
        session = await hub.session(session_id)
        (tmp_path / "fetched").unlink()
        session.rest(0)
        assert session.agent_pid is None
        prompt = asyncio.create_task(editor.prompt(session_id, "echo hello"))
        await editor.until(lambda: [one for one in words(editor) if TITLE in one])
        (tmp_path / "fetched").touch()
        assert (await prompt)["stopReason"] == "end_turn"
        async with lending(hub) as later:
            await later.load(session_id)
            assert not [one for one in words(later) if TITLE in one]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (
            "echo npm error network ENOTFOUND >&2; exit 1",
            ("npx did not start @some/agent", "npm install -g @some/agent", "network ENOTFOUND", "exit code 1"),
        ),
        (None, ("cannot start 'npx'", "comes with Node.js")),
    ],
    ids=["no network", "no npx"],
)
async def test_a_fetch_that_fails_says_what_to_do_next(
    tmp_path: Path, runner: Path, code: str | None, wanted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if code is None:
        monkeypatch.setenv("PATH", "/none")
    else:
        npx(runner, code)
    async with Hub(home=tmp_path / "home", agents={"fetched": FETCHED}) as hub:
        session = await hub.start_session("fetched", str(tmp_path))
        with pytest.raises(AgentFailed) as failed:
            await session.start()
        assert [part for part in wanted if part not in str(failed.value)] == []
