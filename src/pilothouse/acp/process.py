"""Child processes that speak ACP on their stdio, and how they end.

A child gets its own process group and the whole environment. Its stderr is drained for as long as it lives and
the tail kept for error messages. Stopping goes in steps, each with its time: close stdin, terminate, kill; and
the whole tree goes with the child, not only the process that was started.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio_subprocess
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from .errors import ConnectionClosed, SpawnError
from .transport import PipeLink

__all__ = ["CommandNotFound", "StderrTail", "default_environment", "spawn", "spawn_stdio_transport", "stop"]

STDERR_TAIL = 64 * 1024
STDERR_FOR_READER = 1024 * 1024
EXIT_WAIT = 1.0
SHUTDOWN_TIMEOUT = 2.0
READ_LIMIT = 256 * 1024
POSIX = os.name == "posix"


class CommandNotFound(SpawnError, FileNotFoundError):
    """The program to start does not exist."""


class StderrTail:
    """Reads a child's stderr so that the child never blocks on it, and keeps the end of what it said.

    `process.stderr` stays readable for whoever wants it all, as long as they keep up.
    """

    def __init__(self, process: aio_subprocess.Process, limit: int = STDERR_TAIL) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._source = process.stderr
        self.reader = asyncio.StreamReader()
        self._unread = 0
        if self._source is not None:
            process.stderr = self.reader
        self.task = asyncio.get_running_loop().create_task(self._run(), name="acp stderr")

    @property
    def text(self) -> str:
        return self._tail.decode(errors="replace")

    async def _run(self) -> None:
        try:
            while self._source is not None and (data := await self._source.read(READ_LIMIT)):
                self._tail += data
                if len(self._tail) > self._limit:
                    del self._tail[: -self._limit]
                if len(self.reader._buffer) < STDERR_FOR_READER:  # type: ignore[attr-defined]
                    self.reader.feed_data(data)
        except (OSError, ValueError):
            pass
        finally:
            self.reader.feed_eof()


def default_environment() -> dict[str, str]:
    """The environment a child starts with: all of this process's own.

    Agents need their keys, proxies, locale and tool paths. Exported shell functions are left out.
    """
    return {key: value for key, value in os.environ.items() if not value.startswith("() {")}


async def spawn(
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    inherit_env: bool = True,
    stderr: int | None = aio_subprocess.PIPE,
    limit: int | None = None,
    link: PipeLink | None = None,
) -> aio_subprocess.Process:
    """Start a program with pipes in a process group of its own. Raises SpawnError with the reason.

    With `link` the child's output goes there instead of to `process.stdout`.
    """
    environment = {**(default_environment() if inherit_env else {}), **(env or {})}
    _check_directory(command, cwd)
    options: dict[str, object] = (
        {"start_new_session": True} if POSIX else {"creationflags": 0x00000200}  # CREATE_NEW_PROCESS_GROUP
    )
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _ChildProtocol(limit or READ_LIMIT, loop, link),
            command,
            *args,
            stdin=aio_subprocess.PIPE,
            stdout=aio_subprocess.PIPE,
            stderr=stderr,
            env=environment,
            cwd=str(cwd) if cwd is not None else None,
            **options,  # type: ignore[arg-type]
        )
    except FileNotFoundError as exc:
        path = environment.get("PATH", "")
        if os.sep not in command and shutil.which(command, path=path) is None:
            raise CommandNotFound(f"cannot start {command!r}: not found on PATH={path}") from exc
        raise CommandNotFound(f"cannot start {command!r}: {exc.strerror} (PATH={path})") from exc
    except (OSError, ValueError) as exc:
        raise SpawnError(f"cannot start {command!r}: {exc}") from exc
    process = ChildProcess(transport, protocol, loop)
    if link is not None:
        assert process.stdin is not None
        link.attach(process.stdin, cast("asyncio.ReadTransport | None", transport.get_pipe_transport(1)))
    return process


class ChildProcess(aio_subprocess.Process):
    """asyncio's process, whose pipes can be given up even while a grandchild holds their other end."""

    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        protocol: aio_subprocess.SubprocessStreamProtocol,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(transport, protocol, loop)
        self.give_up = transport.close


