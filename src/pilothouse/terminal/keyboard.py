"""Lines typed at the terminal, without keeping the event loop from its work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
from types import ModuleType

termios: ModuleType | None
try:
    import termios
except ImportError:  # Windows, where a thread reads the lines and the echo stays
    termios = None

__all__ = ["Keyboard"]


class Keyboard:
    """Reads one line at a time; a read can be cancelled.

    Between reads the terminal does not echo: keys pressed while something is being drawn would land in the drawing.
    """

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno()
        self._original = termios.tcgetattr(self._descriptor) if termios is not None else None

    async def line(self) -> str | None:
        """The next line, or None at its end (Ctrl-D)."""
        if termios is None:
            return await asyncio.to_thread(_blocking_line)
        self._echo(on=True)
        typed_ahead = bool(select.select([self._descriptor], [], [], 0)[0])
        try:
            data = b""
            # The terminal hands over whole lines, unless one is ended by Ctrl-D.
            while not data.endswith(b"\n"):
                part = await self._part()
                if not part:
                    break
                data += part
        finally:
            self._echo(on=False)
        if typed_ahead:  # nobody has seen it yet
            os.write(sys.stdout.fileno(), data)
        return data.decode(errors="replace").rstrip("\r\n") if data else None

    def forget(self) -> None:
        """Drop what was typed before anybody asked: it cannot be the answer to a question not yet shown."""
        if termios is not None:
            with contextlib.suppress(termios.error):
                termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def close(self) -> None:
        """Leave the terminal as it was, if it is still there."""
        if termios is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._original)

    def quiet(self) -> None:
        """Stop the echo until the next line is read."""
        self._echo(on=False)

    async def _part(self) -> bytes:
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[bytes] = loop.create_future()
        loop.add_reader(self._descriptor, _read, self._descriptor, typed)
        try:
            return await typed
        finally:
            loop.remove_reader(self._descriptor)

    def _echo(self, *, on: bool) -> None:
        if termios is None:
            return
        with contextlib.suppress(termios.error):  # the terminal was closed
            attributes = termios.tcgetattr(self._descriptor)
            attributes[3] = attributes[3] | termios.ECHO if on else attributes[3] & ~termios.ECHO
            termios.tcsetattr(self._descriptor, termios.TCSANOW, attributes)


def _read(descriptor: int, typed: asyncio.Future[bytes]) -> None:
    if typed.done():
        return
    try:
        typed.set_result(os.read(descriptor, 65536))
    except OSError:
        typed.set_result(b"")


def _blocking_line() -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\r\n") if line else None
