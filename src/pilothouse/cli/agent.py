"""`pilothouse agent`: the built-in coding agent on stdio, for the hub, editors and other programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .exits import Exit, Failure, reported
from .output import complete_or_end

if TYPE_CHECKING:
    from ..agents.coder.host import Options

__all__ = ["agent"]


def _checked(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    from ..agents.coder.models import parse

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
    from ..agents.coder import serve
    from ..config import home_directory

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

    from ..agents.coder.host import Options
    from ..config import coder_settings, load_config

    given: dict[str, Any] = {"model": model, "mode": mode}
    chosen = {name: value for name, value in given.items() if value is not None}
    return Options(**{**asdict(coder_settings(load_config())), **chosen})
