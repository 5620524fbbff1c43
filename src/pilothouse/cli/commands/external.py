"""`pilothouse discover` and `adopt`: sessions of other programs on this machine, listed, watched and continued here."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from ..exits import Exit, Failure, reported
from ..output import ago, complete, console, print_json, print_table, say, short_path

if TYPE_CHECKING:
    from ...config import Config


Found = Mapping[str, Any]


async def look(config: Config, agent: str | None = None) -> dict[str, Any]:
    """`sessions`, the one last active first, and `problems`, as JSON has them."""
    from ...app.stored_sessions import find_hub

    hub = await find_hub(config)
    if hub is not None:
        return await hub.discovered(agent=agent, refresh=True)
    from ...app.composition import open_finder

    finder = open_finder(config)
    try:
        return await looked(config, finder, agent)
    finally:
        await finder.close()


async def looked(config: Config, finder: Any, agent: str | None) -> dict[str, Any]:
    import msgspec

    from ...app.composition import ask_agent
    from ...hub.external.records import keeper_of, key_of

    if agent is not None and agent not in finder.agents:
        sessions, problems = list(await ask_agent(config, agent)), []
        sessions.sort(key=lambda one: one.last_activity, reverse=True)
    else:
        found = await finder.sessions()
        sessions = [one for one in found.sessions if agent is None or keeper_of(one.agent) == keeper_of(agent)]
        problems = list(found.problems)
    here = await _find_own_session(config)
    rows = [msgspec.to_builtins(one) for one in sessions]
    for row in rows:
        if (key := key_of(row["agent"], row["id"])) in here:
            row["hubSessionId"] = here[key]
    return {"sessions": rows, "problems": msgspec.to_builtins(problems)}


async def _find_own_session(config: Config) -> dict[tuple[str, str], str]:
    """The sessions of this home, by their agents and what those call them."""
    from ...app.stored_sessions import open_archive
    from ...hub.external.records import ids_here
    from ...log.records import SessionRecord

    async with open_archive(config) as archive:
        return ids_here(await archive.find(SessionRecord, {"deleted": None}))


def chosen(found: Sequence[Found], beginning: str, agent: str | None = None) -> Found:
    """The session whose id, or whose id in the hub, begins so. Raises Failure."""
    from ...hub.external.records import keeper_of

    fitting = [one for one in found if agent is None or keeper_of(agent) == keeper_of(one["agent"])]
    fitting = fitting if beginning else []
    for ids in (lambda one: (one["id"],), lambda one: _own_ids(one.get("hubSessionId"))):
        exact = [one for one in fitting if beginning in ids(one)]
        matches = exact or [one for one in fitting if any(name.startswith(beginning) for name in ids(one))]
        if len(matches) == 1:
            return matches[0]
        if matches:
            some = ", ".join(f"{one['id']} ({one['agent']})" for one in matches[:4])
            more = ", …" if len(matches) > 4 else ""
            raise Failure(f"{len(matches)} sessions begin with {beginning!r}: {some}{more}", Exit.USAGE)
    where = f" of {agent}" if agent is not None else ""
    message = f"no session{where} on this machine begins with {beginning!r}; `pilothouse discover --all` lists them"
    raise Failure(message, Exit.USAGE)


def _own_ids(session_id: str | None) -> tuple[str, ...]:
    return () if session_id is None else (session_id, session_id.removeprefix("ses_"))


if TYPE_CHECKING:
    from ...config import Config


SHORTEST = 8
"""Letters of an id that are shown at least."""
WIDE = 28
"""Columns that are left for title and directory, from which on both are shown."""
LOOK = 2.0
"""Seconds between two looks while nothing is known to have changed."""
PROBLEMS = 3
"""Problems that are told in full."""
WORDS = {"running": ("working", "yellow"), "waiting": ("waiting", "bold yellow"), "idle": ("idle", "green")}
OPEN = ("open", "cyan")
"""Of one that is idle while a program has it."""


@click.command()
@click.option("-a", "--agent", help="Only sessions of this agent; one without a known record is started and asked.")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="Most sessions to list.")
@click.option("--all", "everything", is_flag=True, help="List all of them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --watch one object a line.")
@click.option("--watch", is_flag=True, help="Stay, and print what changes until Ctrl-C.")
@reported
def discover(agent: str | None, limit: int, everything: bool, as_json: bool, watch: bool) -> None:
    """Find sessions that agents keep on their own, also those that were started in a terminal.

    `pilothouse adopt ID` goes on with one; the beginning of an id is enough.
    """
    most = sys.maxsize if everything else limit
    if watch:
        complete(_watch(agent, most, as_json))
        return
    found = complete(look(_config(), agent))
    if as_json:
        print_json({**found, "sessions": found["sessions"][:most]})
        return
    _print(found, most)


def _config() -> Config:
    from ...config import load_config

    return load_config()


# -- showing --------------------------------------------------------------------------------------------------------


def _short_ids(found: Sequence[Found]) -> dict[str, str]:
    """As much of each id as tells it from the others."""
    ids = sorted({str(one["id"]) for one in found})
    short = {}
    for before, this, after in zip(["", *ids], ids, [*ids[1:], ""], strict=False):
        shared = max(_shared(this, before), _shared(this, after))
        short[this] = this[: max(SHORTEST, shared + 1)]
    return short


def _shared(one: str, other: str) -> int:
    """How many letters two ids begin with alike."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _print(found: dict[str, Any], most: int) -> None:
    sessions = found["sessions"]
    _print_problems(found["problems"])
    if not sessions:
        say("No sessions of other programs on this machine. `pilothouse agents` lists the agents that are known.")
        return
    _print_rows(sessions[:most], _short_ids(sessions))
    more = len(sessions) - most
    if more > 0:
        say(f"\n{more} more: `pilothouse discover --all`.")
    say("\n`pilothouse adopt ID` goes on with one here; with --watch it only looks on.")


