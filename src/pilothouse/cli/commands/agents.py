"""`pilothouse agents` and `agent`: the known agents, agents imported from editors, and the built-in agent on stdio."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit, Failure, reported
from ..groups import Group
from ..output import complete, complete_or_end, console, print_json, print_table, say


@click.group(cls=Group, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--versions", is_flag=True, help="Ask each installed agent for its version.")
@click.pass_context
@reported
def agents(ctx: click.Context, as_json: bool, versions: bool) -> None:
    """List agents: which are installed, and how to get the others."""
    if ctx.invoked_subcommand is not None:
        return
    found = describe_agents(versions=versions)
    if as_json:
        print_json(found)
        return
    _print(found, versions=versions)


def describe_agents(*, versions: bool = False) -> list[dict[str, Any]]:
    """Every agent as JSON has it, those that can be used first."""
    from ...app.agents import describe_agents as describe
    from ...app.composition import registry
    from ...config import load_config

    config = load_config()
    return complete(describe(registry(config), config.home, versions=versions))


STATES = {
    "installed": ("✓", "green"),
    "on demand": ("↓", "cyan"),
    "missing": ("·", "dim"),
    "broken": ("✗", "red"),
}
LEGEND = "✓ installed  ↓ fetched on demand  · not installed  ✗ broken"
BUILT_IN = {
    "demo": "built in: no model, no network",
    "coder": "built in: PILOTHOUSE_MODEL names its model, such as ollama:qwen3",
}
NARROW = 90
"""Columns below which a table would break words."""


def _print(found: list[dict[str, Any]], *, versions: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    if out.width < NARROW:
        _print_narrow(found)
        return
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("", "agent", "", "version" if versions else "", ""):
        table.add_column(column, overflow="fold")
    for agent in found:
        icon, style = STATES.get(agent["state"], ("?", ""))
        dim = "dim" if agent["state"] == "missing" else ""
        row = (icon, agent["name"], agent["title"], agent.get("version") or "", _about(agent))
        styles = (style, dim or "bold", dim, dim, "red" if agent["state"] == "broken" else "dim")
        table.add_row(*(Text(text, style=one) for text, one in zip(row, styles, strict=True)))
    print_table(out, table)
    out.print(Text(f"\n{LEGEND}", style="dim"))


def _print_narrow(found: list[dict[str, Any]]) -> None:
    """Where a table would break words: what an agent is on one line, how it is had below."""
    for agent in found:
        icon, style = STATES.get(agent["state"], ("?", ""))
        colour = None if style in ("", "dim") else style
        name = click.style(agent["name"], bold=agent["state"] != "missing")
        version = f" {agent['version']}" if agent.get("version") else ""
        say(f"{click.style(icon, fg=colour)} {name}: {agent['title']}{version}", hanging=2)
        say(click.style(f"  {_about(agent)}", dim=True), hanging=4)
    say(f"\n{LEGEND}")


def _about(agent: dict[str, Any]) -> str:
    if agent["state"] == "on demand":
        return "npx fetches it when it is first used"
    if agent["state"] == "installed" and agent["origin"] == "known" and agent["name"] in BUILT_IN:
        return BUILT_IN[agent["name"]]
    return str(agent.get("problem") or agent.get("install") or " ".join(agent.get("command") or ()))


@agents.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
@reported
def import_(file: Path, dry_run: bool) -> None:
    """Take over agents from an editor's FILE.

    It is Zed's settings.json or JetBrains' acp.json. They are added to config.toml; names that are there already are
    left as they are.
    """
    from ...config import add_agents, load_config, read_editor_agents

    config = load_config()
    imported = read_editor_agents(file)
    new = {name: agent for name, agent in imported.agents.items() if name not in config.agents}
    if new and not dry_run:
        add_agents(config, new)
    for name, agent in new.items():
        click.echo(f"{'would add' if dry_run else 'added'} {name}: {' '.join(agent.command)}")
    for name in imported.agents.keys() - new.keys():
        click.echo(f"left {name}: it is in {config.path} already")
    for title, why in imported.skipped.items():
        click.echo(f"passed over {title}: {why}", err=True)
    if not imported.agents:
        raise Failure(f"{file} has no agents that can be taken over", Exit.ERROR)


if TYPE_CHECKING:
    from ...agents.coder.host import Options


def _checked(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    from ...agents.coder.model_names import parse

    if value is not None:
        try:
            parse(value)
        except ValueError as exc:
            raise click.BadParameter(str(exc)) from None
    return value


@click.command()
@click.option(
    "--model",
    metavar="PROVIDER:NAME[@URL]",
    callback=_checked,
    help="The model; by default PILOTHOUSE_MODEL, else `model` under [agent] in config.toml.",
)
@click.option("--mode", type=click.Choice(["ask", "plan", "code"]), help="What a new session begins in.")
@reported
def agent(model: str | None, mode: str | None) -> None:
    """Run the built-in coding agent: ACP on standard input and output.

    It works with any model that pydantic-ai speaks: `anthropic:claude-sonnet-4-5`, `openai:gpt-5`,
    `google:gemini-2.5-pro`, `ollama:qwen3`, or `openai:NAME@URL` for a server that has OpenAI's interface. The key is
    in the provider's own variable, such as ANTHROPIC_API_KEY. To talk to it, use `pilothouse run -a coder`.
    """
    from importlib.util import find_spec

    if find_spec("pydantic_ai") is None:
        raise Failure(
            "The built-in agent is not installed. To install it: pip install 'pilothouse[agent]'", Exit.NO_AGENT
        )
    from ...agents.coder import serve
    from ...config import home_directory

    if sys.stdin.isatty():
        click.echo(
            "The built-in agent. It speaks JSON-RPC (ACP) on stdin and stdout; to talk to it, use "
            "`pilothouse run -a coder`.",
            err=True,
        )
    given = os.environ.get("PILOTHOUSE_CODER_HOME", "").strip()
    home = Path(given).expanduser().absolute() if given else home_directory() / "coder"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise Failure(f"{home} cannot be used for sessions: {exc.strerror}", Exit.HOME) from exc
    sys.exit(complete_or_end(serve(_options(model, mode), home, lambda: _options(model, mode))))


def _options(model: str | None, mode: str | None) -> Options:
    """What the file says, with what was given here in its place. Raises ConfigError."""
    from msgspec.structs import asdict

    from ...agents.coder.host import Options
    from ...config import coder_settings, load_config

    given: dict[str, Any] = {"model": model, "mode": mode}
    chosen = {name: value for name, value in given.items() if value is not None}
    return Options(**{**asdict(coder_settings(load_config())), **chosen})
