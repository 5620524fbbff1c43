"""`pilothouse config`: what is in force, and where each value comes from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..exits import reported
from ..output import console, print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...config import Config


HIDDEN = "(hidden)"
NARROW = 90
"""Columns below which a table would break words."""


class Setting(NamedTuple):
    """One value. `origin` is default, config.toml, or the name of an environment variable."""

    key: str
    value: Any
    origin: str


@click.command("config")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--path", "only_path", is_flag=True, help="Print only where config.toml is.")
@reported
def config(as_json: bool, only_path: bool) -> None:
    """Show the configuration in force, and where each value comes from. Values of `env` are not shown."""
    from ...config import Config, home_directory, load_config

    if only_path:
        click.echo(Config(home=home_directory()).path)
        return
    loaded = load_config()
    settings = list(_settings(loaded))
    if as_json:
        print_json({"path": str(loaded.path), "settings": [setting._asdict() for setting in settings]})
        return
    from rich.table import Table
    from rich.text import Text

    out = console()
    there = "" if loaded.path.exists() else " (there is none: everything is as by default)"
    say(click.style(f"{loaded.path}{there}", dim=True))
    if out.width < NARROW:
        for setting in settings:
            shown = f"{setting.key} = {_shown(setting.value)}" if setting.value is not None else setting.key
            say(f"{shown} {click.style(f'({setting.origin})', dim=True)}", hanging=4)
        return
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for setting in settings:
        style = "dim" if setting.origin == "default" else ""
        row = (setting.key, _shown(setting.value), setting.origin)
        table.add_row(*(Text(text, style=style) for text in row))
    print_table(out, table)


def _settings(config: Config) -> Iterator[Setting]:
    import msgspec

    from ...config import coder_settings, server_settings

    written = _written(config)
    home = "PILOTHOUSE_HOME" if os.environ.get("PILOTHOUSE_HOME", "").strip() else "default"
    yield Setting("home", str(config.home), home)
    given = bool(os.environ.get("PILOTHOUSE_TOKEN", "").strip())
    shown = HIDDEN if given else str(config.home / "token")
    yield Setting("token", shown, "PILOTHOUSE_TOKEN" if given else "default")
    yield Setting("default_agent", config.settings.default_agent, _origin(written, "default_agent"))
    server = written.get("server", {})
    port = "PILOTHOUSE_PORT" if os.environ.get("PILOTHOUSE_PORT", "").strip() else _origin(server, "port")
    for name, value in msgspec.structs.asdict(server_settings(config)).items():
        yield Setting(f"server.{name}", value, port if name == "port" else _origin(server, name))
    built_in = written.get("agent", {})
    model = "PILOTHOUSE_MODEL" if os.environ.get("PILOTHOUSE_MODEL", "").strip() else _origin(built_in, "model")
    for name, value in msgspec.structs.asdict(coder_settings(config)).items():
        yield Setting(f"agent.{name}", value, model if name == "model" else _origin(built_in, name))
    for name, agent in config.agents.items():
        for key, value in msgspec.structs.asdict(agent).items():
            if value:
                told = dict.fromkeys(value, HIDDEN) if key == "env" else value
                yield Setting(f"agents.{name}.{key}", told, "config.toml")
    for part, value in (config.policy or {}).items():
        yield Setting(f"policy.{part}", value, "config.toml")


def _written(config: Config) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(config.path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def _origin(table: dict[str, Any], key: str) -> str:
    return "config.toml" if key in table else "default"


def _shown(value: Any) -> str:
    import msgspec

    return "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
