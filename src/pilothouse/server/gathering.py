"""What is sent in one turn of the loop, written together: a system call for many small frames."""

from __future__ import annotations

import asyncio

from ..acp.errors import ConnectionClosed

__all__ = ["Gathering"]

CHUNK = 64 << 10
"""Bytes that are gathered at most before they are written."""


class Gathering:
    """The sending half of a link. `_write` is where it goes; it raises ConnectionClosed when nobody is there."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._gathered = 0
        self._is_scheduled = False
        self._is_closed = False
        self.stalled = False
        """Whether the consumer was given up because it took nothing."""

    def _write(self, data: bytes) -> None:
        raise NotImplementedError

    def _gather(self, frame: bytes) -> None:
        """Raises ConnectionClosed."""
        if self._is_closed:
            raise ConnectionClosed
        self._frames.append(frame)
        self._gathered += len(frame)
        if self._gathered > CHUNK:
            self._flush()
        elif not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._is_scheduled = False
        try:
            self._flush()
        except ConnectionClosed:
            pass  # whoever sends next is told

    def _flush(self) -> None:
        frames, self._frames, self._gathered = self._frames, [], 0
        if frames:
            self._write(b"".join(frames))

    def _give_up(self) -> ConnectionClosed:
        """The consumer took nothing for too long. What to end the link with."""
        self.stalled = self._is_closed = True
        return ConnectionClosed("Connection closed: the client took nothing for too long")
