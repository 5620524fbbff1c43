"""Which turns of a record are the hub's own, and which of its updates were received before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilothouse.hub.mirror.dedup import ELSEWHERE, Ownership, OwnTurn, PromptCount, Told, own_turns
from pilothouse.log.memory import MemoryLog
from pilothouse.model.events import CustomEvent, Event, MessageCompleteEvent
from pilothouse.model.records import ImageContent, TextContent
from tests.support.records import says

# -- turns ------------------------------------------------------------------------------------------------------------


def at(second: float) -> str:
    return f"2026-01-01T10:00:{second:06.3f}Z"


def seconds(second: float) -> float:
    return 1767261600.0 + second


def turn(seq: int, words: str, began: float, ended: float, *, is_plain: bool = True) -> OwnTurn:
    return OwnTurn(seq, words, is_plain, seconds(began), seconds(ended))


def test_the_same_words_at_the_time_of_a_turn_are_its_own_once() -> None:
    turns = [turn(1, "goon", 10, 20), turn(9, "goon", 30, 40)]
    ownership = Ownership()
    assert [ownership.judge("goon", at(10.2), turns), ownership.judge("goon", at(30.1), turns)] == ["own", "own"]
    assert ownership.awaited(turns) == []
    assert ownership.judge("goon", at(50), turns) == "elsewhere"


def test_the_same_words_at_another_time_are_somebody_elses() -> None:
    assert Ownership().judge("goon", at(25), [turn(1, "goon", 10, 20)]) == "elsewhere"


def test_other_words_in_a_turn_are_its_own_unless_it_has_its_own_already() -> None:
    turns = [turn(1, "lookatthis", 10, 20)]
    ownership = Ownership()
    assert ownership.judge("look at @file", at(11), turns) == "own"
    assert ownership.judge("lookatthis", at(11), turns) == "own"  # so the other one was not
    assert ownership.judge("and this", at(12), turns) == "mixed"
    assert ownership.judge("and this", at(30), turns) == "elsewhere"


def test_a_turn_that_never_reached_its_agent_has_only_its_own_words() -> None:
    (lost,) = [turn(1, "goon", 10, 20)._replace(is_lost=True)]
    assert Ownership().judge("fromanotherhub", at(11), [lost]) == "elsewhere"
    assert Ownership().judge("goon", at(11), [lost]) == "own"


def test_without_times_words_decide_and_what_an_agent_makes_of_them() -> None:
    turns = [turn(1, "goon", 10, 20), turn(5, "/compact", 21, 22, is_plain=False), turn(9, "fixit", 30, 40)]
    ownership = Ownership()
    assert ownership.judge("goon", "", turns) == "own"
    assert ownership.judge("Summedup", "", turns) == "own"
    assert ownership.judge("Nowplease:fixit!", "", turns) == "own"
    assert ownership.judge("fixit", "", turns) == "own"  # it was a guess that the other one was it
    assert ownership.judge("goon", "", turns) == "elsewhere"


def test_a_turn_whose_words_have_not_come_yet_is_awaited_until_a_later_one_came() -> None:
    turns = [turn(1, "one", 10, 20), turn(9, "two", 30, 40)]
    ownership = Ownership()
    assert ownership.awaited(turns) == turns
    assert ownership.judge("two", at(30), turns) == "own"
    assert ownership.awaited(turns) == []


def fact(name: str, when: str, **data: Any) -> Event:
    return CustomEvent(seq=0, session_id="s", timestamp=when, namespace="pilothouse", event_name=name, data=data)


def said(when: str, *content: Any) -> Event:
    return MessageCompleteEvent(
        seq=0, session_id="s", timestamp=when, message_id="m", role="user", content=list(content)
    )


@pytest.mark.parametrize("reason", ["end_turn", "interrupted"])
async def test_the_log_tells_which_turns_are_the_hubs(reason: str) -> None:
    log = MemoryLog()
    await log.open()
    await log.sessions.create("s", agent="demo", cwd="/")
    picture = ImageContent(url="data:image/png;base64,")
    events = [
        fact("turn_started", at(1), turnId="a", **{ELSEWHERE: True}),
        said(at(1), TextContent(text="not ours")),
        fact("turn_ended", at(2), turnId="a", stopReason="end_turn"),
        fact("turn_started", at(3), turnId="b"),
        said(at(3), TextContent(text="Look at "), picture),
        said(at(5), TextContent(text="aside")),
        said(at(50), TextContent(text="told when the hub was back")),
        fact("turn_ended", at(50), turnId="b", stopReason=reason),
        fact("turn_started", at(51), turnId="c"),
        said(at(51), TextContent(text="Go on")),
        fact("turn_ended", at(52), turnId="c", stopReason="error"),
        fact("turn_started", at(53), turnId="d"),
    ]
    await log.append("s", 0, events)
    first, second, third = await own_turns(log, "s", 0)
    ended = 50 if reason == "end_turn" else 5
    assert first == OwnTurn(4, "Lookat", False, seconds(3), seconds(ended))
    assert second == OwnTurn(9, "Goon", True, seconds(51), seconds(52), is_lost=True)
    assert third == OwnTurn(12, "", False, seconds(53), float("inf"))
    assert await own_turns(log, "s", 8) == [second, third]
    await log.close()


def test_prompts_are_counted_however_they_are_cut() -> None:
    count = PromptCount()
    updates = [says("a", "u1", user=True), says("b", "u1", user=True), says("x", "a1"), says("c", user=True)]
    again = [says("d", user=True), says("y"), says("e", user=True), says("more", "u1", user=True)]
    assert [count.take(update) for update in updates + again] == [
        *(True, False, False, True),
        *(False, False, True, False),
    ]
    assert count.count == 3


# -- updates ----------------------------------------------------------------------------------------------------------


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
