"""One process of the CLI: its lines as they come, its stdin, and its end with everything it started.

It knows nothing of what the lines mean. What has been received and not been taken yet is bounded: reading stops until
it is. Whoever owns it is woken when there is something to take, and when no more will come.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...acp.errors import ConnectionClosed
from ...acp.framing import Oversize
from ...acp.process import StderrTail, describe_end, spawn, stop
from ...acp.transport import PipeLink
from .command import environment

__all__ = ["CliProcess", "start_cli"]

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
