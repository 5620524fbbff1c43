"""Stores and adapters that find what they are given, for tests of all of them together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pilothouse.adapters.contract import Adapter, AgentSession, OnDiscovery, OnEvent, Stop
from pilothouse.adapters.discovery.finder import Finder
from pilothouse.adapters.discovery.processes import Holder
from pilothouse.adapters.discovery.store import Owner, Problem, Reader, Scan, Store, iso, listed
from pilothouse.model.capabilities import ACPCapabilities, capabilities_from_acp
from pilothouse.model.commands import Command
from pilothouse.model.discovery import DiscoveredSession, DiscoveredStatus, StartSessionOptions
from pilothouse.model.events import Event

NOBODY: Callable[..., dict[tuple[str, str], Holder]] = lambda listed: {}  # noqa: E731
PATIENCE = 60
NOW = time.time()


def session(
    agent: str, session_id: str, *, ago: float = 0.0, status: DiscoveredStatus | None = "idle"
) -> DiscoveredSession:
    moment = iso(time.time() - ago)
    return listed(agent, session_id, "/w", created_at=moment, last_activity=moment, status=status)


class Shelf(Store):
    """Sessions that are given, and those of files; any other file is of all of them."""

    def __init__(self, agent: str, *sessions: DiscoveredSession, root: Path = Path("/nowhere")) -> None:
        self.agent = agent
        self.sessions = list(sessions)
        self.problems: list[Problem] = []
        self.root = root
        self.told: list[Owner] = []

    @property
    def places(self) -> Sequence[Path]:
        return (self.root,)

    def scan(self) -> Scan:
        kept = [session(self.agent, path.stem) for path in self.root.rglob("*.jsonl")]
        return Scan(sessions=[*self.sessions, *kept], problems=list(self.problems))

    def reader(self, session_id: str) -> Reader | None:
        return None

    def touched(self, path: Path) -> str | None:
        return path.stem if path.suffix == ".jsonl" else None

    def files(self, session_id: str) -> Sequence[Path]:
        return ()

    def owners(self) -> Sequence[Owner]:
        return self.told


class Failing(Shelf):
    def __init__(self, agent: str, error: BaseException) -> None:
        super().__init__(agent)
        self.error = error

    def scan(self) -> Scan:
        raise self.error


class Packaged(Adapter):
    """An adapter of a package. What it is to raise is told by the name of the method."""

    def __init__(self, name: str = "packaged", **errors: BaseException) -> None:
        self._name = name
        self.errors = errors
        self.listeners: list[OnDiscovery] = []
        self.sessions: list[Any] = [session("whoever", "p-1")]

    def _may(self, method: str) -> None:
        if method in self.errors:
            raise self.errors[method]

    @property
    def name(self) -> str:
        return self._name

    def get_capabilities(self) -> ACPCapabilities:
        return capabilities_from_acp({}, name=self._name)

    async def is_installed(self) -> bool:
        return True

    async def get_version(self) -> str | None:
        return None

    async def discover_sessions(self) -> list[DiscoveredSession]:
        self._may("discover")
        return self.sessions

    def watch_sessions(self, callback: OnDiscovery) -> Stop:
        self._may("watch")
        self.listeners.append(callback)
        return lambda: self._may("stop")

    async def attach_to_session(self, session_id: str) -> AgentSession:
        self._may("attach")
        return Attached(self)

    async def start_session(self, options: StartSessionOptions) -> AgentSession:
        raise NotImplementedError


class Attached(AgentSession):
    def __init__(self, adapter: Packaged) -> None:
        self.adapter = adapter
        self.callbacks: list[OnEvent] = []

    @property
    def session_id(self) -> str:
        return "p-1"

    @property
    def capabilities(self) -> ACPCapabilities:
        return self.adapter.get_capabilities()

    def on_event(self, callback: OnEvent) -> Stop:
        self.adapter._may("follow")
        self.callbacks.append(callback)
        return lambda: self.adapter._may("unfollow")

    async def execute(self, command: Command) -> None:
        self.adapter._may("execute")

    async def get_history(self) -> list[Event]:
        self.adapter._may("history")
        return ["junk"]  # type: ignore[list-item]

    async def detach(self) -> None:
        self.adapter._may("detach")


@asynccontextmanager
async def finding(*stores: Store, **options: Any) -> AsyncIterator[Finder]:
    finder = Finder(stores, **{"holders": NOBODY, **options})
    try:
        async with asyncio.timeout(PATIENCE):
            yield finder
    finally:
        await finder.close()


def ids(sessions: Sequence[DiscoveredSession]) -> list[tuple[str, str]]:
    return [(one.agent, one.id) for one in sessions]
