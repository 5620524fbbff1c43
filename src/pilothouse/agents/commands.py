"""A shell command of an agent: in a terminal of the client where it offers them, else as a child of the agent.

Either way it is over with its block, whatever happens, and what it writes is shown in the tool call that it runs for:
as a terminal, or as text that grows. How that call ends is not decided here.
"""

from __future__ import annotations

import asyncio
import codecs
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, Self

from ..acp import AgentSideConnection, ConnectionClosed, RequestError, tool_terminal_ref
from .child import SHELL, Child
from .failure import Failure
from .toolcall import ToolCall

__all__ = ["Command", "Outcome", "prepare"]

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
