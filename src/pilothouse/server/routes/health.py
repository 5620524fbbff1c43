"""Whether the hub is well, and which agents it can run."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ... import __version__
from ..http.operations import Call, Operation


class Health(Struct, kw_only=True):
    """The least that a stranger may know."""

    status: str
    version: str


class Agents(Struct, kw_only=True):
    """Each agent: `name`, `title`, `installed`, `command`, how to install or log in where that is needed, and as
    `observed` what `pilothouse doctor agent` has seen of it: `version`, `at`, `capabilities`, `steps`."""

    agents: list[dict[str, Any]]


async def healthz(call: Call) -> Health:
    return Health(status="ok", version=__version__)


async def agents(call: Call) -> Agents:
    return Agents(agents=[dict(agent) for agent in call.server.agents()])


OPERATIONS = (
    Operation(
        method="GET", path="/healthz", handler=healthz, scope=None, answer=Health, summary="Is it up?", tag="hub"
    ),
    Operation(method="GET", path="/agents", handler=agents, answer=Agents, summary="Which agents there are", tag="hub"),
)
