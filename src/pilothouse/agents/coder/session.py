"""One conversation: what it remembers, what the user allowed in it, and its prompts under way.

What was always allowed or rejected lives as long as the process: a restart must not raise what the agent may do.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import msgspec

from ...acp import ContentBlock, McpServer
from .journal import Journal
from .workspace import Workspace

__all__ = ["Moment", "Prompt", "Session", "Settings"]

Moment = Annotated[float, msgspec.Meta(ge=0, le=4e9)]
"""Seconds since 1970; a damaged file must not bring a list down."""


class Settings(msgspec.Struct, kw_only=True):
    """What is kept of a session besides what was said in it."""

    cwd: str
    directories: tuple[str, ...] = ()
    mode: str = "code"
    model: str | None = None
    thinking: str = "default"
    title: str | None = None
    used: int = 0
    updated_at: Moment = 0.0
    messages: msgspec.Raw = msgspec.Raw(b"[]")
    """The conversation as the model has it."""


class Prompt:
    """A prompt under way, from the moment it came: the task that answers it."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.is_ending = False
        self._task = asyncio.current_task()

    def cancel(self) -> None:
        """End it at whatever it is waiting for. Only once: what follows is its clean-up."""
        if not self.is_cancelled and not self.is_ending and self._task is not None:
            self.is_cancelled = True
            self._task.cancel()


class Connected(Protocol):
    """MCP servers that run: their tools, and why others do not."""

    @property
    def toolsets(self) -> Sequence[Any]: ...

    @property
    def problems(self) -> Sequence[str]: ...

    async def close(self) -> None: ...


class Session:
    """`prompts` are those under way: the first one runs, the others wait for `lock`."""

    def __init__(self, session_id: str, settings: Settings, journal: Journal) -> None:
        self.id = session_id
        self.settings = settings
        self.journal = journal
        self.is_open = True
        self.lock = asyncio.Lock()
        self.prompts: list[Prompt] = []
        self.unheard: list[Sequence[ContentBlock]] = []
        """What the user said, until it is in the model's memory: several prompts where one was cancelled at once."""
        self.rules: dict[tuple[str, ...], bool] = {}
        """Answers with "always", by what they cover."""
        self.servers: Sequence[McpServer] = ()
        self.connected: Connected | None = None
        """The MCP servers, once a turn has started them."""
        self.being_written: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.settings.cwd, self.settings.directories)

    def take_up(self, cwd: str, directories: tuple[str, ...], servers: Sequence[McpServer] | None) -> None:
        """Open it again, for a client that may see other directories and lend other servers."""
        self.settings.cwd = cwd
        self.settings.directories = directories
        self.servers = tuple(servers or ())
        self.is_open = True
        self.save()

    def save(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self.settings, name, value)
        self.settings.updated_at = time.time()
        self.journal.keep(msgspec.json.encode(self.settings))

    def cancel(self) -> None:
        for prompt in tuple(self.prompts):
            prompt.cancel()

    async def disconnect(self) -> None:
        connected, self.connected = self.connected, None
        if connected is not None:
            await connected.close()
