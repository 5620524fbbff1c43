"""A hub with sessions in every state, as somebody has it in the middle of a day.

Its clock is set, so that the ages of things are the same in every run; it goes on a little each time it is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.external.writer_lock import Leases
from pilothouse.hub.hub import DATABASE, Hub
from pilothouse.hub.recording import recorder
from pilothouse.hub.recording.rules import Remember
from pilothouse.hub.session.session import HubSession
from pilothouse.log.sqlite.log import SQLiteLog
from pilothouse.server.app import application
from pilothouse.server.listener import Listener, tcp_socket
from pilothouse.server.state import Server

from ..http_client import Client
from ..servers import ROOT, TOKEN
from . import projects, stories
from .elsewhere import look_elsewhere

NOW = dt.datetime(2026, 3, 12, 10, 42, tzinfo=dt.UTC)
TICK = dt.timedelta(milliseconds=300)
PATIENCE = 60
SETTLING = 1.5
"""Seconds after which a session's row has the time of its last event."""
TITLES = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "opencode": "OpenCode"}
EDITS = {"autoApprove": {"reads": True, "searches": True, "writes": True}}
READS = {"autoApprove": {"reads": True, "searches": True}}


DEVICES = (("Pixel 9", ["read", "prompt", "approve"], 1), ("Tablet in the kitchen", ["read"], 26 * 60))
"""Names, scopes, and minutes since they were seen."""


class Past(NamedTuple):
    """A session that is on the stage, and how many minutes ago it was last active."""

    name: str
    agent: str
    project: str
    title: str
    prompt: str
    ago: int
    policy: dict[str, object] | None = None


PASTS = (
    Past(
        "licences", "codex", "website", "Which licences do we ship?", "Which licences do our packages have?", 2 * 1440
    ),
    Past("failed", "gemini", "mobile-app", "Crash when the network is lost", "The app crashes in a tunnel. Why?", 1300),
    Past("dark", "opencode", "website", "Dark mode for the docs", "The documentation needs a dark mode.", 190),
    Past(
        "fix",
        "claude",
        "shop",
        "Discounts are wrong",
        "Customers with a discount code pay nearly the full price. Find out why, and fix it.",
        12,
        EDITS,
    ),
    Past("running", "claude", "api", "Upgrade to Python 3.13", "Upgrade to Python 3.13, step by step.", 4, EDITS),
    Past(
        "question",
        "codex",
        "website",
        "Release notes for 2.4",
        "Write the release notes for 2.4 from the merged changes.",
        3,
        READS,
    ),
    Past(
        "command",
        "gemini",
        "infra",
        "Renew the certificate of staging",
        "The certificate of staging ends soon. Renew it.",
        2,
        READS,
    ),
    Past(
        "approval",
        "claude",
        "shop",
        "Refuse impossible discounts",
        "Codes of more than 90 % must not be registered, and blanks around a code should not matter.",
        1,
        READS,
    ),
)


class Clock:
    def __init__(self) -> None:
        self._now = NOW

    def set(self, minutes_ago: float) -> None:
        self._now = NOW - dt.timedelta(minutes=minutes_ago)

    def __call__(self) -> str:
        self._now += TICK
        return self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Stage(NamedTuple):
    port: int
    root: Path
    """What stands for somebody's home directory."""
    sessions: dict[str, str]
    """Ids by the names of `PASTS`."""


@contextlib.asynccontextmanager
async def stage(root: Path) -> AsyncIterator[Stage]:
    projects.lay_out(root / "projects")
    clock = Clock()
    with _at_home(root), mock.patch.object(recorder, "utc_now", clock):
        async with Hub(log=SQLiteLog(root / DATABASE, now=clock), agents=_agents(root)) as hub:
            hub.discovery.prepare(
                lambda: look_elsewhere(root / "projects", NOW), Leases(root / "leases", root / "home")
            )
            server = Server(hub, token=TOKEN, agents=_listed)
            tcp = tcp_socket("127.0.0.1", 0)
            port: int = tcp.getsockname()[1]
            async with Listener(application(server), [tcp], server.limits):
                try:
                    sessions = {past.name: await _play(hub, clock, root, past) for past in PASTS}
                    await _pair(Client(port, token=TOKEN), clock)
                    clock.set(0)
                    yield Stage(port, root, sessions)
                finally:
                    server.connections.cut()


@contextlib.contextmanager
def _at_home(root: Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, {"HOME": str(root)}):
        yield


def _agents(root: Path) -> dict[str, AgentSpec]:
    env = {"PYTHONPATH": str(ROOT), "PILOTHOUSE_DEMO_HOME": str(root / ".agents")}
    return {
        name: AgentSpec(name=name, title=title, command=stories.command(), env=env) for name, title in TITLES.items()
    }


def _listed() -> list[dict[str, object]]:
    ready = [{"name": name, "title": title, "installed": True} for name, title in TITLES.items()]
    goose = {"name": "goose", "title": "Goose", "installed": False, "install": "brew install block-goose-cli"}
    return [*ready, goose]


async def _play(hub: Hub, clock: Clock, root: Path, past: Past) -> str:
    clock.set(past.ago + 1)
    session = await hub.start_session(
        past.agent, root / "projects" / past.project, title=past.title, policy=past.policy
    )
    prompt = await session.send(past.prompt)
    async with asyncio.timeout(PATIENCE):
        while not prompt.done.done():
            if past.name in READY and await READY[past.name](hub, session):
                break
            await asyncio.sleep(0.02)
    clock.set(past.ago + 0.2)
    await asyncio.sleep(SETTLING)
    return session.id


async def _allow(hub: Hub, session: HubSession, *, remember: Remember = "once") -> bool:
    for approval in await hub.approvals(session.id):
        await hub.decide(approval.id, approved=True, by="Pixel 9", remember=remember)
    return False


async def _always(hub: Hub, session: HubSession) -> bool:
    return await _allow(hub, session, remember="project")


async def _asks(hub: Hub, session: HubSession) -> bool:
    return bool(await hub.approvals(session.id))


async def _questions(hub: Hub, session: HubSession) -> bool:
    return session.state.status == "waiting_for_input"


async def _prints(hub: Hub, session: HubSession) -> bool:
    await _allow(hub, session)
    return any(b"\\u001b[32m.........." in entry.data for entry in await hub.log.read(session.id, 0))


READY = {
    "approval": _asks,
    "command": _asks,
    "question": _questions,
    "running": _prints,
    "fix": _allow,
    "dark": _always,
}
"""Whether a session is where it is wanted, for those that do not simply end."""


async def _pair(owner: Client, clock: Clock) -> None:
    for name, scopes, ago in DEVICES:
        clock.set(ago)
        made = (await owner.request("POST", "/pairings", {"scopes": scopes})).json()
        given = {"ticket": made["url"].partition("#pair=")[2], "code": made["code"], "name": name}
        paired = await Client(owner.port).request("POST", "/pair", given)
        await Client(owner.port, token=paired.json()["credential"]).request("GET", "/whoami")
