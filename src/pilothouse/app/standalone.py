"""One agent for one editor in one process: a hub in memory, and its ACP server on a link. No file and no socket.

The same policy counts as under a hub that is served. What was said is gone with the process.
"""

from __future__ import annotations

import os

from ..acp.transport import Link
from ..config import Config
from ..hub.hub import Hub
from ..log.memory import MemoryLog
from ..server.acp.server import AcpFace
from ..server.auth.callers import ADMIN, Caller
from .composition import agent_specs

EDITOR = Caller(name="editor", scopes=ADMIN)


async def serve_standalone(config: Config, agent: str, link: Link) -> None:
    """Serve an agent over a link until its other end is gone; its agent's processes end with it."""
    os.environ.pop("PILOTHOUSE_TOKEN", None)  # no agent inherits it
    async with Hub(log=MemoryLog(), agents=agent_specs(config, [agent])) as hub:
        face = AcpFace(hub, link, caller=EDITOR, default_agent=agent, policy=config.policy, alone=True)
        try:
            await face.wait_closed()
        finally:
            await face.close()
