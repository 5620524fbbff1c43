"""Every coding agent, on every screen.

Importing this package loads nothing else; a name below brings its module when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as checkers know it, without the cost of importing `typing`
if TYPE_CHECKING:
    from .adapters.contract import Adapter, AgentSession
    from .hub.agent.process import AgentSpec
    from .hub.hub import Hub
    from .model import (
        assess_risk,
        categorize_tool,
        create_event,
        decide,
        describe_tool_call,
        reset_all_sequences,
        reset_sequence,
    )

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "AgentSession",
    "AgentSpec",
    "Hub",
    "__version__",
    "assess_risk",
    "categorize_tool",
    "create_event",
    "decide",
    "describe_tool_call",
    "reset_all_sequences",
    "reset_sequence",
]


_ELSEWHERE = {
    "Adapter": ".adapters.contract",
    "AgentSession": ".adapters.contract",
    "AgentSpec": ".hub.agent.process",
    "Hub": ".hub.hub",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_ELSEWHERE.get(name, ".model"), __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
