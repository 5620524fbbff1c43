"""A busy afternoon for a server: many sessions at work, consumers that come, stall and vanish, agents that crash.

The server runs in a process of its own, for several rounds. In a round every consumer has one session and keeps its
cursor over all its connections; at the end it reads the rest, and what it has seen must be what the log has: every
event once, in order. Then the sessions are deleted, and memory, files and threads of the server are looked at: a live
session is held in memory, a deleted one must leave nothing.

    python -m tests.support.soaking --rounds 10 --seconds 60 --sessions 50 --consumers 200
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from .servers import TOKEN, ServerProcess, server_process

PROMPTS = (
    "tour",
    "flood 3000",
    "markdown",
    "edit notes.txt",
    "bash",
    "crash",
    "noise",
    "slow 2",
    "error",
    "big 200000",
)
ENDINGS = (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionClosed)
SAMPLE = 1.0
"""Seconds between two looks at the server."""


class Vitals(NamedTuple):
    memory: int
    """Resident bytes."""
    files: int
    threads: int
    blocks: int = 0
    """What Python has allocated: a leak shows here, where the gaps that an allocator keeps do not."""

    def __str__(self) -> str:
        told = f"{self.memory / 1e6:.0f} MB, {self.files} files, {self.threads} threads"
        return f"{told}, {self.blocks:,} blocks" if self.blocks else told


class Report:
    """What happened, and what was wrong."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.peak = 0
        self.rests: list[Vitals] = []
        """The server at rest, after each round."""

    def __str__(self) -> str:
        counted = ", ".join(f"{count:,} {what}" for what, count in sorted(self.counts.items()))
        rests = f"; at rest {self.rests[0]}, then {self.rests[-1]}" if self.rests else ""
        return f"{counted}; at most {self.peak / 1e6:.0f} MB{rests}; wrong: {len(self.wrong)}"


class Soak:
    def __init__(self, server: ServerProcess, report: Report, *, seed: int) -> None:
        self._server = server
        self._client = server.client
        self._report = report
        self._random = random.Random(seed)
        self.sessions: list[str] = []
        self.over = asyncio.Event()
        self.at_rest = asyncio.Event()

    # -- sessions --

    async def start(self, home: Path, count: int) -> None:
        for index in range(count):
            cwd = home / f"project{index}"
            cwd.mkdir(parents=True)
            answer = await self._client.request("POST", "/sessions", {"agent": "demo", "cwd": str(cwd)})
            assert answer.status == 201, answer.body
            self.sessions.append(answer.json()["id"])

    async def finish(self) -> None:
        """Delete the sessions, and wait until nobody is connected any more."""
        for session_id in self.sessions:
            answer = await self._client.request("DELETE", f"/sessions/{session_id}")
            if answer.status not in (200, 204):
                self._report.wrong.append(f"delete: {answer.status} {answer.body[:200]!r}")
        await asyncio.sleep(1)

    async def work(self, session_id: str) -> None:
        """Prompt after prompt; now and then one is cancelled."""
        dice = random.Random(f"{session_id}{self._random.random()}")
        while not self.over.is_set():
            path = f"/sessions/{session_id}/send-message"
            value = {"content": dice.choice(PROMPTS)}
            answer = await self._client.request("POST", path, value, headers={"Prefer": "respond-async"})
            if answer.status != 202:
                self._report.wrong.append(f"{path}: {answer.status} {answer.body[:200]!r}")
                return
            self._report.counts["prompts"] += 1
            if dice.random() < 0.2:
                await self._pause(dice.uniform(0.0, 1.0))
                await self._client.request("POST", f"/sessions/{session_id}/cancel")
                self._report.counts["cancels"] += 1
            await self._until_idle(session_id)
            await self._pause(dice.uniform(0.0, 2.0))

    async def _until_idle(self, session_id: str, patience: float = 90) -> None:
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            answer = await self._client.request("GET", f"/sessions/{session_id}?items=false")
            if answer.status != 200:
                answer = await self._client.request("GET", f"/sessions/{session_id}")
            if answer.json()["status"] in ("idle", "error", "completed"):
                return
            await asyncio.sleep(0.3)
        self._report.wrong.append(f"session {session_id} did not come to rest")

    async def decide(self) -> None:
        """Somebody who answers what is asked, this way or that."""
        while True:
            answer = await self._client.request("GET", "/approvals")
            for approval in answer.json()["approvals"]:
                decision = self._random.choice(("allow", "deny"))
                await self._client.request("POST", f"/approvals/{approval['id']}", {"decision": decision})
                self._report.counts["decisions"] += 1
            await asyncio.sleep(0.5)

    # -- consumers --

    async def consume(self) -> None:
        """One consumer over many connections, and the check of all it has seen."""
        dice = random.Random(self._random.random())
        session_id = dice.choice(self.sessions)
        view = View(self._report)
        while not self.over.is_set():
            way = self._sse if dice.random() < 0.5 else self._websocket
            stalls = dice.uniform(1, 6) if dice.random() < 0.15 else 0.0
            with contextlib.suppress(*ENDINGS):
                async with asyncio.timeout(dice.uniform(0.3, 8.0) + stalls):
                    await way(session_id, view, stalls)
            self._report.counts["connections"] += 1
            self._report.counts["stalls"] += bool(stalls)
        await self.at_rest.wait()
        await self._pages(session_id, view)
        await self._compare(session_id, view)

    async def _sse(self, session_id: str, view: View, stalls: float) -> None:
        headers = {"Last-Event-ID": str(view.cursor)} if view.cursor else {}
        async with self._client.stream("GET", f"/sessions/{session_id}/events", headers=headers) as stream:
            if stream.status == 429:  # those who vanished are not all noticed yet
                self._report.counts["told to wait"] += 1
                await asyncio.sleep(0.5)
                return
            if stream.status != 200:
                self._report.wrong.append(f"events: {stream.status}")
                return
            if stalls:
                stream.transport.pause_reading()
                await asyncio.sleep(stalls)
                stream.transport.resume_reading()
            async for frame in stream.frames():
                if frame.data:
                    view.take(frame.json())

    async def _websocket(self, session_id: str, view: View, stalls: float) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        url = f"ws://127.0.0.1:{self._server.port}/ws"
        async with connect(url, additional_headers=headers, max_size=None, compression=None) as socket:
            wanted = {"type": "subscribe", "sessionIds": [session_id], "after": {session_id: view.cursor}}
            await socket.send(json.dumps(wanted))
            if stalls:
                socket.transport.pause_reading()
                await asyncio.sleep(stalls)
                socket.transport.resume_reading()
            async for text in socket:
                frame = json.loads(text)
                if frame["type"] == "events":
                    for event in frame["events"]:
                        view.take(event)

    async def _pages(self, session_id: str, view: View) -> None:
        async for event in self._log(session_id, view.cursor):
            view.take(event)

    async def _compare(self, session_id: str, view: View) -> None:
        whole = View(self._report)
        async for event in self._log(session_id, 0):
            whole.take(event)
        if (whole.cursor, whole.mark) != (view.cursor, view.mark):
            self._report.wrong.append(f"session {session_id}: a consumer saw {view.cursor}, the log has {whole.cursor}")
        self._report.counts["consumers complete"] += 1
        self._report.counts["events seen"] += view.cursor

    async def _log(self, session_id: str, after: int) -> AsyncIterator[dict[str, Any]]:
        while True:
            path = f"/sessions/{session_id}/events?after={after}&limit=1000"
            page = (await self._client.request("GET", path, headers={"Accept": "application/json"})).json()
            if not page["events"]:
                return
            for event in page["events"]:
                yield event
            after = page["seq"]

    # -- the server --

    async def watch(self, tell: Callable[[str], None]) -> None:
        said = time.monotonic()
        while True:
            self._report.peak = max(self._report.peak, vitals(self._server.pid).memory)
            if time.monotonic() - said > 15:
                said = time.monotonic()
                tell(str(self._report))
            await asyncio.sleep(SAMPLE)

    async def blocks(self) -> int:
        """How many blocks of memory the server's Python has in use."""
        lines = (await self._client.request("GET", "/metrics")).body.decode().splitlines()
        return next(int(float(line.split()[1])) for line in lines if line.startswith("python_allocated_blocks "))

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.over.wait()


