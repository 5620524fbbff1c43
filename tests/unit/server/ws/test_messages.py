"""Messages of WebSocket clients: their types, their fields, and errors that name both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.model.errors import ValidationError
from pilothouse.server.errors import HttpError
from pilothouse.server.ws.messages import MESSAGES, CommandMessage, Subscribe, parse_message, request_id_of


def test_every_message_is_read_by_its_type() -> None:
    assert isinstance(parse_message('{"type":"subscribe"}'), Subscribe)
    message = parse_message('{"type":"command","sessionId":"s","commandId":"c","command":{"command":"cancel"}}')
    assert isinstance(message, CommandMessage)
    assert message.command == {"command": "cancel"}
    cursors = parse_message('{"type":"subscribe","sessionIds":["a"],"after":{"a":7}}')
    assert isinstance(cursors, Subscribe)
    assert cursors.after == {"a": 7}


@pytest.mark.parametrize(
    ("text", "code", "names"),
    [
        ("{", "malformed", "no JSON"),
        ("[]", "malformed", "object"),
        ("null", "malformed", "object"),
        (b"\x00", "malformed", "binary"),
        ('{"type":"dance"}', "unknown_type", "dance"),
        ('{"type":7}', "unknown_type", "7"),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(text: Any, code: str, names: str) -> None:
    with pytest.raises(HttpError) as caught:
        parse_message(text)
    assert caught.value.record.code == code
    assert names in caught.value.record.message


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{}", "type"),
        ("[" * 5000, "message"),
        ("[" * 200 + "]" * 200, "message"),
        ('{"type":"subscribe","sessionId":"a"}', "sessionId"),
        ('{"type":"subscribe","after":-1}', "after"),
        ('{"type":"subscribe","after":"7"}', "after"),
        (json.dumps({"type": "subscribe", "sessionIds": ["a"] * 1001}), "sessionIds"),
        ('{"type":"history","sessionId":"a","limit":5000}', "limit"),
        ('{"type":"command","sessionId":"a","command":{}}', "commandId"),
        ('{"type":"authenticate"}', "token"),
    ],
)
def test_a_wrong_field_is_named(text: str, names: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parse_message(text)
    assert names in str(caught.value)


def test_an_error_can_name_the_request_that_could_not_be_read() -> None:
    assert request_id_of('{"type":"dance","requestId":5}') == 5
    assert request_id_of('{"requestId":["x"]}') is None
    assert request_id_of("{") is None
    assert request_id_of(b"x") is None


def test_the_page_names_every_message(request: pytest.FixtureRequest) -> None:
    page = (request.config.rootpath / "docs" / "reference" / "websocket.md").read_text()
    assert [kind for kind in MESSAGES if f"`{kind}" not in page] == []
