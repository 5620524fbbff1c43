"""What a client is shown of what an agent said, where that is not what it said."""

from __future__ import annotations

import json
from typing import Any

from pilothouse.server.acp.client_view import MOST_AGENTS, MOST_WORDS, Dressing


def dressing() -> Dressing:
    return Dressing("s1", lambda: None, lambda: None)


def dressed(by: Dressing, **fields: Any) -> dict[str, Any]:
    update = json.dumps(fields).encode()
    (shown,) = by.dress([update], update)
    told: dict[str, Any] = json.loads(shown)
    return told


def words(by: Dressing, text: str, parent: str = "t0", kind: str = "agent_message_chunk", **fields: Any) -> str:
    """What the call of a sub-agent shows after it said something."""
    content = {"type": "text", "text": text}
    meta = {"claudeCode": {"parentToolUseId": parent}}
    shown = dressed(by, sessionUpdate=kind, content=content, _meta=meta, **fields)
    assert (shown["sessionUpdate"], shown["toolCallId"], shown["_meta"]) == ("tool_call_update", parent, meta)
    assert "status" not in shown
    (one,) = shown["content"]
    said: str = one["content"]["text"]
    return said


def test_the_words_of_a_sub_agent_are_shown_by_its_call() -> None:
    by = dressing()
    assert words(by, "I look", messageId="m1") == "I look"
    assert words(by, " at it.", messageId="m1") == "I look at it."
    assert words(by, "Other.", parent="t1", messageId="m9") == "Other."
    assert words(by, "Found.", messageId="m2") == "I look at it.\n\nFound."
    assert words(by, "Hm.", kind="agent_thought_chunk", messageId="m2") == "I look at it.\n\nFound.\n\nHm."


def test_what_sub_agents_say_is_kept_within_bounds() -> None:
    by = dressing()
    assert words(by, "x" * MOST_WORDS + "end") == "x" * (MOST_WORDS - 3) + "end"
    for number in range(2 * MOST_AGENTS):
        words(by, "y", parent=f"t{number}")
    assert len(by._words) == MOST_AGENTS


def test_other_updates_of_sub_agents_are_as_they_came() -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Read", "_meta": {"parentToolCallId": "t0"}}
    assert dressed(dressing(), **call) == call
    said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 'its "parentToolUseId" is'}}
    assert dressed(dressing(), **said) == said
    odd = {"sessionUpdate": "agent_message_chunk", "content": None, "_meta": {"claudeCode": {"parentToolUseId": 7}}}
    assert dressed(dressing(), **odd) == odd
