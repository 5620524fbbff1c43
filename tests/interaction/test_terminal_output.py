"""What runs in a terminal of the hub is seen while it runs: real programs, a real agent process, a stored log.

PILOTHOUSE_SOAK=1 makes the flood a whole gibibyte.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pilothouse.dialects.packets import Projector
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import Event, ProgressEvent, ToolCallErrorEvent, ToolCallResultEvent
from tests.support.hubs import PATIENCE, UNASKED, check, history, odd_hub, processes_with, start_unasked, until

MIB = 1024 * 1024
FLOOD = 1024 * MIB if os.environ.get("PILOTHOUSE_SOAK") else 128 * MIB


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def printed(events: list[Event]) -> list[str]:
    return [event.output for event in events if isinstance(event, ProgressEvent) and event.output is not None]


def end_of(events: list[Event]) -> ToolCallResultEvent | ToolCallErrorEvent:
    ends = [event for event in events if isinstance(event, (ToolCallResultEvent, ToolCallErrorEvent))]
    assert len(ends) == 1
    return ends[0]


async def run(hub: Hub, place: Path, words: str) -> list[Event]:
    session = await start_unasked(hub, place)
    await session.prompt(words)
    events = await history(hub.log, session.id)
    check(events)
    return events


async def seen(session: HubSession, words: str) -> None:
    await until(session, lambda event: isinstance(event, ProgressEvent) and words in (event.output or ""))


async def test_output_is_seen_before_the_program_ends(tmp_path: Path) -> None:
    async with odd_hub(tmp_path, behavior=UNASKED) as hub, asyncio.timeout(PATIENCE):
        session = await start_unasked(hub, tmp_path)
        # it goes on only when what it printed has been seen in the log
        command = "echo one; until [ -e go1 ]; do sleep 0.01; done; echo two; until [ -e go2 ]; do sleep 0.01; done"
        prompt = await session.send(f"shell early {command}; echo three")
        await seen(session, "one")
        (tmp_path / "go1").touch()
        await seen(session, "two")
        assert session.state.tool_calls[0].status == "executing"
        assert str(session.state.tool_calls[0].output) == "one\ntwo\n"
        (tmp_path / "go2").touch()
        await prompt.done
        events = await history(hub.log, session.id)
    check(events)
    assert "".join(printed(events)) == "one\ntwo\nthree\n"
    end = end_of(events)
    assert (end.output, end.structured.exit_code) == ("one\ntwo\nthree\n", 0)  # type: ignore[union-attr]
    last = [event.seq for event in events if isinstance(event, ProgressEvent)][-1]
    assert last < end.seq < events[-1].seq


@pytest.mark.parametrize("when", ["late", "end"])
async def test_output_of_a_terminal_that_a_call_names_later_is_not_lost(tmp_path: Path, when: str) -> None:
    async with odd_hub(tmp_path, behavior=UNASKED) as hub, asyncio.timeout(PATIENCE):
        events = await run(hub, tmp_path, f"shell {when} echo before; exit 3")
    assert "".join(printed(events)) == "before\n"
    end = end_of(events)
    assert isinstance(end, ToolCallErrorEvent)
    assert (end.output, end.error.code, end.error.details) == ("before\n", "exit_code", {"exitCode": 3})


async def test_a_program_that_is_killed_and_one_that_the_agent_forgets_are_told(tmp_path: Path) -> None:
    async with odd_hub(tmp_path, behavior=UNASKED) as hub, asyncio.timeout(PATIENCE):
        killed = end_of(await run(hub, tmp_path, "shell early echo hello; kill -KILL $$"))
        silent = end_of(await run(hub, tmp_path, "shell silent echo hello"))
    assert killed.structured is not None
    assert killed.structured.signal == "SIGKILL"  # type: ignore[union-attr]
    assert isinstance(silent, ToolCallErrorEvent)
    assert (silent.error.code, silent.output) == ("unfinished", "hello\n")


async def test_the_byte_limit_of_the_agent_holds_for_the_result(tmp_path: Path) -> None:
    async with odd_hub(tmp_path, behavior=UNASKED) as hub, asyncio.timeout(PATIENCE):
        end = end_of(await run(hub, tmp_path, "shell limit seq 5000"))
    head, _, tail = (end.output or "").partition("\n")
    assert "bytes left out" in head
    assert 990 < len(tail) <= 1000
    assert tail.endswith("\n5000\n")


async def test_a_terminal_that_outlives_its_turn_says_nothing_after_it(tmp_path: Path) -> None:
    async with odd_hub(tmp_path, behavior=UNASKED) as hub, asyncio.timeout(PATIENCE):
        session = await start_unasked(hub, tmp_path)
        await session.prompt("shell leave while :; do echo tick; date >> ticks; sleep 0.02; done")
        seq = session.state.seq
        size = 0
        while size < 1000:  # it still runs, and prints
            await asyncio.sleep(0.05)
            size = (tmp_path / "ticks").stat().st_size if (tmp_path / "ticks").exists() else 0
        assert await session.committed() == seq
        events = await history(hub.log, session.id)
        hub_id = hub._hub_id
    check(events)
    assert end_of(events).error.code == "unfinished"  # type: ignore[union-attr]
    assert processes_with(f"PILOTHOUSE_HUB={hub_id}") == []


async def test_a_cancelled_turn_keeps_what_was_printed(tmp_path: Path) -> None:
    async with odd_hub(tmp_path, cancel_deadline=0.3, behavior=UNASKED) as hub, asyncio.timeout(PATIENCE):
        session = await start_unasked(hub, tmp_path)
        prompt = await session.send("shell early echo started; sleep 600")
        await seen(session, "started")
        assert await session.cancel()
        assert (await prompt.done).stop_reason == "cancelled"
        events = await history(hub.log, session.id)
    check(events)
    end = end_of(events)
    assert end.output == "started\n"
    assert end.structured.signal == "SIGTERM"  # type: ignore[union-attr]


async def test_many_small_writes_are_few_events(tmp_path: Path) -> None:
    async with odd_hub(tmp_path, behavior=UNASKED) as hub, asyncio.timeout(PATIENCE):
        events = await run(hub, tmp_path, "shell early for i in $(seq 3000); do echo $i; done")
    assert "".join(printed(events)) == "".join(f"{i}\n" for i in range(1, 3001))
    first, last = events[0].timestamp, events[-1].timestamp
    seconds = float(last[17:23]) - float(first[17:23]) + 60 * (int(last[14:16]) - int(first[14:16]))
    assert len(printed(events)) <= 2 + 10 * (seconds + 0.1)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured as Linux tells it")
async def test_a_flood_leaves_a_small_log_and_flat_memory(tmp_path: Path, tell: Callable[[str], None]) -> None:
    line = "a line of a flood that nobody wants to read"
    async with odd_hub(tmp_path, behavior=UNASKED) as hub, asyncio.timeout(150):
        await run(hub, tmp_path, f"shell early yes '{line}' | head -c {8 * MIB}")
        before = peak = resident()
        session = await start_unasked(hub, tmp_path)
        prompt = await session.send(f"shell early yes '{line}' | head -c {FLOOD}; echo; echo the end")
        while not prompt.done.done():
            await asyncio.wait((prompt.done,), timeout=0.02)
            peak = max(peak, resident())
        events = await history(hub.log, session.id)
        check(events)
    pieces = printed(events)
    stored = sum(len(piece.encode()) for piece in pieces)
    size = sum(file.stat().st_size for file in tmp_path.glob("*.db*"))
    tell(
        f"{FLOOD // MIB} MiB printed: {len(pieces)} events with {stored:,} bytes, memory "
        f"{before / MIB:.0f} -> {peak / MIB:.0f} MiB at most, two floods leave a log of {size:,} bytes"
    )
    assert stored < MIB // 2
    assert 0 < size < 8 * MIB
    assert peak - before < 32 * MIB
    assert any("bytes left out" in piece for piece in pieces)
    assert pieces[-1].endswith("the end\n")
    end = end_of(events)
    assert (end.output or "").endswith("the end\n")
    assert len((end.output or "").encode()) < MIB // 2
    projector = Projector()
    packets = [packet for event in events for packet in projector.project(event)]
    told = [packet for packet in packets if (packet.get("rawOutput") or {}).get("output")]
    assert told[-1]["rawOutput"]["output"].endswith("the end\n")
