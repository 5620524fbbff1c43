"""One program that runs for an agent: started, read without pause, ended with everything it started.

Rules a change must not break: reading never stops while the program is held, so it never waits for us; its end is its
own end, not that of whoever holds its output open (so the pipe is ours and not asyncio's, which would wait for it);
and stopping it always ends.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio_subprocess
import contextlib
import logging
import os
import secrets
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..acp.process import MARK
from .families import Family
from .outputs import PIECE, Pieces, Tail

__all__ = ["ExitStatus", "Program"]

logger = logging.getLogger(__name__)

POSIX = os.name == "posix"
DRAIN = 0.2
"""Seconds after a program's end in which its last output is waited for; it is there at once, unless somebody else
holds the pipe."""
INTERVAL = 0.1
"""Seconds in which output for followers is put together, so that it makes some ten events a second at most."""
KILL = 9
STUCK = 3.0
"""Seconds after which a program that not even a kill ends is given up, as one that hangs in the kernel."""


@dataclass(frozen=True)
class ExitStatus:
    """How a program ended: by itself with a code, or by a signal. One of them is None."""

    exit_code: int | None
    signal: str | None

    @classmethod
    def of(cls, returncode: int) -> Self:
        if returncode >= 0:
            return cls(returncode, None)
        try:
            return cls(None, signal.Signals(-returncode).name)
        except ValueError:  # one of those between SIGRTMIN and SIGRTMAX
            return cls(None, f"SIGRTMIN+{-returncode - signal.SIGRTMIN}" if hasattr(signal, "SIGRTMIN") else "unknown")


class Program:
    """A running program. Whoever starts it must `close` it."""

    def __init__(
        self,
        limit: int,
        grace: float,
        on_text: Callable[[str], None] | None,
        on_end: Callable[[ExitStatus, str, int], None] | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._tail = Tail(limit)
        self._pieces = Pieces()
        self._grace = grace
        self._on_text = on_text
        self._on_end = on_end
        self._timer: asyncio.TimerHandle | None = None
        self._silent = self._loop.create_future()
        self._ended = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._let_go: Callable[[], object] = lambda: None
        self._process: aio_subprocess.Process
        self._family: Family
        self._watching: asyncio.Task[None]

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        limit: int,
        grace: float,
        on_text: Callable[[str], None] | None = None,
        on_end: Callable[[ExitStatus, str, int], None] | None = None,
    ) -> Self:
        """Start a program with nothing to read and its stdout and stderr in one pipe. Raises OSError, ValueError.

        `on_end` is told how it ended, the end of what it printed, and how many bytes of that are missing, before
        anyone who waits for the end.
        """
        self = cls(limit, grace, on_text, on_end)
        readable, writable = os.pipe()
        try:
            await self._read(readable)
            await self._spawn(command, cwd, env, writable)
        except BaseException:
            self._stop_reading()
            raise
        finally:
            os.close(writable)
        self._watching = self._loop.create_task(self._watch(), name=f"terminal of {self._process.pid}")
        return self

    @property
    def status(self) -> ExitStatus | None:
        """None until the program has ended and what it wrote has been read."""
        code = self._process.returncode
        return ExitStatus.of(code) if code is not None and self._ended.is_set() else None

    def output(self) -> tuple[str, bool]:
        """The end of what it printed, and whether the beginning is missing."""
        return self._tail.read(complete=self._silent.done() or self._ended.is_set())

    async def wait(self) -> ExitStatus:
        """Wait for its end."""
        await self._ended.wait()
        code = self._process.returncode
        return ExitStatus.of(-KILL if code is None else code)

    async def stop(self) -> None:
        """End it and all it started: terminate, then kill. Its output stays. Again is no harm, and cancelling no way
        to leave it half done."""
        if self._stopping is None or self._stopping.done():
            self._stopping = self._loop.create_task(self._stop(), name="stop a terminal")
        await asyncio.shield(self._stopping)

    async def close(self) -> None:
        """End it and let go of it; whoever waits for its end is told. Cancelling does not leave it half done."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(), name="close a terminal")
        await asyncio.shield(self._closing)

    # -- its life --

    async def _spawn(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], writable: int) -> None:
        mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=aio_subprocess.DEVNULL,
            stdout=writable,
            stderr=writable,
            cwd=str(cwd),
            env={**env, MARK: mark},
            **({"start_new_session": True} if POSIX else {"creationflags": 0x00000200}),  # CREATE_NEW_PROCESS_GROUP
        )
        self._family = Family(self._process.pid, mark)

    async def _watch(self) -> None:
        try:
            await self._process.wait()
        except asyncio.CancelledError:  # the loop ends and nobody closed this
            if self._process.returncode is None:
                self._family.signal(KILL)
            if not self._ended.is_set():
                self._abandon()
            raise
        await asyncio.to_thread(self._family.settle)
        await asyncio.wait((self._silent,), timeout=DRAIN)
        self._emit(final=True)
        self._tell_end()
        self._ended.set()

    def _abandon(self) -> None:
        """Let go of all that would be found open later: asyncio does so some steps after the end, and none are left."""
        self._stop_reading()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()
            popen = transport.get_extra_info("subprocess")
            if popen is not None and popen.returncode is None:
                popen.returncode = -KILL  # as asyncio notes it when it has seen the end

    async def _stop(self) -> None:
        if not POSIX and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
        await self._family.end(self._grace)
        await asyncio.wait((self._watching,), timeout=STUCK)
        if not self._watching.done():
            logger.warning("process %d does not end, not even killed; it is given up", self._process.pid)
            self._watching.cancel()
            self._tell_end()
            self._ended.set()

    async def _close(self) -> None:
        try:
            await self.stop()
        finally:
            self._stop_reading()

    # -- what it prints --

    async def _read(self, readable: int) -> None:
        if not POSIX:  # asyncio cannot watch such a pipe on Windows
            self._let_go = self._loop.create_task(self._read_in_thread(readable)).cancel
            return
        pipe = open(readable, "rb", buffering=0)  # noqa: ASYNC230, SIM115 - only wraps the descriptor
        try:
            reader, _ = await self._loop.connect_read_pipe(lambda: _Reader(self._receive, self._fall_silent), pipe)
        except BaseException:
            pipe.close()
            raise
        self._let_go = reader.close

    async def _read_in_thread(self, readable: int) -> None:
        while data := await asyncio.to_thread(os.read, readable, PIECE):
            self._receive(data)
        os.close(readable)
        self._fall_silent()

    def _stop_reading(self) -> None:
        self._let_go()
        if self._timer is not None:
            self._timer.cancel()
        self._on_text = self._on_end = None

    def _receive(self, data: bytes) -> None:
        self._tail.add(data)
        if self._on_text is None:
            return
        for start in range(0, len(data), PIECE):
            self._pieces.add(data[start : start + PIECE])
            if self._pieces.is_full:
                self._emit()
        if self._timer is None:
            self._timer = self._loop.call_later(INTERVAL, self._tick)

    def _fall_silent(self) -> None:
        if not self._silent.done():
            self._silent.set_result(None)

    def _tick(self) -> None:
        self._timer = None
        self._emit()
        if not self._pieces.is_empty:
            self._timer = self._loop.call_later(INTERVAL, self._tick)

    def _emit(self, *, final: bool = False) -> None:
        while self._on_text is not None:
            if text := self._pieces.take(self._loop.time(), final=final):
                try:
                    self._on_text(text)
                except Exception:
                    logger.exception("a follower of a terminal failed")
            if not final or self._pieces.is_empty:
                return

    def _tell_end(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return
        code = self._process.returncode
        text, _ = self._tail.read(complete=True)
        try:
            left_out = max(0, self._tail.total - len(text.encode()))
            on_end(ExitStatus.of(-KILL if code is None else code), text, left_out)
        except Exception:
            logger.exception("a follower of a terminal failed")


class _Reader(asyncio.Protocol):
    """Hands on what comes; never asks to pause."""

    def __init__(self, receive: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._receive = receive
        self._end = end

    def data_received(self, data: bytes) -> None:
        self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
