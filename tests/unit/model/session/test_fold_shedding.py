"""A session lets go of what is finished, and is otherwise as if it had not."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.model.errors import ACPError
from pilothouse.model.events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    MessageCompleteEvent,
    MessageDeltaEvent,
    MessageStartEvent,
    SessionErrorEvent,
    ThinkingDeltaEvent,
    TodoUpdateEvent,
    ToolCallErrorEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserQuestionEvent,
)
from pilothouse.model.records import TextContent, Todo
from pilothouse.model.session import Message, Session, Text, ToolCall, fold, shed, summary


class Life:
    """Events of a session, numbered."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, cls: type[Event], **fields: Any) -> None:
        seq = len(self.events) + 1
        self.events.append(cls(seq=seq, session_id="s", timestamp=f"2026-01-01T00:00:{seq % 60:02}.000Z", **fields))

    def fact(self, name: str, **data: Any) -> None:
        self.add(CustomEvent, namespace="pilothouse", event_name=name, data=data)

    def turn(self, number: int, text: str = "hello") -> None:
        self.fact("turn_started", turnId=f"t{number}")
        self.add(MessageStartEvent, message_id=f"m{number}", role="assistant")
        self.add(MessageDeltaEvent, message_id=f"m{number}", role="assistant", delta=text)
        content = [TextContent(text=text)]
        self.add(MessageCompleteEvent, message_id=f"m{number}", role="assistant", content=content)
        self.add(ToolCallStartEvent, tool_call_id=f"c{number}", name="Bash", category="terminal")
        if number % 3:
            self.add(ToolCallResultEvent, tool_call_id=f"c{number}", name="Bash", output=text, duration=1)
        else:
            error = ACPError(code="x", message="no", recoverable=True)
            self.add(ToolCallErrorEvent, tool_call_id=f"c{number}", name="Bash", error=error)
        self.add(TodoUpdateEvent, todos=[Todo(content="x", status="pending")])
        self.add(
            ApprovalRequestedEvent,
            request_id=f"a{number}",
            tool_call_id=f"c{number}",
            tool_name="Bash",
            tool_input={},
            description="",
            risk_level="low",
        )
        self.add(
            ApprovalResolvedEvent,
            request_id=f"a{number}",
            tool_call_id=f"c{number}",
            approved=True,
            resolved_by="user",
        )
        self.add(SessionErrorEvent, error=ACPError(code="x", message=f"{number}", recoverable=True))
        self.fact("turn_ended", turnId=f"t{number}", stopReason="end_turn")


def small(session: Session) -> dict[str, Any]:
    return session.snapshot(items=False)


@pytest.mark.parametrize("every", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("newest", [0, 5])
def test_a_session_that_sheds_has_the_same_small_snapshot_as_one_that_keeps_all(every: int, newest: int) -> None:
    life = Life()
    for number in range(20):
        life.turn(number)
    whole, light = fold(life.events), Session()
    for place, event in enumerate(life.events):
        light.apply(event)
        if place % every == 0 and event.type in ("custom", "session:error"):
            shed(light, newest=newest, room=0)
    shed(light, room=0)
    assert small(light) == small(whole)
    assert summary(light) == summary(whole)
    assert len(light.items) < 5 < len(whole.items)
    assert light.index.shed.items + len(light.items) == len(whole.items)
    assert not light.index.texts
    assert not light.index.approvals


def test_what_is_open_pending_or_unfinished_stays() -> None:
    life = Life()
    life.fact("turn_started", turnId="t")
    life.add(ToolCallStartEvent, tool_call_id="left", name="Bash", category="terminal")
    life.fact("turn_ended", turnId="t", stopReason="end_turn")
    life.fact("turn_started", turnId="u")
    life.add(MessageDeltaEvent, message_id="m", role="assistant", delta="half a ")
    life.add(ThinkingDeltaEvent, message_id="n", delta="hm")
    life.add(ToolCallStartEvent, tool_call_id="open", name="Bash", category="terminal")
    life.add(UserQuestionEvent, question_id="q", question="which?")
    life.add(
        ApprovalRequestedEvent,
        request_id="a",
        tool_call_id="open",
        tool_name="Bash",
        tool_input={},
        description="",
        risk_level="low",
    )
    session = fold(life.events)
    before = list(session.items)
    shed(session, room=0)
    assert session.items == before
    assert session.index.shed.items == 0
    life.add(ToolCallResultEvent, tool_call_id="left", name="Bash", output="after all", duration=1)
    life.add(MessageDeltaEvent, message_id="m", role="assistant", delta="sentence")
    for event in life.events[-2:]:
        session.apply(event)
    assert session.tool_calls[0].status == "completed"
    assert session.messages[0].text == "half a sentence"


def test_the_newest_items_are_kept_as_far_as_they_are_small() -> None:
    life = Life()
    for number, text in enumerate(["x" * 100, "y" * 100_000, "z" * 100]):
        life.turn(number, text)
    session = fold(life.events)
    shed(session, room=2_000)
    assert [item.message_id for item in session.items if isinstance(item, Message)] == ["m2"]
    assert [item.tool_call_id for item in session.items if isinstance(item, ToolCall)] == ["c2"]


def test_an_error_told_again_is_counted_where_it_was_told_first() -> None:
    life = Life()
    for _ in range(3):
        life.add(SessionErrorEvent, error=ACPError(code="x", message="same", recoverable=True))
    session = Session()
    for event in life.events:
        session.apply(event)
        shed(session, room=0)
    assert small(session) == small(fold(life.events))
    assert summary(session).error_count == 3


def test_a_text_of_very_many_pieces_is_its_pieces_joined() -> None:
    text = Text("begin ")
    pieces = [f"{number} " for number in range(5_000)]
    for place, piece in enumerate(pieces):
        text.append(piece)
        if place == 1_234:
            assert len(text) == len("begin " + "".join(pieces[:1_235]))
    assert str(text) == "begin " + "".join(pieces)
    assert len(text) == len(str(text))
    text.append("end")
    assert text
    assert text == "begin " + "".join(pieces) + "end"
    text.replace("other")
    assert str(text) == "other"
