"""Which methods of an agent serve what."""

from __future__ import annotations

from typing import Any

from .. import methods
from ..interfaces import Agent
from ..routing import Router

__all__ = ["build_agent_router"]


def build_agent_router(agent: Any, use_unstable_protocol: bool = True) -> Router:
    """The dispatcher of an agent; the flag is accepted for compatibility."""
    return Router(agent, methods.AGENT, Agent)