class View:
    """What one consumer has seen of a session: how far, and a mark of all of it."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.cursor = 0
        self.mark = 0

    def take(self, event: dict[str, Any]) -> None:
        seq = event["seq"]
        if seq != self.cursor + 1:
            what = "duplicate" if seq <= self.cursor else "gap"
            self._report.wrong.append(f"{what}: {seq} after {self.cursor} of {event['sessionId']}")
        self.cursor = seq
        self.mark = zlib.crc32(f"{seq} {event['type']} {event['timestamp']}".encode(), self.mark)


def vitals(pid: int) -> Vitals:
    """How a process is."""
    base = Path(f"/proc/{pid}")
    resident = int((base / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    threads = next(line for line in (base / "status").read_text().splitlines() if line.startswith("Threads:"))
    return Vitals(resident, len(list((base / "fd").iterdir())), int(threads.split()[1]))


async def soak(
    home: Path,
    *,
    rounds: int,
    seconds: float,
    sessions: int,
    consumers: int,
    seed: int = 1,
    tell: Callable[[str], None] = lambda text: None,
) -> Report:
    report = Report()
    async with server_process(home) as server:
        for number in range(rounds):
            load = Soak(server, report, seed=seed + number)
            await load.start(home / f"round{number}", sessions)
            await _round(load, seconds, consumers, tell)
            await load.finish()
            report.rests.append(vitals(server.pid)._replace(blocks=await load.blocks()))
            tell(f"round {number + 1}: {report}")
    return report


async def _round(load: Soak, seconds: float, consumers: int, tell: Callable[[str], None]) -> None:
    async with asyncio.TaskGroup() as aside:
        watching = [aside.create_task(load.watch(tell)), aside.create_task(load.decide())]
        async with asyncio.TaskGroup() as readers:
            for _ in range(consumers):
                readers.create_task(load.consume())
            async with asyncio.TaskGroup() as workers:
                for session_id in load.sessions:
                    workers.create_task(load.work(session_id))
                await asyncio.sleep(seconds)
                load.over.set()
            load.at_rest.set()
        for task in watching:
            task.cancel()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--consumers", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak") as home:
        report = asyncio.run(
            soak(
                Path(home),
                rounds=given.rounds,
                seconds=given.seconds,
                sessions=given.sessions,
                consumers=given.consumers,
                seed=given.seed,
                tell=lambda text: print(text, flush=True),
            )
        )
    print(report)
    for line in report.wrong[:20]:
        print(line)
    raise SystemExit(bool(report.wrong))


if __name__ == "__main__":
    main()
