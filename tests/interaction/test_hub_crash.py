"""A hub that is killed under load: nothing that was told is lost, everything open ends, nothing runs on.

PILOTHOUSE_SOAK=1 makes it 200 kills and tells how far it is (`make soak`).
"""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pilothouse.hub.agent.process import HUB
from pilothouse.hub.hub import Hub
from pilothouse.hub.startup import end_orphans
from pilothouse.log.memory import MemoryLog
from tests.support import hub_program
from tests.support.hub_program import digest, specs
from tests.support.hubs import PATIENCE, check, history, odd, processes_with, until
from tests.support.ledger import FAULTS, Ledger

SOAK = bool(os.environ.get("PILOTHOUSE_SOAK"))
KILLS = 200 if SOAK else 8
LONGEST = 8.0
"""Seconds after which a hub is killed if the moment that was chosen does not come."""
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

Words = list[str]
PHASES: dict[str, tuple[Callable[[Words], bool], float]] = {
    "start": (lambda words: False, 0.6),  # any time since the process was started
    "recovery": (lambda words: words[0] == "B", 0.25),
    "load": (lambda words: words[0] == "R", 0.9),
    "flood": (lambda words: words[0] == "E" and words[-1] == "message:delta" and int(words[2]) > 100, 0.2),
    "tool": (lambda words: words[0] == "E" and words[-1] in ("tool:start", "tool:executing"), 0.03),
    "approval": (lambda words: words[0] == "E" and words[-1] == "approval:requested", 0.03),
    "terminal": (lambda words: words[0] == "S" and words[3] == "terminal", 0.3),
    "answer": (lambda words: words[0] == "T", 0.02),
    "closing": (lambda words: words[0] == "C", 0.3),
}
"""When a hub is killed: so many seconds at most after such a line."""


async def run_and_kill(home: Path, directory: Path, ledger: Ledger, phase: str, mark: str) -> bool:
    """Run a hub, kill it in a phase, and enter what it told into the ledger; False if it ended before that."""
    orders = home.parent / "orders.json"
    orders.write_text(ledger.orders())
    ledger.began()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, hub_program.__file__, str(home), str(directory), str(orders)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SOAK_MARK": mark},
    )
    assert process.stdin is not None
    is_moment, longest = PHASES[phase]
    moment = asyncio.Event()
    if phase == "start":
        moment.set()

    async def read() -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        async for line in process.stdout:
            if not line.endswith(b"\n"):
                return  # the last words of the dying: nobody has read them
            words = ledger.take(line)
            if words[0] == "R" and phase == "closing":
                asyncio.get_running_loop().call_later(random.random() / 2, process.stdin.write, b"\n")
            if is_moment(words):
                moment.set()

    async with asyncio.timeout(PATIENCE * 3):
        reading = asyncio.ensure_future(read())
        waiting = asyncio.ensure_future(moment.wait())
        await asyncio.wait((waiting, reading), timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await asyncio.wait((reading,), timeout=random.uniform(0, longest))
        if not reading.done():
            process.send_signal(signal.SIGKILL)
        code = await process.wait()
        await reading
        process.stdin.close()
    assert code in (-signal.SIGKILL, 0), "it ended by itself"
    assert code or phase == "closing", "it ended by itself"
    ledger.count[f"killed in {phase}" if code else "closed in time"] += 1
    return code != 0


async def test_nothing_is_lost_when_the_hub_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tell: Callable[[str], None]
) -> None:
    home, directory, mark = tmp_path / "home", tmp_path / "project", f"soak-{os.getpid()}-{random.randrange(10**9)}"
    home.mkdir()
    directory.mkdir()
    ledger = Ledger()
    count = ledger.count
    phases: list[str] = []
    began = time.monotonic()
    while count["kills"] < KILLS:
        if not phases:
            phases = list(PHASES)
            random.shuffle(phases)
        phase = phases.pop()
        before = len(ledger.faults)
        count["kills"] += await run_and_kill(home, directory, ledger, phase, mark)
        if random.random() < 0.3:  # and once more, before anybody could put things in order
            count["kills"] += await run_and_kill(home, directory, ledger, "recovery", mark)
        await look(home, ledger, mark)
        assert len(ledger.faults) == before, f"killed in {phase}: {ledger.faults[:10]}"
        if SOAK and count["kills"] % 10 < 2:
            with capsys.disabled():
                print(f"  {count['kills']:4} kills, {ledger.acknowledged:,} events, {time.monotonic() - began:.0f} s")
    await look(home, ledger, mark, everything=True)
    await go_on(home, ledger)
    tell(summary(ledger))
    assert ledger.faults == []
    assert all(count[fault] == 0 for fault in (*FAULTS, "orphans"))
    assert count["E"] > KILLS
    assert count["ended"] > 0


