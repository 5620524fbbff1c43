"""Which sessions a hub finds on this machine, and where it keeps what tells others that it has one.

Nothing is loaded for that before somebody needs it: a start must not wait for a look at the disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..config import Config
from ..hub.errors import UnknownAgent
from ..hub.external.writer_lock import Leases, leases_directory
from ..hub.hub import Hub
from ..model.discovery import DiscoveredSession

if TYPE_CHECKING:
    from ..adapters.discovery.finder import Finder

__all__ = ["ask_agent", "open_finder", "prepare_discovery"]

INDEX = "discovery"
"""The directory in the home for what is known of the files of sessions."""


def open_finder(config: Config) -> Finder:
    """Who finds the sessions of this machine; close it. Importing all the stores takes a while."""
    from ..adapters.discovery.known import make_finder
    from .composition import registry

    return make_finder(registry(config), keep=config.home / INDEX)


def prepare_discovery(config: Config, hub: Hub) -> None:
    """Let a hub find, watch and adopt sessions once somebody asks for that."""
    hub.discovery.prepare(lambda: open_finder(config), Leases(leases_directory(), config.home))


async def ask_agent(config: Config, name: str) -> Sequence[DiscoveredSession]:
    """What an agent that is started for this lists itself. Raises UnknownAgent, AdapterError."""
    from .composition import registry

    agents = registry(config)
    if name not in agents:
        known = ", ".join(sorted(agents.names))
        raise UnknownAgent(f"no agent {name!r} is known; there are: {known}", agent=name)
    return await agents.get(name).discover_sessions()
