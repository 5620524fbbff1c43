"""From a configuration to its agents and to a hub that runs them: the composition root.

What a hub finds of external sessions is loaded when it is first needed: a start must not wait for the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..adapters.catalog import CODER, DEMO, KNOWN, AgentProgram, Way
from ..adapters.contract import SessionHost
from ..adapters.registry import Registry
from ..config import AgentConfig, Config
from ..hub.agent.process import AgentSpec
from ..hub.errors import UnknownAgent
from ..hub.external.writer_lock import Leases, leases_directory
from ..hub.hub import Hub
from ..model.discovery import DiscoveredSession

if TYPE_CHECKING:
    from ..adapters.discovery.finder import Finder


INDEX = "discovery"
"""The directory in the home for what is known of the files of sessions."""


def open_finder(config: Config) -> Finder:
    """Who finds the sessions of this machine; close it. Importing all the stores takes a while."""
    from ..adapters.discovery.known import make_finder

    return make_finder(registry(config), keep=config.home / INDEX)


def prepare_discovery(config: Config, hub: Hub) -> None:
    """Let a hub find, watch and adopt sessions once somebody asks for that."""
    hub.discovery.prepare(lambda: open_finder(config), Leases(leases_directory(), config.home))


async def ask_agent(config: Config, name: str) -> Sequence[DiscoveredSession]:
    """What an agent that is started for this lists itself. Raises UnknownAgent, AdapterError."""

    agents = registry(config)
    if name not in agents:
        known = ", ".join(sorted(agents.names))
        raise UnknownAgent(f"no agent {name!r} is known; there are: {known}", agent=name)
    return await agents.get(name).discover_sessions()


def registry(config: Config, host: SessionHost | None = None) -> Registry:
    """All agents: those of the configuration, of installed packages, and the known ones."""
    # with a directory of its own the scripted agent can take up a session in another process
    demo = replace(KNOWN[DEMO], env={"PILOTHOUSE_DEMO_HOME": str(config.home / "demo")})
    # and the built-in one finds its model in the same file as this hub
    coder = replace(KNOWN[CODER], env={"PILOTHOUSE_HOME": str(config.home)})
    configured = [_program(name, agent) for name, agent in config.agents.items()]
    return Registry(configured, known={**KNOWN, DEMO: demo, CODER: coder}, host=host)


def _program(name: str, agent: AgentConfig) -> AgentProgram:
    """An agent of the configuration; what it leaves out comes from the known one of that name."""
    known = KNOWN.get(name)
    return AgentProgram(
        name=name,
        title=agent.title or (known.title if known else name),
        ways=(Way(agent.command),),
        install=f"`{agent.command[0]}` is not found; see its `command` in config.toml",
        login=known.login if known else None,
        env=agent.env,
        cwd=str(Path(agent.cwd).expanduser()) if agent.cwd is not None else None,
    )


def agent_specs(
    config: Config, names: Iterable[str] | None = None, *, agents: Registry | None = None
) -> dict[str, AgentSpec]:
    """How each agent that this machine has is started, for `Hub(agents=…)`; with `names` only those.

    An adapter that cannot be loaded, or an agent that is not installed, is left out. `agents` are those of this
    configuration, for whoever has them at hand.
    """
    agents = agents or registry(config)
    wanted = agents.names if names is None else [name for name in names if name in agents]
    specs: dict[str, AgentSpec] = {}
    for name in wanted:
        launch = agents.launch(name)
        if launch is not None:
            title = agents.get(name).title
            specs[name] = AgentSpec(name=name, command=launch.command, env=launch.env, title=title, login=launch.login)
    return specs


def open_hub(config: Config, names: Iterable[str] | None = None, **options: Any) -> Hub:
    """A hub on this home, to be opened by `async with`. Only one may be open at a time."""

    hub = Hub(home=config.home, agents=agent_specs(config, names), **options)
    prepare_discovery(config, hub)
    return hub
