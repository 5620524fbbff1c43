"""`pilothouse doctor agent NAME`: what an agent can do, found out by talking with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from .exits import Exit, reported
from .output import complete, print_json, say

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ..adapters.contract import Adapter
    from ..app.probing.report import Report, Row
    from ..config import Config
    from ..hub.agent.process import AgentSpec

__all__ = ["agent"]

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

    from ..app.composition import agent_specs, registry
    from ..config import load_config
    from .choosing import checked_agent, usable_agent

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

    from ..adapters.catalog import DEMO
    from ..app.probing.client import DEMO_SCRIPT, SCRIPT
    from ..app.probing.probe import Probe
    from ..app.probing.report import remember_probe

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
    from ..adapters.catalog import DEMO
    from ..app.probing.client import PROMPTS

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
    from ..app.probing.report import flags
    from ..app.probing.talk import short

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
