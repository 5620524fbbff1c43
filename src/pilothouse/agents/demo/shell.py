"""Running commands: in a terminal of the client where it offers them, else as a child of the agent."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
from dataclasses import dataclass

from ...acp import RequestError, text_block, tool_content, tool_terminal_ref
from ..child import SHELL, Child
from .turn import Call, Failure, Turn

__all__ = ["Outcome", "kill_after_start", "run"]

OUTPUT_LIMIT = 1024 * 1024
GRACE = 2.0
"""Seconds that a client has to take a terminal back before the turn ends without its answer."""


@dataclass
class Outcome:
    """How a command ended."""

    output: str
    exit_code: int | None
    signal: str | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def __str__(self) -> str:
        return f"killed by {self.signal}" if self.exit_code is None else f"exit code {self.exit_code}"


async def run(turn: Turn, call: Call, command: str, *, directory: str = "") -> Outcome:
    """Run a command and end the call with its outcome; non-zero is a failure."""
    async with _place(turn, call, command, directory) as place:
        outcome = await place.wait()
        await _end(call, outcome, ok=outcome.ok)
    return outcome


async def kill_after_start(turn: Turn, call: Call, command: str) -> Outcome:
    """Start a command that would run for long, and kill it; being killed is its success."""
    async with _place(turn, call, command) as place:
        await place.kill()
        outcome = await place.wait()
        await _end(call, outcome, ok=True)
    return outcome


async def _end(call: Call, outcome: Outcome, *, ok: bool) -> None:
    raw_output = {"output": outcome.output, "exitCode": outcome.exit_code, "signal": outcome.signal}
    # A replay comes when the terminal is long gone, so it shows the output itself.
    shown = [tool_content(text_block(f"```\n{outcome.output.rstrip()}\n```\n{outcome}"))]
    await call.end("completed" if ok else "failed", raw_output=raw_output, replay_content=shown)


def _place(turn: Turn, call: Call, command: str, directory: str = "") -> _Terminal | _Here:
    cwd = str(turn.session.cwd / directory)
    return (_Terminal if turn.capabilities.terminal else _Here)(turn, call, command, cwd)


class _Terminal:
    """A terminal of the client for the length of a block; it is released whatever happens."""

    def __init__(self, turn: Turn, call: Call, command: str, cwd: str) -> None:
        self._client = turn.client
        self._session = turn.session.id
        self._call = call
        self._command = command
        self._cwd = cwd
        self._id = ""

    async def __aenter__(self) -> _Terminal:
        creating = asyncio.ensure_future(
            self._client.create_terminal(
                session_id=self._session,
                command=SHELL[0],
                args=[*SHELL[1:], self._command],
                cwd=self._cwd,
                output_byte_limit=OUTPUT_LIMIT,
            )
        )
        try:
            # Cancelled in between, the command may be running already: its id is needed to end it.
            self._id = (await asyncio.shield(creating)).terminal_id
            await self._call.start(content=[tool_terminal_ref(self._id)], replay_content=[])
        except asyncio.CancelledError:
            with contextlib.suppress(TimeoutError, RequestError):
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
        return Outcome(shown.output, status.exit_code, status.signal)

    async def kill(self) -> None:
        try:
            await self._client.kill_terminal(session_id=self._session, terminal_id=self._id)
        except RequestError as exc:
            raise Failure(f"The client could not kill the terminal: {exc}") from exc

    async def _release(self) -> None:
        if not self._id:
            return
        with contextlib.suppress(TimeoutError, RequestError):
            async with asyncio.timeout(GRACE):
                await self._client.release_terminal(session_id=self._session, terminal_id=self._id)


class _Here:
    """The same as a child of the agent; its output is streamed into the tool call."""

    def __init__(self, turn: Turn, call: Call, command: str, cwd: str) -> None:
        self._call = call
        self._command = command
        self._cwd = cwd
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._output = ""
        self._child: Child

    async def __aenter__(self) -> _Here:
        await self._call.start()
        try:
            self._child = await Child.start((*SHELL, self._command), cwd=self._cwd, on_output=self._show)
        except OSError as exc:
            raise Failure(f"The command could not be started: {exc.strerror}") from exc
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._child.close()

    async def wait(self) -> Outcome:
        await self._child.wait()
        return Outcome(self._output, self._child.exit_code, self._child.signal)

    async def kill(self) -> None:
        self._child.kill()

    async def _show(self, data: bytes) -> None:
        text = self._decode(data)
        self._output = (self._output + text)[-OUTPUT_LIMIT:]
        await self._call.stream(text)
