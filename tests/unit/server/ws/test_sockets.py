"""Frames of the WebSocket stream."""

from __future__ import annotations

import pytest
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode

from pilothouse.server.ws.sockets import frame


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 200_000])
def test_a_frame_is_what_the_protocol_says(size: int) -> None:
    message = b"x" * size
    assert frame(message) == WireFrame(Opcode.TEXT, message).serialize(mask=False)