async def look(home: Path, ledger: Ledger, mark: str, *, everything: bool = False) -> None:
    """Open the log as the next hub does, and compare."""
    async with Hub(home=home, agents=specs(home)) as hub, asyncio.timeout(PATIENCE * 3):
        ledger.count["recovered"] += len(hub.recovered)
        ledger.count["ended"] += hub.orphans_ended
        if left := processes_with(mark, "cmdline"):
            ledger.fault("orphans", f"{hub.orphans_ended} were ended, these run on: {described(left)}")
        if pending := await hub.approvals():
            ledger.fault("left open", f"{len(pending)} approvals")
        if hub.notices:
            ledger.fault("left open", str(hub.notices))
        for record in (await hub.sessions(limit=10_000 if everything else 8)).sessions:
            await ledger.compare(hub, record.id)
        if everything:
            stored = {record.id for record in (await hub.sessions(limit=10_000)).sessions}
            for session in ledger.told.keys() - stored:
                ledger.fault("lost", f"the whole session {session}")
            for problem in await hub.log.integrity_check():
                ledger.fault("lost", problem)


async def go_on(home: Path, ledger: Ledger) -> None:
    """Every session that was ever killed can be taken up; the last ones are."""
    async with Hub(home=home, agents=specs(home)) as hub, asyncio.timeout(PATIENCE):
        for session_id in ledger.active:
            session = await hub.session(session_id)
            assert (await session.prompt("echo alive")).stop_reason == "end_turn"
            check(await history(hub.log, session_id))


def described(processes: list[int]) -> str:
    return ", ".join(f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()[:60]!r}" for pid in processes)


def summary(ledger: Ledger) -> str:
    count = ledger.count
    return (
        f"{count['kills']} kills, {ledger.acknowledged} events acknowledged, {len(ledger.answers)} answers, "
        f"{len(ledger.decisions)} decisions: {', '.join(f'{count[fault]} {fault}' for fault in FAULTS)}, "
        f"{count['orphans']} orphans; {count['recovered']} sessions recovered, {count['ended']} processes ended, "
        f"{count['read on']} events read on from cursors; "
        + ", ".join(f"{name} {number}" for name, number in sorted(count.items()) if name.startswith("killed"))
    )


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


STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(3600)
"""


async def test_a_process_that_was_given_another_environment_ends_with_its_family(tmp_path: Path) -> None:
    """Nothing but its parent, and then its group, tells whose it is; and it ignores being told to end."""
    words = f"stubborn-{os.getpid()}-{random.randrange(10**9)}"
    child = f"env -i {shlex.quote(sys.executable)} -S -c {shlex.quote(STUBBORN)} {words}"
    parent = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"{child} & setsid {child} & wait"),
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], HUB: words},
        start_new_session=True,
    )
    assert parent.stdout is not None
    async with asyncio.timeout(PATIENCE):
        assert [await parent.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
        assert await asyncio.to_thread(end_orphans, words) == 3
        assert processes_with(words, "cmdline") == []
        await parent.wait()


async def test_the_ledger_notices_what_is_wrong() -> None:
    """Otherwise the counts above would mean nothing."""
    async with Hub(log=MemoryLog(), agents={"odd": odd()}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", ROOT)
        result = await session.prompt("echo hello")
        entries = await hub.log.read(session.id)
        right, wrong = digest(entries[-1].data), digest(b"")
        ledger = Ledger()
        for entry in entries:
            ledger.take(f"E {session.id} {entry.seq} {digest(entry.data)} {entry.type}\n".encode())
        ledger.take(f"T {session.id} r {result.turn_id} {result.seq} end_turn\n".encode())
        await ledger.compare(hub, session.id)
        assert ledger.faults == []
        last = len(entries)
        for line in (
            f"E {session.id} {last} {right} x",
            f"E {session.id} {last} {wrong} x",
            f"E {session.id} {last + 2} {wrong} x",
            f"G {session.id} 1 {digest(entries[0].data)} 0",
            f"T {session.id} q {result.turn_id} {result.seq - 1} end_turn",
            f"T {session.id} r {result.turn_id} {result.seq} cancelled",
            f"A {session.id} no-such-approval 1",
        ):
            ledger.take(line.encode() + b"\n")
        ledger.cursors[session.id] = last
        await ledger.compare(hub, session.id)
        assert set(FAULTS) - {kind for kind in FAULTS if ledger.count[kind]} == {"left open"}
        running = await session.send("tool")
        await until(session, "tool:executing")
        await ledger.compare(hub, session.id)
        assert ledger.count["left open"] == 1
        await session.cancel()
        await running.done
