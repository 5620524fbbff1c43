"""What is known of the agents: for the command line, and for consumers of a hub that is served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..adapters.catalog import CODER, DEMO
from ..adapters.registry import Registered, Registry
from ..config import Config, coder_settings
from ..hub.agent.process import AgentSpec
from ..hub.hub import Hub
from .composition import agent_specs, registry
from .probing.report import recall_probes

FRESH = 15.0
"""Seconds for which what was found out holds: agents are installed while a hub runs, but not often."""
ORDER = {"installed": 0, "on demand": 1, "missing": 3}


async def describe_agents(agents: Registry, home: Path, *, versions: bool = False) -> list[dict[str, Any]]:
    """Every agent as JSON has it, those that can be used first; with what `doctor agent` has seen of it."""
    found = await asyncio.gather(*(_describe(entry, versions) for entry in agents.all()))
    seen = await asyncio.to_thread(recall_probes, home)
    for agent in found:
        if agent["name"] in seen:
            agent["observed"] = msgspec.to_builtins(seen[agent["name"]])
    return sorted(found, key=lambda agent: ORDER.get(agent["state"], 2))


async def _describe(entry: Registered, versions: bool) -> dict[str, Any]:
    """A package's adapter may fail at any question; then that is what is told of it."""
    about: dict[str, Any] = {"name": entry.name, "origin": entry.origin}
    if entry.adapter is None:
        return {**about, "title": entry.name, "state": "broken", "installed": False, "problem": entry.problem}
    adapter = entry.adapter
    try:
        installed = await adapter.is_installed()
        state = getattr(adapter, "availability", "installed" if installed else "missing")
        launch = adapter.launch
        about |= {"title": adapter.title, "state": state, "installed": installed}
        about["command"] = list(launch.command) if launch else None
        if not installed or state == "on demand":
            about["install"] = adapter.install_hint
        if versions and installed:
            about["version"] = await adapter.get_version()
    except Exception as exc:
        problem = f"{type(exc).__name__}: {exc}"
        return {**about, "title": entry.name, "state": "broken", "installed": False, "problem": problem}
    return about


class AgentList:
    """The agents of a hub that is served, looked for again when somebody asks and some time has passed."""

    def __init__(self, config: Config, hub: Hub) -> None:
        self._config = config
        self._hub = hub
        self._known: list[dict[str, Any]] = []
        self._at = 0.0
        self._task: asyncio.Task[None] | None = None

    def __call__(self) -> list[Mapping[str, Any]]:
        if time.monotonic() - self._at > FRESH and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self.refresh(), name="looking for agents")
        return list(self._known)

    async def refresh(self) -> None:
        """Find out which agents there are; those that can be started now can be run by the hub from now on."""
        agents, specs = await asyncio.to_thread(self._look)
        self._hub.agents.update(specs)
        self._known = await describe_agents(agents, self._config.home)
        self._order()
        self._at = time.monotonic()

    def _look(self) -> tuple[Registry, dict[str, AgentSpec]]:
        agents = registry(self._config)
        return agents, agent_specs(self._config, agents=agents)

    def _order(self) -> None:
        """Who names no agent gets the first: one that is installed, else the scripted one, which needs nothing."""
        installed = {agent["name"] for agent in self._known if agent["state"] == "installed"} - {DEMO}
        if coder_settings(self._config).model is None:
            installed.discard(CODER)
        rank = sorted(self._hub.agents, key=lambda name: 0 if name in installed else 1 if name == DEMO else 2)
        for name in rank:
            self._hub.agents[name] = self._hub.agents.pop(name)

    async def look_for(self, name: str) -> str | None:
        """Look again for an agent that the hub does not know; what to do about it, if it is known but not here."""
        await self.refresh()
        for agent in self._known:
            if agent["name"] == name and not agent["installed"]:
                return agent.get("problem") or f"{agent['title']} is not installed. To install it: {agent['install']}"
        return None

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
