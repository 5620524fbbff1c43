"""One program that runs for an agent: started, read without pause, ended with all of its children.

`Tail` keeps the last bytes of the output; `Pieces` hands text on as it comes. Both keep whole UTF-8 characters however
the reads fall, and turn what is not UTF-8 into U+FFFD.

Rules a change must not break: reading never stops while the program is held, so the program never waits for the hub;
its exit is its own, not that of another process which holds its output open (so the pipe is ours and not asyncio's,
which would wait for it); and stopping it always ends.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio_subprocess
import codecs
import contextlib
import logging
import os
import secrets
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ...acp.process import MARK
from .process_tree import Family

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


CHUNK = 16 * 1024
"""Small writes are put together to pieces of this size, so that a program that prints single bytes costs no more."""
PIECE = 64 * 1024
"""Bytes of one piece of followed output."""
BURST = 256 * 1024
RATE = 256
"""Bytes that are handed on at once, and then per second; a flood beyond is left out of the pieces and counted.

A build log passes whole; what a program prints in a day of flooding comes to some 20 MB in an event log."""
GLIMPSE = 4 * 1024
"""Bytes of the end of a flood that are shown now and then."""


class Tail:
    """The last `limit` bytes of an output as text; its UTF-8 is never longer than that."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytearray] = deque()
        self._size = 0
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes ever added."""
        return self._total

    def add(self, data: bytes) -> None:
        self._total += len(data)
        if self._chunks and len(self._chunks[-1]) + len(data) <= CHUNK:
            self._chunks[-1] += data
        else:
            self._chunks.append(bytearray(data))
        self._size += len(data)
        while self._chunks and self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())

    def read(self, *, complete: bool) -> tuple[str, bool]:
        """The text, and whether its beginning is missing. Unless `complete`, half a character at the end waits."""
        data = b"".join(self._chunks)
        excess = len(data) - self._limit
        if excess > 0:
            data = _from_character(data, excess)
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=complete)
        encoded = text.encode()
        if len(encoded) > self._limit:  # the marks for what is no UTF-8 are longer than that was
            text = _from_character(encoded, len(encoded) - self._limit).decode()
            return text, True
        return text, self._total > len(data)


class Pieces:
    """Output on its way to a follower: bytes in, text out, at a rate that a flood does not raise.

    `add` bytes, then `take` text at intervals until there is none. What had to be left out is said in its place.
    """

    def __init__(self, *, burst: int = BURST, rate: int = RATE, piece: int = PIECE, glimpse: int = GLIMPSE) -> None:
        self._burst = burst
        self._rate = rate
        self._piece = piece
        self._glimpse = min(glimpse, piece)
        self._waiting = bytearray()
        self._left_out = 0
        self._allowance = float(burst)
        self._last: float | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_full(self) -> bool:
        """Whether a piece is ready before its time."""
        return len(self._waiting) >= self._piece and self._allowance >= self._piece

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def add(self, data: bytes) -> None:
        """Take bytes in, not more than a piece at a time. When two pieces wait, the older one is left out."""
        self._waiting += data
        if len(self._waiting) > 2 * self._piece:
            self._leave_out(len(self._waiting) - self._piece)

    def _leave_out(self, count: int) -> None:
        if count > 0:
            self._left_out += count
            del self._waiting[:count]

    def take(self, now: float, *, final: bool = False) -> str:
        """The next piece, or nothing for now. Of a flood it is a glimpse of its end; the last comes at any rate."""
        if self._last is not None:
            self._allowance = min(self._burst, self._allowance + (now - self._last) * self._rate)
        self._last = now
        if self._allowance < min(len(self._waiting), self._piece):
            if not final and self._allowance < self._glimpse:
                return ""
            self._leave_out(len(self._waiting) - self._glimpse)
        size = min(len(self._waiting), self._piece)
        self._allowance -= size
        data = bytes(self._waiting[:size])
        del self._waiting[:size]
        if not self._left_out:
            return self._decoder.decode(data, final=final and not self._waiting)
        whole = _from_character(data, 0)
        left_out = len(self._decoder.getstate()[0]) + self._left_out + len(data) - len(whole)
        self._left_out = 0
        self._decoder.reset()
        text = self._decoder.decode(whole, final=final and not self._waiting)
        return f"\n… {left_out:,} bytes left out …\n{text}"


def _from_character(data: bytes, start: int) -> bytes:
    """What follows from `start` on, without the rest of a character that began before it."""
    end = min(start + 3, len(data))
    while start < end and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
