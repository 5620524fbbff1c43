"""`pilothouse ls`, `show`, `search`, `export`, `rename`, `archive` and `delete`: stored sessions.

They work with a running hub on the same home or without one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..exits import Exit, Failure, reported
from ..output import ago, complete, console, print_json, print_table, say, short_path
from .approvals import SHORT_ID, hint_of, questions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...config import Config
    from ...log.records import SessionRecord
    from ...model.events import Event
    from ...model.session import Session


AT_WORK = ("starting", "running", "thinking", "waiting_for_input", "waiting_for_approval")
WORDS = {  # those of the page
    "running": ("working", "yellow"),
    "thinking": ("working", "yellow"),
    "starting": ("working", "yellow"),
    "waiting_for_input": ("waiting for you", "bold yellow"),
    "waiting_for_approval": ("waiting for you", "bold yellow"),
    "idle": ("idle", "green"),
    "paused": ("paused", "dim"),
    "completed": ("done", "dim"),
    "error": ("failed", "red"),
}
NARROW = 80
FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


@click.command()
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="Most sessions to list.")
@click.option("--all", "everything", is_flag=True, help="List all of them, also archived ones.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reported
def ls(limit: int, everything: bool, as_json: bool) -> None:
    """List sessions, the one last active first."""
    config, sessions, questions = complete(_listed(limit, everything))
    if as_json:
        asking = [question["sessionId"] for question in questions]
        print_json([{**_described(record), "questions": asking.count(record.id)} for record in sessions])
        return
    if not sessions:
        click.echo("No sessions yet. `pilothouse run -a demo tour` makes one.", err=True)
        return
    stale = _is_stale(config, sessions)
    rows = []
    for record in sessions:
        word, style = WORDS.get("idle" if stale and record.status in AT_WORK else record.status, ("?", ""))
        cells = (record.id, record.agent, word, ago(record.updated).removesuffix(" ago"))
        rows.append(((*cells, record.title or "", short_path(record.cwd)), style))
    _print_rows(("session", "agent", "status", "age", "title", "directory"), rows)
    if stale:
        count = sum(record.status in AT_WORK for record in sessions)
        which = "one session" if count == 1 else f"{count} sessions"
        say(f"\nA hub died while {which} of these worked: what ran was interrupted. `pilothouse run -s ID` goes on.")
    if questions and not stale:
        click.echo()
        for line in hint_of(questions):
            say(line)


def _print_rows(names: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], str]]) -> None:
    """A line for each session. What is not needed to name one is cut where the terminal ends, never broken."""
    from rich.table import Table
    from rich.text import Text

    from ...dialects.texts import title_of

    out = console()
    ids = {cells[0][:SHORT_ID] for cells, _ in rows}
    if out.width < NARROW and len(ids) == len(rows):
        rows = [((cells[0][:SHORT_ID], *cells[1:]), style) for cells, style in rows]
    longest = [max(map(len, column)) for column in zip(names, *(cells for cells, _ in rows), strict=True)]
    room = max(0, out.width - sum(longest[:4]) - 8)
    directory = min(longest[5], max(9, room // 2 - 2))
    shown = 6 if room >= 28 else 5  # a narrow terminal has room for the title only
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column, name in enumerate(names[:shown]):
        title = max(5, room - directory - 2 if shown == 6 else room)
        width = {4: title, 5: directory}.get(column)
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=width, min_width=len(name))
    for cells, style in rows:
        texts = [Text(title_of(cell), style=style if column == 2 else "") for column, cell in enumerate(cells)]
        table.add_row(*texts[:shown])
    print_table(out, table)


async def _listed(limit: int, everything: bool) -> tuple[Config, list[SessionRecord], list[dict[str, Any]]]:
    from ...app.stored_sessions import open_archive
    from ...config import load_config
    from ...log.records import SessionFilter

    config = load_config()
    found: list[SessionRecord] = []
    async with open_archive(config) as archive:
        cursor: str | None = None
        while len(found) < limit or everything:
            size = 500 if everything else min(500, limit - len(found))
            chosen = SessionFilter(archived=None if everything else False, before=cursor, limit=size)
            page = await archive.list_sessions(chosen)
            found += page.sessions
            cursor = page.next
            if cursor is None:
                break
        return config, found, await questions_of(archive, found)


def _is_stale(config: Config, sessions: Iterable[SessionRecord]) -> bool:
    """Whether nobody runs the sessions that are said to be at work."""
    from ...log.sqlite.reader import lock_holder

    return any(record.status in AT_WORK for record in sessions) and lock_holder(config.database) is None


def _described(record: SessionRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "agent": record.agent,
        "cwd": record.cwd,
        "title": record.title,
        "status": record.status,
        "created": record.created,
        "updated": record.updated,
        "seq": record.last_seq,
        "archived": record.archived,
    }


# -- one session --------------------------------------------------------------------------------------------------


class Stored(NamedTuple):
    """A session read from the archive."""

    record: SessionRecord
    events: list[Event]


def _stored(beginning: str) -> Stored:
    return complete(_read(beginning))


async def _read(beginning: str) -> Stored:
    from ...app.stored_sessions import open_archive
    from ...config import load_config

    async with open_archive(load_config()) as archive:
        record = await archive.match(beginning)
        return Stored(record, [event async for event in archive.events(record.id)])


@click.command()
@click.argument("session", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print the folded session and its transcript as JSON.")
@reported
def show(session: str, as_json: bool) -> None:
    """Show what happened in a session. The beginning of its ID is enough."""
    from ...dialects.transcript import to_json
    from ...model.session import fold
    from ...terminal.screen import Screen

    stored = _stored(session)
    rules = complete(_rules())
    if as_json:
        known = stored.record.agent_session_id
        beside = {"agentSessionId": known} if known is not None else {}
        sys.stdout.buffer.write(to_json(fold(stored.events), beside=beside) + b"\n")
        return
    out = console()
    _head(out, stored.record)
    screen = Screen(out, echo=True, live=False)
    screen.decisions.rules = rules
    for event in stored.events:
        screen.show(event)
    screen.rest()


async def _rules() -> dict[str, str]:
    from ...config import load_config
    from ..stored_rules import rule_words

    return await rule_words(load_config())


def _head(out: Any, record: SessionRecord) -> None:
    from rich.text import Text

    from ...dialects.texts import title_of

    out.print(Text(title_of(record.title or record.id), style="bold"))
    facts = [record.agent, short_path(record.cwd), record.created[:16].replace("T", " "), record.id]
    if record.agent_session_id is not None:
        facts.append(f"{record.agent} calls it {record.agent_session_id}")
    out.print(Text(" · ".join(map(title_of, facts)), style="dim"), end="\n\n")


@click.command()
@click.argument("session", metavar="ID")
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["ndjson", "html", "markdown"]),
    help="By default what the name of FILE says, else ndjson.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write here, not to stdout; `-` is stdout."
)
@reported
def export(session: str, form: str | None, output: Path | None) -> None:
    """Write a session to a file.

    ndjson has every event, with the agent's own update as `source`, and can be replayed. html is one page that opens
    from disk, loads nothing, and can be scrubbed and played; without JavaScript it shows the transcript. markdown is
    for reading.
    """
    stored = _stored(session)
    form = form or (FORMATS.get(output.suffix.lower(), "ndjson") if output is not None else "ndjson")
    data = _written(stored, form)
    if output is None or str(output) == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(data)
    except OSError as exc:
        raise Failure(f"{output} cannot be written: {exc.strerror or exc}", Exit.ERROR) from exc
    click.echo(f"{output}: {len(stored.events):,} events, {len(data):,} bytes", err=True)


def _written(stored: Stored, form: str) -> bytes:
    from ...model.session import fold

    if form == "ndjson":
        from ...model.events import encode_event

        return b"".join(encode_event(event, source=True) + b"\n" for event in stored.events)
    session = fold(stored.events)
    session.title = session.title or stored.record.title
    if form == "markdown":
        from ...dialects.transcript import to_markdown

        return to_markdown(session).encode()
    return _as_html(session, stored.events).encode()


def _as_html(session: Session, events: list[Event]) -> str:
    from ...dialects.transcript.html import to_html, to_page

    template = _template()
    if template is not None:
        return to_page(template, session, events)
    click.echo("This installation has no web UI, so the page cannot be played; `make web` builds it.", err=True)
    return to_html(session)


def _template() -> str | None:
    """The page that plays a session; a source tree has none until the web UI was built."""
    from importlib import resources

    file = resources.files("pilothouse").joinpath("web", "export.html")
    return file.read_bytes().decode() if file.is_file() else None


@click.command()
@click.argument("session", metavar="ID|FILE")
@click.option(
    "--speed", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True, help="How many times as fast."
)
@click.option("--pause", type=click.FloatRange(0), default=2.0, show_default=True, help="Longest wait, in seconds.")
@click.option("--serve", is_flag=True, help="Be an ACP agent on standard input and output that plays it.")
@reported
def replay(session: str, speed: float, pause: float, serve: bool) -> None:
    """Play a session in this terminal, from what is stored or from an exported ndjson FILE.

    With --serve it is played to any ACP client instead, to test that against: each prompt plays the next turn as it
    was, and permissions are asked for again. Loading the session by its ID gives all of it at once.
    """
    path = Path(session)
    title: str | None = None
    if path.suffix and path.is_file():
        events = _from_file(path)
    else:
        stored = _stored(session)
        events, title = stored.events, stored.record.title
    if not serve:
        complete(_play(events, speed, pause))
        return
    from ...agents.replay import serve as serve_recording
    from ...app.recordings import recording_of

    if sys.stdin.isatty():
        click.echo("This speaks JSON-RPC (ACP) on stdin and stdout; give the command to an ACP client.", err=True)
    complete(serve_recording(recording_of(events, speed=speed, pause=pause, title=title)))


def _from_file(path: Path) -> list[Event]:
    from ...model.errors import ValidationError
    from ...model.events import decode_event

    events: list[Event] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as exc:
        raise Failure(f"{path} cannot be read: {exc.strerror or exc}", Exit.USAGE) from exc
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                events.append(decode_event(line))
            except ValidationError as exc:
                raise Failure(f"{path}:{number}: this is no event: {exc}", Exit.USAGE) from exc
    return events


async def _play(events: list[Event], speed: float, pause: float) -> None:
    import asyncio

    from ...model.session import milliseconds_between
    from ...terminal.screen import Screen

    screen = Screen(console(), echo=True)
    screen.decisions.rules = await _rules()
    before = events[0].timestamp if events else ""
    screen.begin("playing")
    try:
        for event in events:
            wait = min(milliseconds_between(before, event.timestamp) / 1000 / speed, pause)
            before = event.timestamp
            if wait > 0:
                screen.flush()
                await asyncio.sleep(wait)
            screen.show(event)
    finally:
        screen.rest()


if TYPE_CHECKING:
    from ...hub.hub import Hub
    from ...log.records import SessionRecord
    from ...remote.session import RemoteSession


@click.command()
@click.argument("session", metavar="ID")
@click.argument("title", nargs=-1, required=True)
@reported
def rename(session: str, title: tuple[str, ...]) -> None:
    """Give a session another TITLE."""
    from ...model.errors import ValidationError
    from ...server.session_options import checked_title

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
    from ...dialects.texts import title_of

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
    from ...app.stored_sessions import open_archive
    from ...config import load_config

    async with open_archive(load_config()) as stored:
        return await stored.match(beginning)


async def _change(beginning: str, there: Any, here: Any) -> SessionRecord:
    """Do it by the hub that runs, else by one of our own."""
    from ...app.composition import open_hub
    from ...app.stored_sessions import find_hub
    from ...config import load_config

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
