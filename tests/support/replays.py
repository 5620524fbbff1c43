"""Plays a recording through a hub: prompts, decides and cancels as whoever recorded it did."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import HubError
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import ApprovalRequestedEvent, Event, UserQuestionEvent
from tests.support.hubs import PATIENCE, check, facts, history

__all__ = ["Recording", "play"]

REPLAY = str(Path(__file__).with_name("replay_agent.py"))


class Recording:
    """What the client did in a recording, as far as a hub's user does it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        messages = [(line["dir"], line["msg"]) for line in self.lines if isinstance(line.get("msg"), dict)]
        answered = {m.get("id") for d, m in messages if d == "a2c" and "method" not in m}
        asked = {m["id"] for d, m in messages if d == "a2c" and m.get("method") == "session/request_permission"}
        self.prompts = 0
        self.cancels: dict[int, int] = {}
        self.decisions: list[Any] = []
        updates, open_prompts = 0, set()
        for direction, message in messages:
            method = message.get("method")
            if direction == "a2c":
                updates += method == "session/update"
                if method is None:
                    open_prompts.discard(message.get("id"))
            elif method == "session/prompt" and message.get("id") in answered:
                self.prompts += 1
                open_prompts.add(message["id"])
            elif method == "session/cancel" and open_prompts:
                self.cancels[self.prompts] = updates
            elif method is None and message.get("id") in asked:
                self.decisions.append(message.get("result", {}).get("outcome", {}))
        self.prompts = max(self.prompts, 1)  # or nothing of a mere handshake would be played


async def play(hub: Hub, path: Path, directory: Path) -> tuple[HubSession, Recording, list[Event]]:
    """Play it, and check what holds of every session; the events."""
    directory.mkdir(parents=True)
    recording, sent = Recording(path), directory / "sent.jsonl"
    name = f"replay {path}"
    command = (sys.executable, "-S", "-E", REPLAY, str(path), str(sent))
    hub.agents[name] = AgentSpec(name=name, command=command, start_timeout=PATIENCE / 4)
    workspace = directory / "project"
    workspace.mkdir()
    session = await hub.start_session(name, workspace)
    deciding = asyncio.ensure_future(_decide(session, recording))
    try:
        async with asyncio.timeout(PATIENCE):
            for number in range(1, recording.prompts + 1):
                prompt = await session.send(f"prompt {number}")
                if number in recording.cancels:
                    await _cancel(session, prompt.done, sent, recording.cancels[number])
                await prompt.done
            await _played(session, Path(f"{sent}.end"))
    except TimeoutError:
        tail = [(event.type, getattr(event, "data", "")) for event in (await history(hub.log, session.id))[-6:]]
        sent_lines = sent.read_text().count("\n") if sent.exists() else 0
        raise AssertionError(f"stuck, {sent_lines} updates sent, {recording.cancels} to cancel; last: {tail}") from None
    finally:
        deciding.cancel()
    await session.close()
    events = await history(hub.log, session.id)
    check(events)
    await _nothing_lost(hub, session, sent)
    return session, recording, events


async def _cancel(session: HubSession, done: asyncio.Future[Any], sent: Path, updates: int) -> None:
    """Cancel when as many updates are there as when it was cancelled in the recording, and what was asked is there."""
    while not done.done():
        count = sent.read_text().count("\n") if sent.exists() else 0
        if count >= updates and session.state.turn is not None:
            await asyncio.sleep(0.05)
            await session.cancel()
        else:
            await asyncio.sleep(0.01)


async def _played(session: HubSession, end: Path) -> None:
    """Wait until the recording is over, and the hub has handled all of it; agents talk on after their turn."""
    while session.agent_pid is not None and not end.exists():
        await asyncio.sleep(0.01)
    if session.agent_pid is not None:
        with contextlib.suppress(HubError):
            await session.call("replay/sync", {})


async def _decide(session: HubSession, recording: Recording) -> None:
    decisions = list(recording.decisions)
    async for event in session.events():
        try:
            if isinstance(event, ApprovalRequestedEvent) and event.origin == "hub":
                await session.decide(event.request_id, approved=True)  # the recorded client asked nobody
            elif isinstance(event, ApprovalRequestedEvent):
                outcome = decisions.pop(0) if decisions else {}
                if outcome.get("outcome") == "selected":
                    await session.decide(event.request_id, option_id=outcome["optionId"])
                elif outcome.get("outcome") != "cancelled" or not recording.cancels:
                    await session.decide(event.request_id, approved=False)
            elif isinstance(event, UserQuestionEvent):
                session.answer(event.question_id, None)
        except HubError:
            continue  # decided by a cancel meanwhile, or asked by a tool that cannot be answered


async def _nothing_lost(hub: Hub, session: HubSession, sent: Path) -> None:
    """Every update that was sent is in the log, in order: as the source of an event, or kept as somebody else's."""
    expected = [json.loads(line) for line in sent.read_text().splitlines()] if sent.exists() else []
    found: list[Any] = []
    cursor = 0
    while entries := await hub.log.read(session.id, cursor):
        cursor = entries[-1].seq
        for entry in entries:
            source = json.loads(entry.source) if entry.source else None
            if isinstance(source, dict) and "sessionUpdate" in source:
                found.append(source)
    foreign = [data["update"] for data in facts(await history(hub.log, session.id), "foreign_update")]
    ours = [params["update"] for params in expected]
    assert sorted(map(_text, [*found, *foreign])) == sorted(map(_text, ours))
    others = set(map(_text, foreign))
    assert [_text(one) for one in found if _text(one) not in others] == [
        _text(one) for one in ours if _text(one) not in others
    ]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
