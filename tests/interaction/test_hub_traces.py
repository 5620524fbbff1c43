"""Recordings of real agents, and short ones like them, play through the hub; nothing is lost, everything ends."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from pilothouse.hub.hub import Hub
from tests.support.hubs import facts, said
from tests.support.replays import play

GOLDEN = Path(__file__).parents[1] / "golden" / "traces"
TRACES = os.environ.get("PILOTHOUSE_TRACES", "")
"""A directory of recordings of real agents, one folder each. They are too many to be kept with the tests."""
AT_ONCE = 4


def stops(events: list[object]) -> list[str]:
    return [data["stopReason"] for data in facts(events, "turn_ended")]  # type: ignore[arg-type]


async def test_an_agent_like_gemini_plays_through(tmp_path: Path) -> None:
    async with Hub(home=tmp_path / "home") as hub:
        session, _, events = await play(hub, GOLDEN / "gemini_like.jsonl", tmp_path / "play")
        assert stops(events) == ["end_turn", "error"]
        assert [call.status for call in session.state.tool_calls] == ["completed", "failed", "failed"]
        assert said(events) == "Writing Done."


async def test_an_agent_like_codex_plays_through(tmp_path: Path) -> None:
    async with Hub(home=tmp_path / "home") as hub:
        session, _, events = await play(hub, GOLDEN / "codex_like.jsonl", tmp_path / "play")
        assert stops(events) == ["cancelled", "cancelled", "end_turn"]
        assert [call.status for call in session.state.tool_calls] == ["completed", "failed", "cancelled"]
        assert "hello.txt" in str(session.snapshot())


async def test_an_agent_like_goose_plays_through(tmp_path: Path) -> None:
    async with Hub(home=tmp_path / "home") as hub:
        session, _, events = await play(hub, GOLDEN / "goose_like.jsonl", tmp_path / "play")
        assert stops(events) == ["end_turn", "cancelled"]
        assert (tmp_path / "play" / "project" / "new.txt").read_text() == "1\n"
        assert (await hub.log.sessions.get(session.id)).title == "Write a file"


async def test_an_agent_like_claudes_plays_through(tmp_path: Path) -> None:
    async with Hub(home=tmp_path / "home") as hub:
        session, _, events = await play(hub, GOLDEN / "claude_like.jsonl", tmp_path / "play")
        assert stops(events) == ["end_turn", "error"]
        assert [call.status for call in session.state.tool_calls] == ["completed"]
        assert session.state.title == "Edited"


@pytest.mark.parametrize("folder", [TRACES] if TRACES else [str(GOLDEN)])
async def test_all_recordings_of_a_folder_play_through(folder: str, tmp_path: Path) -> None:
    """Of the folder in PILOTHOUSE_TRACES, if there is one; the CLI's own stream in `claude` is another dialect."""
    found = sorted(path for path in Path(folder).rglob("*.jsonl") if path.parent.name != "claude")
    assert found
    for agent in sorted({path.parent for path in found}):
        await all_play_through(agent.name, [path for path in found if path.parent == agent], tmp_path / agent.name)


async def all_play_through(agent: str, recordings: list[Path], tmp_path: Path) -> None:
    room = asyncio.Semaphore(AT_ONCE)
    count = {"turns": 0, "events": 0}

    async with Hub(home=tmp_path / "home", cancel_deadline=2) as hub:

        async def one(path: Path) -> str | None:
            async with room:
                try:
                    _, recording, events = await play(hub, path, tmp_path / path.stem)
                except Exception as exc:
                    return f"{path.stem}: {exc!r}"[:600]
            ended = stops(events)
            count["turns"] += len(ended)
            count["events"] += len(events)
            return (
                None if len(ended) == recording.prompts else f"{path.stem}: {len(ended)} of {recording.prompts} turns"
            )

        problems = [problem for problem in await asyncio.gather(*map(one, recordings)) if problem]
    print(f"\n{agent}: {len(recordings)} recordings, {count['turns']} turns, {count['events']} events")
    assert not problems, "\n".join(problems)
