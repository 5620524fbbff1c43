"""`pilothouse discover`: sessions that agents keep on their own, whoever started them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from .exits import reported
from .found import Found, look, looked
from .output import ago, complete, console, print_json, print_table, say, short_path

if TYPE_CHECKING:
    from ..config import Config

__all__ = ["discover"]

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
    from ..config import load_config

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
    from ..dialects.texts import title_of

    for problem in problems[:PROBLEMS]:
        say(title_of(f"Cannot be read: {short_path(problem['path'])}: {problem['message']}"), err=True)
    if len(problems) > PROBLEMS:
        say(f"… and {len(problems) - PROBLEMS} more; --json has them all.", err=True)


COLUMNS = ("session", "agent", "status", "age", "title", "directory")


def _print_rows(sessions: Sequence[Found], short: Mapping[str, str]) -> None:
    """A line for each session. What is not needed to name one is cut where the terminal ends, never broken."""
    from rich.table import Table
    from rich.text import Text

    from ..dialects.texts import title_of

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

    from ..app.composition import open_finder

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

    from ..dialects.texts import title_of

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
