"""How fast the log is: `python bench/log.py`. Every figure stands beside a bare baseline of the same run.

- append and follow: an appender with several batches under way and a live follower that counts, in one process,
  against a bare loop that encodes, inserts and commits one row per event and has no follower at all
- one at a time: each append waits for its commit and for a live follower to have it
- a neighbour of a flood: the same wait while another session floods the log
- idle followers: memory of each
- replay: 100,000 events read from the file by a follower, against reading the same bytes as lines of a plain file
"""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections import deque
from pathlib import Path

from pilothouse.log import EventLog, MemoryLog, SQLiteLog
from pilothouse.model.events import Event, MessageDeltaEvent, encode_event

SOURCE = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello wor"}}'
SESSION = "ses_0123456789abcdef"
REPLAY = 100_000
DEPTH = 4
"""Batches that an appender has under way, as a session that reads from an agent does."""


def deltas(count: int, session_id: str = SESSION) -> list[Event]:
    events: list[Event] = []
    for _ in range(count):
        event = MessageDeltaEvent(
            seq=0,
            session_id=session_id,
            timestamp="2026-01-01T00:00:00.000Z",
            message_id="msg_1",
            role="assistant",
            delta="hello wor",
        )
        event.source = SOURCE
        events.append(event)
    return events


def bare_inserts(home: Path, count: int) -> float:
    """Events per second of the loop that comes to mind first."""
    db = sqlite3.connect(home / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE events (session TEXT, seq INTEGER, data BLOB, source BLOB, PRIMARY KEY (session, seq))")
    events = deltas(count)
    start = time.perf_counter()
    for seq, event in enumerate(events, 1):
        event.seq = seq
        db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (SESSION, seq, encode_event(event), SOURCE))
    rate = count / (time.perf_counter() - start)
    db.close()
    return rate


async def follow(log: EventLog, count: int, session_id: str = SESSION) -> int:
    seen = 0
    async for batch in log.follow(session_id):
        seen += len(batch)
        if seen >= count:
            break
    return seen


async def flood(log: EventLog, batches: list[list[Event]], session_id: str = SESSION) -> None:
    under_way: deque[asyncio.Future[int]] = deque()
    last = 0
    for batch in batches:
        under_way.append(log.append_nowait(session_id, last, batch))
        last += len(batch)
        if len(under_way) == DEPTH:
            await under_way.popleft()
    await asyncio.gather(*under_way)


