"""`pilothouse rename`, `archive` and `delete`: stored sessions put in order, with a hub running or without one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from .exits import Exit, Failure, reported
from .output import complete, say

if TYPE_CHECKING:
    from ..hub.hub import Hub
    from ..log.records import SessionRecord
    from ..remote.session import RemoteSession

__all__ = ["archive", "delete", "rename"]


@click.command()
@click.argument("session", metavar="ID")
@click.argument("title", nargs=-1, required=True)
@reported
def rename(session: str, title: tuple[str, ...]) -> None:
    """Give a session another TITLE."""
    from ..model.errors import ValidationError
    from ..server.session_options import checked_title

    try:
        text = checked_title(" ".join(title).strip())
    except ValidationError as exc:
        raise Failure(f"the title can't be used: {exc}", Exit.USAGE) from exc

    async def here(hub: Hub, record: SessionRecord) -> None:
        own = await hub.session(record.id)
        own.rename(text)
        await own.committed()

    record = complete(_change(session, lambda there: there.rename(text), here))
    click.echo(f"{record.id} is now called {text}.")


@click.command()
@click.argument("session", metavar="ID")
@click.option("--undo", is_flag=True, help="Take it back into the list.")
@reported
def archive(session: str, undo: bool) -> None:
    """Put a session out of the way: `ls` lists it only with --all. Nothing of it is lost."""

    async def here(hub: Hub, record: SessionRecord) -> None:
        await hub.log.sessions.update(record.id, archived=not undo)

    record = complete(_change(session, lambda there: there.archive(undo=undo), here))
    more = "is in the list again" if undo else f"is archived; `pilothouse archive {record.id} --undo` takes it back"
    say(f"{record.id} {more}.")


@click.command()
@click.argument("session", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@reported
def delete(session: str, yes: bool) -> None:
    """Delete a session with all its events, for good; a turn under way is ended."""
    record = complete(_found(session))
    if not yes:
        _confirm(record)

    async def here(hub: Hub, record: SessionRecord) -> None:
        await hub.delete_session(record.id)

    complete(_change(record.id, lambda there: there.delete(), here))
    click.echo(f"{record.id} is deleted.")


def _confirm(record: SessionRecord) -> None:
    """Raises Failure unless somebody says yes."""
    from ..dialects.texts import title_of

    if not sys.stdin.isatty():
        raise Failure("there is no terminal to ask on; --yes deletes without asking", Exit.USAGE)
    what = f"{record.id} ({title_of(record.title or 'no title')}, {record.last_seq:,} events)"
    try:
        is_sure = click.confirm(f"Delete {what} for good?", default=False)
    except click.Abort:
        click.echo(err=True)
        is_sure = False
    if not is_sure:
        raise Failure("nothing was deleted", Exit.CANCELLED)


async def _found(beginning: str) -> SessionRecord:
    from ..app.stored_sessions import open_archive
    from ..config import load_config

    async with open_archive(load_config()) as stored:
        return await stored.match(beginning)


async def _change(beginning: str, there: Any, here: Any) -> SessionRecord:
    """Do it by the hub that runs, else by one of our own."""
    from ..app.composition import open_hub
    from ..app.stored_sessions import find_hub
    from ..config import load_config

    config = load_config()
    record = await _found(beginning)
    running = await find_hub(config)
    if running is not None:
        session: RemoteSession = running.session(record.id)
        await there(session)
    else:
        async with open_hub(config, []) as hub:
            await here(hub, record)
    return record