def _print_problems(problems: Sequence[Found]) -> None:
    from ...dialects.texts import title_of

    for problem in problems[:PROBLEMS]:
        say(title_of(f"Cannot be read: {short_path(problem['path'])}: {problem['message']}"), err=True)
    if len(problems) > PROBLEMS:
        say(f"… and {len(problems) - PROBLEMS} more; --json has them all.", err=True)


COLUMNS = ("session", "agent", "status", "age", "title", "directory")


def _print_rows(sessions: Sequence[Found], short: Mapping[str, str]) -> None:
    """A line for each session. What is not needed to name one is cut where the terminal ends, never broken."""
    from rich.table import Table
    from rich.text import Text

    from ...dialects.texts import title_of

    out = console()
    rows = [tuple(title_of(cell) for cell in _cells(one, short)) for one in sessions]
    longest = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    room = max(0, out.width - sum(longest[:4]) - 8)
    directory = min(longest[5], max(9, room // 2 - 2)) if room >= WIDE else 0
    widths = {4: max(5, room - directory - 2 if directory else room), 5: directory}
    shown = 6 if directory else 5
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column, name in enumerate(COLUMNS[:shown]):
        width = widths.get(column)
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=width, min_width=len(name))
    for one, cells in zip(sessions, rows, strict=True):
        style = _status(one)[1]
        table.add_row(*(Text(cell, style=style if column == 2 else "") for column, cell in enumerate(cells[:shown])))
    print_table(out, table)


def _cells(one: Found, short: Mapping[str, str]) -> tuple[str, ...]:
    age = ago(str(one["lastActivity"])).removesuffix(" ago")
    title = one.get("sessionName") or one.get("lastMessage") or ""
    return (short[one["id"]], str(one["agent"]), _status(one)[0], age, str(title), short_path(str(one["projectPath"])))


def _status(one: Found) -> tuple[str, str]:
    word, style = WORDS.get(str(one.get("status")), ("", ""))
    if one.get("pid") is not None and word in ("idle", ""):
        word, style = OPEN
    return (f"{word}, here" if word else "here", style) if one.get("hubSessionId") else (word, style)


# -- staying --------------------------------------------------------------------------------------------------------


async def _watch(agent: str | None, most: int, as_json: bool) -> None:
    """Print what there is, then each session that changes, as it is by then."""
    import asyncio

    from ...app.composition import open_finder

    config = _config()
    finder = open_finder(config)
    changed = asyncio.Event()
    stop = finder.watch(lambda _: changed.set())
    known: dict[tuple[str, str], Found] = {}
    try:
        while True:
            found = await looked(config, finder, agent)
            sessions = found["sessions"][:most]
            news = [one for one in sessions if known.get((one["agent"], one["id"])) != one]
            gone = known.keys() - {(one["agent"], one["id"]) for one in found["sessions"]}
            _tell(news, gone, _short_ids(found["sessions"]), as_json=as_json, first=not known)
            known = {(one["agent"], one["id"]): one for one in sessions}
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):  # a process comes and goes without a file that changes
                    await changed.wait()
            changed.clear()
    finally:
        stop()
        await finder.close()


def _tell(news: Sequence[Found], gone: Any, short: Mapping[str, str], *, as_json: bool, first: bool) -> None:
    import msgspec

    from ...dialects.texts import title_of

    if as_json:
        for one in news:
            click.echo(msgspec.json.encode(one).decode())
        for agent, session_id in sorted(gone):
            click.echo(msgspec.json.encode({"agent": agent, "id": session_id, "removed": True}).decode())
        return
    if first and news:
        _print_rows(news, short)
        return
    for one in news:
        word, _ = _status(one)
        title = one.get("lastMessage") or one.get("sessionName") or ""
        say("  ".join(filter(None, map(title_of, (short[one["id"]], one["agent"], word, title)))), hanging=2)
    for agent, session_id in sorted(gone):
        say(f"{title_of(session_id[:SHORTEST])}  {title_of(agent)}  gone")


if TYPE_CHECKING:
    from ...config import Config


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
    from ...app.stored_sessions import find_hub
    from ...config import load_config
    from ...hub.errors import Held
    from ...remote.errors import Conflict

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

    from ...app.composition import open_hub

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
