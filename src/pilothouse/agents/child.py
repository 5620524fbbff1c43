"""A command that runs with its output read as it comes; used by the agent itself and by clients that lend terminals.

The output goes through a pipe of our own: asyncio would otherwise count a program as running for as long as something
it left in the background holds its output open. What it left there ends when it is closed, also what has left its
group: on Linux that is found by a mark in its environment.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio_subprocess
import contextlib
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Self, TypeVar

from ..acp.process import look, started_at

__all__ = ["SHELL", "Child"]

POSIX = os.name == "posix"
SHELL = ("sh", "-c") if POSIX else ("cmd", "/c")
MARK = "PILOTHOUSE_COMMAND"
DRAIN = 0.2
"""Seconds after a program's end in which its last output is still waited for."""


class Child:
    """A running command; whoever starts it must `close` it."""

    def __init__(self, process: aio_subprocess.Process, pump: asyncio.Task[None], mark: str) -> None:
        self._process = process
        self._pump = pump
        self._mark = f"{MARK}={mark}".encode()
        self._since = started_at(process.pid) or 0

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: str,
        on_output: Callable[[bytes], Awaitable[None]],
        env: Mapping[str, str] | None = None,
    ) -> Self:
        """Start a command. `on_output` gets stdout and stderr in the order written. Raises OSError."""
        mark = secrets.token_hex(8)
        readable, writable = os.pipe()
        starting = _aside(
            asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env={**os.environ, **(env or {}), MARK: mark},
                stdin=aio_subprocess.DEVNULL,  # ours may be a protocol or a keyboard
                stdout=writable,
                stderr=writable,
                start_new_session=POSIX,  # so that all of it can be killed
            )
        )
        starting.add_done_callback(lambda _: os.close(writable))
        made = _aside(cls._made(starting, readable, on_output, mark))
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            # it may run already, and have started others: asyncio itself would only end the program
            await asyncio.shield(_aside(_abandoned(made)))
            raise

    @classmethod
    async def _made(
        cls,
        starting: asyncio.Task[aio_subprocess.Process],
        readable: int,
        on_output: Callable[[bytes], Awaitable[None]],
        mark: str,
    ) -> Self:
        try:
            process = await starting
        except BaseException:
            os.close(readable)
            raise
        pump = asyncio.get_running_loop().create_task(_pump(readable, on_output), name="child output")
        return cls(process, pump, mark)

    @property
    def exit_code(self) -> int | None:
        """None while it runs, also None when a signal ended it."""
        code = self._process.returncode
        return code if code is not None and code >= 0 else None

    @property
    def signal(self) -> str | None:
        code = self._process.returncode
        return signal.Signals(-code).name if code is not None and code < 0 else None

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def wait(self) -> None:
        """Wait for the end of the program and for the output it wrote."""
        await self._process.wait()
        await asyncio.wait((self._pump,), timeout=DRAIN)

    def kill(self) -> None:
        """End the program and everything it started. Its output so far can still be read."""
        if self.is_running:
            self._kill_group()

    async def close(self) -> None:
        """Give the program up: it is killed if it runs, with all that it left behind, and nothing more is read.

        That is done to its end, also when whoever waits for it is cancelled.
        """
        await asyncio.shield(_aside(self._close()))

    async def _close(self) -> None:
        self.kill()
        await self._process.wait()
        self._kill_group()
        await asyncio.to_thread(self._kill_left)
        self._pump.cancel()
        await asyncio.wait((self._pump,))

    def _kill_group(self) -> None:
        # its id is the program's, and stays taken for as long as anybody is in it
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if POSIX:
                os.killpg(self._process.pid, signal.SIGKILL)
            elif self.is_running:
                self._process.kill()

    def _kill_left(self) -> None:
        """End those who left the group. It looks at all processes, so it needs a thread."""
        for pid, started in look((), mark=self._mark, since=self._since).items():
            if started_at(pid) == started:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


_T = TypeVar("_T")
_tasks: set[asyncio.Task[Any]] = set()
"""Those that nobody may be waiting for any more; the loop itself would forget them."""


def _aside(work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
    """A task that goes on when whoever waits for it is cancelled."""
    task = asyncio.get_running_loop().create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


async def _abandoned(made: asyncio.Task[Child]) -> None:
    """End a child that nobody wants any more, as soon as it is there."""
    await asyncio.wait((made,))
    if not made.cancelled() and made.exception() is None:
        await made.result().close()


async def _pump(readable: int, on_output: Callable[[bytes], Awaitable[None]]) -> None:
    if not POSIX:  # asyncio cannot watch such a pipe on Windows
        while data := await asyncio.to_thread(os.read, readable, 64 * 1024):
            await on_output(data)
        os.close(readable)
        return
    reader = asyncio.StreamReader()
    pipe = open(readable, "rb", buffering=0)  # noqa: ASYNC230, SIM115 - only wraps the descriptor
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while data := await reader.read(64 * 1024):
            await on_output(data)
    finally:
        transport.close()
