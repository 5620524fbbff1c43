from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from pilothouse.acp.errors import RequestError
from pilothouse.acp.framing import Oversize
from pilothouse.acp.jsonrpc import encode_error, encode_notification, encode_request, encode_result
from pilothouse.acp.peer import MAX_ABANDONED, Malformed, Message, Peer, Response, Unmatched


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def test_requests_get_rising_ids_and_answers_find_them() -> None:
    peer: Peer[str] = Peer()
    first, frame = peer.request("a", {"x": 1}, "token a")
    second, _ = peer.request("b", None, "token b")
    assert (first, second) == (0, 1)
    assert json.loads(frame) == {"jsonrpc": "2.0", "id": 0, "method": "a", "params": {"x": 1}}
    assert peer.receive(line(id=1, result=[2])) == Response("token b", Raw(b"[2]"), None)
    answer = peer.receive(line(id=0, error={"code": 5, "message": "no", "data": {"d": 1}}))
    assert isinstance(answer, Response)
    assert answer.error is not None
    assert (answer.error.code, str(answer.error), answer.error.data) == (5, "no", {"d": 1})


def test_requests_and_notifications_are_told_apart_by_their_id() -> None:
    peer: Peer[str] = Peer()
    request = peer.receive(line(id=0, method="m", params={}))
    notification = peer.receive(line(method="m"))
    null_id = peer.receive(line(id=None, method="m"))
    assert isinstance(request, Message)
    assert isinstance(notification, Message)
    assert isinstance(null_id, Message)
    assert request.id == 0
    assert notification.id is UNSET
    assert null_id.id is None


@pytest.mark.parametrize("text", ["0", "000"])
def test_an_id_echoed_as_text_is_matched(text: str) -> None:
    peer: Peer[str] = Peer()
    peer.request("m", None, "token")
    answer = peer.receive(line(id=text, result=None))
    assert isinstance(answer, Response)
    assert answer.token == "token"


def test_a_response_without_result_or_error_resolves_to_nothing() -> None:
    peer: Peer[str] = Peer()
    peer.request("m", None, "token")
    assert peer.receive(line(id=0)) == Response("token", None, None)


def test_a_result_wins_over_a_null_error() -> None:
    peer: Peer[str] = Peer()
    peer.request("m", None, "token")
    assert peer.receive(line(id=0, error=None, result=1)) == Response("token", Raw(b"1"), None)


def test_strays_duplicates_and_late_answers_are_unmatched() -> None:
    peer: Peer[str] = Peer()
    peer.request("m", None, "token")
    peer.receive(line(id=0, result=1))
    assert peer.receive(line(id=0, result=1)) == Unmatched(0, False, None)
    assert isinstance(peer.receive(line(id="x", result=1)), Unmatched)
    request_id, _ = peer.request("m", None, "token")
    frame = peer.cancel(request_id)
    assert frame is not None
    assert json.loads(frame)["params"] == {"requestId": request_id}
    assert peer.cancel(request_id) is None
    assert peer.receive(line(id=request_id, result=1)) == Unmatched(request_id, True, None)
    null_error = peer.receive(line(id=None, error={"code": -32700, "message": "Parse error"}))
    assert isinstance(null_error, Unmatched)
    assert null_error.error is not None


def test_abandoned_requests_are_not_remembered_for_ever() -> None:
    peer: Peer[int] = Peer()
    for i in range(3 * MAX_ABANDONED):
        request_id, _ = peer.request("m", None, i)
        peer.abandon(request_id)
    assert len(peer._abandoned) == MAX_ABANDONED


def test_closing_hands_back_what_is_open() -> None:
    peer: Peer[str] = Peer()
    peer.request("m", None, "a")
    peer.request("m", None, "b")
    assert peer.close() == ["a", "b"]
    assert peer.close() == []


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"noise", -32700),
        (b"\xff\xfe", -32700),
        (b'{"a":', -32700),
        (b"null", -32600),
        (b"[]", -32600),
        (b'{"method":5,"id":1}', -32600),
        (b'{"method":"m","id":{}}', -32600),
        (Oversize(99, b"head"), -32600),
    ],
)
def test_malformed_lines_are_values_and_carry_the_reply_they_deserve(bad: Any, code: int) -> None:
    got = Peer[str]().receive(bad)
    assert isinstance(got, Malformed)
    assert got.reply is not None
    reply = json.loads(got.reply)
    assert reply["id"] == (1 if bad == b'{"method":5,"id":1}' else None), "an id that can be read is answered"
    assert reply["error"]["code"] == code
    assert got.reason


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"prompt":[{"da', 5),
        (b'{ "method" : "session/prompt", "id" : "five" , "params" : {"prompt', "five"),
        (b'{"id":5,"method":"\\"params\\"","params":{"x', 5),
        (b'{"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[{"da', None),
        (b'{"jsonrpc":"2.0","id":5,"result":{"params":{"da', None),
    ],
)
def test_a_request_that_is_too_long_is_answered_under_its_id_where_that_was_read(head: bytes, known: Any) -> None:
    got = Peer[str]().receive(Oversize(99, head))
    assert isinstance(got, Malformed)
    assert got.reply is not None
    assert json.loads(got.reply)["id"] == known


