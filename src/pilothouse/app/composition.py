"""From a configuration to its agents, and to a hub that runs them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..adapters.catalog import CODER, DEMO, KNOWN, AgentProgram, Way
from ..adapters.contract import SessionHost
from ..adapters.registry import Registry
from ..config import AgentConfig, Config
from ..hub.agent.process import AgentSpec
from ..hub.hub import Hub

__all__ = ["agent_specs", "open_hub", "registry"]


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
    from .discovering import prepare_discovery

    hub = Hub(home=config.home, agents=agent_specs(config, names), **options)
    prepare_discovery(config, hub)
    return hub
