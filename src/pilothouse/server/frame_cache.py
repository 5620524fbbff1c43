"""Encoded frames of stored events, shared by the clients that are at the same cursor, over SSE, WebSocket and ACP.

Clients that are woken together ask for the same range of events within a moment, so a few frames are enough.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

MAX_BYTES = 16 << 20
MAX_COUNT = 384


class FrameCache:
    """Frames by the form and the first and last position of their events; the least recently used are dropped."""

    def __init__(self) -> None:
        self._frames: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> Any:
        """The frames under a key, as they were put; None if there are none."""
        found = self._frames.get(key)
        if found is None:
            return None
        self._frames.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, frames: Any, size: int) -> None:
        self._frames[key] = (frames, size)
        self._size += size
        while self._size > MAX_BYTES or len(self._frames) > MAX_COUNT:
            self._size -= self._frames.popitem(last=False)[1][1]
