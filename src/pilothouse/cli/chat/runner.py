"""Turns run from the terminal: by the hub that runs on this home already, else by one of this process's own.

A session of a hub elsewhere outlives the terminal. One's own hub is reachable for other commands while it runs, and
waits at the end for what they began in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec import Struct

from ...acp.errors import RequestError
from ...adapters.catalog import DEMO
from ...adapters.registry import Registry
from ...app.composition import open_hub, registry
from ...app.serving import serving_aside
from ...app.stored_sessions import find_hub, open_archive
from ...config import Config, load_config
from ...hub.errors import AgentFailed, IllegalCommand, explain_watched_session
from ...hub.hub import Hub
from ...log.errors import LogLocked
from ...log.records import SessionRecord
from ...log.sqlite.reader import lock_holder
from ...model.session import dump, load
from ...remote.errors import ConnectionLost, NoHub
from ...remote.hub import RemoteHub
from ..agent_choice import checked_agent, usable_agent
from ..exits import Exit, Failure
from ..output import print_json, say, title_of_prompt
from ..stored_rules import rule_words
from .backends import Here, There
from .conversation import Conversation, draw_stored, hub_closed
from .requests import Manners

PACE = "0.02"
"""Seconds between two pieces of the scripted agent's text, for people to read along."""
AUTH_REQUIRED = -32000
LINGER_STEP = 0.02
SETTLING = 20


class Options(Struct, frozen=True, kw_only=True):
    """What was asked for."""

    prompt: str
    agent: str | None = None
    cwd: Path | None = None
    session: str | None = None
    detach: bool = False
    manners: Manners = Manners()


def start(options: Options) -> int:
    """Run it; the answer is an exit code. Raises what `exits.reported` explains."""
    return asyncio.run(_start(load_config(), options))


async def _start(config: Config, options: Options) -> int:
    record = await stored_session(config, options.session) if options.session is not None else None
    if record is not None and record.watched_id is not None and record.status != "completed":
        raise IllegalCommand(
            explain_watched_session(record.id), sessionId=record.id
        )  # before anything is drawn or waited for
    agents = registry(config)
    name = _agent_name(config, agents, options, record)
    launch = usable_agent(config, agents, name)
    cwd = options.cwd or (Path(launch.cwd) if launch.cwd else Path.cwd())
    if options.detach:
        return await _handed_over(config, options, name, cwd, record)
    conversation = Conversation(options.manners)
    conversation.find_rules = lambda: rule_words(config)
    conversation.watch_signals()
    try:
        running = await find_hub(config)
        if running is None:
            if name == DEMO and conversation.keyboard is not None:
                os.environ.setdefault("PILOTHOUSE_DEMO_PACE", PACE)
            try:
                return await _here(config, conversation, options, agents, name, cwd, record)
            except LogLocked:  # another one was quicker
                running = await find_hub(config)
                if running is None:
                    raise
        return await _there(config, running, conversation, options, name, cwd, record)
    except asyncio.CancelledError:
        if conversation.left is None:
            raise
        return conversation.left
    finally:
        await conversation.close()


# -- in this process ----------------------------------------------------------------------------------------------


async def _here(
    config: Config,
    conversation: Conversation,
    options: Options,
    agents: Registry,
    name: str,
    cwd: Path,
    record: SessionRecord | None,
) -> int:
    os.environ.pop("PILOTHOUSE_TOKEN", None)  # no agent inherits it
    async with open_hub(config, [name]) as hub, serving_aside(config, hub):
        for notice in hub.notices:
            if notice not in hub.log.notices:  # those are what this machine cannot do; `doctor` tells them
                click.echo(notice, err=True)
        if record is not None:
            session = await hub.session(record.id)
        else:
            title = title_of_prompt(options.prompt)
            session = await hub.start_session(name, cwd, title=title, policy=config.policy)
        conversation.begin_at(load(dump(await session.transcript())))
        conversation.join(Here(session))
        try:
            code = await conversation.run(options.prompt)
        except AgentFailed as exc:
            if record is None:  # nothing ever happened in it
                await hub.delete_session(session.id)
            with _code_kept(conversation, Exit.NO_AGENT):
                await _linger(hub)
            raise Failure(_why(exc, agents, name), Exit.NO_AGENT) from exc
        with _code_kept(conversation, code):
            await _linger(hub)
        return code


@contextlib.contextmanager
def _code_kept(conversation: Conversation, code: int) -> Iterator[None]:
    """Who leaves now leaves others' work, and not the own turn: the exit code stays that of the turn."""
    try:
        yield
    except asyncio.CancelledError:
        if conversation.left == Exit.CANCELLED:
            conversation.left = code
        raise