def test_an_object_nobody_waits_on_gets_no_reply() -> None:
    got = Peer[str]().receive(b'{"foo": "bar"}')
    assert isinstance(got, Malformed)
    assert got.reply is None


def test_every_frame_is_one_line() -> None:
    raw = Raw(b'{\n  "a": [\r\n 1, "x\\n"]\n}')
    for frame in (
        encode_notification("m", raw),
        encode_request(1, "m", raw),
        encode_result("id", raw),
        encode_error(None, RequestError(1, "two\nlines", {"d": "a\nb"})),
    ):
        assert frame.count(b"\n") == 1
        assert frame.endswith(b"\n")
        json.loads(frame)
    assert json.loads(encode_result("id", raw))["result"] == {"a": [1, "x\n"]}


def test_an_error_whose_data_is_no_json_is_still_sent() -> None:
    frame = json.loads(encode_error(1, RequestError(1, "m", object())))
    assert frame["error"]["code"] == 1
    assert "object" in frame["error"]["data"]


def test_text_is_not_escaped_to_ascii() -> None:
    assert "日本語".encode() in encode_notification("m", {"t": "日本語"})


def test_a_mark_of_the_encoding_before_a_line_does_not_cost_the_message() -> None:
    peer: Peer[str] = Peer()
    got = peer.receive(b"\xef\xbb\xbf" + line(id="a", method="initialize", params={}))
    assert isinstance(got, Message)
    assert (got.id, got.method) == ("a", "initialize")
    number, _ = peer.request("x", None, "token")
    assert peer.receive(b"\xef\xbb\xbf" + line(id=number, result=1)) == Response("token", Raw(b"1"), None)
    assert isinstance(peer.receive(b"\xef\xbb\xbf"), Malformed)
    assert isinstance(peer.receive(b"\xef\xbb\xbf" * 5000), Malformed)


@pytest.mark.parametrize("params", [b'{"cost": NaN}', b'{"text": "cut', b'{"a":' * 5000 + b"1" + b"}" * 5000])
def test_a_request_whose_params_are_no_json_is_refused_by_its_id(params: bytes) -> None:
    peer: Peer[str] = Peer()
    got = peer.receive(b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":' + params + b"}")
    assert isinstance(got, Malformed)
    assert got.reply is not None
    assert json.loads(got.reply)["id"] == 7


DEEP = {depth: '{"a":' * depth + "1" + "}" * depth for depth in (200, 900, 5000)}


@pytest.mark.parametrize("depth", DEEP)
@pytest.mark.parametrize(
    "form",
    ['{"jsonrpc":"2.0","id":0,"result":%s}', '{"jsonrpc":"2.0","result":%s,"id":0}', '{"id":0,"error":{"data":%s}}'],
)
def test_an_answer_that_is_nested_too_deeply_fails_its_call_and_leaves_nobody_waiting(form: str, depth: int) -> None:
    peer: Peer[str] = Peer()
    peer.request("m", None, "token")
    answer = peer.receive((form % DEEP[depth]).encode())
    assert isinstance(answer, Response)
    assert (answer.token, answer.result) == ("token", None)
    assert "nested too deeply" in str(answer.error)


@pytest.mark.parametrize("depth", DEEP)
@pytest.mark.parametrize(
    ("form", "reply"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":%s}', 7),
        ('{"jsonrpc":"2.0","method":"m","params":%s,"id":7}', 7),
        ('{"jsonrpc":"2.0","id":7,"params":%s,"method":"m"}', 7),
        ('{"jsonrpc":"2.0","method":"m","params":%s}', None),
    ],
)
def test_a_request_that_is_nested_too_deeply_is_refused_by_its_id(form: str, reply: int | None, depth: int) -> None:
    peer: Peer[str] = Peer()
    peer.request("m", None, "token")
    found = peer.receive((form % DEEP[depth]).encode())
    assert isinstance(found, Malformed)
    assert found.reason.startswith("nested too deeply")
    assert (None if found.reply is None else json.loads(found.reply)["id"]) == reply
    assert peer.close() == ["token"]