async def append_and_follow(log: EventLog, size: int, total: int, followers: int = 1) -> float:
    """Events per second, from the first append until every follower has the last event."""
    batches = [deltas(size) for _ in range(total // size)]
    async with log:
        await log.sessions.create(SESSION, agent="bench", cwd="/")
        start = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(followers):
                tasks.create_task(follow(log, total // size * size))
            tasks.create_task(flood(log, batches))
        return total // size * size / (time.perf_counter() - start)


async def one_at_a_time(log: EventLog, count: int, pause: float = 0, session_id: str = SESSION) -> list[float]:
    """Milliseconds from append until a live follower has it, event by event."""
    follower = log.follow(session_id)
    await follower.next(0)
    waits = []
    for seq in range(count):
        event = deltas(1, session_id)
        start = time.perf_counter()
        future = log.append_nowait(session_id, seq, event)
        await anext(follower)
        waits.append((time.perf_counter() - start) * 1000)
        await future
        if pause:
            await asyncio.sleep(pause)
    return sorted(waits)


async def beside_a_flood(log: EventLog, seconds: float) -> tuple[list[float], float]:
    """The waits of a session with 100 events a second beside one that floods, and the flood's events per second."""
    async with log:
        for session_id in (SESSION, "quiet"):
            await log.sessions.create(session_id, agent="bench", cwd="/")
        sent = 0

        async def pour() -> None:
            nonlocal sent
            under_way: deque[asyncio.Future[int]] = deque()
            while True:
                under_way.append(log.append_nowait(SESSION, sent, deltas(100)))
                sent += 100
                if len(under_way) == DEPTH:
                    await under_way.popleft()

        pouring = asyncio.create_task(pour())
        start = time.perf_counter()
        waits = await one_at_a_time(log, int(seconds * 100), 0.01, "quiet")
        rate = sent / (time.perf_counter() - start)
        pouring.cancel()
        await asyncio.gather(pouring, return_exceptions=True)
        return waits, rate


async def idle_followers(log: EventLog, count: int) -> float:
    """Bytes of each follower that waits, its task included."""
    async with log:
        await log.sessions.create(SESSION, agent="bench", cwd="/")
        await log.append(SESSION, 0, deltas(100))
        gc.collect()
        tracemalloc.start()
        tasks = [asyncio.create_task(follow(log, 1 << 30)) for _ in range(count)]
        for _ in range(5):
            await asyncio.sleep(0.01)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return size / count


async def replay(home: Path) -> tuple[float, float, int]:
    """Seconds to follow 100,000 stored events, seconds to read their lines from a file, and their bytes."""
    path = home / "replay.db"
    async with SQLiteLog(path) as log:
        await log.sessions.create(SESSION, agent="bench", cwd="/")
        await flood(log, [deltas(50) for _ in range(REPLAY // 50)])
    lines = home / "replay.jsonl"
    size = 0
    async with SQLiteLog(path) as log:
        start = time.perf_counter()
        await follow(log, REPLAY)
        ours = time.perf_counter() - start
        with lines.open("wb") as file:
            async for batch in log.follow(SESSION):
                size += sum(len(entry.data) for entry in batch)
                file.writelines(entry.data + b"\n" for entry in batch)
                if batch[-1].seq == REPLAY:
                    break
    start = time.perf_counter()
    with lines.open("rb") as file:
        count = sum(1 for _ in file)
    assert count == REPLAY
    return ours, time.perf_counter() - start, size


def show(what: str, ours: str, beside: str = "", ratio: str = "") -> None:
    print(f"{what:<46}{ours:>18}  {beside:<44}{ratio}", flush=True)


async def main(home: Path) -> None:
    print(f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores\n")
    number = 0

    def log() -> SQLiteLog:
        nonlocal number
        number += 1
        return SQLiteLog(home / f"log{number}.db")

    bare = bare_inserts(home, 20_000)
    for size, total in ((1, 20_000), (10, 150_000), (100, 400_000)):
        rate = await append_and_follow(log(), size, total)
        beside = f"bare loop, a commit per event: {bare:,.0f}/s"
        show(f"append + follow, batches of {size}", f"{rate:,.0f} events/s", beside, f"{rate / bare:.1f} ×")
    rate = await append_and_follow(log(), 100, 100_000, followers=100)
    show("the same, 100 followers, each gets all", f"{rate:,.0f} events/s", f"{rate * 100:,.0f} handed out a second")
    memory = await append_and_follow(MemoryLog(), 100, 300_000)
    show("the same, 1 follower, log in memory", f"{memory:,.0f} events/s")

    async with log() as alone:
        await alone.sessions.create(SESSION, agent="bench", cwd="/")
        waits = await one_at_a_time(alone, 3_000)
    percentiles = statistics.quantiles(waits, n=100)
    show(
        "one at a time, append until followed",
        f"p50 {percentiles[49]:.2f} ms",
        f"p99 {percentiles[98]:.2f} ms, worst {waits[-1]:.1f} ms",
    )
    waits, rate = await beside_a_flood(log(), 4)
    percentiles = statistics.quantiles(waits, n=100)
    beside = f"p99 {percentiles[98]:.2f} ms, worst {waits[-1]:.1f} ms"
    show(f"beside a flood of {rate:,.0f} events/s", f"p50 {percentiles[49]:.2f} ms", beside)

    size = await idle_followers(log(), 2_000)
    show("an idle follower with its task", f"{size:,.0f} bytes")
    ours, plain, amount = await replay(home)
    beside = f"lines of a plain file: {plain * 1000:.0f} ms"
    show(
        f"replay of {REPLAY:,} events, {amount / 1e6:.0f} MB",
        f"{ours * 1000:.0f} ms",
        beside,
        f"{ours / plain:.1f} × as long",
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(Path(directory)))
