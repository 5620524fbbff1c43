"""A hub under load, to be killed: `python hub_program.py HOME DIRECTORY ORDERS`.

ORDERS is a file of JSON: which sessions to go on with, from which cursors to follow, what was sent before and must not
happen twice. Each line it prints is something that a consumer has been told, so it must never be lost:

    B                                   it begins: from here on it opens the log and recovers
    R                                   it is ready and begins to work
    L session                           it works on this session
    E session seq digest type           an event, seen by a follower of its session
    G session seq digest position       an event, seen by a follower of all sessions
    S session request                   a prompt is sent under this id of the client's
    T session request turn seq reason   the answer to it: how its turn ended
    A session approval approved         a decision was taken
    C                                   it was told to close (a line on its stdin), and begins to
    D                                   it has closed
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import HubError
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.log.entries import Entry
from pilothouse.log.errors import LogClosed, LogError
from pilothouse.model.events import ApprovalRequestedEvent, UserQuestionEvent, decode_event
from tests.support.hubs import odd

DEMO = "import asyncio; from pilothouse.agents.demo.agent import serve; asyncio.run(serve())"
NAMES = ("demo", "demo", "odd", "odd")
TERMINAL = "terminal sleep 3600 & (setsid sleep 3600 &) ; sleep 3600"
TOLD = ("flood 400", "tools", "edit note.txt hello", "slow 1", "echo hi", "subagent", "plan", "question", "bash echo x")
ODDLY = ("flood 300", "flood 1500", TERMINAL, "children", "write x", "tool", "question", "die 3", "text")
WORDS = {"demo": TOLD, "odd": ODDLY}


def specs(home: Path) -> dict[str, AgentSpec]:
    env = {"PILOTHOUSE_DEMO_HOME": str(home / "demo")}
    return {
        "demo": AgentSpec(name="demo", command=(sys.executable, "-c", DEMO), env=env),
        "odd": odd("resume", "ignore-eof", "child"),
    }


def digest(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()[:16]


def tell(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def tell_all(lines: list[str]) -> None:
    data = "".join(lines).encode()
    while data:
        data = data[os.write(1, data) :]


class Load:
    """Prompts, followers and decisions until the process is killed or told to close."""

    def __init__(self, hub: Hub, directory: Path, orders: dict[str, Any]) -> None:
        self._hub = hub
        self._directory = directory
        self._orders = orders
        self._number = 0

    async def run(self) -> None:
        sessions = [await self._hub.session(session_id) for session_id in self._orders["sessions"]]
        wanted = list(NAMES)
        for session in sessions:
            wanted.remove(session.agent_name)
        sessions += [await self._hub.start_session(name, self._directory) for name in wanted]
        for session in sessions:
            tell("L", session.id)
        tell("R")
        jobs = [self._follow_all(), *map(self._follow, sessions), *map(self._work, sessions)]
        tasks = [asyncio.ensure_future(job) for job in jobs]
        closing = asyncio.ensure_future(asyncio.to_thread(sys.stdin.readline))
        done, _ = await asyncio.wait((closing, *tasks), return_when=asyncio.FIRST_COMPLETED)
        for task in done - {closing}:
            task.result()
        tell("C")
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def _follow(self, session: HubSession) -> None:
        async for batch in session.follow(self._orders["cursors"].get(session.id, 0)):
            tell_all([f"E {session.id} {entry.seq} {digest(entry.data)} {entry.type}\n" for entry in batch])
            for entry in batch:
                if entry.type in ("approval:requested", "interaction:question") and random.random() < 0.7:
                    asyncio.ensure_future(self._answer(session, entry))

    async def _follow_all(self) -> None:
        async for batch in self._hub.log.follow_all(self._orders["position"]):
            tell_all([f"G {entry.session_id} {entry.seq} {digest(entry.data)} {entry.position}\n" for entry in batch])

    async def _answer(self, session: HubSession, entry: Entry) -> None:
        event = decode_event(entry.data)
        await asyncio.sleep(random.random() / 20)
        try:
            if isinstance(event, ApprovalRequestedEvent):
                approved = random.random() < 0.5
                await session.decide(event.request_id, approved=approved)
                tell("A", session.id, event.request_id, int(approved))
            elif isinstance(event, UserQuestionEvent):
                session.answer(event.question_id, None)
        except (HubError, LogError):
            pass  # its turn was over, or it is one of former times

    async def _work(self, session: HubSession) -> None:
        for request, content in self._orders["unanswered"].get(session.id, []):
            await self._send(session, request, content)
        while True:
            content = random.choice(WORDS[session.agent_name])
            sent = asyncio.ensure_future(self._send(session, self._request(), content))
            await asyncio.sleep(0)
            queued = asyncio.ensure_future(self._send(session, self._request(), "echo queued"))
            if random.random() < 0.3:
                await asyncio.sleep(random.random() / 5)
                await session.cancel()
            await asyncio.wait((sent,), timeout=0.5)
            while not (sent.done() and queued.done()):
                await session.cancel()
                await asyncio.wait((sent, queued), timeout=0.1)
            await asyncio.gather(sent, queued)

    def _request(self) -> str:
        self._number += 1
        return f"{os.getpid()}-{self._number}-{random.randrange(10**9)}"

    async def _send(self, session: HubSession, request: str, content: str) -> None:
        tell("S", session.id, request, *content.split(" "))
        try:
            result = await (await session.send(content, client_request_id=request)).done
        except (HubError, LogClosed):
            return
        tell("T", session.id, request, result.turn_id, result.seq, result.stop_reason)


async def main(home: Path, directory: Path, orders: Path) -> None:
    tell("B")
    async with Hub(home=home, agents=specs(home), cancel_deadline=1) as hub:
        await Load(hub, directory, json.loads(orders.read_text())).run()
    tell("D")


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:])))
