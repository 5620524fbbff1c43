"""The scripted agent: in this terminal, or on stdio for other programs.

`demo` is `run -a demo` in a directory of its own. What it shows and how it ends is that of `run`, never something else.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..exits import reported
from ..output import complete_or_end, say

WITHOUT_PROMPT = "tour"
"""What is run where nobody can be asked for a prompt."""


@click.command("demo-agent")
def demo_agent() -> None:
    """Run the scripted agent: ACP on standard input and output.

    It needs no model and no network. Give this command to any ACP client and prompt it with `help`.
    """
    from ...agents.demo import serve

    if sys.stdin.isatty():
        click.echo(
            "The scripted agent. It speaks JSON-RPC (ACP) on stdin and stdout; to talk to it, use `pilothouse demo`.",
            err=True,
        )
    sys.exit(complete_or_end(serve()))


@click.command()
@click.argument("prompt", nargs=-1)
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="The directory to work in; by default a new one among the temporary files.",
)
@click.option("--approve-all", "--yolo", "approve_all", is_flag=True, help="Allow everything the agent asks for.")
@click.option("--approve-reads", is_flag=True, help="Allow reading and searching inside the directory.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON, and nothing else.")
@reported
def demo(prompt: tuple[str, ...], cwd: Path | None, approve_all: bool, approve_reads: bool, as_json: bool) -> None:
    """Run the scripted agent, and see what a session is like.

    It is `pilothouse run -a demo` in a new temporary directory, so that it writes nothing into yours. PROMPT is
    `tour`, or one of the commands that `help` lists. Without PROMPT you talk with the agent until you leave; without
    a terminal the prompt is read from stdin, and is `tour` if nothing comes.
    """
    from ..chat.requests import Manners
    from ..chat.runner import Options, start

    text = _prompt(" ".join(prompt), talks=not as_json)
    manners = Manners(as_json=as_json, approve_all=approve_all, approve_reads=approve_reads)
    directory = cwd or _scratch()
    if not text:
        say("Say `tour` to see an agent at work, or `help` for what else there is.", err=True)
    try:
        code = start(Options(prompt=text, agent="demo", cwd=directory, manners=manners))
    except Exception:
        if cwd is None:
            _forget(directory)
        raise
    sys.exit(code)


def _prompt(given: str, *, talks: bool) -> str:
    text = given
    if text == "-" or (not text and not sys.stdin.isatty()):
        text = sys.stdin.read()
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return text.strip() or ("" if talks and at_terminal else WITHOUT_PROMPT)


def _scratch() -> Path:
    """A directory that stays: the session can be taken up again, and may go on in a hub elsewhere."""
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="pilothouse-demo-")).resolve()
    say(f"The scripted agent works in {directory}; --cwd chooses another directory.", err=True)
    return directory


def _forget(directory: Path) -> None:
    """Nothing was begun in it."""
    try:
        directory.rmdir()
    except OSError:
        pass