async def _linger(hub: Hub) -> None:
    """Wait for the turns that other commands began in this hub."""
    waited = 0
    while others := [session for session in hub.live.values() if not session.is_idle]:
        if waited == SETTLING:  # a turn of our own is over for us a moment before it is for the hub
            names = ", ".join(session.id for session in others)
            what = "it closes after their turns, or by Ctrl-C"
            click.echo(f"Other commands use this hub ({names}); {what}.", err=True)
        waited += 1
        await asyncio.sleep(LINGER_STEP)


# -- elsewhere ----------------------------------------------------------------------------------------------------


async def _there(
    config: Config,
    hub: RemoteHub,
    conversation: Conversation,
    options: Options,
    name: str,
    cwd: Path,
    record: SessionRecord | None,
) -> int:
    if record is not None:
        async with open_archive(config) as archive:
            state = await conversation.recall(record.id, archive.entries(record.id))
        if state.turn_id is not None and conversation.screen is not None:
            conversation.screen.note("A turn is under way; this prompt waits for its end.")
        session = hub.session(record.id, agent_name=record.agent, cwd=record.cwd)
    else:
        session = await hub.start_session(name, cwd, title=title_of_prompt(options.prompt))
    conversation.join(There(session))
    try:
        return await conversation.run(options.prompt)
    except asyncio.CancelledError:
        if conversation.left is not None:
            conversation.rest()
            say(_GOES_ON.format(session.id), err=True)
        raise
    except (ConnectionLost, NoHub):
        return await _gone(config, conversation, session.id)


_GOES_ON = "The session goes on in the hub: `pilothouse attach {0}` comes back to it, `pilothouse cancel {0}` stops it."


async def _gone(config: Config, conversation: Conversation, session_id: str) -> int:
    """The hub went away: show what it still stored, and say what became of the turn."""
    await hub_closed(config)
    conversation.rest()
    async with open_archive(config) as archive:
        await draw_stored(archive, conversation, session_id, conversation.seq)
        state = await archive.fold(session_id)
    conversation.rest()
    if state.turn_id is None:
        reason = state.turn.stop_reason if state.turn is not None else None
        what = {None: "no turn was under way", "interrupted": "the turn was interrupted"}.get(
            reason, "the turn is over"
        )
    elif lock_holder(config.database) is None:
        what = "the turn was interrupted"
    else:
        what = f"the turn may go on there: `pilothouse attach {session_id}` looks"
    say(f"The hub has gone; {what}. `pilothouse run -s {session_id}` goes on with the session.", err=True)
    return Exit.HOME


async def _handed_over(config: Config, options: Options, name: str, cwd: Path, record: SessionRecord | None) -> int:
    """Give the prompt to the hub that runs, and say how to come back. Raises Failure."""
    hub = await find_hub(config)
    if hub is None or hub.url is None:  # a hub of another `run` ends with that
        raise Failure("no hub is running that a session could be left to; `pilothouse serve` starts one", Exit.HOME)
    if record is not None:
        session = hub.session(record.id, agent_name=record.agent, cwd=record.cwd)
    else:
        session = await hub.start_session(name, cwd, title=title_of_prompt(options.prompt))
    turn = await session.send(options.prompt)
    if options.manners.as_json:
        print_json({"sessionId": session.id, "turnId": turn.turn_id, "seq": turn.seq})
        return Exit.OK
    click.echo(session.id)
    say(_GOES_ON.format(session.id), err=True)
    return Exit.OK


async def stored_session(config: Config, beginning: str) -> SessionRecord:
    """A session by the beginning of its id. Raises UnknownSession, Ambiguous."""
    async with open_archive(config) as archive:
        return await archive.match(beginning)


# -- the agent ----------------------------------------------------------------------------------------------------


def _agent_name(config: Config, agents: Registry, options: Options, record: SessionRecord | None) -> str:
    """Raises Failure."""
    if record is not None:
        if options.agent not in (None, record.agent):
            raise Failure(f"session {record.id} is one of {record.agent}, not of {options.agent}", Exit.USAGE)
        return record.agent
    name = options.agent or config.settings.default_agent
    if name is None and len(config.agents) == 1:
        name = next(iter(config.agents))
    if name is None:
        ready = ", ".join(name for name in agents.names if agents.launch(name) is not None)
        raise Failure(f"name an agent with -a; ready on this machine: {ready}", Exit.USAGE)
    return checked_agent(agents, name)


def _why(exc: AgentFailed, agents: Registry, name: str) -> str:
    cause = exc.__cause__
    login = getattr(getattr(agents.get(name), "program", None), "login", None)
    if isinstance(cause, RequestError) and cause.code == AUTH_REQUIRED and login:
        return f"{exc}. To log in: {login}"
    return str(exc)
