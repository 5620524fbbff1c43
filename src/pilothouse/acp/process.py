"""Child processes that speak ACP on their stdio, and how they stop.

A child gets its own process group and the whole environment. Its stderr is drained for as long as it lives, and the
tail is kept for error messages. Stopping goes in steps, each with its timeout: close stdin, terminate, kill. The whole
process tree is stopped, not only the child. On Linux a process is identified by its id and its start time, because an
id alone may belong to another process later; on other systems the descendants are not known.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio_subprocess
import contextlib
import os
import secrets
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias, cast

from .errors import ConnectionClosed, SpawnError
from .transport import PipeLink

LINUX = sys.platform == "linux"

Family: TypeAlias = dict[int, int]
"""Processes by their ids, with the time of their start in ticks since the machine started."""


def started_at(pid: int) -> int | None:
    """When a process started; None for one that is gone, or that has ended and only waits for its parent to notice."""
    found = _stat(pid) if LINUX else None
    return found[0] if found is not None else None


def _stat(pid: int) -> tuple[int, int] | None:
    """Its start and its parent."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        data = Path(f"/proc/{pid}/stat").read_bytes()
        fields = data[data.rindex(b")") + 2 :].split()  # the name before it may hold anything
        if fields[0] not in (b"Z", b"X"):
            return int(fields[19]), int(fields[1])
    return None


def descendants(roots: Iterable[int]) -> Family:
    """Those below some processes, by what these say of their children; costs no look at any other process."""
    if not LINUX:
        return {}
    found: Family = {}
    queue = list(roots)
    while queue:
        for pid in _children(queue.pop()):
            started = started_at(pid)
            if pid not in found and started is not None:
                found[pid] = started
                queue.append(pid)
    return found


def _children(pid: int) -> list[int]:
    """The children that a process has now; none where the kernel does not tell."""
    found: list[int] = []
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/task") as tasks:
        for task in tasks:
            with contextlib.suppress(OSError, ValueError):  # a thread that has ended; the others still have theirs
                found += map(int, Path(task.path, "children").read_bytes().split())
    return found


def look(roots: Iterable[int], *, mark: bytes = b"", since: int = 0) -> Family:
    """Those below some processes, and those that have `mark` in their environment, with what is below these.

    Nobody who started before `since` is among them. It goes through all processes, which takes a tenth of a second
    where there are a thousand: give it a thread.
    """
    if not LINUX:
        return {}
    starts: Family = {}
    children: dict[int, list[int]] = {}
    given = set(roots)
    kin = set(given)
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are all we need, of hundreds
        found = _stat(int(name)) if name.isdigit() else None
        if found is None or found[0] < since:
            continue
        pid = int(name)
        starts[pid] = found[0]
        children.setdefault(found[1], []).append(pid)
        if mark and is_marked(pid, mark):
            kin.add(pid)
    queue = list(kin)
    while queue:
        fresh = [pid for pid in children.get(queue.pop(), ()) if pid not in kin]
        kin.update(fresh)
        queue += fresh
    return {pid: starts[pid] for pid in kin - given if pid in starts}


def is_marked(pid: int, mark: bytes) -> bool:
    """Whether a process has this mark, alone or among those of others that it descends from."""
    name, _, own = mark.partition(b"=")
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if own in entry and entry.startswith(name + b"="):
                return own in entry[len(name) + 1 :].split(b":")
    return False


STDERR_TAIL = 64 * 1024
STDERR_FOR_READER = 1024 * 1024
EXIT_WAIT = 1.0
EXIT_SILENCE = 0.2
MARK = "PILOTHOUSE_CHILD"
"""Names a variable that marks all descendants of one child, so that those which left its tree can be found.

A child that starts children of its own this way marks them too; their variable then has all marks, with `:` between.
"""
SHUTDOWN_TIMEOUT = 2.0
LEFT_BEHIND = 0.2
"""Seconds that what a child left behind gets after it has been told to end."""
READ_LIMIT = 256 * 1024
SECRET = "PILOTHOUSE_TOKEN"  # noqa: S105 - its name
"""Who has it may do anything with the hub, approve included; an agent must not."""
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
    """The environment a child starts with: all of this process's own but what is secret to it.

    Agents need their keys, proxies, locale and tool paths. Exported shell functions are left out.
    """
    return {key: value for key, value in os.environ.items() if key != SECRET and not value.startswith("() {")}


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
    mark = f"{os.getpid()}-{secrets.token_hex(8)}"
    environment = {**(default_environment() if inherit_env else {}), **(env or {})}
    # who is started by one that was started so, has the marks of both, and is found also when the one between has died
    environment[MARK] = ":".join(filter(None, (mark, os.environ.get(MARK))))
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
    process = ChildProcess(transport, protocol, loop, mark)
    process.started = started_at(process.pid) or 0
    if link is not None:
        assert process.stdin is not None
        pipe = cast(asyncio.ReadTransport, transport.get_pipe_transport(1))
        pipe.set_protocol(_PipeFeed(link, pipe.get_protocol()))
        link.attach(process.stdin, pipe)
    return process


