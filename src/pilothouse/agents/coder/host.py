"""The client of the agent: its capabilities and configuration, and the permission request before a call acts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...acp import (
    AgentSideConnection,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    is_allowed,
)


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


SHOWN = 60


@dataclass(frozen=True)
class Grant:
    """What a call needs leave for. `about` completes "Always allow …"; `changes` is false for what only looks."""

    key: tuple[str, ...]
    about: str
    changes: bool = True


@dataclass(frozen=True)
class Decision:
    """What the user decided; `always` when it is to hold for the session, `cancelled` when nobody decided."""

    allowed: bool
    always: bool = False
    cancelled: bool = False
    reason: str | None = None


def options_for(grant: Grant) -> list[PermissionOption]:
    about = grant.about if len(grant.about) <= SHOWN else f"{grant.about[: SHOWN - 1]}…"
    return [
        PermissionOption(option_id="allow-once", name="Allow", kind="allow_once"),
        PermissionOption(option_id="allow-always", name=f"Always allow {about} in this session", kind="allow_always"),
        PermissionOption(option_id="reject-once", name="Reject", kind="reject_once"),
        PermissionOption(
            option_id="reject-always", name=f"Always reject {about} in this session", kind="reject_always"
        ),
    ]


def decide(response: RequestPermissionResponse, options: Sequence[PermissionOption]) -> Decision:
    """What an answer means, by the kind of the option it chose."""
    outcome = response.outcome
    if isinstance(outcome, DeniedOutcome):
        return Decision(False, cancelled=True)
    chosen = outcome.option_id if isinstance(outcome, AllowedOutcome) else None
    kinds = {option.kind for option in options if option.option_id == chosen}
    always = bool(kinds) and kinds <= {"allow_always", "reject_always"}
    return Decision(is_allowed(response, options), always=always, reason=_reason(response.field_meta))


def _reason(meta: dict[str, Any] | None) -> str | None:
    """Why it was rejected, if the client tells: the protocol has no field for it."""
    reason = (meta or {}).get("reason")
    return reason if isinstance(reason, str) and reason.strip() else None
