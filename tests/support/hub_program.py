"""A hub under load, to be killed: `python hub_program.py HOME DIRECTORY`.

Each line it prints is something that a consumer has been told, so it must never be lost: `E session seq digest` for an
event, `T session turn seq reason` for the end of a turn, `A session approval` for a decision.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sys
from pathlib import Path

from pilothouse.hub.hub import Hub
from pilothouse.hub.link import AgentSpec
from pilothouse.hub.session import HubSession
from pilothouse.model.events import ApprovalRequestedEvent, decode_event
from tests.support.hubs import odd

DEMO = "import asyncio; from pilothouse.agents.demo.agent import serve; asyncio.run(serve())"
WORDS = (
    "flood 400",
    "tools",
    "edit note.txt hello",
    "slow 1",
    "echo hi",
    "subagent",
    "plan",
    "question",
    "bash echo x",
)


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


async def follow(session: HubSession, after: int) -> None:
    async for batch in session.follow(after):
        for entry in batch:
            tell("E", session.id, entry.seq, digest(entry.data))
            if entry.type == "approval:requested" and random.random() < 0.7:
                event = decode_event(entry.data)
                assert isinstance(event, ApprovalRequestedEvent)
                asyncio.ensure_future(decide(session, event.request_id))
            elif entry.type == "interaction:question" and random.random() < 0.7:
                asyncio.get_running_loop().call_soon(answer, session, decode_event(entry.data).question_id)  # type: ignore[attr-defined]


async def decide(session: HubSession, request_id: str) -> None:
    try:
        await session.decide(request_id, approved=random.random() < 0.5)
    except Exception:
        return
    tell("A", session.id, request_id)


def answer(session: HubSession, question_id: str) -> None:
    try:
        session.answer(question_id, None)
    except Exception:
        return


async def work(session: HubSession, number: int) -> None:
    while True:
        word = random.choice(WORDS) if session.agent_name == "demo" else "flood 300"
        prompt = await session.send(word, client_request_id=f"{os.getpid()}-{number}-{random.random()}")
        await session.send("echo queued")
        if random.random() < 0.3:
            await asyncio.sleep(random.random() / 5)
            await session.cancel()
        done, _ = await asyncio.wait((prompt.done,), timeout=0.5)
        if not done:
            await session.cancel()
        result = await prompt.done
        tell("T", session.id, result.turn_id, result.seq, result.stop_reason)


async def main(home: Path, directory: Path) -> None:
    async with Hub(home=home, agents=specs(home), cancel_deadline=1) as hub:
        known = (await hub.sessions(limit=3)).sessions
        names = ("demo", "demo", "odd")
        sessions = [await hub.session(record.id) for record in known]
        sessions += [await hub.start_session(name, directory) for name in names[len(sessions) :]]
        tell("R")
        jobs = [follow(session, session.state.seq) for session in sessions]
        await asyncio.gather(*jobs, *(work(session, number) for number, session in enumerate(sessions)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
