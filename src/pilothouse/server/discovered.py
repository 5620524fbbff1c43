"""Sessions that agents keep on their own, whoever started them."""

from __future__ import annotations

from msgspec import Struct

from ..adapters.base import AdapterError
from ..hub.errors import AgentFailed
from ..model.discovery import DiscoveredSession
from .operations import Call, Operation

__all__ = ["OPERATIONS", "Discovered"]


class Discovered(Struct, kw_only=True):
    """The one last active first."""

    sessions: list[DiscoveredSession]


async def discovered(call: Call) -> Discovered:
    if call.server.discover is None:
        return Discovered(sessions=[])
    try:
        found = await call.server.discover()
    except AdapterError as exc:
        raise AgentFailed(str(exc)) from exc
    return Discovered(sessions=sorted(found, key=lambda session: session.last_activity, reverse=True))


OPERATIONS = (
    Operation(
        method="GET",
        path="/discovered",
        handler=discovered,
        answer=Discovered,
        errors=(502,),
        summary="List sessions that agents keep on their own",
        tag="hub",
    ),
)