class ChildProcess(aio_subprocess.Process):
    """asyncio's process, whose pipes can be given up even while a grandchild holds their other end."""

    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        protocol: aio_subprocess.SubprocessStreamProtocol,
        loop: asyncio.AbstractEventLoop,
        mark: str,
    ) -> None:
        super().__init__(transport, protocol, loop)
        self.give_up = transport.close
        self.mark = mark
        self.started = 0


class _PipeFeed(asyncio.Protocol):
    """Feeds a link straight from a child's stdout; asyncio's own way there costs a turn of the loop for each piece."""

    def __init__(self, link: PipeLink, original: asyncio.BaseProtocol) -> None:
        self._link = link
        self._original = original

    def data_received(self, data: bytes) -> None:
        self._link.data_received(data)

    def eof_received(self) -> None:
        self._link.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.eof_received()
        self._original.connection_lost(exc)  # the process is reaped when all of its pipes have been seen to close


class _ChildProtocol(aio_subprocess.SubprocessStreamProtocol):
    """Hands to a link what a child wrote before the link read the pipe itself, and tells it when the child is gone."""

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

    def process_exited(self) -> None:
        super().process_exited()
        if self._link is not None:
            self._end_when_silent(self._link, -1)

    def _end_when_silent(self, link: PipeLink, received: int) -> None:
        """A child that is gone says nothing more, even if a child of its own keeps the pipe open.

        What it had written is read first, however long that takes.
        """
        if link.received != received or link.is_paused:
            asyncio.get_running_loop().call_later(EXIT_SILENCE, self._end_when_silent, link, link.received)
        else:
            link.eof_received()


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


def kin(process: aio_subprocess.Process) -> Family:
    """Those below a child now: they are known by their parent only for as long as that lives."""
    return _below(process, {})


async def stop(
    process: aio_subprocess.Process, *, timeout: float = SHUTDOWN_TIMEOUT, known: Family | None = None
) -> int:
    """End a child and its whole tree: close its stdin, terminate, kill. Returns its exit code; always ends.

    `known` is its kin from before something was done that may have ended it already.
    """
    family = dict(known or {})
    family |= _below(process, family)
    looked = False
    try:
        if process.stdin is not None:
            # closing flushes; a child that does not read would hold that up, so it is not waited for
            with contextlib.suppress(OSError, RuntimeError):
                process.stdin.close()
        grace = timeout
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), timeout)
            grace = min(timeout, LEFT_BEHIND)
        family |= await asyncio.to_thread(_look, process, family)
        looked = True
        if process.returncode is None or _is_alive(process, family):
            _signal_tree(process, family, terminate=True)
            await _wait_gone(process, family, grace)
    finally:
        # also when this is cancelled: whatever happens here, nothing of the child stays
        family |= _below(process, family) if looked else _look(process, family)
        _signal_tree(process, family, terminate=False)
    if process.stdin is not None and process.stdin.transport.get_write_buffer_size():
        process.stdin.transport.abort()
    code = await process.wait()
    if isinstance(process, ChildProcess):
        process.give_up()
    return code


def kill(process: aio_subprocess.Process) -> None:
    """End a child and its tree at once, without waiting. What left the tree before that is ended by `stop`."""
    _signal_tree(process, _below(process, {}), terminate=False)


async def _wait_gone(process: aio_subprocess.Process, family: Family, timeout: float) -> None:
    deadline = asyncio.get_running_loop().time() + timeout
    while asyncio.get_running_loop().time() < deadline:
        if process.returncode is not None and not _is_alive(process, family):
            return
        await asyncio.sleep(0.01)


def _signal_tree(process: aio_subprocess.Process, family: Family, *, terminate: bool) -> None:
    if not POSIX:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate() if terminate else process.kill()
        return
    number = signal.SIGTERM if terminate else signal.SIGKILL
    # The group id is the child's pid (start_new_session) and stays taken while any member lives.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
    for pid, started in family.items():
        if started_at(pid) == started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _is_alive(process: aio_subprocess.Process, family: Family) -> bool:
    if not POSIX:
        return process.returncode is None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 0)
        return True
    return any(started_at(pid) == started for pid, started in family.items())


def _below(process: aio_subprocess.Process, family: Family) -> Family:
    """Those below the child and below its known family, by what their parents say."""
    return descendants(_living(process, family))


def _look(process: aio_subprocess.Process, family: Family) -> Family:
    """The same, and those who left the tree, found by their mark; it goes through all processes."""
    if not isinstance(process, ChildProcess):
        return look(_living(process, family))
    return look(_living(process, family), mark=f"{MARK}={process.mark}".encode(), since=process.started)


def _living(process: aio_subprocess.Process, family: Family) -> set[int]:
    known = {pid for pid, started in family.items() if started_at(pid) == started}
    # its own id may be somebody else's once it has been reaped
    return known | {process.pid} if process.returncode is None else known


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
