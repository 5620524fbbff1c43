#!/usr/bin/env python3
"""The ACP library against the official SDK, in one run on one machine.

    python bench/acp.py            everything; about four minutes, most of them the official accumulator's
    python bench/acp.py receive    one of: receive send roundtrip import accumulator memory order

Each line shows both sides and their ratio; each figure is the best of a few runs, because the machine is shared.
Both sides run the same code: only the package differs, loaded by name in a process of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# this file is called like the official package; its folder must not be where that name is looked for
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

PACKAGES = {"pilothouse": "pilothouse.acp", "official": "acp"}
TARGETS = {
    "receive": 15,
    "roundtrip": 3,
    "import": 5,
    "accumulator": 500,
}
UPDATES = 100_000
CALLS = 2_000
CHUNKS = 4_000
FLOOD = 50_000


def update_line(i: int) -> bytes:
    update = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": f"chunk number {i} of the answer"},
    }
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "sess-1", "update": update}}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


# -- what runs inside each package's process ----------------------------------------------------------------------


class Recorder:
    """A client that keeps what it is sent, in the order in which it finished handling it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.texts.append(update.content.text)

    @property
    def disorder(self) -> int:
        return sum(int(text.split(" ", 3)[2]) != i for i, text in enumerate(self.texts))


class Slow(Recorder):
    """A consumer that takes one update at a time and a millisecond for each, like one that writes to a disk."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        async with self.lock:
            await asyncio.sleep(0.001)
            self.texts.append(update.content.text)


class Uneven(Recorder):
    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0.0005 * (len(self.texts) * 7 % 3))
        self.texts.append(update.content.text)


async def writer_child(count: int) -> asyncio.subprocess.Process:
    """A process that writes `count` updates and then the answer to the first request, as fast as a pipe takes them."""
    code = (
        "import sys, pathlib\n"
        "data = pathlib.Path(sys.argv[1]).read_bytes()\n"
        "out = sys.stdout.buffer\n"
        "print('ready', file=sys.stderr, flush=True)\n"
        "sys.stdin.buffer.readline()\n"
        "out.write(data)\n"
        'out.write(b\'{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"}}\\n\')\n'
        "out.flush()\n"
        "sys.stdin.buffer.read()\n"
    )
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.writelines(update_line(i) for i in range(count))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, file.name, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    await process.stderr.readline()
    process.bench_file = file.name  # type: ignore[attr-defined]
    return process


async def receive_updates(acp: Any, client: Recorder, count: int) -> float:
    process = await writer_child(count)
    connection = acp.connect_to_agent(client, process.stdin, process.stdout)
    started = time.perf_counter()
    await connection.prompt(session_id="sess-1", prompt=[acp.text_block("go")])
    while len(client.texts) < count:  # the official SDK may answer before it has handled all
        await asyncio.sleep(0.001)
    took = time.perf_counter() - started
    await connection.close()
    await end(process)
    return took


async def end(process: Any) -> None:
    process.kill()
    await process.wait()
    Path(process.bench_file).unlink()


async def measure_receive(acp: Any) -> float:
    client = Recorder()
    took = await receive_updates(acp, client, UPDATES)
    return UPDATES / took


async def measure_order(acp: Any) -> float:
    """How many of 2,000 updates are handled out of order when the handler awaits a little, unevenly."""
    client = Uneven()
    await receive_updates(acp, client, 2000)
    return float(client.disorder)


async def measure_send(acp: Any) -> float:
    """An agent that sends updates to a program that reads and drops them."""
    code = "import os\nwhile os.read(0, 1 << 20): pass"
    sink = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    class Nothing(acp.Agent):
        pass

    core = importlib.import_module(acp.__name__ + ".core")
    connection = core.AgentSideConnection(Nothing(), sink.stdin, sink.stdout)
    started = time.perf_counter()
    for i in range(UPDATES):
        await connection.session_update("sess-1", acp.update_agent_message_text(f"chunk number {i} of the answer"))
    took = time.perf_counter() - started
    await connection.close()
    if sink.returncode is None:
        sink.kill()
    return UPDATES / took


AGENT = """
import asyncio, importlib, sys
acp = importlib.import_module(sys.argv[1])
class Echo(acp.Agent):
    async def ext_method(self, method, params):
        return params
asyncio.run(acp.run_agent(Echo()))
"""


async def measure_roundtrip(acp: Any) -> float:
    """Microseconds of one request and its answer between two processes over stdio."""

    class Nothing(acp.Client):
        pass

    spawned = acp.spawn_agent_process(Nothing(), sys.executable, "-c", AGENT, acp.__name__, env=dict(os.environ))
    async with spawned as (connection, _):
        for _ in range(50):
            await connection.ext_method("echo", {"n": 0})
        started = time.perf_counter()
        for i in range(CALLS):
            await connection.ext_method("echo", {"n": i})
        took = time.perf_counter() - started
    return took / CALLS * 1e6


BARE = """
import asyncio, sys
class Echo(asyncio.Protocol):
    def data_received(self, data):
        out.write(data)
    def connection_lost(self, exc):
        ended.set_result(None)
async def main():
    global out, ended
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    await loop.connect_read_pipe(Echo, sys.stdin)
    await ended
asyncio.run(main())
"""


async def bare_roundtrip() -> float:
    """What two asyncio programs need to pass the same bytes back and forth and do nothing with them: the floor."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BARE, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    line = b'{"jsonrpc":"2.0","id":1000,"method":"_echo","params":{"n":1000}}\n'
    started = 0.0
    for i in range(CALLS + 50):
        if i == 50:
            started = time.perf_counter()
        process.stdin.write(line)
        await process.stdout.read(65536)
    took = time.perf_counter() - started
    process.kill()
    await process.wait()
    return took / CALLS * 1e6


