"""The contract of an adapter: what it must tell of its agent, and what a session with it must do.

An adapter stands for one agent. What it says of the agent is looked up, never claimed; what it cannot do it answers
plainly (nothing found, nothing known) and raises `AdapterError` only for what was asked of it by name. Third parties
derive from `Adapter` and register it by the entry point `pilothouse.adapters`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from msgspec import Struct

from ..model.capabilities import ACPCapabilities
from ..model.commands import Command
from ..model.discovery import AgentDataPaths, DiscoveredSession, SessionDiscoveryEvent, StartSessionOptions
from ..model.events import Event

OnEvent = Callable[[Event], None]
OnDiscovery = Callable[[SessionDiscoveryEvent], None]
Stop = Callable[[], None]
"""Ends a subscription; calling it twice is fine."""


class AdapterError(Exception):
    """What an adapter was asked for cannot be done; the message says why and what to do."""


class Launch(Struct, frozen=True, kw_only=True):
    """How a program that speaks ACP for the agent is started. `cwd` is where its sessions work by default, `login`
    what a user does who is not logged in to it."""

    command: tuple[str, ...]
    env: Mapping[str, str] = {}
    cwd: str | None = None
    login: str | None = None


class AgentSession(ABC):
    """A session seen through an adapter. It goes on when it is detached."""

    @property
    @abstractmethod
    def session_id(self) -> str: ...

    @property
    @abstractmethod
    def capabilities(self) -> ACPCapabilities:
        """What is known so far: it grows with what the agent shows."""

    @abstractmethod
    def on_event(self, callback: OnEvent) -> Stop:
        """Call back for each event from now on, one after another; the answer ends it."""

    @abstractmethod
    async def execute(self, command: Command) -> None:
        """Carry out a command. Raises AdapterError when it is not legal now or the agent cannot do it."""

    @abstractmethod
    async def get_history(self) -> list[Event]:
        """All events so far."""

    @abstractmethod
    async def detach(self) -> None:
        """Stop following; the agent is not ended."""


class Adapter(ABC):
    """One agent. The methods with a body say what is true of an agent that offers nothing of the kind."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The short name by which the agent is chosen, such as `claude`."""

    @property
    def title(self) -> str:
        """The name that people are shown."""
        return self.name

    @property
    def launch(self) -> Launch | None:
        """How the hub runs the agent; None for one that can only be watched, or that is not installed."""
        return None

    @property
    def install_hint(self) -> str | None:
        """How to get the agent, in a few words or as a command."""
        return None

    # -- detection --

    @abstractmethod
    def get_capabilities(self) -> ACPCapabilities:
        """What is known of the agent so far, without starting it."""

    @abstractmethod
    async def is_installed(self) -> bool:
        """Whether it can be started on this machine."""

    @abstractmethod
    async def get_version(self) -> str | None:
        """Its version; None when that cannot be told."""

    def get_data_paths(self) -> AgentDataPaths:
        """Where the agent keeps its own files."""
        return AgentDataPaths()

    # -- discovery --

    async def discover_sessions(self) -> list[DiscoveredSession]:
        """Sessions that the agent keeps on its own, whoever started them.

        Of an adapter that a package brings it is called in a thread with a loop of its own, each time another one: it
        may block without anybody waiting for it, and must not use what belongs to another loop. One that takes more
        than five seconds is named among the problems; what it finds in the end is listed the next time.
        """
        return []

    def watch_sessions(self, callback: OnDiscovery) -> Stop:
        """Call back when such a session appears, changes or goes away, from any thread; the answer ends it.

        It is called in the hub's loop and must not block, no more than what follows.
        """
        return _nothing

    # -- sessions --

    @abstractmethod
    async def attach_to_session(self, session_id: str) -> AgentSession:
        """Take part in a session. Raises AdapterError."""

    @abstractmethod
    async def start_session(self, options: StartSessionOptions) -> AgentSession:
        """Begin a session with its first prompt. Raises AdapterError."""


class SessionHost(ABC):
    """Who runs sessions for adapters that only know how their agent is started: the hub."""

    @abstractmethod
    async def start_session(self, agent: str, options: StartSessionOptions) -> AgentSession:
        """Raises AdapterError."""

    @abstractmethod
    async def attach_to_session(self, agent: str, session_id: str) -> AgentSession:
        """Raises AdapterError."""


def _nothing() -> None:
    """There was no subscription to end."""
