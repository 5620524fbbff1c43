"""What agents keep that were started in terminals of the same machine, by nobody's hub."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pilothouse.adapters.discovery.finder import Finder
from pilothouse.adapters.discovery.processes import Holder, Listed
from pilothouse.adapters.discovery.store import Reader, Scan, Store
from pilothouse.model.discovery import DiscoveredSession, DiscoveredStatus

__all__ = ["look_elsewhere"]


class Begun(NamedTuple):
    """A session in a terminal, and how many minutes ago it was last active; with a process if a program has it."""

    id: str
    agent: str
    project: str
    title: str
    last: str
    model: str
    ago: int
    status: DiscoveredStatus = "idle"
    pid: int | None = None


ELSEWHERE = (
    Begun(
        "6f1c02aa",
        "claude",
        "shop",
        "Invoices as PDF",
        "Now the tests for the page breaks.",
        "claude-sonnet-4-5",
        1,
        "running",
        48213,
    ),
    Begun("01982c44", "codex", "api", "Why is the build slow?", "Profile it first.", "gpt-5-codex", 14, pid=47790),
    Begun(
        "ses_4f2b",
        "opencode",
        "website",
        "Rename the settings page",
        "Links of the old name should lead there.",
        "kimi-k2",
        4300,
    ),
)


class Terminals(Store):
    """The sessions of one agent. Nothing of them can be read: a picture of the list is all they are for."""

    def __init__(self, agent: str, found: Sequence[DiscoveredSession]) -> None:
        self.agent = agent
        self._found = found

    @property
    def places(self) -> Sequence[Path]:
        return ()

    def scan(self) -> Scan:
        return Scan(sessions=self._found)

    def reader(self, session_id: str) -> Reader | None:
        return None

    def touched(self, path: Path) -> str | None:
        return None

    def files(self, session_id: str) -> Sequence[Path]:
        return ()


def look_elsewhere(projects: Path, now: dt.datetime) -> Finder:
    agents = {one.agent for one in ELSEWHERE}
    stores = [
        Terminals(agent, [_found(one, projects, now) for one in ELSEWHERE if one.agent == agent]) for agent in agents
    ]
    return Finder(stores, holders=_holders)


def _found(one: Begun, projects: Path, now: dt.datetime) -> DiscoveredSession:
    at = (now - dt.timedelta(minutes=one.ago)).isoformat().replace("+00:00", "Z")
    return DiscoveredSession(
        id=one.id,
        agent=one.agent,
        project_path=str(projects / one.project),
        project_name=one.project,
        created_at=at,
        last_activity=at,
        session_name=one.title,
        last_message=one.last,
        model=one.model,
        status=one.status,
        integration_method="file-watch",
    )


def _holders(listed: Iterable[Listed]) -> dict[tuple[str, str], Holder]:
    return {
        (one.agent, one.id): Holder(pid=one.pid, started=0.0, program=one.agent, sign="file", status=one.status)
        for one in ELSEWHERE
        if one.pid is not None
    }
