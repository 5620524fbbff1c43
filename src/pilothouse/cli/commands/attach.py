"""`pilothouse attach`: a session from any event on, as it is stored and then as it happens."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from ..exits import Exit, Failure, reported
from ..output import complete, say

if TYPE_CHECKING:
    from ...app.stored_sessions import Archive
    from ...config import Config
    from ...log.records import SessionRecord
    from ...remote.hub import RemoteHub
    from ..chat.conversation import Conversation


@click.command()
@click.argument("session", metavar="ID")
@click.option("--since", type=click.IntRange(0), metavar="SEQ", help="Only what came after this event.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON, and nothing else.")
@click.option("--no-follow", is_flag=True, help="Stop at the end of what is stored.")
@reported
def attach(session: str, since: int | None, as_json: bool, no_follow: bool) -> None:
    """Watch a session: what happened, then what happens.

    What its agent asks for is asked here too, and whoever answers first decides. Ctrl-C leaves, and the session goes
    on; `pilothouse cancel` stops its turn. Without a running hub, or when that ends, so does this.
    """
    sys.exit(complete(_attach(session, since or 0, as_json, not no_follow)))


async def _attach(beginning: str, since: int, as_json: bool, follow: bool) -> int:
    import asyncio

    from ...app.stored_sessions import find_hub, open_archive
    from ...config import load_config
    from ..chat.conversation import Conversation, draw_stored
    from ..chat.requests import Manners
    from ..stored_rules import rule_words

    config = load_config()
    async with open_archive(config) as archive:
        record = await archive.match(beginning)
        if since > record.last_seq:
            raise Failure(f"{record.id} has {record.last_seq} events, so none after {since}", Exit.USAGE)
        hub = await find_hub(config) if follow else None
        conversation = Conversation(Manners(as_json=as_json, parks=True, echo=True, hint="Ctrl-C leaves"))
        conversation.find_rules = lambda: rule_words(config)
        conversation.watch_signals()
        try:
            if hub is None:
                await draw_stored(archive, conversation, record.id, since)
                if follow:
                    say("No hub is running: this is all there is. `pilothouse send` goes on with it.", err=True)
                return Exit.OK
            return await _watched(config, hub, archive, conversation, record, since)
        except asyncio.CancelledError:
            if conversation.left is None:
                raise
            return conversation.left
        finally:
            await conversation.close()


async def _watched(
    config: Config, hub: RemoteHub, archive: Archive, conversation: Conversation, record: SessionRecord, since: int
) -> int:
    import asyncio

    from ...remote.errors import ConnectionLost
    from ..chat.backends import There
    from ..chat.conversation import draw_stored, hub_closed

    side = There(hub.session(record.id, agent_name=record.agent, cwd=record.cwd))
    await conversation.recall(record.id, archive.entries(record.id), since)
    conversation.join(side, live_from=record.last_seq)
    conversation.introduce()
    try:
        with contextlib.suppress(ConnectionLost):
            await conversation.watch()
        await hub_closed(config)
        conversation.rest()
        await draw_stored(archive, conversation, record.id, conversation.seq)
        conversation.rest()
        say(f"The hub has gone. `pilothouse attach {_again(record, conversation)}` goes on from here.", err=True)
    except asyncio.CancelledError:
        if conversation.detached or conversation.left == Exit.CANCELLED:
            conversation.left = int(Exit.OK)
            conversation.rest()
            back = f"`pilothouse attach {_again(record, conversation)}` comes back"
            say(f"Detached; the session goes on. {back}, `pilothouse cancel {record.id}` stops it.", err=True)
        raise
    return Exit.OK


def _again(record: SessionRecord, conversation: Conversation) -> str:
    return f"{record.id} --since {conversation.seq}"
