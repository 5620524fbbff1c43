"""`pilothouse acp`: what editors start. Only the options are here, and the ways to end; see `pilothouse.editor`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit, Failure, reported

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command()
@click.option("-a", "--agent", metavar="NAME", help="The agent of new sessions; `pilothouse agents` lists them.")
@click.option("--standalone", is_flag=True, help="No hub: one agent in this process, and nothing is kept.")
@reported
def acp(agent: str | None, standalone: bool) -> None:
    """Serve editors: an ACP agent on standard input and output.

    Sessions run in the hub, which is started if none runs: they go on when the editor is closed, and are there on
    every other screen. `pilothouse setup` enters this command into an editor's configuration. It ends with its input,
    or by SIGTERM, with exit code 0; the hub goes on.
    """
    if _is_closed(sys.stdin) or _is_closed(sys.stdout):
        raise Failure("it speaks on standard input and output, and one of them is closed", Exit.USAGE)
    if sys.stdin.isatty():
        click.echo(
            "This is for editors: it speaks JSON-RPC (ACP) on stdin and stdout. `pilothouse setup zed` sets one up.",
            err=True,
        )
    import asyncio

    asyncio.run(_standalone(agent) if standalone else _bridge(agent))


def _is_closed(stream: Any) -> bool:
    """Whether it was closed by whoever started this; what stands in for it then was opened by its number."""
    return stream is None or isinstance(getattr(stream, "name", None), int)


async def _bridge(agent: str | None) -> None:
    from ... import __version__
    from ...acp.stdio import stdio_link
    from ...config import home_directory
    from ...editor.bridge import Bridge
    from ...editor.hub_connection import Reaching
    from ...editor.pump import Pump
    from ...editor.requests import request_ids
    from ...remote.place import HAS_SOCKETS

    if not HAS_SOCKETS:
        raise Failure("this platform has no Unix sockets; use `pilothouse acp --standalone`", Exit.USAGE)
    bridge = Bridge(version=__version__, new_id=request_ids(), agent=agent)
    pump = Pump(bridge, await stdio_link(), Reaching(home_directory()))
    _on_signals(pump.leave)
    await pump.run()


async def _standalone(agent: str | None) -> None:
    import asyncio

    from ...acp.stdio import stdio_link
    from ...app.composition import registry
    from ...app.standalone import serve_standalone
    from ...config import load_config
    from ..agent_choice import checked_agent, first_agent, usable_agent

    config = load_config()
    agents = registry(config)
    name = checked_agent(agents, agent) if agent is not None else first_agent(config, agents)
    usable_agent(config, agents, name)
    serving = asyncio.ensure_future(serve_standalone(config, name, await stdio_link()))
    _on_signals(serving.cancel)
    await asyncio.wait((serving,))
    if not serving.cancelled():
        serving.result()


def _on_signals(leave: Callable[[], Any]) -> None:
    """Being told to go is how an editor says that it is done."""
    import asyncio
    import os
    import signal

    if os.name == "posix":
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, leave)
