"""`pilothouse run`: its options. What it does is in running.py."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .exits import reported

__all__ = ["run"]


@click.command()
@click.argument("prompt", nargs=-1)
@click.option("-a", "--agent", metavar="NAME", help="The agent; `pilothouse agents` lists them.")
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="The directory to work in; by default the current one.",
)
@click.option("-s", "--session", metavar="ID", help="Go on with a session; the beginning of its id is enough.")
@click.option("--approve-all", "--yolo", "approve_all", is_flag=True, help="Allow everything the agent asks for.")
@click.option("--approve-reads", is_flag=True, help="Allow reading and searching inside the directory.")
@click.option("--detach", is_flag=True, help="Hand the prompt to the running hub, print the session's id, and leave.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON, and nothing else.")
@reported
def run(
    prompt: tuple[str, ...],
    agent: str | None,
    cwd: Path | None,
    session: str | None,
    approve_all: bool,
    approve_reads: bool,
    detach: bool,
    as_json: bool,
) -> None:
    """Run a prompt, and watch the agent at work.

    What the agent asks for is asked here, with its risk. Without a terminal it is denied, unless an option or the
    policy allows it. Without PROMPT you talk with the agent until you leave; `-` reads the prompt from stdin.

    Where a hub runs on this home, the session is one of that hub and outlives this terminal: Ctrl-\\ leaves it at work
    there, and `pilothouse attach` comes back. Ctrl-C stops the turn, a second one leaves.
    """
    from .manners import Manners
    from .running import Options, start

    text = " ".join(prompt)
    if text == "-" or (not text and not sys.stdin.isatty()):
        text = sys.stdin.read()
    if not text.strip() and (as_json or not sys.stdin.isatty() or not sys.stdout.isatty()):
        raise click.UsageError("there is no prompt; give one, or pipe it in")
    if session is not None and cwd is not None:
        raise click.UsageError("a session has its directory already; leave --cwd out, or --session")
    if detach and not text.strip():
        raise click.UsageError("--detach needs a prompt")
    if detach and (approve_all or approve_reads):
        raise click.UsageError("who has left allows nothing; leave --approve-… out, or --detach")
    manners = Manners(as_json=as_json, approve_all=approve_all, approve_reads=approve_reads)
    sys.exit(start(Options(prompt=text.strip(), agent=agent, cwd=cwd, session=session, detach=detach, manners=manners)))
