"""The adapter for any agent that speaks ACP itself: found by its program, asked for what it can do, run by a host.

Whatever is told of the agent was observed: its version from its own answer, its capabilities from `initialize` and
from events. Sessions belong to the host, which has the log; without one this adapter can look, but not run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from ..acp.dispatch import Diagnostic
from ..acp.errors import ConnectionClosed, RequestError, SpawnError
from ..acp.process import default_environment
from ..model.capabilities import ACPCapabilities, capabilities_from_acp
from ..model.discovery import DiscoveredSession, StartSessionOptions
from .catalog import AgentProgram, Availability
from .contract import Adapter, AdapterError, AgentSession, Launch, SessionHost
from .running import RawUpdate, RunningAgent, start_agent

VERSION_TIMEOUT = 5.0
PROBE_TIMEOUT = 30.0
LIST_PAGES = 20
"""Pages of an agent's own list of sessions that are read; a list without end is not followed."""

_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


class AcpAdapter(Adapter):
    """One agent that speaks ACP."""

    def __init__(self, program: AgentProgram, host: SessionHost | None = None) -> None:
        self.program = program
        self._host = host
        self._capabilities = capabilities_from_acp({}, name=program.name)

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def title(self) -> str:
        return self.program.title

    @property
    def launch(self) -> Launch | None:
        return self.program.launch()

    @property
    def install_hint(self) -> str | None:
        return self.program.install

    @property
    def availability(self) -> Availability:
        return self.program.availability()

    # -- detection --

    def get_capabilities(self) -> ACPCapabilities:
        return self._capabilities

    async def is_installed(self) -> bool:
        return await asyncio.to_thread(self.program.availability) != "missing"

    async def get_version(self) -> str | None:
        """As its program says it; else what the agent said of itself when it was probed. Nothing is fetched for it."""
        told = self._capabilities.agent.version or None
        if self.program.version is None or self.availability != "installed":
            return told
        found = _VERSION.search(await _output(self.program.version, VERSION_TIMEOUT))
        return found[0] if found else told

    async def probe(self, *, timeout: float = PROBE_TIMEOUT) -> ACPCapabilities:
        """Start the agent, hear what it says of itself, and end it. Raises AdapterError."""
        async with self._started(timeout) as agent:
            self._capabilities = capabilities_from_acp(agent.initialized, name=self.name)
        return self._capabilities

    # -- discovery --

    async def discover_sessions(self) -> list[DiscoveredSession]:
        """What the agent itself lists; nothing for an agent that keeps no list. Raises AdapterError."""
        async with self._started(PROBE_TIMEOUT) as agent:
            sessions = agent.capabilities.get("sessionCapabilities")
            if not isinstance(sessions, dict) or sessions.get("list") is None:
                return []
            return await self._listed(agent)

    async def _listed(self, agent: RunningAgent) -> list[DiscoveredSession]:
        found: list[DiscoveredSession] = []
        params: dict[str, Any] = {}
        for _ in range(LIST_PAGES):
            page = msgspec.json.decode(await agent.request("session/list", params))
            page = page if isinstance(page, dict) else {}
            listed = page.get("sessions")
            for item in listed if isinstance(listed, list) else ():
                session = _discovered(self.name, item)
                if session is not None:
                    found.append(session)
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or params.get("cursor") == cursor:
                break
            params = {"cursor": cursor}
        return found

    # -- sessions --

    async def attach_to_session(self, session_id: str) -> AgentSession:
        return await self._hosted().attach_to_session(self.name, session_id)

    async def start_session(self, options: StartSessionOptions) -> AgentSession:
        return await self._hosted().start_session(self.name, options)

    def _hosted(self) -> SessionHost:
        if self._host is None:
            raise AdapterError(f"{self.name} runs inside a hub; open one and take the adapter from its registry")
        return self._host

    @asynccontextmanager
    async def _started(self, timeout: float) -> AsyncIterator[RunningAgent]:
        launch = self.launch
        if launch is None:
            hint = f": {self.program.install}" if self.program.install else ""
            raise AdapterError(f"{self.name} is not installed{hint}")
        with tempfile.TemporaryDirectory(prefix="pilothouse-probe-") as directory:
            try:
                async with asyncio.timeout(timeout):
                    agent = await start_agent(
                        launch.command, _Deaf(), cwd=Path(directory), env=launch.env, timeout=timeout
                    )
                    try:
                        yield agent
                    finally:
                        await agent.stop(timeout=1.0)
            except (SpawnError, ConnectionClosed, RequestError, TimeoutError, msgspec.DecodeError) as exc:
                raise AdapterError(f"{self.name} could not be asked: {exc or type(exc).__name__}") from exc


class _Deaf:
    """Owns an agent that is only asked a question."""

    async def updated(self, session_id: str, update: Raw) -> None:
        """Nothing was prompted; nothing is of interest."""

    def several_updated(self, updates: list[RawUpdate]) -> int:
        return len(updates)

    async def requested(self, method: str, params: Any, raw: bytes) -> Any:
        raise RequestError.method_not_found(method)

    def notified(self, method: str, params: Any) -> None:
        """Not of interest."""

    def diagnosed(self, diagnostic: Diagnostic) -> None:
        """Not of interest."""


def _discovered(agent: str, item: Any) -> DiscoveredSession | None:
    """A line of an agent's list; None for what is none."""
    if not isinstance(item, dict) or not isinstance(item.get("sessionId"), str):
        return None
    cwd, title, updated = (value if isinstance(value := item.get(key), str) else "" for key in _LISTED)
    return DiscoveredSession(
        id=item["sessionId"],
        agent=agent,
        project_path=cwd,
        project_name=re.split(r"[\\/]", cwd.rstrip("\\/"))[-1],
        created_at=updated,
        last_activity=updated,
        session_name=title or None,
    )


_LISTED = ("cwd", "title", "updatedAt")


async def _output(command: tuple[str, ...], timeout: float) -> str:
    """What a program prints, as far as it does so in time; it and what it started are ended."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=default_environment(),
            start_new_session=os.name == "posix",
        )
    except OSError:
        return ""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(timeout):
            return (await process.stdout.read(4096)).decode(errors="replace")
    except TimeoutError:
        return ""
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            elif process.returncode is None:
                process.kill()
        await process.wait()
