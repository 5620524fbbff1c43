"""Which methods of a client serve what."""

from __future__ import annotations

from typing import Any

from .. import methods
from ..interfaces import Client
from ..routing import Router

__all__ = ["build_client_router"]


def build_client_router(client: Any, use_unstable_protocol: bool = True) -> Router:
    """The dispatcher of a client; the flag is accepted for compatibility."""
    return Router(client, methods.CLIENT, Client)
