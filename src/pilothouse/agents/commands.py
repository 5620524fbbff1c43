"""A shell command of an agent: in a terminal of the client where it offers them, else as a child of the agent.

Either way the command is over with its block, and its output is shown in the tool call: as a terminal, or as text that
grows. The output of a child goes through a pipe of our own, because asyncio counts a program as running for as long as
a background process holds its output open. Background processes end when the command is closed, even those that left
its process group: on Linux a mark in the environment finds them.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess as aio_subprocess
import codecs
import contextlib
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from ..acp import AgentSideConnection, ConnectionClosed, RequestError, tool_terminal_ref
from ..acp.process import look, started_at
from .toolcall import ToolCall


class Failure(Exception):
    """Something could not be done. The text says why; the user sees it, and so does the model where there is one."""


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


OUTPUT_LIMIT = 1024 * 1024
GRACE = 2.0
"""Seconds that a client has to take a terminal back before the turn ends without its answer."""


@dataclass
class Outcome:
    """How a command ended."""

    output: str
    exit_code: int | None
    signal: str | None = None
    is_cut: bool = False
    """Whether there was more of the output before what is here."""

    def __str__(self) -> str:
        if self.exit_code is None:
            return f"killed by {self.signal or 'a signal'}"
        return f"exit code {self.exit_code}"

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def raw(self) -> dict[str, str | int | None]:
        """The same for the output of a tool call."""
        return {"output": self.output, "exitCode": self.exit_code, "signal": self.signal}


class Command(Protocol):
    """A command that runs for the length of a block. Everything here raises Failure, which says why."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...

    async def wait(self) -> Outcome:
        """Wait for its end."""

    async def kill(self) -> None:
        """End it; `wait` tells the rest."""


def prepare(
    client: AgentSideConnection, session_id: str, call: ToolCall, line: str, cwd: str, *, lent: bool
) -> Command:
    """A command line, not started yet; `lent` says that the client lends terminals."""
    return _InTerminal(client, session_id, call, line, cwd) if lent else _Here(call, line, cwd)


class _InTerminal:
    """A terminal of the client. Its id is shown before anything else, and stays shown when it is released."""

    def __init__(self, client: AgentSideConnection, session_id: str, call: ToolCall, line: str, cwd: str) -> None:
        self._client = client
        self._session = session_id
        self._call = call
        self._line = line
        self._cwd = cwd
        self._id = ""

    async def __aenter__(self) -> Self:
        creating = asyncio.ensure_future(
            self._client.create_terminal(
                session_id=self._session,
                command=SHELL[0],
                args=[*SHELL[1:], self._line],
                cwd=self._cwd,
                output_byte_limit=OUTPUT_LIMIT,
            )
        )
        try:
            # cancelled in between, the command may be running already: its id is needed to end it
            self._id = (await asyncio.shield(creating)).terminal_id
            await self._call.start(content=[tool_terminal_ref(self._id)], replay_content=[])
        except asyncio.CancelledError:
            with suppress(TimeoutError, RequestError, ConnectionClosed):
                async with asyncio.timeout(GRACE):
                    self._id = (await creating).terminal_id
            await self._release()
            raise
        except RequestError as exc:
            raise Failure(f"The client could not start a terminal: {exc}") from exc
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._release()

    async def wait(self) -> Outcome:
        try:
            status = await self._client.wait_for_terminal_exit(session_id=self._session, terminal_id=self._id)
            shown = await self._client.terminal_output(session_id=self._session, terminal_id=self._id)
        except RequestError as exc:
            raise Failure(f"The client lost the terminal: {exc}") from exc
        return Outcome(shown.output, status.exit_code, status.signal, is_cut=bool(shown.truncated))

    async def kill(self) -> None:
        try:
            await self._client.kill_terminal(session_id=self._session, terminal_id=self._id)
        except RequestError as exc:
            raise Failure(f"The client could not kill the terminal: {exc}") from exc

    async def _release(self) -> None:
        if self._id:
            with suppress(TimeoutError, RequestError, ConnectionClosed):
                async with asyncio.timeout(GRACE):
                    await self._client.release_terminal(session_id=self._session, terminal_id=self._id)


class _Here:
    """The same as a child of the agent; its output is streamed into the call."""

    def __init__(self, call: ToolCall, line: str, cwd: str) -> None:
        self._call = call
        self._line = line
        self._cwd = cwd
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._output = ""
        self._is_cut = False
        self._child: Child

    async def __aenter__(self) -> Self:
        await self._call.start()
        try:
            self._child = await Child.start((*SHELL, self._line), cwd=self._cwd, on_output=self._show)
        except OSError as exc:
            raise Failure(f"The command could not be started: {exc.strerror}") from exc
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._child.close()

    async def wait(self) -> Outcome:
        await self._child.wait()
        return Outcome(self._output, self._child.exit_code, self._child.signal, is_cut=self._is_cut)

    async def kill(self) -> None:
        self._child.kill()

    async def _show(self, data: bytes) -> None:
        text = self._decode(data)
        whole = self._output + text
        self._output = whole[-OUTPUT_LIMIT:]
        self._is_cut = self._is_cut or len(whole) > OUTPUT_LIMIT
        await self._call.stream(text)
