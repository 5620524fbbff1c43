"""An agent that asks for one thing and does another, under a real hub: real processes, real files, real shells.

`run_turn` sends a program to the scripted agent and decides all requests of the turn: `decide` those of the agent, and
`decide_acts` those that come from the hub. By default the first are allowed and the second denied.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilothouse.adapters.catalog import PermissionBehavior
from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import HubError
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import ApprovalRequestedEvent
from tests.support.hubs import PATIENCE, history, said

SCRIPT = str(Path(__file__).with_name("script_agent.py"))

Tally = Callable[[str, int], None]
REFUSED = "acts refused because no approval showed them"
"""What the tests of approvals count with the fixture `tally`."""
Decide = Callable[[ApprovalRequestedEvent], bool | None]
"""Whether a request is allowed; None leaves it open."""


def rogue_hub(home: Path | None = None, *how: str, behavior: PermissionBehavior | None = None, **options: Any) -> Hub:
    command = (sys.executable, "-S", "-E", SCRIPT, *how)
    spec = AgentSpec(name="rogue", command=command, behavior=behavior)
    return Hub(home=home, agents={"rogue": spec}, **options)


@dataclass
class Turn:
    """The record of a turn: the requests of the agent, those of the hub, and the agent's output."""

    asked: list[ApprovalRequestedEvent] = field(default_factory=list)
    acts: list[ApprovalRequestedEvent] = field(default_factory=list)
    said: str = ""
    stop_reason: str = ""

    @property
    def answers(self) -> list[Any]:
        """The answers that the agent got and printed, a line each."""
        return [json.loads(line) for line in self.said.splitlines() if line.strip()]


def allow(event: ApprovalRequestedEvent) -> bool:
    return True


def deny(event: ApprovalRequestedEvent) -> bool:
    return False


async def run_turn(
    hub: Hub, session: HubSession, program: str, decide: Decide = allow, decide_acts: Decide = deny
) -> Turn:
    turn = Turn()
    before = session.state.seq

    async def answer() -> None:
        async for event in session.events(before):
            if not isinstance(event, ApprovalRequestedEvent):
                continue
            is_act = event.origin == "hub"
            (turn.acts if is_act else turn.asked).append(event)
            decision = (decide_acts if is_act else decide)(event)
            if decision is not None:
                try:
                    await session.decide(event.request_id, approved=decision)
                except HubError:
                    continue  # withdrawn meanwhile

    answering = asyncio.ensure_future(answer())
    try:
        async with asyncio.timeout(PATIENCE):
            result = await session.prompt(program)
        turn.stop_reason = result.stop_reason
    finally:
        answering.cancel()
        await asyncio.wait((answering,))
    turn.said = said((await history(hub.log, session.id))[before:])
    return turn


def ask(call_id: str, **fields: Any) -> str:
    """A line of a program: ask for permission."""
    return f"agent.permission({call_id!r}, **{fields!r})"


def do(method: str, **params: Any) -> str:
    """Lines of a program: have the hub do something, wait for a command to end, and print the answer."""
    return (
        f"a = agent.request({method!r}, **{params!r})\n"
        "if 'terminalId' in a: agent.request('terminal/wait_for_exit', terminalId=a['terminalId'])\n"
        "agent.say(json.dumps(a) + chr(10))"
    )
