"""Servers for tests, in this process and in one of their own.

async with serving(tmp_path) as served:                       # a hub with the agents `demo` and `odd`, on a free port
    session = await served.hub.start_session("demo", tmp_path)
    answer = await served.client.request("GET", f"/sessions/{session.id}")
    async with served.client.stream("POST", f"/sessions/{session.id}/send-message", {"content": "tour"}) as stream:
        async for frame in stream.frames(): ...

`serving` takes `limits=Limits(...)` and whatever `Server(...)` takes; `odd=("resume",)` says how the odd agent starts.
`served.local` is a client of the home's socket. For tests that kill the server:

async with server_process(home) as process:                   # the same in another process; `.client`, `.port`, `.pid`
    process.kill()                                            # -9; then open another one on the same home

`python -m tests.support.servers HOME` is what that runs; it prints `READY port` and serves until its stdin closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pilothouse.app.serving import bound_heap
from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from pilothouse.server.app import application
from pilothouse.server.limits import Limits
from pilothouse.server.listener import Listener, local_socket, tcp_socket
from pilothouse.server.state import Server

from .http_client import PATIENCE, Client
from .hubs import odd as odd_agent

TOKEN = "a-token-for-tests"
DEMO = "import asyncio; from pilothouse.agents.demo.agent import serve; asyncio.run(serve())"
ROOT = Path(__file__).parents[2]
STARTING = 60
"""Seconds that a server may take to start or to end, on a machine that runs other tests."""


def agent_specs(home: Path, odd: Sequence[str] = ()) -> dict[str, AgentSpec]:
    env = {"PILOTHOUSE_DEMO_HOME": str(home / "demo")}
    demo = AgentSpec(name="demo", command=(sys.executable, "-c", DEMO), env=env)
    return {"demo": demo, "odd": odd_agent(*odd)}


class Served(NamedTuple):
    hub: Hub
    server: Server
    port: int
    client: Client
    """By TCP, with the token."""
    local: Client
    """By the socket of the home, as its owner."""


@contextlib.asynccontextmanager
async def serving(
    home: Path,
    *,
    limits: Limits | None = None,
    odd: Sequence[str] = (),
    hub_options: dict[str, Any] | None = None,
    port: int = 0,
    **options: Any,
) -> AsyncIterator[Served]:
    """A hub on this home, served on a free loopback port and on the home's socket until the end of the block."""
    agents = agent_specs(home, odd)
    listed = [{"name": name, "title": name, "installed": True} for name in agents]
    async with Hub(home=home, agents=agents, **{"cancel_deadline": 5.0, **(hub_options or {})}) as hub:
        server = Server(hub, **{"token": TOKEN, "agents": lambda: list(listed), "limits": limits, **options})
        tcp, local = tcp_socket("127.0.0.1", port), local_socket(home / "hub.sock")
        bound = tcp.getsockname()[1]
        async with Listener(application(server), [tcp, local], server.limits):
            try:
                yield Served(hub, server, bound, Client(bound, token=TOKEN), Client(path=home / "hub.sock"))
            finally:
                server.connections.cut()


class ServerProcess:
    """A server in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port
        self.pid = process.pid
        self.client = Client(port, token=TOKEN)
        self.url = f"http://127.0.0.1:{port}"

    def kill(self) -> None:
        """As if the power had failed."""
        self._process.kill()

    async def wait(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self._process.wait()


@contextlib.asynccontextmanager
async def server_process(home: Path, *, port: int = 0) -> AsyncIterator[ServerProcess]:
    """Serve this home from another process, which ends with the block in an orderly way unless it was killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.servers", str(home), str(port)),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(STARTING):
            word, _, bound = (await process.stdout.readline()).decode().partition(" ")
        assert word == "READY", "the server did not start; its stderr says why"
        yield ServerProcess(process, int(bound))
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(STARTING):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise


async def _serve(home: Path, port: int) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with serving(home, port=port) as served:
        print("READY", served.port, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    bound_heap()  # as `pilothouse serve` does
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
