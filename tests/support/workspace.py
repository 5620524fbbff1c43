"""What a client in tests lends to its agent: the files of one directory, and terminals in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from pilothouse.acp import RequestError, TerminalExitStatus, TerminalOutputResponse, WaitForTerminalExitResponse
from pilothouse.agents.commands import Child

__all__ = ["Workspace"]

OUTPUT_LIMIT = 1024 * 1024


class Workspace:
    """A directory and the commands that run in it. Paths outside of it are refused."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._terminals: dict[str, Terminal] = {}
        self._count = 0

    # -- files --

    async def read(self, path: str, line: int | None = None, limit: int | None = None) -> str:
        file = self._locate(path)
        try:
            text = await asyncio.to_thread(file.read_text, encoding="utf-8")
        except FileNotFoundError:
            raise RequestError.resource_not_found(path) from None
        except (OSError, UnicodeDecodeError) as exc:
            raise RequestError.invalid_params({"path": path, "details": str(exc)}) from exc
        if line is None and limit is None:
            return text
        start = max((line or 1) - 1, 0)
        lines = text.splitlines(keepends=True)
        return "".join(lines[start : None if limit is None else start + limit])

    async def write(self, path: str, content: str) -> None:
        file = self._locate(path)
        try:
            await asyncio.to_thread(_write, file, content)
        except OSError as exc:
            raise RequestError.invalid_params({"path": path, "details": str(exc)}) from exc

    def _locate(self, path: str) -> Path:
        # Resolved first: neither `..` nor a symbolic link leads out.
        resolved = (self.root / path).resolve()
        if not resolved.is_relative_to(self.root):
            raise RequestError.invalid_params({"path": path, "details": f"outside of the workspace {self.root}"})
        return resolved

    # -- terminals --

    async def start(self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str], limit: int | None) -> str:
        directory = self._locate(cwd or ".")
        terminal = Terminal(OUTPUT_LIMIT if limit is None else limit)
        try:
            terminal.child = await Child.start(command, cwd=str(directory), on_output=terminal.append, env=env)
        except OSError as exc:
            raise RequestError.invalid_params({"command": list(command), "details": str(exc)}) from exc
        self._count += 1
        terminal_id = f"terminal-{self._count}"
        self._terminals[terminal_id] = terminal
        return terminal_id

    def output(self, terminal_id: str) -> TerminalOutputResponse:
        terminal = self._terminal(terminal_id)
        child = terminal.child
        status = None if child.is_running else TerminalExitStatus(exit_code=child.exit_code, signal=child.signal)
        return TerminalOutputResponse(output=terminal.text, truncated=terminal.truncated, exit_status=status)

    async def wait(self, terminal_id: str) -> WaitForTerminalExitResponse:
        child = self._terminal(terminal_id).child
        await child.wait()
        return WaitForTerminalExitResponse(exit_code=child.exit_code, signal=child.signal)

    def kill(self, terminal_id: str) -> None:
        self._terminal(terminal_id).child.kill()

    async def release(self, terminal_id: str) -> None:
        terminal = self._terminal(terminal_id)
        del self._terminals[terminal_id]
        await terminal.child.close()

    async def close(self) -> None:
        for terminal_id in tuple(self._terminals):
            await self.release(terminal_id)

    def _terminal(self, terminal_id: str) -> Terminal:
        try:
            return self._terminals[terminal_id]
        except KeyError:
            raise RequestError.resource_not_found(terminal_id) from None


class Terminal:
    """A running command and the end of its output."""

    child: Child

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self.truncated = False

    async def append(self, data: bytes) -> None:
        self._data += data
        excess = len(self._data) - self._limit
        if excess > 0:
            # cut at the start of a character, as the protocol demands
            while excess < len(self._data) and self._data[excess] & 0xC0 == 0x80:
                excess += 1
            del self._data[:excess]
            self.truncated = True

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace")


def _write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
