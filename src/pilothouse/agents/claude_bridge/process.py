"""One process of the CLI for one session: its command line, its lines as they come, its stdin, and its end.

A server's secrets are in a file that only the user can read, never among the arguments, which every user of the machine
can see. Received lines are bounded: reading pauses until the owner of the process takes some. The owner is woken when
there are lines, and when no more will come. The process ends with all of its children.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...acp import schema
from ...acp.errors import ConnectionClosed
from ...acp.framing import Oversize
from ...acp.process import StderrTail, default_environment, describe_end, spawn, stop
from ...acp.transport import PipeLink
from ...model.loose_json import mapping, number, text

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


BACKLOG = 4 * 1024 * 1024
"""Bytes of lines that wait before reading stops; a single line may be longer."""
STOP_TIMEOUT = 1.0
"""Seconds for each step of an end; the CLI ends by itself when its stdin does."""
LAST_WORDS = 0.2


class CliProcess:
    """A process that has been started."""

    def __init__(self, process: Any, link: PipeLink, wake: Callable[[], None], config: Path | None) -> None:
        self._process = process
        self._link = link
        self._wake = wake
        self._config = config
        self._tail = StderrTail(process)
        self._lines: deque[bytes | Oversize] = deque()
        self._size = 0
        self._paused = False
        self._stopping: asyncio.Task[None] | None = None
        self._is_over = False
        self.settled = asyncio.Event()
        """Set by the owner when it has dealt with the end."""
        link.start(self._received, self._ended)

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    @property
    def is_over(self) -> bool:
        """Whether no more lines will come; some may still wait to be taken."""
        return self._is_over

    @property
    def stderr_tail(self) -> str:
        return self._tail.text

    def remove_config(self) -> None:
        """Remove the file of servers, once it was read: it has secrets, and who is killed later removes nothing."""
        if self._config is not None:
            self._config.unlink(missing_ok=True)
            self._config = None

    def take(self) -> bytes | Oversize | None:
        """The next line, if there is one."""
        if not self._lines:
            return None
        line = self._lines.popleft()
        self._size -= len(line)
        if self._paused and self._size <= BACKLOG // 2:
            self._paused = False
            self._link.resume()
        return line

    def send(self, line: bytes) -> None:
        """Write a line. One that can no longer arrive is dropped: the end of the process tells of it."""
        with contextlib.suppress(ConnectionClosed):
            self._link.send(line + b"\n")

    def _received(self, lines: Sequence[bytes | Oversize]) -> None:
        self._lines.extend(lines)
        self._size += sum(map(len, lines))
        if self._size > BACKLOG:
            self._paused = True
            self._link.pause()
        self._wake()

    def _ended(self, error: BaseException | None) -> None:
        self._is_over = True
        self._wake()

    async def describe_end(self) -> ConnectionClosed:
        """How it ended: its exit code and its last words. For one whose output is over."""
        return await describe_end(self._process, self._tail)

    async def stop(self) -> None:
        """End it and its whole tree; always ends, and goes on when its caller is cancelled."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop(), name="ending the CLI")
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        try:
            self._link.resume()  # a paused pipe would never see its end
            await stop(self._process, timeout=STOP_TIMEOUT)
            await asyncio.wait((self._tail.task,), timeout=LAST_WORDS)
            self._tail.task.cancel()
            await asyncio.wait((self._tail.task,))
        finally:
            self.remove_config()
            self._is_over = True
            self._wake()


async def start_cli(
    program: str,
    arguments: Callable[[str | None], Sequence[str]],
    *,
    cwd: str,
    wake: Callable[[], None],
    servers: bytes | None = None,
) -> CliProcess:
    """Start the CLI. `arguments` gets the path of a file with `servers` in it, if there are any. Raises SpawnError."""
    config = _private_file(servers) if servers is not None else None
    link = PipeLink()
    try:
        words = arguments(str(config) if config is not None else None)
        process = await spawn(program, *words, env=environment(), inherit_env=False, cwd=cwd, link=link)
    except BaseException:
        if config is not None:
            config.unlink(missing_ok=True)
        raise
    return CliProcess(process, link, wake, config)


def _private_file(content: bytes) -> Path:
    descriptor, name = tempfile.mkstemp(prefix="pilothouse-mcp-", suffix=".json")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return Path(name)
