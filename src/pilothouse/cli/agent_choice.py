"""Which agent is meant, and whether it can be started here."""

from __future__ import annotations

import difflib
from typing import Any

from ..adapters.catalog import CODER, DEMO
from ..adapters.registry import Registry
from ..config import Config, coder_settings
from .exits import Exit, Failure


def checked_agent(agents: Registry, name: str) -> str:
    """A name that is one of an agent. Raises Failure."""
    if name not in agents:
        close = difflib.get_close_matches(name, agents.names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise Failure(f"no agent {name!r} is known; {hint}`pilothouse agents` lists them", Exit.USAGE)
    return name


def first_agent(config: Config, agents: Registry) -> str:
    """The agent where nobody can be asked for one: the configured default, else the first that is installed.

    The scripted one is the last of these, and what would have to be fetched first comes after it, as does the built-in
    one while it has no model. Raises Failure when there is none.
    """
    has_model = coder_settings(config).model is not None

    def rank(name: str) -> int:
        found = agents.find(name)
        is_here = getattr(found and found.adapter, "availability", "installed") == "installed"
        if name == DEMO:
            return 1
        return 0 if is_here and (name != CODER or has_model) else 2

    ready = [name for name in agents.names if agents.launch(name) is not None]
    name = config.settings.default_agent or next(iter(sorted(ready, key=rank)), None)
    if name is None:
        raise Failure("no agent is installed; `pilothouse agents` says how to get one", Exit.NO_AGENT)
    return checked_agent(agents, name)


def usable_agent(config: Config, agents: Registry, name: str) -> Any:
    """How the agent is started. Raises AdapterError, Failure."""
    adapter, launch = agents.get(name), agents.launch(name)
    if launch is None and name in config.agents:
        program = config.agents[name].command[0]
        where = f"`command` of [agents.{name}] in {config.path}"
        raise Failure(
            f"{adapter.title} can't be started: its program {program!r} is not found; see {where}", Exit.NO_AGENT
        )
    if launch is None:
        hint = f" To install it: {adapter.install_hint}" if adapter.install_hint else ""
        raise Failure(f"{adapter.title} is not installed.{hint}", Exit.NO_AGENT)
    return launch
