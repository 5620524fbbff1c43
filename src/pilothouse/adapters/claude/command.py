"""The command line that starts Claude Code for one session: where the program is, and which flags say what.

Nothing is started here. A server's secrets stand in a file that only the owner can read, never among the arguments,
which every user of the machine can see.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ...acp import schema
from ...acp.process import default_environment
from .reading import mapping, number, text

__all__ = ["Options", "arguments", "environment", "options_from", "program", "remedy", "server_config"]

VARIABLE = "PILOTHOUSE_CLAUDE"
"""Names the variable that says where the CLI is, when that is not on PATH by the name of `claude`."""
INSTALL = "npm install -g @anthropic-ai/claude-code"

_ALWAYS = (
    *("-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"),
    *("--include-partial-messages", "--permission-prompt-tool", "stdio"),
)
_INSIDE = {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"}
"""Variables by which a CLI knows that another one has started it; it would refuse to run, or talk to that one."""


class Options(Struct, frozen=True, kw_only=True):
    """How a session is run. What is None is left to the CLI and its settings."""

    model: str | None = None
    permission_mode: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    directories: tuple[str, ...] = ()


def program(environ: Mapping[str, str] | None = None) -> str:
    """The CLI: by its path, or by its name on PATH."""
    return (os.environ if environ is None else environ).get(VARIABLE) or "claude"


def remedy(path: str, environ: Mapping[str, str] | None = None) -> str:
    """What to do about a program that cannot be started."""
    if path == (os.environ if environ is None else environ).get(VARIABLE):
        return f"{VARIABLE} names it. Name a program there that can be run, or none after `{INSTALL}`."
    return f"Install Claude Code with `{INSTALL}`, or say in {VARIABLE} where it is."


def environment() -> dict[str, str]:
    """What the CLI is started with: all that any child gets, but what would make it a part of another CLI."""
    return {name: value for name, value in default_environment().items() if name not in _INSIDE}


def arguments(options: Options, origin: Iterable[str], servers: str | None = None) -> list[str]:
    """The arguments; `origin` are those that say which conversation it is, `servers` a file of MCP servers."""
    words = [*_ALWAYS, *origin]
    flags = {
        "--model": options.model,
        "--permission-mode": options.permission_mode,
        "--max-turns": options.max_turns,
        "--max-budget-usd": options.max_budget_usd,
        "--mcp-config": servers,
    }
    for flag, value in flags.items():
        if value is not None:
            words += [flag, str(value)]
    for directory in options.directories:
        words += ["--add-dir", directory]
    return words


def options_from(defaults: Options, wanted: Any, directories: Iterable[str] | None = None) -> Options:
    """The options of a session: what its client wants by `_meta.claudeCode.options`, else the defaults."""
    told = mapping(mapping(wanted).get("options"))
    turns, budget = number(told.get("maxTurns")), number(told.get("maxBudgetUsd"))
    return Options(
        model=text(told.get("model")) or defaults.model,
        permission_mode=text(told.get("permissionMode")) or defaults.permission_mode,
        max_turns=defaults.max_turns if turns is None else int(turns),
        max_budget_usd=defaults.max_budget_usd if budget is None else budget,
        directories=(*defaults.directories, *(directories or ())),
    )


def server_config(servers: Iterable[Any] | None) -> bytes | None:
    """The MCP servers of a client in the CLI's own shape; None when there are none."""
    found = {server.name: _server(server) for server in servers or () if not isinstance(server, schema.AcpMcpServer)}
    return msgspec.json.encode({"mcpServers": found}) if found else None


def _server(server: Any) -> dict[str, Any]:
    if isinstance(server, (schema.HttpMcpServer, schema.SseMcpServer)):
        kind = "http" if isinstance(server, schema.HttpMcpServer) else "sse"
        return {"type": kind, "url": server.url, "headers": _pairs(server.headers)}
    return {"type": "stdio", "command": server.command, "args": list(server.args), "env": _pairs(server.env)}


def _pairs(items: Iterable[Any]) -> dict[str, str]:
    return {item.name: item.value for item in items}
