"""`pilothouse doctor`: checks of this machine, this home and one agent, each with the next step where it fails."""

from __future__ import annotations

import difflib
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click

from ..exits import Exit, reported
from ..groups import Group
from ..output import complete, print_json, say, short_path

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ...adapters.contract import Adapter
    from ...app.probing.report import Report, Row
    from ...config import Config
    from ...hub.agent.process import AgentSpec


MARKS = {"yes": ("✓", "green"), "no": ("✗", "red"), "none": ("–", None), "untried": ("·", None)}
LEGEND = "✓ works  ✗ does not, and should  – it does not have this  · not tried, or nothing shows it"


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--yes", is_flag=True, help="Ask its model too, without asking you first: some short prompts.")
@click.option("--allow", is_flag=True, help="Let it write the one file and run the one `echo` that it is asked for.")
@click.option("--model", metavar="ID", help="The model to ask, as the agent calls it; a cheap one will do.")
@click.option(
    "--timeout", type=click.FloatRange(1, 3600), default=60.0, show_default=True, help="Seconds for each step."
)
@reported
def agent(name: str, as_json: bool, yes: bool, allow: bool, model: str | None, timeout: float) -> None:
    """Find out what an agent can do: start it, talk with it, and show what was seen.

    It works in an empty directory among the temporary files, and whatever it asks for is rejected. Steps that ask its
    model may cost money: they are done when you agree, or with --yes. Exit code 1 says that something failed, 4 that
    it cannot be started.
    """
    import tempfile

    from ...app.composition import agent_specs, registry
    from ...config import load_config
    from ..agent_choice import checked_agent, usable_agent

    config = load_config()
    agents = registry(config)
    checked_agent(agents, name)
    usable_agent(config, agents, name)
    spec = agent_specs(config, [name])[name]
    prompts = _agrees(spec, yes=yes)
    options = {"prompts": prompts, "allows": allow, "model": model, "timeout": timeout}
    with tempfile.TemporaryDirectory(prefix="pilothouse-probe-", ignore_cleanup_errors=True) as place:
        directory = Path(place).resolve()  # as the agent will name it
        done = None if as_json else _print_row
        told = _told(sys.stderr if as_json else sys.stdout)
        report = complete(_until_told(_probed(config, agents.get(name), spec, directory, told, done, options)))
    if as_json:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
        print_json({**_plain(report), "prompted": prompts})
    else:
        _print_card(report, prompts=prompts)
    if report.state("initialize") == "no":
        sys.exit(Exit.NO_AGENT)
    sys.exit(Exit.OK if report.is_sound else Exit.ERROR)


async def _until_told(work: Coroutine[Any, Any, Report]) -> Report:
    """Whoever ends this command, the agent ends before it, as with Ctrl-C. Exits with 128 + the signal's number."""
    import asyncio
    import signal

    task = asyncio.ensure_future(work)
    got: list[int] = []

    def end(number: int) -> None:
        got.append(number)
        task.cancel()

    if os.name == "posix":
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if got:
            sys.exit(128 + got[0])
        raise


async def _probed(
    config: Config,
    adapter: Adapter,
    spec: AgentSpec,
    directory: Path,
    told: Callable[[str], None],
    done: Callable[[Row], None] | None,
    options: dict[str, Any],
) -> Report:
    from datetime import UTC, datetime

    import msgspec

    from ...adapters.catalog import DEMO
    from ...app.probing.client import DEMO_SCRIPT, SCRIPT
    from ...app.probing.probe import Probe
    from ...app.probing.report import remember_probe

    def now() -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    script = DEMO_SCRIPT if spec.name == DEMO else SCRIPT
    report = await Probe(
        spec, directory, now, script=script, told=told, done=done or (lambda row: None), **options
    ).run()
    report = msgspec.structs.replace(report, version=await _version(adapter) or report.version)
    try:
        remember_probe(config.home, report, now())
    except OSError as exc:
        say(f"Note: what was found out is not kept: {exc}", err=True)
    return report


async def _version(adapter: Adapter) -> str | None:
    """The version of the program itself: what it says when it is talked with may be that of a bridge to it."""
    try:
        return await adapter.get_version()
    except Exception:  # a package's adapter may raise anything, and what it said in the talk will do
        return None


def _agrees(spec: AgentSpec, *, yes: bool) -> bool:
    """Whether the agent's model may be asked: it needs none, or its user said so."""
    from ...adapters.catalog import DEMO
    from ...app.probing.client import PROMPTS

    if yes or spec.name == DEMO:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    question = (
        f"Send {PROMPTS} short prompts to the model of {spec.title or spec.name}? They cost what its maker charges"
    )
    return click.confirm(question, default=False, err=True)


