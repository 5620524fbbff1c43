"""Hubs for tests: with the odd agent, and what must hold of every log whatever happened."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pilothouse.adapters.catalog import PermissionBehavior
from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.log.contract import EventLog
from pilothouse.log.errors import LogFull
from pilothouse.log.memory import MemoryLog
from pilothouse.log.records import Change
from pilothouse.model.events import (
    ApprovalRequestedEvent,
    CustomEvent,
    Event,
    SessionStatusChangedEvent,
    decode_event,
)

PATIENCE = 60
"""Seconds after which a test gives up waiting; far more than anything here takes."""
ODD = str(Path(__file__).with_name("odd_agent.py"))


def odd(*how: str, start_timeout: float = 10.0, **env: str) -> AgentSpec:
    """The odd agent, started so."""
    command = (sys.executable, "-S", "-E", ODD, *how)
    return AgentSpec(name="odd", command=command, env=env, start_timeout=start_timeout)


def odd_hub(
    home: Path, *how: str, cancel_deadline: float = 5.0, behavior: PermissionBehavior | None = None, **options: Any
) -> Hub:
    agent = msgspec.structs.replace(odd(*how), behavior=behavior)
    return Hub(home=home, agents={"odd": agent}, cancel_deadline=cancel_deadline, **options)


UNASKED = PermissionBehavior(modes_without_approval={"yolo": "everything"})


async def start_unasked(hub: Hub, place: Path) -> HubSession:
    """A session in which the user lets the agent act without asking; its hub has the permission behavior `UNASKED`."""
    session = await hub.start_session("odd", place)
    await session.set_mode("yolo")
    return session


class FullLog(MemoryLog):
    """A log that refuses what it is given while it is told to be full."""

    full = False

    def append_nowait(
        self, session_id: str, expected: int, events: Sequence[Event], *, also: Sequence[Change] = ()
    ) -> asyncio.Future[int]:
        if not self.full:
            return super().append_nowait(session_id, expected, events, also=also)
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_exception(LogFull())
        return done

    async def apply(self, *changes: Change) -> list[Any]:
        if self.full:
            raise LogFull
        return await super().apply(*changes)


async def history(log: EventLog, session_id: str) -> list[Event]:
    """All stored events."""
    events: list[Event] = []
    while entries := await log.read(session_id, len(events)):
        events += (decode_event(entry.data) for entry in entries)
    return events


async def until(session: HubSession, wanted: str | Callable[[Event], bool], after: int = 0) -> Event:
    """The first event of a type, or that fits; the session's state knows of it as well."""
    fits = wanted if callable(wanted) else lambda event: event.type == wanted
    async with asyncio.timeout(PATIENCE):
        async for event in session.events(after):
            if fits(event):
                while session.state.seq < event.seq:  # who reads the log may be told before the pen is
                    await asyncio.sleep(0.001)
                return event
    raise AssertionError("the hub closed before it came")


async def approval_asked(session: HubSession, after: int = 0) -> ApprovalRequestedEvent:
    """The first approval that is asked for."""
    event = await until(session, "approval:requested", after)
    assert isinstance(event, ApprovalRequestedEvent)
    return event


def fact(name: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, CustomEvent) and event.event_name == name


def facts(events: list[Event], name: str) -> list[dict[str, Any]]:
    return [event.data for event in events if isinstance(event, CustomEvent) and event.event_name == name]


def said(events: list[Event]) -> str:
    """All that the agent said."""
    return "".join(str(getattr(event, "delta", "")) for event in events if event.type == "message:delta")


def check(events: list[Event], *, at_rest: bool = True) -> None:
    """What holds of every log; `at_rest`: nothing is under way."""
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    started = Counter(data["turnId"] for data in facts(events, "turn_started"))
    ended = Counter(data["turnId"] for data in facts(events, "turn_ended"))
    assert set(started.values()) <= {1}
    assert set(ended.values()) <= {1}
    assert ended.keys() <= started.keys()
    asked = [event.request_id for event in events if event.type == "approval:requested"]  # type: ignore[attr-defined]
    solved = [event.request_id for event in events if event.type == "approval:resolved"]  # type: ignore[attr-defined]
    assert len(set(solved)) == len(solved)
    status = "idle"
    for event in events:
        if isinstance(event, SessionStatusChangedEvent):
            assert event.from_ == status != event.to
            status = event.to
    if at_rest:
        assert started == ended
        assert sorted(asked) == sorted(solved)
        assert _open_calls(events) == []
        assert status in ("idle", "completed", "paused", "error")


LEFT_OPEN = ("unfinished", "cancelled", "rejected", "turn_failed", "agent_died", "interrupted", "session_completed")
"""Codes of an end that the hub gave a call which its agent had left open; the agent's own may still come, once."""


def _open_calls(events: list[Event]) -> list[str]:
    opened: set[str] = set()
    left: set[str] = set()
    for event in events:
        call = str(getattr(event, "tool_call_id", None))
        if event.type == "tool:start":
            assert call not in opened, f"{call} starts twice"
            opened.add(call)
            left.discard(call)
        elif event.type in ("tool:result", "tool:error"):
            assert call in opened or call in left, f"{call} ends without having begun"
            is_own = event.type == "tool:result" or event.error.code not in LEFT_OPEN  # type: ignore[attr-defined]
            if call in opened and not is_own:
                left.add(call)
            else:
                left.discard(call)
            opened.discard(call)
    return sorted(opened)


def processes_with(mark: str, *among: str) -> list[int]:
    """The processes that have this text in their environment, or in other things that the system tells of them."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                stat = (place / "stat").read_bytes()
                is_dead = stat[stat.rindex(b")") + 2 :][:1] in (b"Z", b"X")
                told = b"\0".join((place / name).read_bytes() for name in ("environ", *among))
            except OSError:
                continue
            if not is_dead and mark.encode() in told:
                found.append(int(place.name))
    return found


async def gone(find: Callable[[], list[int]]) -> None:
    """Wait until no process is found any more."""
    async with asyncio.timeout(PATIENCE):
        while left := find():
            assert left
            await asyncio.sleep(0.02)


async def wait_for_processes(count: int, find: Callable[[], list[int]]) -> list[int]:
    """Wait until this many processes are found. One that just started shows no environment for a moment."""
    async with asyncio.timeout(PATIENCE):
        while len(found := find()) < count:
            await asyncio.sleep(0.02)
    return found
