from __future__ import annotations

import random

import pytest

from pilothouse.acp.framing import LineFramer, Oversize


def test_lines_come_out_whole_however_the_bytes_are_cut() -> None:
    lines = [b"a", b'{"k": "\xc3\xa9"}', b"x" * 1000, b"", b"   ", b"last"]
    stream = b"\n".join(lines) + b"\n"
    rng = random.Random(1)
    for _ in range(200):
        framer, got, at = LineFramer(), [], 0
        while at < len(stream):
            size = rng.choice([1, 2, 3, 7, 100, 5000])
            got += framer.feed(stream[at : at + size])
            at += size
        assert got == [line for line in lines if line.strip()]
        assert framer.finish() == []


def test_a_last_line_without_newline_is_kept_until_the_end() -> None:
    framer = LineFramer()
    assert framer.feed(b"one\ntwo") == [b"one"]
    assert framer.finish() == [b"two"]
    assert framer.finish() == []


def test_carriage_returns_and_blank_lines_are_no_lines() -> None:
    framer = LineFramer()
    assert framer.feed(b"\r\n \n\n{}\r\n") == [b"{}\r"]


@pytest.mark.parametrize("cut", [1, 3, 10, 64, 1000])
def test_an_oversize_line_is_counted_and_skipped(cut: int) -> None:
    stream = b"ok\n" + b"z" * 50 + b"\n" + b"y" * 10 + b"\n" + b"w" * 11 + b"\nok2\n" + b"v" * 30
    framer, got = LineFramer(limit=10), []
    for at in range(0, len(stream), cut):
        got += framer.feed(stream[at : at + cut])
    assert [line for line in got if isinstance(line, bytes)] == [b"ok", b"y" * 10, b"ok2"]
    assert [line.size for line in got if isinstance(line, Oversize)] == [50, 11]
    (rest,) = framer.finish()
    assert isinstance(rest, Oversize)
    assert rest.size == 30


def test_an_endless_line_takes_no_memory() -> None:
    framer = LineFramer(limit=1000)
    for _ in range(1000):
        assert framer.feed(b"x" * 10_000) == []
    assert sum(map(len, framer._parts)) == 0
    assert framer.feed(b"\nnext\n")[1] == b"next"


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        LineFramer(limit=0)
