"""How a child ends: with its whole tree, and without holding up the loop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

from pilothouse.acp import process as processes
from pilothouse.acp.process import default_environment, descendants, kill, look, spawn, started_at, stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the processes below another one")
PATIENCE = 60

AGENT = """
import os, subprocess, sys
nap = [sys.executable, "-c", "import time; time.sleep(3600)"]
pids = [
    subprocess.Popen(nap).pid,                                       # in the group
    subprocess.Popen(nap, start_new_session=True).pid,               # in a session of its own
    subprocess.Popen(nap, start_new_session=True, env={}).pid,       # without the mark too
]
if "daemon" in sys.argv:  # nobody's child any more, known by its mark alone
    pids.append(int(subprocess.check_output(["sh", "-c", "setsid sleep 3600 >/dev/null 2>&1 & echo $!"])))
print(*pids, flush=True)
if "stubborn" in sys.argv:
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)
sys.stdin.read()
"""


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which all processes were looked through."""
    found: list[int] = []

    def counted(*args: object, **kwargs: object) -> object:
        found.append(threading.get_ident())
        return look(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(processes, "look", counted)
    return found


async def started(*how: str) -> tuple[processes.aio_subprocess.Process, list[int]]:
    process = await spawn(sys.executable, "-c", AGENT, *how, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    return process, [int(pid) for pid in (await process.stdout.readline()).split()]


async def all_gone(pids: list[int]) -> None:
    async with asyncio.timeout(PATIENCE):
        while any(started_at(pid) is not None for pid in pids):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", [(), ("daemon",), ("stubborn", "daemon")], ids=" ".join)
async def test_the_tree_ends_with_one_look_at_all_processes_outside_of_the_loop(
    how: tuple[str, ...], looks: list[int]
) -> None:
    process, pids = await started(*how)
    assert all(started_at(pid) is not None for pid in pids)
    async with asyncio.timeout(PATIENCE):
        code = await stop(process, timeout=0.3)
    assert code == (-9 if "stubborn" in how else 0)
    await all_gone(pids)
    assert len(looks) == 1
    assert threading.get_ident() not in looks


async def test_who_is_cancelled_while_ending_a_child_leaves_nothing_behind(looks: list[int]) -> None:
    process, pids = await started("stubborn", "daemon")
    stopping = asyncio.ensure_future(stop(process, timeout=60))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await all_gone(pids)
    assert await stop(process, timeout=0.1) == -9


async def test_a_kill_ends_the_tree_without_a_look_at_others(looks: list[int]) -> None:
    process, pids = await started("stubborn")
    kill(process)
    await all_gone(pids)
    assert looks == []
    assert await stop(process, timeout=0.3) == -9


def test_descendants_are_found_by_their_parents_and_by_their_mark() -> None:
    script = "sh -c 'sleep 60 & echo $! $$; wait'"
    with subprocess.Popen(["sh", "-c", f"{script}; true"], stdout=subprocess.PIPE, env={"FAMILY_TEST": "yes"}) as top:
        assert top.stdout is not None
        pids = {int(pid) for pid in top.stdout.readline().split()}
        try:
            assert descendants([top.pid]).keys() == pids
            assert look([top.pid]).keys() == pids
            assert look([], mark=b"FAMILY_TEST=yes").keys() == {top.pid, *pids}
            assert look([], mark=b"FAMILY_TEST=no") == {}
            start = started_at(top.pid)
            assert start is not None
            assert look([], mark=b"FAMILY_TEST=yes", since=start).keys() == {top.pid, *pids}
            assert look([], mark=b"FAMILY_TEST=yes", since=start + 10**9) == {}
        finally:
            for pid in (top.pid, *pids):
                os.kill(pid, signal.SIGKILL)
    assert started_at(top.pid) is None
    assert descendants([top.pid]) == {}


BRIDGE = """
import asyncio, sys
from pilothouse.acp.process import spawn
async def main():
    inner = await spawn(sys.executable, "-c", sys.argv[1])
    print(inner.pid, (await inner.stdout.readline()).decode(), end="", flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


async def test_what_a_child_had_started_ends_too_when_the_child_was_killed() -> None:
    process = await spawn(sys.executable, "-c", BRIDGE, AGENT, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    inner, in_group, in_session, unmarked = [int(pid) for pid in (await process.stdout.readline()).split()]
    try:
        process.kill()
        async with asyncio.timeout(PATIENCE):
            await process.wait()
            await all_gone([inner])  # its input has ended; what it started in a session of its own is nobody's now
            assert started_at(in_session) is not None
            await stop(process, timeout=0.3)
        await all_gone([in_group, in_session])
    finally:
        os.kill(unmarked, signal.SIGKILL)


def test_a_child_does_not_get_the_token_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_TOKEN", "secret")
    monkeypatch.setenv("AGENT_KEY", "needed")
    environment = default_environment()
    assert "PILOTHOUSE_TOKEN" not in environment
    assert environment["AGENT_KEY"] == "needed"
