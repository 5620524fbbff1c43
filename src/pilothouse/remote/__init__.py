"""A hub in another process, seen from a client.

    async with connect(home) as hub:
        session = await hub.start_session("claude", "/home/me/project")
        result = await session.prompt("Fix the login bug")
        async for event in session.events(after=0):
            ...

`place` finds the hub, `http` speaks to it, `hub` and `session` offer what it can do. What a client holds is a cursor:
a connection that breaks is made anew where it ended, and nothing is missed or seen twice.
"""

from __future__ import annotations

from .errors import Conflict, ConnectionLost, NoHub, NotFound, Refused, RemoteError
from .hub import RemoteHub, connect
from .place import Place, read_place
from .session import RemoteSession, RemoteTurn, TurnEnd, end_of
from .stream import Stored

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
