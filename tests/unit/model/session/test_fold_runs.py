"""Pieces of a text, taken in together, make the session that they make one by one."""

from __future__ import annotations

import random

import pytest

from pilothouse.model.events import (
    Event,
    MessageCompleteEvent,
    MessageDeltaEvent,
    MessageStartEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
)
from pilothouse.model.records import ImageContent, TextContent
from pilothouse.model.session import Session, dump

NOW = "2026-03-01T10:00:00.000Z"
LATER = "2026-03-01T10:00:01.000Z"


def some_event(dice: random.Random, seq: int) -> Event:
    common = {"seq": seq, "session_id": "s", "timestamp": dice.choice((NOW, NOW, LATER, ""))}
    message_id = dice.choice("aaaaab")
    role = dice.choice(("assistant",) * 5 + ("user",))
    kind = dice.choice(("delta",) * 12 + ("thought",) * 6 + ("block", "start", "muse", "end"))
    if kind == "delta":
        return MessageDeltaEvent(**common, message_id=message_id, role=role, delta=dice.choice(("x", "yz", "")))
    if kind == "thought":
        content = TextContent(text="t") if dice.random() < 0.1 else None
        return ThinkingDeltaEvent(**common, message_id=message_id, delta=dice.choice(("x", "")), content=content)
    if kind == "block":
        return MessageDeltaEvent(
            **common, message_id=message_id, role=role, delta="", content=ImageContent(url="file:///a.png")
        )
    if kind == "start":
        return MessageStartEvent(**common, message_id=message_id, role=role)
    if kind == "muse":
        return ThinkingStartEvent(**common, message_id=message_id)
    return MessageCompleteEvent(**common, message_id=message_id, role=role, content=[])


@pytest.mark.parametrize("start", range(40))
def test_events_taken_in_together_make_the_session_that_they_make_one_by_one(start: int) -> None:
    dice = random.Random(start)
    seqs = [dice.choice((0, seq, seq, seq, seq, seq, max(1, seq - 3))) if start % 2 else seq for seq in range(1, 400)]
    events = [some_event(dice, seq) for seq in seqs]
    apart, together = Session(), Session()
    for event in events:
        apart.apply(event)
    done = longest = 0
    while done < len(events):
        taken = together.apply_next(events, done)
        done += taken
        longest = max(longest, taken)
    assert done == len(events)
    assert longest > 1
    assert dump(together) == dump(apart)
