"""What of a record was told before, in whatever pieces."""

from __future__ import annotations

import msgspec

from pilothouse.hub.mirror.dedup import Told
from tests.support.records import says


def test_texts_that_come_in_other_pieces_are_told_once() -> None:
    known = Told()
    for text in ("Hel", "lo"):
        known.remember(msgspec.json.encode(says(text, "m")))
    whole = says("Hello world", "m")
    assert known.rest(whole, msgspec.json.encode(whole)) == says(" world", "m")
    again = says("Hello", "m")
    assert known.rest(again, msgspec.json.encode(again)) == again


def test_a_call_that_comes_with_its_end_is_told_by_its_end_alone() -> None:
    started = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "pending"}
    ended = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "completed"}
    known = Told()
    known.remember(msgspec.json.encode(started))
    assert known.rest(ended, msgspec.json.encode(ended)) == {**ended, "sessionUpdate": "tool_call_update"}
    known.remember(msgspec.json.encode({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}))
    assert known.rest(ended, msgspec.json.encode(ended)) is None


def test_the_same_update_twice_is_two_updates() -> None:
    plan = {"sessionUpdate": "plan", "entries": []}
    source = msgspec.json.encode(plan)
    known = Told()
    known.remember(source)
    assert known.rest(plan, source) is None
    assert known.rest(plan, source) == plan


def test_notices_are_no_part_of_what_was_told() -> None:
    known = Told()
    known.remember(b'{"stopReason": "end_turn"}')
    known.remember(b"no JSON")
    assert known.rest({"sessionUpdate": "x"}, b'{"sessionUpdate": "x"}') == {"sessionUpdate": "x"}
