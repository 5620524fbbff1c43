#!/usr/bin/env python3
"""The hub, from an agent's standard output to a consumer that has read what is committed, in one run.

    python bench/hub.py             all of it, about a minute
    python bench/hub.py flood       one of: flood, latency, followers, replay, idle

Other ways stand beside it. *By hand* is what a user would write instead: the official SDK, one commit for each update,
FastAPI and sse-starlette (`stacks/by_hand.py`); *without HTTP* is the same with a queue for a consumer in the same
process, as the hub's follower is one. *Relay* frames the same lines from the pipe to a socket and keeps nothing.
Each side runs in a process of its own with the same agent: a program that writes prepared lines as fast as it can.
bench/server.py measures the hub with its own server in front.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

# a file beside this one is called like the official package
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

FLOOD = 200_000
BY_HAND = 4_000
PINGS = 1_000
REPLAY = 100_000
IDLE = 1_000
FOLLOWERS = 100
SESSION = "bench"

STACKS = Path(__file__).resolve().parent / "stacks"


def agent_command() -> tuple[str, ...]:
    return (sys.executable, str(STACKS / "agent.py"))


# -- the three ways -----------------------------------------------------------------------------------------------


class Seen:
    """What a consumer read: when the first line was written, when the last one arrived, how old each was."""

    def __init__(self) -> None:
        self.began = 0.0
        self.count = 0
        self.ages: list[float] = []

    def text(self, text: str) -> None:
        self.count += 1
        if text.startswith("begin "):
            self.began = float(text[6:])
        elif text.startswith("sent "):
            self.ages.append(time.time() - float(text[5:]))


async def hub_way(word: str, count: int) -> dict[str, float]:
    import msgspec

    from pilothouse.hub.agent.process import AgentSpec
    from pilothouse.hub.hub import Hub

    class Delta(msgspec.Struct):
        delta: str

    decode = msgspec.json.Decoder(Delta).decode
    seen = Seen()
    with tempfile.TemporaryDirectory() as home:
        agents = {"bench": AgentSpec(name="bench", command=agent_command())}
        async with Hub(home=home, agents=agents) as hub:
            session = await hub.start_session("bench", home, start=True)

            async def consume() -> None:
                async for batch in session.follow():
                    for entry in batch:
                        if entry.type == "message:delta":
                            seen.text(decode(entry.data).delta)
                    if seen.count > count:
                        return

            reader = asyncio.create_task(consume())
            await session.prompt(f"{word} {count}")
            if word == "flood":
                await reader
            ended = time.time()
            reader.cancel()
    return {"rate": count / (ended - seen.began) if seen.began else 0.0, **_ages(seen)}


async def by_hand_way(word: str, count: int) -> dict[str, float]:
    import acp

    seen = Seen()
    with tempfile.TemporaryDirectory() as home:
        db = sqlite3.connect(Path(home) / "events.db")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, data TEXT)")
        queue: asyncio.Queue[str] = asyncio.Queue()

        class Client(acp.Client):
            async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
                data = update.model_dump_json(by_alias=True)
                db.execute("INSERT INTO events (data) VALUES (?)", (data,))
                db.commit()
                queue.put_nowait(data)

        async def consume() -> None:
            while seen.count <= count:
                seen.text(json.loads(await queue.get())["content"]["text"])

        async with acp.spawn_agent_process(Client(), *agent_command()) as (agent, _):
            await agent.initialize(protocol_version=1)
            session = await agent.new_session(cwd=home, mcp_servers=[])
            reader = asyncio.create_task(consume())
            await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(f"{word} {count}")])
            if word == "flood":
                await reader
            else:
                await asyncio.sleep(0.1)
            ended = time.time()
            reader.cancel()
        db.close()
    return {"rate": count / (ended - seen.began) if seen.began else 0.0, **_ages(seen)}


async def relay_way(word: str, count: int) -> dict[str, float]:
    """Lines from the pipe to a socket, framed as server-sent events; the other end of the socket counts them."""
    seen = Seen()
    process = await asyncio.create_subprocess_exec(
        *agent_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**24
    )
    assert process.stdin is not None
    assert process.stdout is not None
    done = asyncio.Event()

    async def consume(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while seen.count <= count - (word != "flood"):
            line = await reader.readline()
            if line.startswith(b"data: "):
                seen.text(json.loads(line[6:])["params"]["update"]["content"]["text"])
        done.set()
        writer.close()

    server = await asyncio.start_server(consume, "127.0.0.1", 0, limit=2**24)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    prompt = {"prompt": [{"type": "text", "text": f"{word} {count}"}], "sessionId": SESSION}
    process.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": prompt}).encode() + b"\n"
    )
    while line := await process.stdout.readline():
        if b'"result"' in line[:60]:
            break
        writer.write(b"event: message\ndata: " + line + b"\n")
        if writer.transport.get_write_buffer_size() > 65536:
            await writer.drain()
    await writer.drain()
    await asyncio.wait_for(done.wait(), 60)
    ended = time.time()
    process.kill()
    await process.wait()
    writer.close()
    server.close()
    return {"rate": count / (ended - seen.began) if seen.began else 0.0, **_ages(seen)}


def _ages(seen: Seen) -> dict[str, float]:
    if not seen.ages:
        return {}
    ages = sorted(seen.ages)
    return {"p50": statistics.median(ages), "p99": ages[int(len(ages) * 0.99) - 1]}


# -- more of the hub ----------------------------------------------------------------------------------------------


async def followers_way(word: str, count: int) -> dict[str, float]:
    from pilothouse.hub.agent.process import AgentSpec
    from pilothouse.hub.hub import Hub

    with tempfile.TemporaryDirectory() as home:
        agents = {"bench": AgentSpec(name="bench", command=agent_command())}
        async with Hub(home=home, agents=agents) as hub:
            session = await hub.start_session("bench", home, start=True)
            read = [0] * FOLLOWERS

            async def consume(which: int) -> None:
                async for batch in session.follow():
                    read[which] += len(batch)
                    if read[which] >= count:
                        return

            before = rss()
            tasks = [asyncio.create_task(consume(which)) for which in range(FOLLOWERS)]
            await asyncio.sleep(0.1)
            idle = (rss() - before) / FOLLOWERS
            began = time.time()
            await session.prompt(f"flood {count}")
            await asyncio.gather(*tasks)
            took = time.time() - began
    return {"rate": count / took, "idle": idle}


async def replay_way(word: str, count: int) -> dict[str, float]:
    from pilothouse.log.sqlite.log import SQLiteLog
    from pilothouse.model.events import create_event

    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "log.db"
        delta = {"type": "message:delta", "messageId": "m", "role": "assistant", "delta": "a piece of the answer"}
        async with SQLiteLog(path) as log:
            await log.sessions.create(SESSION, agent="x", cwd=home)
            seq = 0
            while seq < count:
                seq = await log.append(SESSION, seq, [create_event(SESSION, delta) for _ in range(1000)])
        async with SQLiteLog(path) as log:
            began = time.perf_counter()
            read = size = 0
            while entries := await log.read(SESSION, read):
                read = entries[-1].seq
                size += sum(len(entry.data) for entry in entries)
            took = time.perf_counter() - began
        plain = Path(home) / "plain"
        plain.write_bytes((b"x" * (size // count - 1) + b"\n") * count)
        began = time.perf_counter()
        with plain.open("rb") as file:
            lines = sum(1 for _ in file)
        file_took = time.perf_counter() - began
    return {"rate": read / took, "file": lines / file_took}


async def idle_way(word: str, count: int) -> dict[str, float]:
    from pilothouse.hub.agent.process import AgentSpec
    from pilothouse.hub.hub import Hub

    with tempfile.TemporaryDirectory() as home:
        agents = {"bench": AgentSpec(name="bench", command=agent_command())}
        async with Hub(home=home, agents=agents) as hub:
            await hub.start_session("bench", home)
            before = rss()
            for _ in range(count):
                await hub.start_session("bench", home)
            after = rss()
    return {"each": (after - before) / count}


def rss() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize()


# -- running ------------------------------------------------------------------------------------------------------

WAYS: dict[str, Callable[[str, int], Awaitable[dict[str, float]]]] = {
    "hub": hub_way,
    "by hand": by_hand_way,
    "relay": relay_way,
    "followers": followers_way,
    "replay": replay_way,
    "idle": idle_way,
}


def measure(way: str, word: str, count: int, *, times: int = 1, better: str = "rate") -> dict[str, float]:
    """Run one way in a process of its own; the best of several runs by `better`."""
    found = []
    for _ in range(times):
        command = [sys.executable, __file__, "--child", way, word, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ, check=False)
        if done.returncode:
            raise SystemExit(f"{way} failed:\n{done.stderr[-2000:]}")
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return max(found, key=lambda each: each.get(better, 0)) if better == "rate" else min(found, key=lambda e: e[better])


def by_hand_served() -> float:
    command = [sys.executable, "-P", str(STACKS.parent / "server.py"), "--rate", "by hand", str(BY_HAND)]
    return float(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)


def flood() -> None:
    hub = measure("hub", "flood", FLOOD, times=3)["rate"]
    hand = measure("by hand", "flood", BY_HAND, times=2)["rate"]
    relay = measure("relay", "flood", FLOOD, times=3)["rate"]
    served = max(by_hand_served() for _ in range(2))
    for name, rate, target in (
        ("by hand", served, " (target 30)"),
        ("by hand without HTTP", hand, ""),
        ("relay", relay, " (target 0.25)"),
    ):
        print(f"agent to consumer, updates/s   hub {hub:10,.0f}   {name:20} {rate:8,.0f}   {hub / rate:6.2f} ×{target}")


def latency() -> None:
    hub = measure("hub", "ping", PINGS, times=3, better="p50")
    hand = measure("by hand", "ping", PINGS, times=2, better="p50")
    relay = measure("relay", "ping", PINGS, times=3, better="p50")
    print(
        f"one at a time, p50 ms          hub {hub['p50'] * 1e3:10.2f}   relay   {relay['p50'] * 1e3:8.2f}"
        f"   {hub['p50'] / relay['p50']:6.2f} × (target at most 3)   by hand {hand['p50'] * 1e3:.2f}"
    )
    print(f"                p99 ms         hub {hub['p99'] * 1e3:10.2f}   relay   {relay['p99'] * 1e3:8.2f}")


def followers() -> None:
    one = measure("hub", "flood", 50_000, times=2)["rate"]
    many = measure("followers", "flood", 50_000, times=2)
    print(
        f"{FOLLOWERS} followers, updates/s each   {many['rate']:14,.0f}   one     {one:8,.0f}"
        f"   {many['rate'] / one:6.2f} ×"
        f"   idle follower {many['idle'] / 1024:.1f} KiB (target at most 64)"
    )


def replay() -> None:
    found = measure("replay", "-", REPLAY, times=2)
    print(
        f"replay of {REPLAY:,}, events/s      {found['rate']:14,.0f}   file    {found['file']:8,.0f}"
        f"   {found['file'] / found['rate']:6.1f} × as long as reading lines of a file"
    )


def idle() -> None:
    each = measure("idle", "-", IDLE, better="each")["each"]
    print(f"idle session, KiB              {each / 1024:14.1f}   (target at most 64)")


PARTS: dict[str, Callable[[], None]] = {
    "flood": flood,
    "latency": latency,
    "followers": followers,
    "replay": replay,
    "idle": idle,
}


def main(argv: list[str]) -> None:
    if argv[:1] == ["--child"]:
        way, word, count = argv[1:]
        print(json.dumps(asyncio.run(_run(way, word, int(count)))))
        return
    unknown = [name for name in argv if name not in PARTS]
    if unknown:
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for name in argv or PARTS:
        PARTS[name]()


async def _run(way: str, word: str, count: int) -> dict[str, float]:
    return await WAYS[way](word, count)


if __name__ == "__main__":
    main(sys.argv[1:])
