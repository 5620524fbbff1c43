"""What the agent knows of its client, and how it is configured."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...acp import AgentSideConnection, ClientCapabilities

__all__ = ["Host", "Options"]


@dataclass(frozen=True)
class Options:
    """What was asked for when the agent was started."""

    model: str | None = None
    models: tuple[str, ...] = ()
    """Others that the user may switch to."""
    mode: str = "code"
    context_window: int | None = None
    """Tokens that the model takes in, for one of which that is not known."""
    instructions: str | None = None
    """Added to what the model is told about its work."""

    @property
    def all_models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*([self.model] if self.model else []), *self.models]))


@dataclass
class Host:
    """The client, what it can do, and the models by their names, made when they are first asked for."""

    client: AgentSideConnection
    options: Options
    resolve: Callable[[str], Any]
    capabilities: ClientCapabilities = field(default_factory=ClientCapabilities)
    windows: dict[str, int] = field(default_factory=dict)
    """Tokens that models take in, by their names, where their servers have said so."""
    _models: dict[str, Any] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    async def model(self, name: str) -> Any:
        """A model of pydantic-ai. Raises what `resolve` raises."""
        # the provider's own package is imported for it, which takes a while
        return await asyncio.to_thread(self._made, name)

    def _made(self, name: str) -> Any:
        with self._making:
            if name not in self._models:
                self._models[name] = self.resolve(name)
            return self._models[name]

    @property
    def takes_notices(self) -> bool:
        session = self.capabilities.session
        return session is not None and session.notices is not None

    @property
    def takes_compaction(self) -> bool:
        session = self.capabilities.session
        return session is not None and session.compaction is not None
