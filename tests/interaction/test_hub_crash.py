"""A hub that is killed under load: nothing that was told is lost, everything open ends, nothing runs on."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from pilothouse.hub.hub import HUB_ID, Hub
from pilothouse.hub.orphans import end_orphans
from tests.support import hub_program
from tests.support.hub_program import digest, specs
from tests.support.hubs import PATIENCE, check, history, odd, processes_with

KILLS = 200 if os.environ.get("PILOTHOUSE_SOAK") else 8

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


async def run_and_kill(home: Path, directory: Path, seconds: float) -> list[list[str]]:
    """What a hub told before it was killed, so many seconds after it began to work."""
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, hub_program.__file__, str(home), str(directory)),
        stdout=asyncio.subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert process.stdout is not None
    lines: list[list[str]] = []

    async def read() -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            if line.endswith(b"\n"):
                lines.append(line.decode().split())

    async with asyncio.timeout(PATIENCE * 3):
        assert (await process.stdout.readline()) == b"R\n"
        reading = asyncio.ensure_future(read())
        await asyncio.wait((reading,), timeout=seconds)
        assert process.returncode is None, "it ended by itself"
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await reading
    return lines


async def test_nothing_is_lost_when_the_hub_is_killed(tmp_path: Path) -> None:
    home, directory = tmp_path / "home", tmp_path / "project"
    directory.mkdir()
    count: Counter[str] = Counter()
    told: dict[tuple[str, int], str] = {}
    turns: dict[str, tuple[int, str]] = {}
    for _ in range(KILLS):
        lines = await run_and_kill(home, directory, random.uniform(0.05, 0.9))
        cursors: dict[str, int] = {}
        for kind, session_id, *rest in lines:
            count[kind] += 1
            if kind == "E":
                seq = int(rest[0])
                assert told.setdefault((session_id, seq), rest[1]) == rest[1], "a seq was used again"
                cursors[session_id] = seq
            elif kind == "T":
                turns[rest[0]] = (int(rest[1]), rest[2])
        async with Hub(home=home, agents=specs(home)) as hub, asyncio.timeout(PATIENCE * 3):
            count["recovered"] += len(hub.recovered)
            count["orphans"] += hub.orphans_ended
            assert processes_with(f"PILOTHOUSE_HUB={await hub.log.settings.get(HUB_ID)}") == []
            assert await hub.approvals() == []
            for record in (await hub.sessions()).sessions:
                entries = []
                while page := await hub.log.read(record.id, len(entries)):
                    entries += page
                known = {(record.id, entry.seq): digest(entry.data) for entry in entries}
                lost = [key for key in told if key[0] == record.id and known.get(key) != told[key]]
                assert not lost, f"{len(lost)} events that were told are not in the log"
                events = await history(hub.log, record.id)
                check(events)
                after = cursors.get(record.id, 0)
                follower = hub.log.follow(record.id, after)
                seen: list[int] = []
                while after + len(seen) < len(entries):
                    seen += [entry.seq for entry in await follower.next(timeout=PATIENCE)]
                assert seen == list(range(after + 1, len(entries) + 1))
                ends = {
                    event.data["turnId"]: (event.seq, event.data["stopReason"])
                    for event in events
                    if getattr(event, "event_name", "") == "turn_ended"  # type: ignore[attr-defined]
                }
                assert {key: value for key, value in turns.items() if key in ends} == {
                    key: ends[key] for key in turns if key in ends
                }
                count["seen by followers"] += len(seen)
    async with Hub(home=home, agents=specs(home)) as hub, asyncio.timeout(PATIENCE):
        for record in (await hub.sessions()).sessions:
            session = await hub.session(record.id)
            assert (await session.prompt("echo alive")).stop_reason == "end_turn"
            check(await history(hub.log, record.id))
    print(f"\n{KILLS} kills, {len(told)} events told, {count['T']} turns, {count['A']} decisions, 0 lost; "
          f"{count['recovered']} sessions recovered, {count['orphans']} orphans ended, "
          f"{count['seen by followers']} events read on from cursors")  # fmt: skip
    assert count["E"] > KILLS
    assert count["orphans"] > 0


async def test_only_processes_of_the_same_home_are_ended(tmp_path: Path) -> None:
    agents = {"odd": odd("ignore-eof")}
    async with Hub(home=tmp_path / "a", agents=agents) as one, Hub(home=tmp_path / "b", agents=agents) as two:
        session = await one.start_session("odd", tmp_path, start=True)
        other = await two.start_session("odd", tmp_path, start=True)
        ended = await asyncio.to_thread(end_orphans, one._hub_id)
        assert ended == 1
        async with asyncio.timeout(PATIENCE):
            assert (await other.prompt("echo untouched")).stop_reason == "end_turn"
            assert (await session.prompt("echo again")).stop_reason == "end_turn"