async def measure_accumulator(acp: Any) -> float:
    """Seconds to fold the chunks of one answer."""
    contrib = importlib.import_module(acp.__name__ + ".contrib")
    count = CHUNKS
    notifications = [acp.session_notification("s", acp.update_agent_message_text(f"chunk {i} ")) for i in range(count)]
    accumulator = contrib.SessionAccumulator()
    started = time.perf_counter()
    for notification in notifications:
        snapshot = accumulator.apply(notification)
    assert len(snapshot.agent_messages) == count
    return time.perf_counter() - started


async def measure_memory(acp: Any) -> float:
    """Megabytes that a flood adds while the consumer takes 1 ms each.

    Watched for three seconds, in which all has arrived that will; handling the rest would take a minute.
    """
    before = rss()
    client = Slow()
    process = await writer_child(FLOOD)
    connection = acp.connect_to_agent(client, process.stdin, process.stdout)
    task = asyncio.ensure_future(connection.prompt(session_id="sess-1", prompt=[acp.text_block("go")]))
    peak = before
    for _ in range(60):
        await asyncio.sleep(0.05)
        peak = max(peak, rss())
    process.kill()
    Path(process.bench_file).unlink()  # type: ignore[attr-defined]
    task.cancel()
    return (peak - before) / 1e6


def rss() -> int:
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def child(package: str, what: str) -> None:
    acp = importlib.import_module(PACKAGES[package])
    measure = globals()[f"measure_{what}"]

    async def run_and_leave() -> None:
        print(json.dumps(await measure(acp)), flush=True)
        os._exit(0)  # the figure is taken; tearing down fifty thousand tasks would only take time

    asyncio.run(run_and_leave())


# -- the table ----------------------------------------------------------------------------------------------------


def run(package: str, what: str, times: int, best: Any) -> float:
    """The best of some runs; the sides take turns so that a busy moment does not hit only one of them."""
    values = []
    for _ in range(times):
        env = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [sys.executable, __file__, "--child", package, what],
            capture_output=True,
            text=True,
            env=env,
            check=False,
            timeout=400,
        )
        if done.returncode:
            sys.exit(f"{package} {what} failed:\n{done.stderr[-2000:]}")
        values.append(float(json.loads(done.stdout.splitlines()[-1])))
    return best(values)


def measure_import(package: str, also: str = "") -> float:
    code = f"import time; t = time.perf_counter(); import {PACKAGES[package]}{also}; print(time.perf_counter() - t)"
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)) * 1e3


ROWS = {
    "receive": ("updates received and handled in order", "per second", "{:,.0f}", True),
    "send": ("updates sent", "per second", "{:,.0f}", True),
    "roundtrip": ("request round trip over stdio", "µs", "{:,.0f}", False),
    "import": ("import", "ms", "{:,.0f}", False),
    "accumulator": (f"SessionAccumulator, {CHUNKS:,} chunks", "s", "{:,.4f}", False),
    "memory": (f"memory added by {FLOOD:,} updates, 1 ms consumer", "MB", "{:,.1f}", False),
    "order": ("updates out of 2,000 handled out of order", "", "{:,.0f}", False),
}


def main(argv: list[str]) -> int | str:
    if unknown := [name for name in argv if name not in ROWS]:
        print(__doc__)
        return 0 if set(unknown) <= {"-h", "--help"} else f"unknown: {', '.join(unknown)}"
    chosen = argv or list(ROWS)
    print(f"{'':52}{'pilothouse':>14}{'official':>14}{'ratio':>10}   target")
    short = []
    for what in chosen:
        label, unit, form, more_is_better = ROWS[what]
        print(f"measuring {what} …", end="\r", file=sys.stderr, flush=True)
        if what == "import":
            ours, theirs = measure_import("pilothouse"), measure_import("official")
        else:
            best = max if more_is_better else min
            once = what in ("accumulator", "memory", "order")
            sides: dict[str, list[float]] = {"pilothouse": [], "official": []}
            for _ in range(1 if once else 3):
                for package, values in sides.items():
                    values.append(run(package, what, 1, best))
            ours, theirs = best(sides["pilothouse"]), best(sides["official"])
        ratio = (ours / theirs if more_is_better else theirs / ours) if ours and theirs else float("nan")
        target = TARGETS.get(what)
        mark = "" if target is None else f"≥ {target} ×" + (" ok" if ratio >= target else " SHORT")
        if mark.endswith("SHORT"):
            short.append(what)
        name = f"{label}, {unit}" if unit else label
        shown = f"{ratio:.1f}×" if ours and theirs else "–"
        print(f"{name:52}{form.format(ours):>14}{form.format(theirs):>14}{shown:>10}   {mark}", flush=True)
        if what == "import":
            # ours loads asyncio and the connection when they are first used; a program that connects pays for them too
            loaded = measure_import("pilothouse", ", pilothouse.acp.core")
            note = "  (with all that a connection needs loaded as well)"
            print(f"{note:52}{loaded:>14,.0f}{theirs:>14,.0f}{theirs / loaded:>9.1f}×")
        if what == "roundtrip":
            floor = min(asyncio.run(bare_roundtrip()) for _ in range(3))
            print(f"{'  (the same bytes echoed by bare asyncio: the floor)':52}{floor:>14,.0f}")
    if short:
        print(f"short of the target: {', '.join(short)}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main(sys.argv[1:]))
