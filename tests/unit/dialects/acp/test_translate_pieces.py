"""Pieces of a message, taken several at a time, give the events that they give one at a time."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pilothouse.dialects.acp import Translator
from pilothouse.model.events import Event, encode_event

NOW = "2026-03-01T10:00:00.000Z"


def said(kind: str, text: str, **fields: Any) -> bytes:
    update = {"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": text}, **fields}
    return json.dumps(update, ensure_ascii=False).encode()


UPDATES = [
    said("agent_message", "a"),
    said("agent_message", "b"),
    said("agent_message", "ü"),
    said("agent_message", "named", messageId="m"),
    said("agent_message", "of another", messageId="n"),
    said("agent_message", "a sub-agent's", _meta={"claudeCode": {"parentToolUseId": "call"}}),
    said("agent_message", "unnamed", messageId=None),
    said("agent_message", "more than is known", extra={"a": "\ud800".encode(errors="replace").decode()}),
    b'{"content":{"text":"in another order","type":"text","annotations":null},"sessionUpdate":"agent_message_chunk"}',
    said("agent_thought", "hm"),
    said("user_message", "said before"),
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AA==","mimeType":"image/png"}}',
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"half \\ud800"}}',
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not \xff text"}}',
    b'{"sessionUpdate":"agent_message_chunk"}',
    b'{"sessionUpdate":"agent_message_chunk","content":{"text":"without a type"}}',
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text"}}',
    b'{"content":{"type":"text","text":"of no kind"}}',
    b'{"sessionUpdate":"tool_call","toolCallId":"call","title":"Read"}',
    b'{"sessionUpdate":"unheard_of"}',
    b'{"sessionUpdate":',
]


def stored(events: list[Event]) -> list[tuple[bytes, bytes | None]]:
    return [(encode_event(event), event.source) for event in events]


@pytest.mark.parametrize("start", range(20))
def test_any_updates_give_the_same_events_together_as_one_at_a_time(start: int) -> None:
    chosen = random.Random(start).choices(UPDATES, weights=[9, 9, 3, *[1] * (len(UPDATES) - 3)], k=200)
    apart, together = (Translator("s", status="running") for _ in range(2))
    expected = [event for update in chosen for event in apart.update(update, NOW)]
    found: list[Event] = []
    done = several = 0
    while done < len(chosen):
        pieces = together.pieces(chosen[done : done + 10], NOW)
        found += pieces
        done += len(pieces)
        several += len(pieces) > 1
        if done < len(chosen):
            found += together.update(chosen[done], NOW)
            done += 1
    assert several
    assert stored(found) == stored(expected)


def test_the_first_piece_of_a_message_is_not_taken_as_one_that_goes_on() -> None:
    translator = Translator("s", status="running")
    assert translator.pieces([said("agent_message", "a")], NOW) == []
    assert [event.type for event in translator.update(said("agent_message", "a"), NOW)] == [
        "message:start",
        "message:delta",
    ]
    assert len(translator.pieces([said("agent_message", "b"), said("agent_thought", "c")], NOW)) == 1
