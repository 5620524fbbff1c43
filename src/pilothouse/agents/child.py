"""A command that runs with its output read as it comes; used by the agent itself and by clients that lend terminals.

The output goes through a pipe of our own: asyncio would otherwise count a program as running for as long as something
it left in the background holds its output open.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio_subprocess
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self

__all__ = ["SHELL", "Child"]

POSIX = os.name == "posix"
SHELL = ("sh", "-c") if POSIX else ("cmd", "/c")
DRAIN = 0.2
"""Seconds after a program's end in which its last output is still waited for."""


class Child:
    """A running command; whoever starts it must `close` it."""

    def __init__(self, process: aio_subprocess.Process, pump: asyncio.Task[None]) -> None:
        self._process = process
        self._pump = pump

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
        readable, writable = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=aio_subprocess.DEVNULL,  # ours may be a protocol or a keyboard
                stdout=writable,
                stderr=writable,
                start_new_session=POSIX,  # so that all of it can be killed
            )
        except BaseException:
            os.close(readable)
            raise
        finally:
            os.close(writable)
        pump = asyncio.get_running_loop().create_task(_pump(readable, on_output), name="child output")
        return cls(process, pump)

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
        if not self.is_running:
            return
        with contextlib.suppress(ProcessLookupError):
            if POSIX:
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    async def close(self) -> None:
        """Give the program up: it is killed if it runs, and nothing more is read."""
        self.kill()
        await self._process.wait()
        self._pump.cancel()
        await asyncio.wait((self._pump,))


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
