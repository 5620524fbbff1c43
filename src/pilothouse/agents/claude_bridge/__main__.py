"""`python -m pilothouse.agents.claude_bridge`: Claude Code's CLI as an ACP agent on stdio, for a hub or any ACP editor.

Only the protocol goes to stdout; the log goes to stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Sequence

from ...acp.agent.connection import AgentSideConnection
from ...acp.stdio import stdio_link
from .agent import ClaudeAgent
from .process import VARIABLE, Options


def _options(words: Sequence[str] | None) -> tuple[str | None, Options]:
    parser = argparse.ArgumentParser(
        prog="python -m pilothouse.agents.claude_bridge",
        description="Serve Claude Code's command line as an ACP agent on stdin and stdout.",
    )
    parser.add_argument("--cli", metavar="PATH", help=f"the `claude` program (default: ${VARIABLE}, else on PATH)")
    parser.add_argument("--model", help="the model of new sessions")
    parser.add_argument("--permission-mode", metavar="MODE", help="the permission mode of new sessions")
    parser.add_argument("--max-turns", type=int, metavar="N", help="calls of the model in one turn")
    parser.add_argument("--max-budget-usd", type=float, metavar="USD", help="what a session may cost")
    parser.add_argument("--add-dir", action="append", default=[], metavar="DIR", help="another directory to work in")
    given = parser.parse_args(words)
    return given.cli, Options(
        model=given.model,
        permission_mode=given.permission_mode,
        max_turns=given.max_turns,
        max_budget_usd=given.max_budget_usd,
        directories=tuple(given.add_dir),
    )


async def _serve(command: str | None, options: Options) -> None:
    agent = ClaudeAgent(command=command, options=options)
    connection = AgentSideConnection(agent, await stdio_link())
    ended = asyncio.ensure_future(connection.connection.wait_closed())
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows has no such handlers
            asyncio.get_running_loop().add_signal_handler(number, ended.cancel)
    try:
        await asyncio.wait((ended,))
    finally:
        # the processes first: what they are asked for now nobody would hear
        await agent.close()
        await connection.close()


def main(words: Sequence[str] | None = None) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    command, options = _options(words)
    asyncio.run(_serve(command, options))


if __name__ == "__main__":
    main()
