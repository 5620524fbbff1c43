"""`pilothouse adopt`: a session that was begun elsewhere goes on here, or is looked at from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import click

from .exits import Exit, Failure, reported
from .found import chosen, look
from .output import complete, print_json, say

if TYPE_CHECKING:
    from ..config import Config

__all__ = ["adopt"]

How = Literal["resume", "fork", "take_over", "watch"]
OPTIONS = {
    "watch": "--watch looks on",
    "fork": "--fork goes on with a copy",
    "take_over": "--take-over ends that program first",
}


@click.command()
@click.argument("session", metavar="ID")
@click.option("-a", "--agent", help="The agent of the session, where several have one of that id.")
@click.option("--watch", is_flag=True, help="Only look on: another program goes on running it.")
@click.option("--fork", is_flag=True, help="Go on with a copy; what runs elsewhere is left alone.")
@click.option(
    "--take-over",
    is_flag=True,
    help="End the program that has it, and what runs below it in its terminal; then go on with it.",
)
@click.option(
    "--pid", type=click.IntRange(1), help="With --take-over: end this process, also if it only may have the session."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reported
def adopt(session: str, agent: str | None, pid: int | None, as_json: bool, **ways: bool) -> None:
    """Go on here with a session that `discover` has found.

    ID is the beginning of its id. Without an option it is refused while another program has the session open: two must
    never write to one session.
    """
    how = _chosen(ways)
    if pid is not None and how != "take_over":
        raise click.UsageError("--pid says which program --take-over ends; without that none is")
    made = complete(_adopt(session, agent, how, pid))
    if as_json:
        print_json(made)
        return
    click.echo(made["sessionId"])
    say(_next(made), err=True)


def _chosen(ways: Mapping[str, bool]) -> How:
    """The one way that was asked for. Raises UsageError for several: one of them may end a program."""
    wanted: list[How] = [way for way in ("watch", "fork", "take_over") if ways[way]]
    if len(wanted) > 1:
        raise click.UsageError("--watch, --fork and --take-over exclude each other")
    return wanted[0] if wanted else "resume"


def _next(made: dict[str, Any]) -> str:
    session_id = made["sessionId"]
    if made["how"] != "watch":
        return f"`pilothouse run -s {session_id} PROMPT` goes on with it, `pilothouse show {session_id}` shows it."
    if made["live"]:
        return (
            f"`pilothouse attach {session_id}` shows what happens in it, `pilothouse adopt {session_id}` takes it up."
        )
    return f"It was read up to now: no hub is running that could go on. `pilothouse show {session_id}` shows it."


async def _adopt(beginning: str, agent: str | None, how: How, named: int | None) -> dict[str, Any]:
    from ..app.stored_sessions import find_hub
    from ..config import load_config
    from ..hub.errors import Held
    from ..remote.errors import Conflict

    config = load_config()
    found = chosen((await look(config))["sessions"], beginning, agent)
    pid = (named or found.get("pid")) if how == "take_over" else None
    try:
        hub = await find_hub(config)
        if hub is None:
            session_id = await _here(config, found["agent"], found["id"], how, pid)
        elif how == "watch":
            session_id = (await hub.watch(found["agent"], found["id"])).id
        else:
            session_id = (await hub.adopt(found["agent"], found["id"], how=how, pid=pid)).id
    except Held as exc:
        raise Failure(_refusal(str(exc), exc.details), Exit.ERROR) from exc
    except Conflict as exc:
        if exc.code != "held":
            raise
        raise Failure(_refusal(str(exc), exc.details), Exit.ERROR) from exc
    about = {"agent": found["agent"], "agentSessionId": found["id"], "how": how}
    return {"sessionId": session_id, **about, "live": hub is not None}


async def _here(config: Config, agent: str, session_id: str, how: How, pid: int | None) -> str:
    """The same by a hub of this process's own, which ends when it is done."""
    import os

    from ..app.composition import open_hub

    os.environ.pop("PILOTHOUSE_TOKEN", None)  # no agent inherits it
    async with open_hub(config) as hub:
        found = await hub.discovery.find(agent, session_id)
        if how == "watch":
            session = await hub.watch_session(found, policy=config.policy)
            await hub.discovery.told(session.id)
        else:
            session = await hub.adopt_session(found, how, by="cli", pid=pid, policy=config.policy)
        return session.id


def _refusal(message: str, details: dict[str, Any]) -> str:
    """What the hub says, with the options of this command for the choices that it offers."""
    choices = [OPTIONS[choice] for choice in details.get("choices") or () if choice in OPTIONS]
    said = message.partition("; ")[0] if choices and details.get("file") is None else message
    if details.get("sure") is False and details.get("home") is None and details.get("pid"):
        said += ". If it is another session, say something in that one and try again; if it is this one, end it there"
        said += f", or --take-over --pid {details['pid']} does"
    return f"{said}. {', '.join(choices)}." if choices else said
