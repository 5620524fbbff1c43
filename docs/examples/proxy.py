"""A proxy between an editor and an agent that passes everything on untouched. Usage: proxy.py COMMAND [ARG...]

Params and results stay raw JSON on the way, so fields and methods this program has never heard of survive it.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from pilothouse.acp import Connection
from pilothouse.acp.process import spawn, stop
from pilothouse.acp.stdio import stdio_link
from pilothouse.acp.transport import PipeLink


class Forward:
    """A dispatcher that hands everything to the connection on the other side."""

    def __init__(self) -> None:
        self.to: Connection

    def notification(self, method: str, params: Raw | None) -> Any:
        print(f"{method}", file=sys.stderr)
        return None, self.to.send_notification, {"method": method, "params": params}

    def request(self, method: str, params: Raw | None) -> tuple[None, Any, dict[str, Any], Callable[[Any], Any]]:
        print(f"{method}?", file=sys.stderr)
        return None, self.to.request, {"method": method, "params": params}, lambda result: result


async def main(command: list[str]) -> None:
    from_editor, from_agent = Forward(), Forward()
    pipe = PipeLink()
    process = await spawn(*command, link=pipe, stderr=None)
    editor = Connection(from_editor, await stdio_link())
    agent = Connection(from_agent, pipe)
    from_editor.to, from_agent.to = agent, editor
    try:
        await editor.wait_closed()
    finally:
        await agent.close()
        await stop(process)
        await editor.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1:]))
