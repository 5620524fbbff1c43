"""Answers to the hook that were changed on their way: only one that is whole, well framed and plain allows anything.

What counts as such is said here a second time, by a grammar of the whole answer, and not by the code under test.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilothouse.remote import hook
from pilothouse.remote.hook import Refusal, output
from pilothouse.remote.http_parser import Body, BrokenAnswer, parse_head

ALLOW = b'{"decision":"allow"}'
LENGTH = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n" + ALLOW
CHUNKS = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"deci\r\nE\r\nsion":"allow"}\r\n0\r\n\r\n'
PIECES = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"0", b"1", b"-", b"+", b",", b":", b";", b'"', b"{", b"}", b"20", b"500",
    b"Content-Length: 20\r\n", b"Content-Length: 500\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 403 No\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"chunked", b"identity", ALLOW,
    b'"decision":"deny",', b'"decision":"allow",', b'{"decision":"deny"}', b"deny", b"none", b"\xff", b"abc", b"201",
]  # fmt: skip

HEAD = re.compile(rb"HTTP/1\.[01] 200(?: [^\r\n]*)?\r\n((?:[^\s:\x00-\x1f\x7f]+:[^\r\n]*\r\n)*)\r\n", re.DOTALL)
CHUNK = re.compile(rb"([0-9A-Fa-f]+)[ \t]*(?:;[^\r]*)?\r\n", re.DOTALL)


class Connection:
    """What a socket gives, in these pieces."""

    def __init__(self, data: bytes, size: int) -> None:
        self._pieces = [data[at : at + size] for at in range(0, len(data), size)]

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def recv(self, size: int) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def heard(data: bytes, size: int = 1 << 16) -> str:
    """What Claude Code is told of an answer."""
    try:
        return output(hook._answer(Connection(data, size), lambda: True))  # type: ignore[arg-type]
    except (Refusal, BrokenAnswer):
        return ""


def body_of(data: bytes) -> bytes | None:
    """The body of an answer that is one, from the first byte to the last; None for any other."""
    head = HEAD.match(data)
    if head is None:
        return None
    fields = [line.partition(b":") for line in head[1].split(b"\r\n") if line]
    lengths = {value.strip(b" \t") for name, _, value in fields if name.lower() == b"content-length"}
    codings = {value.strip(b" \t").lower() for name, _, value in fields if name.lower() == b"transfer-encoding"}
    rest = data[head.end() :]
    if codings == {b"chunked"} and not lengths:
        return joined(rest)
    length = lengths.pop() if len(lengths) == 1 and not codings else b""
    return rest if re.fullmatch(rb"[0-9]+", length) and int(length) == len(rest) else None


def joined(rest: bytes) -> bytes | None:
    parts = b""
    while found := CHUNK.match(rest):
        size, rest = int(found[1], 16), rest[found.end() :]
        if size == 0:
            return parts if re.fullmatch(rb"(?:(?!\r\n).+?\r\n)*\r\n", rest, re.DOTALL) else None
        if len(rest) < size + 2 or rest[size : size + 2] != b"\r\n":
            return None
        parts, rest = parts + rest[:size], rest[size + 2 :]
    return None


def decision_of(body: bytes) -> Any:
    """What a body decides, each name counted."""
    try:
        pairs = json.loads(body.decode(), object_pairs_hook=list)
    except ValueError:
        return None
    said = [value for name, value in pairs if name == "decision"] if body.lstrip().startswith(b"{") else []
    return said[0] if len(said) == 1 else None


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """An answer that allows, with a few pieces put in, taken out, repeated or replaced."""
    data = draw(st.sampled_from([LENGTH, CHUNKS]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        put = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=3), st.just(data[start:end] * 2)))
        data = data[:start] + put + data[end if draw(st.booleans()) else start :]
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 4)) == 0 else data


def test_the_answers_that_are_changed_here_allow() -> None:
    for data in (LENGTH, CHUNKS):
        assert body_of(data) == ALLOW
        for size in (1, 7, 1000):
            assert json.loads(heard(data, size))["hookSpecificOutput"]["decision"] == {"behavior": "allow"}


@settings(max_examples=400, deadline=None)
@given(changed(), st.sampled_from([1, 5, 1 << 16]))
@example(LENGTH.replace(b"20\r", b"abc\r"), 1000)
@example(LENGTH.replace(b"20\r", b"-5\r"), 1000)
@example(LENGTH.replace(b"content-length", b"Content-Length: 500\r\ncontent-length"), 1000)
@example(LENGTH.replace(b"content-length", b"Transfer-Encoding: chunked\r\ncontent-length"), 1000)
@example(LENGTH + ALLOW, 1000)
@example(LENGTH.replace(b"OK", b"O\rK"), 1000)
def test_only_a_whole_and_well_framed_answer_allows(data: bytes, size: int) -> None:
    if '"allow"' in heard(data, size):
        body = body_of(data)
        assert body is not None
        assert decision_of(body) == "allow"


@settings(max_examples=200, deadline=None)
@given(st.one_of(changed(), st.binary(max_size=60), changed().map(lambda data: data.partition(b"\r\n\r\n")[0])))
def test_nothing_but_a_broken_answer_comes_of_bytes_that_are_none(data: bytes) -> None:
    head, _, rest = data.partition(b"\r\n\r\n")
    whole: list[Any] = []
    for size in (1, len(rest) + 1):
        try:
            body = Body(parse_head(head))
            parts = [body.feed(rest[at : at + size]) for at in range(0, len(rest), size)]
            whole.append((b"".join(parts), body.done, body.exceeded))
        except BrokenAnswer:
            whole.append(None)
    assert whole[0] == whole[1]  # however the bytes are cut
