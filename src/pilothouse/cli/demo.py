"""The scripted agent: in this terminal, or on stdio for other programs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .output import complete

__all__ = ["demo", "demo_agent"]


@click.command("demo-agent")
def demo_agent() -> None:
    """Run the scripted agent: ACP on standard input and output.

    It needs no model and no network. Give this command to any ACP client and prompt it with `help`.
    """
    from ..agents.demo import serve

    if sys.stdin.isatty():
        click.echo(
            "The scripted agent. It speaks JSON-RPC (ACP) on stdin and stdout; to talk to it, use `pilothouse demo`.",
            err=True,
        )
    try:
        complete(serve())
    except KeyboardInterrupt:
        sys.exit(130)


@click.command()
@click.argument("prompt", nargs=-1)
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Work here, not in a temporary directory.",
)
@click.option("--approve-all", is_flag=True, help="Allow everything the agent asks for.")
def demo(prompt: tuple[str, ...], cwd: Path | None, approve_all: bool) -> None:
    """Talk to the scripted agent in this terminal.

    With PROMPT it runs that and leaves. Without a terminal it runs PROMPT or `tour` once, and denies what the agent
    asks for unless --approve-all is given.
    """
    from ..agents.console import run

    sys.exit(run(" ".join(prompt), cwd=cwd, approve_all=approve_all))