def _told(stream: TextIO) -> Callable[[str], None]:
    """Says what is being done: at a terminal on a line that the result then takes; elsewhere only what is waited for
    that nobody would expect, on stderr."""

    def tell(step: str) -> None:
        waiting = step.partition(": ")[2]
        if stream.isatty():
            stream.write(f"\r\x1b[K… {step}")
            stream.flush()
        elif waiting:
            say(f"{waiting}.", err=True)

    return tell


def _print_row(row: Row) -> None:
    mark, colour = MARKS[row.state]
    took = click.style(f" ({row.ms} ms)", dim=True) if row.ms is not None else ""
    if sys.stdout.isatty():
        click.echo("\r\x1b[K", nl=False)
    say(f"{click.style(mark, fg=colour)} {click.style(f'{row.step:10}', bold=True)} {row.text}{took}", hanging=13)
    for label, text in (("sent", row.sent if row.state == "no" else ""), ("seen", row.seen)):
        if text:
            say(click.style(f"  {'':10} {label}: {text}", dim=True), hanging=13)


def _print_card(report: Report, *, prompts: bool) -> None:
    from ...app.probing.report import flags
    from ...app.probing.talk import short

    say(click.style(f"\n{LEGEND}", dim=True))
    if report.card is None:
        return
    name = click.style(short(report.card.agent.display_name), bold=True)
    say(f"\n{name} {report.version or '(tells no version)'}")
    for title, found in (("Seen:", flags(report.card.features)), ("Said by it, and not seen:", report.said)):
        if found:
            say(f"{title} {', '.join(found)}", hanging=2)
    if not prompts:
        say("Its model was not asked, so most of what it can do was not seen. --yes asks it.", err=True)


def _plain(report: Report) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(report)
    return plain


if TYPE_CHECKING:
    from ...config import Config


ROOM = 1_000_000
"""Bytes that a home needs to be of any use."""


class Finding(NamedTuple):
    """One thing that was looked at. `state` is ok, note or problem."""

    what: str
    state: str
    text: str


