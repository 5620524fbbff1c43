"""`pilothouse send` and `pilothouse cancel`: prompts for a session that runs elsewhere, and the end of its turn."""

from __future__ import annotations

import sys
from typing import Any

import click

from .exits import Exit, Failure, reported
from .output import complete, print_json

__all__ = ["cancel", "send"]


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
    from .manners import Manners
    from .running import Options, start

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
    from ..app.stored_sessions import find_hub
    from ..config import load_config
    from .running import stored_session

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
    from ..app.stored_sessions import find_hub
    from ..config import load_config
    from .running import stored_session

    config = load_config()
    record = await stored_session(config, beginning)
    hub = await find_hub(config)
    return record.id, hub is not None and await hub.session(record.id).cancel()
