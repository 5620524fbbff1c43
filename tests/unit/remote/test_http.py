"""HTTP and server-sent events as a client reads them, however the bytes are cut."""

from __future__ import annotations

import pytest

from pilothouse.remote.http_parser import Body, BrokenAnswer, Events, Frame, Head, parse_head, request_head

CHUNKED = Head(200, {"transfer-encoding": "chunked"})


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_body_in_chunks_is_put_together_however_it_is_cut(size: int) -> None:
    body = Body(CHUNKED)
    wire = b"5\r\nhello\r\n1;name=value\r\n \r\nA\r\nworld\r\n\r\n!\r\n0\r\n\r\n"
    assert b"".join(map(body.feed, pieces(wire, size))) == b"hello world\r\n\r\n!"
    assert body.done


def test_what_follows_the_last_chunk_is_not_of_the_body() -> None:
    body = Body(CHUNKED)
    assert body.feed(b"1\r\na\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n") == b"a"
    assert body.done


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_body_in_chunks_ends_with_its_empty_line_and_not_before(size: int) -> None:
    body = Body(CHUNKED)
    for piece in pieces(b"1\r\na\r\n0\r\nTrailer: x\r\n\r", size):
        body.feed(piece)
        assert not body.done
    assert (body.feed(b"\n"), body.done, body.exceeded) == (b"", True, False)


def test_what_comes_after_the_end_is_noticed() -> None:
    for head, wire in ((CHUNKED, b"1\r\na\r\n0\r\n\r\n"), (Head(200, {"content-length": "1"}), b"a")):
        body = Body(head)
        assert (body.feed(wire), body.exceeded) == (b"a", False)
        body = Body(head)
        assert (body.feed(wire + b"x"), body.exceeded) == (b"a", True)


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("wire", [b"1\r\nab\r\n0\r\n\r\n", b"1\r\na\n\n0\r\n\r\n", b"2\r\na\r\n0\r\n\r\n"])
def test_a_chunk_of_another_size_than_it_says_is_refused(wire: bytes, size: int) -> None:
    with pytest.raises(BrokenAnswer):
        list(map(Body(CHUNKED).feed, pieces(wire, size)))


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: abc",
        "Content-Length: -5",
        "Content-Length: +5",
        "Content-Length: 5, 5",
        "Content-Length: 1_0",
        "Content-Length: \xb2",
        "Content-Length: ",
        "Content-Length: 500\r\nContent-Length: 20",
        "Content-Length: 20\r\ncontent-length: 020",
        "Content-Length: 20\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 20",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Content-Length : 20",
        " Content-Length: 20",
        "X: y\nContent-Length: 20",
    ],
)
def test_an_answer_whose_end_is_not_told_plainly_is_broken(lines: str) -> None:
    with pytest.raises(BrokenAnswer):
        Body(parse_head(f"HTTP/1.1 200 OK\r\n{lines}".encode("latin-1")))


def test_a_length_that_is_told_twice_alike_is_one() -> None:
    body = Body(parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2"))
    assert (body.feed(b"ab"), body.done) == (b"ab", True)


@pytest.mark.parametrize("line", [b"zz\r\n", b"-1\r\n", b"+1\r\n", b"1_0\r\n", b"0x1\r\n", b"\r\n", b"x" * 2000])
def test_what_is_no_size_of_a_chunk_is_refused(line: bytes) -> None:
    with pytest.raises(BrokenAnswer):
        Body(CHUNKED).feed(line)


def test_a_body_with_a_length_ends_there() -> None:
    body = Body(Head(200, {"content-length": "5"}))
    assert (body.feed(b"hel"), body.done) == (b"hel", False)
    assert (body.feed(b"lo and more"), body.done) == (b"lo", True)
    assert Body(Head(200, {"content-length": "0"})).done
    assert Body(Head(204, {})).done


def test_a_body_without_a_length_needs_the_end_of_the_connection() -> None:
    body = Body(Head(200, {}))
    assert body.needs_end
    assert (body.feed(b"anything"), body.done) == (b"anything", False)


def test_a_head_is_read() -> None:
    head = parse_head(b"HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\nX-Y:z\r\nEmpty:")
    assert head == Head(404, {"content-type": "a/b", "x-y": "z", "empty": ""})


@pytest.mark.parametrize(
    "data",
    [b"", b"SSH-2.0-x", b"HTTP/1.1 abc", b"HTTP/1.1 2000 OK", b"HTTP/1.1 200 O\rK", b"HTTP/1.1 200 OK\r\nno header"],
)
def test_what_is_no_head_is_refused(data: bytes) -> None:
    with pytest.raises(BrokenAnswer):
        parse_head(data)


@pytest.mark.parametrize("text", ["a\r\nX: y", "a\nb", "a\0", "a\tb"])
def test_no_value_can_begin_another_line_of_a_request(text: str) -> None:
    for args in (("GET", text, {}), (text, "/", {}), ("GET", "/", {text: "v"}), ("GET", "/", {"n": text})):
        with pytest.raises(ValueError, match="can't be part of a request"):
            request_head(*args)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_events_are_read_however_they_are_cut(size: int, end: bytes) -> None:
    lines = [b": hello", b"retry: 100", b"", b"id: 1", b'data: {"a":1}', b"", b":beat", b"", b"event: error"]
    lines += [b"data:x", b"data: y", b"", b"id: 2", b"", b"id: 3", b"data: z", b"", b"id: 4", b"data: not yet whole"]
    events = Events()
    found = [frame for piece in pieces(end.join(lines), size) for frame in events.feed(piece)]
    assert found == [Frame("1", "message", b'{"a":1}'), Frame("", "error", b"x\ny"), Frame("3", "message", b"z")]
