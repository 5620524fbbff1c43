"""Terminals under load: a flood of output in flat memory, many programs at once, a loop that stays responsive.

PILOTHOUSE_SOAK=1 makes the flood a whole gibibyte.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pilothouse.hub.client import process_tree as families
from pilothouse.hub.client.programs import ExitStatus
from pilothouse.hub.client.terminals import Terminals
from pilothouse.hub.client.workspace import Workspace

MIB = 1024 * 1024
FLOOD = 1024 * MIB if os.environ.get("PILOTHOUSE_SOAK") else 200 * MIB
TIMEOUT = 120 if os.environ.get("PILOTHOUSE_SOAK") else 30
LINE = "characters of two, three and four bytes: ü ✓ 🎉"


def resident() -> int:
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def highest(until: asyncio.Task[ExitStatus]) -> int:
    peak = resident()
    while not until.done():
        await asyncio.sleep(0.01)
        peak = max(peak, resident())
    return peak


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured as Linux tells it")
@pytest.mark.parametrize("followed", [False, True], ids=["alone", "followed"])
async def test_a_flood_stays_within_the_limit_and_in_flat_memory(
    tmp_path: Path, followed: bool, tell: Callable[[str], None]
) -> None:
    pieces: list[str] = []
    on_output = (lambda _, text: pieces.append(text)) if followed else None
    flood = FLOOD if not followed else FLOOD // 4
    async with asyncio.timeout(TIMEOUT), Terminals(Workspace(tmp_path), on_output=on_output) as terminals:
        warm = await terminals.create(f"yes '{LINE}' | head -c {8 * MIB}")
        await terminals.wait(warm)
        terminals.output(warm)
        pieces.clear()
        before, started = resident(), time.monotonic()
        terminal = await terminals.create(f"yes '{LINE}' | head -c {flood}; echo; echo the end")
        peak = await highest(asyncio.create_task(terminals.wait(terminal)))
        seconds = time.monotonic() - started
        output = terminals.output(terminal)
    assert output.exit_status == ExitStatus(0, None)
    assert output.truncated
    assert MIB - 4 < len(output.text.encode()) <= MIB
    assert output.text.endswith("the end\n")
    assert "\ufffd" not in output.text[:-80]
    streamed = sum(len(text.encode()) for text in pieces)
    tell(
        f"{flood // MIB} MiB in {seconds:.1f} s: memory {before / MIB:.0f} -> {peak / MIB:.0f} MiB at most, "
        f"{len(output.text.encode())} bytes kept, {streamed} handed on in {len(pieces)} pieces"
    )
    assert peak - before < 16 * MIB
    if followed:
        assert streamed < 3 * MIB + 64 * 1024 * seconds
        assert "bytes left out" in "".join(pieces)
        assert "".join(pieces).endswith("the end\n")


async def test_a_program_that_prints_single_bytes_is_kept_in_flat_memory_too(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(100_000): os.write(1, b'x')"
    async with asyncio.timeout(TIMEOUT), Terminals(Workspace(tmp_path)) as terminals:
        terminal = await terminals.create(sys.executable, ["-c", code])
        before = resident()
        peak = await highest(asyncio.create_task(terminals.wait(terminal)))
        assert terminals.output(terminal).text == "x" * 100_000
    assert peak - before < 8 * MIB


async def test_fifty_programs_at_once_keep_apart(tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT), Terminals(Workspace(tmp_path)) as terminals:

        async def one(number: int) -> None:
            terminal = await terminals.create(f"for i in $(seq 200); do echo {number}:$i; done; exit {number}")
            assert await terminals.wait(terminal) == ExitStatus(number, None)
            text = terminals.output(terminal).text
            assert text == "".join(f"{number}:{i}\n" for i in range(1, 201))
            await terminals.release(terminal)

        await asyncio.gather(*(one(number) for number in range(50)))
        assert len(terminals) == 0


async def test_fifty_running_programs_are_ended_together(tmp_path: Path) -> None:
    terminals = Terminals(Workspace(tmp_path), grace=0.5)
    async with asyncio.timeout(TIMEOUT):
        made = await asyncio.gather(*(terminals.create("sleep 60 & sleep 60; true") for _ in range(50)))
        waiting = [asyncio.create_task(terminals.wait(terminal)) for terminal in made]
        await asyncio.sleep(0)
        groups = {program._process.pid for program in terminals._programs.values()}
        await terminals.close()
        ended = await asyncio.gather(*waiting)
    assert {status.signal for status in ended} <= {"SIGTERM", "SIGKILL"}
    # those that have ended but wait for process 1 to take note may still be in a group
    assert [entry for entry in families.all_entries() if entry.group in groups] == []


async def test_a_flood_leaves_the_loop_to_others(tmp_path: Path) -> None:
    """While one program floods, another answers; nobody waits for the flood to end."""
    async with asyncio.timeout(TIMEOUT), Terminals(Workspace(tmp_path), on_output=lambda *_: None) as terminals:
        flood = await terminals.create("yes")
        for number in range(10):
            terminal = await terminals.create("echo", [str(number)])
            await terminals.wait(terminal)
            assert terminals.output(terminal).text == f"{number}\n"
        assert terminals.output(flood).exit_status is None
        await terminals.kill(flood)
        assert terminals.output(flood).exit_status == ExitStatus(None, "SIGTERM")