class _ChildProtocol(aio_subprocess.SubprocessStreamProtocol):
    """Hands a child's stdout to a link as it arrives."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop, link: PipeLink | None) -> None:
        super().__init__(limit, loop)
        self._link = link

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd == 1 and self._link is not None:
            self._link.data_received(cast(bytes, data))
        else:
            super().pipe_data_received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1 and self._link is not None:
            self._link.eof_received()
        super().pipe_connection_lost(fd, exc)


def _check_directory(command: str, cwd: str | Path | None) -> None:
    """The operating system reports a missing directory as if the program were missing."""
    if cwd is not None and not Path(cwd).is_dir():
        raise SpawnError(f"cannot start {command!r}: its working directory {str(cwd)!r} does not exist")


async def describe_end(process: aio_subprocess.Process, tail: StderrTail | None) -> ConnectionClosed:
    """Why a child's output ended: its exit code, if it exits soon, and the last it said on stderr."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), EXIT_WAIT)
    if tail is not None and process.returncode is not None:
        # grandchildren may hold stderr open; what the child itself wrote arrives at once
        await asyncio.wait((tail.task,), timeout=0.2)
    return ConnectionClosed(
        "Connection closed", exit_code=process.returncode, stderr_tail=tail.text if tail is not None else ""
    )


async def stop(process: aio_subprocess.Process, *, timeout: float = SHUTDOWN_TIMEOUT) -> int:
    """End a child and its whole tree. Returns its exit code; always ends."""
    family = _descendants(process.pid) if process.returncode is None else set()
    if process.stdin is not None:
        # closing flushes; a child that does not read would hold that up, so it is not waited for
        with contextlib.suppress(OSError, RuntimeError):
            process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), timeout)
    except TimeoutError:
        family |= _descendants(process.pid)
        _signal_tree(process, family, terminate=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), timeout)
    # The child has had its time; what it left behind gets a moment to go by itself.
    _signal_tree(process, family, terminate=True)
    for _ in range(20):
        if process.returncode is not None and not _tree_alive(process, family):
            break
        await asyncio.sleep(0.01 if process.returncode is not None else timeout / 20)
    _signal_tree(process, family, terminate=False)
    if process.stdin is not None and process.stdin.transport.get_write_buffer_size():
        process.stdin.transport.abort()
    code = await process.wait()
    if isinstance(process, ChildProcess):
        process.give_up()
    return code


def _signal_tree(process: aio_subprocess.Process, family: set[int], *, terminate: bool) -> None:
    if not POSIX:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate() if terminate else process.kill()
        return
    number = signal.SIGTERM if terminate else signal.SIGKILL
    # The group id is the child's pid (start_new_session) and stays taken while any member lives.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
    for pid in family:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _tree_alive(process: aio_subprocess.Process, family: set[int]) -> bool:
    if not POSIX:
        return process.returncode is None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 0)
        return True
    for pid in family:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, 0)
            return True
    return False


def _descendants(root: int) -> set[int]:
    """Children of children, also those that left the process group (Linux; elsewhere the group is what we know)."""
    if sys.platform != "linux":
        return set()
    parents: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path(entry.path, "stat").read_bytes()
                parents.setdefault(int(stat[stat.rindex(b")") + 2 :].split()[1]), []).append(int(entry.name))
    found: set[int] = set()
    queue = [root]
    while queue:
        for child in parents.get(queue.pop(), ()):
            if child not in found:
                found.add(child)
                queue.append(child)
    return found


@asynccontextmanager
async def spawn_stdio_transport(
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: int | None = aio_subprocess.PIPE,
    limit: int | None = None,
    shutdown_timeout: float = SHUTDOWN_TIMEOUT,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, aio_subprocess.Process]]:
    """A child's stdio as streams for the length of a block; the child and its tree end with it."""
    process = await spawn(command, *args, env=env, cwd=cwd, stderr=stderr, limit=limit)
    tail = StderrTail(process)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout, process.stdin, process
    finally:
        await stop(process, timeout=shutdown_timeout)
        tail.task.cancel()
