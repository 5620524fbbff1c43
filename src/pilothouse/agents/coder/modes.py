"""What a session may do in each mode, and the options that a client shows for it.

A mode is checked twice: tools it does not have are not offered to the model, and a call asks again before it acts,
as the mode may have changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...acp import (
    RequestError,
    SessionConfigOption,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)
from . import model_names
from .session import Session

DEFAULT: Final = "code"
MODES: Final = (
    SessionMode(id="ask", name="Ask", description="Answers questions: reads and searches, changes nothing."),
    SessionMode(id="plan", name="Plan", description="Reads, searches and writes a plan, changes nothing."),
    SessionMode(id="code", name="Code", description="Does the work; asks before it writes or runs anything."),
)
READS: Final = frozenset({"read", "glob", "grep", "web_fetch", "task"})
TOOLS: Final = {"ask": READS, "plan": READS | {"todo"}, "code": None}
"""The tools of each mode; None is all of them, those of MCP servers too."""

AS_IT_IS: Final = "default"
THINKING: Final[dict[str, Any]] = {"off": False, "low": "low", "medium": "medium", "high": "high"}
"""How hard the model thinks, for those that can be told."""


def offers(mode: str, tool: str) -> bool:
    """Whether the model is offered a tool."""
    allowed = TOOLS.get(mode, READS)
    return allowed is None or tool in allowed


def acts(mode: str) -> bool:
    """Whether anything may be changed."""
    return TOOLS.get(mode, READS) is None


def mode_state(session: Session) -> SessionModeState:
    return SessionModeState(current_mode_id=session.settings.mode, available_modes=list(MODES))


def config_options(session: Session, models: Sequence[str]) -> list[SessionConfigOption]:
    """The session's options with their values. Without any model there is none to choose."""
    settings = session.settings
    options: list[SessionConfigOption] = [
        SessionConfigOptionSelect(
            id="mode",
            name="Mode",
            category="mode",
            current_value=settings.mode,
            options=[SessionConfigSelectOption(value=m.id, name=m.name, description=m.description) for m in MODES],
        )
    ]
    known = list(dict.fromkeys([*([settings.model] if settings.model else []), *models]))
    if known:
        options.append(
            SessionConfigOptionSelect(
                id="model",
                name="Model",
                category="model",
                current_value=settings.model or known[0],
                options=[SessionConfigSelectOption(value=name, name=model_names.shown(name)) for name in known],
            )
        )
    options.append(
        SessionConfigOptionSelect(
            id="thinking",
            name="Thinking",
            category="thought_level",
            current_value=settings.thinking,
            options=[SessionConfigSelectOption(value=one, name=one.capitalize()) for one in (AS_IT_IS, *THINKING)],
        )
    )
    return options


def set_option(session: Session, option: str, value: str | bool) -> None:
    """Change one option. Raises RequestError when there is none of that name or value."""
    if option == "mode" and value in {mode.id for mode in MODES}:
        session.save(mode=str(value))
    elif option == "thinking" and value in (AS_IT_IS, *THINKING):
        session.save(thinking=str(value))
    elif option == "model" and isinstance(value, str):
        try:
            model_names.parse(value)
        except ValueError as exc:
            raise RequestError.invalid_params({"configId": option, "value": value, "details": str(exc)}) from None
        session.save(model=value)
    else:
        raise RequestError.invalid_params({"configId": option, "value": value, "details": "no such option or value"})
