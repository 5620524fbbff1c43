"""`pilothouse run`, `send` and `cancel`: prompts from the terminal, to the hub of this home or one of this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..exits import Exit, Failure, reported
from ..output import complete, print_json


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
    from ..chat.requests import Manners
    from ..chat.runner import Options, start

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


@click.command()
@click.argument("session", metavar="ID")
@click.argument("prompt", nargs=-1, required=True)
@click.option("--wait/--no-wait", default=None, help="Watch the turn to its end, or only hand the prompt over.")
@click.option("--request-id", metavar="TEXT", help="The same id again is the same prompt: nothing is sent twice.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --wait one event a line.")
@reported
def send(session: str, prompt: tuple[str, ...], wait: bool | None, request_id: str | None, as_json: bool) -> None:
    """Give a session a prompt; `-` reads it from stdin.

    Where a hub runs, the prompt waits for its place in the session and the turn's id is printed; --wait shows the turn
    as `run` does. Without a terminal, --wait then leaves decisions to others: it says on stderr what waits and how to
    decide it, and goes on waiting. Without a hub the turn is run here, as by `pilothouse run -s ID`, and what nobody
    can be asked is denied.
    """
    from ..chat.requests import Manners
    from ..chat.runner import Options, start

    text = " ".join(prompt)
    text = (sys.stdin.read() if text == "-" else text).strip()
    if not text:
        raise click.UsageError("there is no prompt; give one, or pipe it in and write `-`")
    if wait and request_id is not None:
        raise click.UsageError("--request-id is for prompts that are handed over; leave --wait out")
    sent = None if wait else complete(_send(session, text, request_id))
    if sent is None:
        if wait is False or request_id is not None:
            raise Failure("no hub is running that could take the prompt; `pilothouse serve` starts one", Exit.HOME)
        manners = Manners(as_json=as_json, parks=True)
        sys.exit(start(Options(prompt=text, session=session, manners=manners)))
    if as_json:
        print_json(sent)
    else:
        click.echo(sent["turnId"])


async def _send(beginning: str, text: str, request_id: str | None) -> dict[str, Any] | None:
    """The turn that the running hub made of it; None when none runs."""
    from ...app.stored_sessions import find_hub
    from ...config import load_config
    from ..chat.runner import stored_session

    config = load_config()
    record = await stored_session(config, beginning)
    hub = await find_hub(config)
    if hub is None:
        return None
    turn = await hub.session(record.id).send(text, client_request_id=request_id)
    return {"sessionId": record.id, "turnId": turn.turn_id, "seq": turn.seq}


@click.command()
@click.argument("session", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reported
def cancel(session: str, as_json: bool) -> None:
    """Stop the turn that a session is in, and wait until it has ended. What waits behind it runs next."""
    session_id, cancelled = complete(_cancel(session))
    if as_json:
        print_json({"sessionId": session_id, "cancelled": cancelled})
    else:
        click.echo("Cancelled." if cancelled else "Nothing is under way in it.")


async def _cancel(beginning: str) -> tuple[str, bool]:
    from ...app.stored_sessions import find_hub
    from ...config import load_config
    from ..chat.runner import stored_session

    config = load_config()
    record = await stored_session(config, beginning)
    hub = await find_hub(config)
    return record.id, hub is not None and await hub.session(record.id).cancel()
