"""A hub with the agent of the benchmarks, served on loopback.

    python served.py DIRECTORY AGENT…

Prints the port; the token is `bench`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from pilothouse.server.app import application
from pilothouse.server.limits import Limits
from pilothouse.server.listener import Listener, tcp_socket
from pilothouse.server.state import Server

TOKEN = "bench"


async def main(directory: str, command: list[str]) -> None:
    Path(directory).mkdir(mode=0o700)
    agents = {"bench": AgentSpec(name="bench", command=tuple(command))}
    async with Hub(home=directory, agents=agents) as hub:
        server = Server(hub, token=TOKEN, limits=Limits(per_caller=2000, connections=2000))
        listening = tcp_socket("127.0.0.1", 0)
        async with Listener(application(server), [listening], server.limits) as listener:
            gc.freeze()  # as `pilothouse serve` does
            print(listening.getsockname()[1], flush=True)
            await listener.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