@click.group(cls=Group, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
@reported
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Look whether everything is in order: Python, SQLite, the home directory, the agents, the editors.

    `doctor agent NAME` finds out what an agent can do.
    """
    if ctx.invoked_subcommand is not None:
        return
    findings = list(_findings())
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        marks = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}
        for finding in findings:
            mark, colour = marks[finding.state]
            head = f"{click.style(mark, fg=colour)} {click.style(f'{finding.what:9}', bold=True)}"
            say(f"{head} {finding.text}", hanging=12)
    sys.exit(Exit.ERROR if any(finding.state == "problem" for finding in findings) else Exit.OK)


doctor.add_command(agent)


def _findings() -> Iterator[Finding]:
    from ...config import Config, ConfigError, home_directory, load_config

    yield from _python()
    yield from _sqlite()
    config = Config(home=home_directory())
    try:
        config = load_config(config.home)
        there = "" if config.path.exists() else " (none yet: defaults)"
        yield Finding("config", "ok", f"{short_path(str(config.path))}{there}")
    except ConfigError as exc:
        yield Finding("config", "problem", str(exc))
    for look in (_home, _database, _hub):
        yield from look(config)
    yield from _agents(config)
    yield from _editors()


def _python() -> Iterator[Finding]:
    yield Finding("python", "ok", f"{platform.python_version()} at {short_path(sys.executable)}, {platform.system()}")


def _sqlite() -> Iterator[Finding]:
    import sqlite3

    from ...log.sqlite.database import LOCKS, NO_FTS, NO_LOCK, OLDEST_SQLITE, has_fts

    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        yield Finding("sqlite", "problem", f"{sqlite3.sqlite_version}; run a Python that has {needed} or newer")
        return
    with sqlite3.connect(":memory:") as db:
        indexed = has_fts(db)
    db.close()
    yield Finding("sqlite", "ok" if indexed else "note", f"{sqlite3.sqlite_version}{' with FTS5' if indexed else ''}")
    if not indexed:
        yield Finding("search", "note", NO_FTS)
    if not LOCKS:
        yield Finding("lock", "note", NO_LOCK)


def _home(config: Config) -> Iterator[Finding]:
    home = config.home
    if not home.exists():
        yield _unmade(home)
        return
    if not home.is_dir():
        yield Finding("home", "problem", f"{home} is a file; PILOTHOUSE_HOME names another place")
        return
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("home", "problem", f"{home} is no directory that this user can write")
        return
    mode = home.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        yield Finding("home", "problem", f"{home} is open to others ({mode:04o}); chmod 700 {home}")
        return
    if _room(home) < ROOM:
        yield Finding("home", "problem", f"{home}: its disk is full, so nothing can be stored; free some space")
        return
    yield Finding("home", "ok", f"{short_path(str(home))}, {mode:04o}")


def _room(home: Path) -> int:
    """Bytes that can still be written there."""
    import shutil

    try:
        return shutil.disk_usage(home).free
    except OSError:  # a file system that does not tell
        return ROOM


def _unmade(home: Path) -> Finding:
    """Of a home that is not there: whether it can be made."""
    import tempfile

    above = next(place for place in home.parents if place.exists())
    try:
        # to ask for the rights would not do: some file systems take nothing, whatever those say
        tempfile.TemporaryDirectory(dir=above).cleanup()
    except OSError as exc:
        why = f"{above}: {exc.strerror or exc}"
        return Finding("home", "problem", f"{home} is not there and cannot be made: {why}")
    return Finding("home", "ok", f"{short_path(str(home))}, which the first session makes")


def _database(config: Config) -> Iterator[Finding]:
    from ...log.errors import LogError

    if not config.database.exists():
        return
    try:
        sessions, problems = complete(_looked_into(config))
    except LogError as exc:
        yield Finding("database", "problem", str(exc))
        return
    for problem in problems[:5]:
        yield Finding("database", "problem", problem)
    if not problems:
        size = config.database.stat().st_size
        yield Finding("database", "ok", f"{sessions:,} session{'s' * (sessions != 1)}, {size / 1e6:,.1f} MB, whole")


async def _looked_into(config: Config) -> tuple[int, list[str]]:
    from ...app.stored_sessions import open_archive
    from ...log.records import SessionRecord

    async with open_archive(config) as archive:
        return len(await archive.find(SessionRecord, {"deleted": None})), await archive.problems()


def _hub(config: Config) -> Iterator[Finding]:
    from ...app.stored_sessions import find_hub
    from ...log.errors import LogLocked
    from ...log.sqlite.reader import lock_holder

    holder = lock_holder(config.database)
    if holder is None:
        yield Finding("hub", "ok", "none is running on this home")
        return
    who = f"process {holder} is running on this home" if holder else "one is running"
    try:
        hub = complete(find_hub(config))
        yield Finding("hub", "ok", who + (f", at {hub.url}" if hub is not None and hub.url else ""))
    except LogLocked:
        yield Finding("hub", "problem", f"{who} and does not answer; wait for it, or stop it")


def _agents(config: Config) -> Iterator[Finding]:
    from ...app.composition import registry

    agents = registry(config)
    ready = [name for name in agents.names if agents.launch(name) is not None]
    yield Finding("agents", "ok", f"{', '.join(ready)} can be started; `pilothouse agents` has the others")
    chosen = config.settings.default_agent
    if chosen is not None and chosen not in agents:
        close = difflib.get_close_matches(chosen, agents.names, n=1)
        meant = f"; is it {close[0]!r}?" if close else "; `pilothouse agents` lists them"
        yield Finding("agent", "problem", f"default_agent is {chosen!r}, and no agent is called so{meant}")
    elif chosen is not None and chosen not in ready:
        yield Finding("agent", "problem", f"default_agent is {chosen!r}, which is not installed")
    for entry in agents.all():
        if entry.problem is not None:
            yield Finding("adapter", "problem", f"{entry.name}: {entry.problem}")
        elif entry.origin == "config" and agents.launch(entry.name) is None:
            yield Finding(
                "agent", "problem", f"{entry.name}: its program {_program(config, entry.name)!r} is not found"
            )


def _program(config: Config, name: str) -> str:
    return config.agents[name].command[0]


def _editors() -> Iterator[Finding]:
    """What editors that are here have of us. Who uses no editor needs no entry; one that cannot work is a problem."""
    from ...app.editors.entries import own_servers
    from ...app.editors.files import read, settings_files
    from ...app.editors.jsonc import JsoncError
    from ...config import ConfigError
    from .setup import TITLES

    for editor in ("zed", "jetbrains"):
        for path in filter(Path.exists, settings_files(editor, Path.home())):
            where = f"{TITLES[editor]}, {short_path(str(path))}"
            try:
                entries = own_servers(read(path) or "")
            except JsoncError as exc:
                yield Finding("editor", "note", f"{where}:{exc.line}: column {exc.column}: {exc}")
                continue
            except ConfigError as exc:
                yield Finding("editor", "note", f"{TITLES[editor]}, {exc}")
                continue
            if not entries:
                yield Finding(
                    "editor", "note", f"{where}: no entry for Pilothouse; `pilothouse setup {editor}` has one"
                )
            for name, entry in entries.items():
                state, words = _entry(entry)
                yield Finding("editor", state, f"{where}: {name!r} {words}")


def _entry(entry: Any) -> tuple[str, str]:
    """How an editor's entry stands to this program."""
    import shutil

    from ...app.editors.files import is_this_program

    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(command, str) or shutil.which(command) is None:
        return "problem", f"runs {command!r}, which is not there; `pilothouse setup` has what is"
    given = entry.get("args")
    words = [command, *map(str, given if isinstance(given, list) else ())]
    return ("ok", "runs this program") if is_this_program(words) else ("note", f"runs another one: {' '.join(words)}")
