"""`pilothouse approvals`, `approve` and `deny`: what waits for a decision, and the decision, from any terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .exits import Exit, Failure, reported
from .output import ago, complete, console, print_json, say
from .waiting import all_questions, hint_of

if TYPE_CHECKING:
    from ..remote.hub import RemoteHub

__all__ = ["approvals", "approve", "deny"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reported
def approvals(as_json: bool) -> None:
    """List what waits for a decision: its risk, and what it would do. Questions of agents are told as well.

    With --json, `kind` says which of the two it is: an `approval` can be decided from here, a `question` by `attach`.
    """
    pending, questions, is_live = complete(_pending())
    if as_json:
        print_json([{"kind": "approval", **approval} for approval in pending] + questions)
        return
    if not pending and not questions:
        click.echo("Nothing waits for a decision.", err=True)
        return
    for approval in pending:
        _print(approval)
    if pending and is_live:
        say("\n`pilothouse approve ID` or `pilothouse deny ID` decides; the beginning of the id is enough.")
    if pending and questions:
        click.echo()
    for line in hint_of(questions):
        say(line)
    if not is_live:
        say("\nNo hub is running: these were left by one that died, and the next one withdraws them.", err=True)


async def _pending() -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Approvals and questions that wait, and whether anybody could be told of a decision."""
    from ..app.archive import open_archive
    from ..app.running import find_hub
    from ..config import load_config

    config = load_config()
    hub = await find_hub(config)
    async with open_archive(config) as archive:
        questions = await all_questions(archive)
        if hub is not None:
            return await hub.approvals(), questions, True
        return [_row(record) for record in await archive.approvals.pending()], questions, False


def _row(record: Any) -> dict[str, Any]:
    """An approval of the archive as the hub tells it."""
    return {
        "id": record.id,
        "sessionId": record.session_id,
        "state": record.state,
        "request": record.request,
        "options": record.options,
        "created": record.created,
        "expires": record.expires,
        "resolved": record.resolved,
        "decision": record.decision,
        "decidedBy": record.decided_by,
    }


def _print(approval: dict[str, Any]) -> None:
    import msgspec
    from rich.text import Text

    from ..model.errors import ValidationError
    from ..model.events import ApprovalRequestedEvent, decode_event
    from ..terminal.screen import Screen
    from ..terminal.texts import title_of

    screen = Screen(console(), live=False)
    try:
        event = decode_event(msgspec.json.encode({**approval["request"], "options": approval["options"], "seq": 1}))
    except ValidationError as exc:
        screen.say(f"{approval['id']} cannot be shown: {title_of(str(exc))}", "red")
        return
    if isinstance(event, ApprovalRequestedEvent):
        screen.decisions.approval(event, whole=False)
    options = ", ".join(title_of(str(option.get("optionId"))) for option in approval["options"])
    about = f"{approval['id']} · {approval['sessionId']} · {ago(approval['created'])} · options: {options or 'none'}"
    screen.indented(Text(about, style="dim", overflow="fold"))


@click.command()
@click.argument("approval", metavar="ID")
@click.option("--option", metavar="OPTION", help="One of the agent's own options, by its id.")
@click.option(
    "--always",
    type=click.Choice(["session", "project", "everywhere"]),
    help="Allow the same from now on: in this session, in its directory, or wherever.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the approval as it then is.")
@reported
def approve(approval: str, option: str | None, always: str | None, as_json: bool) -> None:
    """Allow what an agent asked for. The first decision wins; the same one again changes nothing."""
    decision = {"approved": None if option else True, "option_id": option, "remember": always or "once"}
    _told(complete(_decide(approval, decision)), as_json)


@click.command()
@click.argument("approval", metavar="ID")
@click.option("--reason", metavar="TEXT", help="Why; the agent is told.")
@click.option("--json", "as_json", is_flag=True, help="Print the approval as it then is.")
@reported
def deny(approval: str, reason: str | None, as_json: bool) -> None:
    """Deny what an agent asked for. It goes on without; `pilothouse cancel` stops it."""
    _told(complete(_decide(approval, {"approved": False, "reason": reason})), as_json)


def _told(decided: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(decided)
        return
    from ..terminal.texts import title_of

    request = decided["request"]
    word = "Allowed" if (decided.get("decision") or {}).get("approved") else "Denied"
    click.echo(f"{word}: {title_of(str(request.get('description') or request.get('toolName') or decided['id']))}")


async def _decide(beginning: str, decision: dict[str, Any]) -> dict[str, Any]:
    from ..app.running import find_hub
    from ..config import load_config

    hub = await find_hub(load_config())
    if hub is None:
        raise Failure("no hub is running, so nothing waits for a decision", Exit.HOME)
    return await hub.decide(await _matched(hub, beginning), **decision)


async def _matched(hub: RemoteHub, beginning: str) -> str:
    """The approval whose id begins so. One that is decided already is left to the hub: it says by whom."""
    pending = [str(approval["id"]) for approval in await hub.approvals()]
    found = [one for one in pending if beginning and one.startswith((beginning, f"apr_{beginning}"))]
    if len(found) > 1 and beginning not in found:
        raise Failure(f"{len(found)} approvals begin with {beginning!r}: {', '.join(found[:4])}", Exit.USAGE)
    return found[0] if len(found) == 1 else beginning
