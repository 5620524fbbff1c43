"""A hub in another process, seen from a client.

    async with connect(home) as hub:
        session = await hub.start_session("claude", "/home/me/project")
        result = await session.prompt("Fix the login bug")
        async for event in session.events(after=0):
            ...

`place` finds the hub, `http` speaks to it, `hub` and `session` offer what it can do. What a client holds is a cursor:
a connection that breaks is made anew where it ended, and nothing is missed or seen twice. Names are brought when they
are first used: who only wants to know where a hub is does not need the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import Conflict, ConnectionLost, NoHub, NotFound, Refused, RemoteError
    from .hub import RemoteHub, connect
    from .place import Place, read_place
    from .session import RemoteSession, RemoteTurn, Stored, TurnEnd, end_of

__all__ = [
    "Conflict",
    "ConnectionLost",
    "NoHub",
    "NotFound",
    "Place",
    "Refused",
    "RemoteError",
    "RemoteHub",
    "RemoteSession",
    "RemoteTurn",
    "Stored",
    "TurnEnd",
    "connect",
    "end_of",
    "read_place",
]

_HOMES = {
    "errors": ("Conflict", "ConnectionLost", "NoHub", "NotFound", "Refused", "RemoteError"),
    "hub": ("RemoteHub", "connect"),
    "place": ("Place", "read_place"),
    "session": ("RemoteSession", "RemoteTurn", "Stored", "TurnEnd", "end_of"),
}
_LATER = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
