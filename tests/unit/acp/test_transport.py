"""A large line off a pipe is handed on a moment later, in its place, and the pipe is not read meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pilothouse.acp.framing import LARGE, Oversize, breath
from pilothouse.acp.transport import PipeLink

BIG = b"x" * (LARGE + 1)


class Pipe:
    """What feeds a link, and whether it is being read."""

    def __init__(self) -> None:
        self.reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Heard:
    def __init__(self) -> None:
        self.lines: list[bytes | Oversize] = []
        self.ends = 0

    def take(self, lines: Sequence[bytes | Oversize]) -> None:
        self.lines += lines

    def end(self, error: BaseException | None) -> None:
        self.ends += 1


async def started() -> tuple[PipeLink, Pipe, Heard]:
    link, pipe, heard = PipeLink(), Pipe(), Heard()
    source: Any = pipe
    link._source = source
    link.start(heard.take, heard.end)
    await asyncio.sleep(0)
    return link, pipe, heard


async def settled(heard: Heard, count: int) -> None:
    async with asyncio.timeout(30):
        while len(heard.lines) < count:
            await asyncio.sleep(0.001)


async def test_what_follows_a_large_line_waits_for_it_and_the_pipe_is_read_again_afterwards() -> None:
    link, pipe, heard = await started()
    link.data_received(b"before\n" + BIG[:-10])
    link.data_received(BIG[-10:] + b"\nafter\nhal")
    assert heard.lines == [b"before"]
    assert not pipe.reading
    link.data_received(b"f\n")
    link.resume()
    assert not pipe.reading
    await settled(heard, 4)
    assert heard.lines == [b"before", BIG, b"after", b"half"]
    assert pipe.reading


async def test_a_pause_outlasts_a_large_line() -> None:
    link, pipe, heard = await started()
    link.data_received(BIG + b"\n")
    link.pause()
    await settled(heard, 1)
    assert not pipe.reading
    link.resume()
    assert pipe.reading


async def test_the_end_comes_after_a_large_line_and_once() -> None:
    link, _, heard = await started()
    link.data_received(BIG + b"\n" + BIG + b"\nlast")
    link.eof_received()
    assert heard.ends == 0
    await settled(heard, 3)
    assert heard.lines == [BIG, BIG, b"last"]
    assert heard.ends == 1


@pytest.mark.parametrize("size", [LARGE, 20_000_000])
def test_others_get_as_long_as_a_pass_takes(size: int) -> None:
    assert 0 < breath(size) < 0.05
