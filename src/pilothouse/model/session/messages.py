"""How messages and thoughts grow.

A complete one has the last word, except an empty one: agents exist that stream a text and then complete it with
nothing, and the streamed text is then what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from ..events import (
    Event,
    MessageCompleteEvent,
    MessageDeltaEvent,
    MessageStartEvent,
    ThinkingCompleteEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
)
from ..records import MessageContent, TextContent
from .items import Block, Message, Text, TextRun, Thought, as_block
from .state import State


def finish(state: State, item: Message | Thought, timestamp: str) -> None:
    """Nothing more is expected of it."""
    item.done = True
    if isinstance(item, Thought):
        item.ended_at = timestamp
    state.index.closed(item)


def _message_start(state: State, event: MessageStartEvent) -> None:
    _message(state, event)


def _message_delta(state: State, event: MessageDeltaEvent) -> None:
    content = _message(state, event).content
    if event.delta:
        last = content[-1] if content else None
        if isinstance(last, TextRun):
            last.text.append(event.delta)
        else:
            content.append(TextRun(text=Text(event.delta)))
    if event.content is not None:
        content.append(as_block(event.content))


def take_pieces(state: State, events: Sequence[Any], start: int) -> int:
    """Let a text grow by the pieces of it that begin at `start`, all at once; returns how many these are.

    Only what is text and nothing else, numbered one after the other, and goes on with a text that has begun: for a
    piece like that nothing else has to be done.
    """
    text = _growing(state, events[start])
    if text is None:
        return 0
    first, seq = events[start], state.seq
    kind, message_id, role = type(first), first.message_id, getattr(first, "role", None)
    pieces: list[str] = []
    for event in islice(events, start, None):
        seq += 1
        if type(event) is not kind or event.message_id != message_id or (role is not None and event.role != role):
            break
        if event.seq != seq or event.content is not None or not event.timestamp:
            break
        pieces.append(event.delta)
    text.extend(pieces)
    return len(pieces)


def _growing(state: State, event: Event) -> Text | None:
    """The text that an event is a piece of, if there is some of it already."""
    if not isinstance(event, (MessageDeltaEvent, ThinkingDeltaEvent)):
        return None
    item = state.index.texts.get(_key(event))
    if item is None or item.done:
        return None
    if isinstance(item, Thought):
        return item.text
    last = item.content[-1] if item.content else None
    return last.text if isinstance(last, TextRun) else None


def _key(event: MessageDeltaEvent | ThinkingDeltaEvent) -> tuple[str, str]:
    return (event.role if type(event) is MessageDeltaEvent else "thought", event.message_id)


def _message_complete(state: State, event: MessageCompleteEvent) -> None:
    message = _known(state, event) or _message(state, event)
    if not (message.content and _blank(event.content)):
        message.content = [as_block(content) for content in event.content]
    message.model = event.model or message.model
    message.stop_reason = event.stop_reason or message.stop_reason
    if not message.done:
        finish(state, message, event.timestamp)


def _known(state: State, event: MessageCompleteEvent) -> Message | None:
    """The message that this completes, also one that was thought to be complete: the end of a turn completes all."""
    known = state.index.texts.get((event.role, event.message_id)) if event.message_id else None
    return known if isinstance(known, Message) else None


def _message(state: State, event: MessageStartEvent | MessageDeltaEvent | MessageCompleteEvent) -> Message:
    """The open message of that id and role; a new one if there is none."""
    known = state.index.texts.get((event.role, event.message_id))
    if isinstance(known, Message) and not known.done:
        return known
    return state.add(
        Message(
            seq=event.seq,
            timestamp=event.timestamp,
            turn_id=state.turn_id,
            message_id=event.message_id,
            role=event.role,
            content=[],
            done=False,
        )
    )


def _blank(content: list[MessageContent]) -> bool:
    return all(isinstance(block, TextContent) and not block.text for block in content)


def _thinking_start(state: State, event: ThinkingStartEvent) -> None:
    _thought(state, event)


def _thinking_delta(state: State, event: ThinkingDeltaEvent) -> None:
    thought = _thought(state, event)
    thought.text.append(event.delta)
    if event.content is not None:
        if isinstance(event.content, TextContent):
            thought.text.append(event.content.text)
        else:
            block: Block = event.content
            thought.content.append(block)


def _thinking_complete(state: State, event: ThinkingCompleteEvent) -> None:
    known = state.index.texts.get(("thought", event.message_id)) if event.message_id else None
    thought = known if isinstance(known, Thought) else _thought(state, event)
    if event.content:
        thought.text.replace(event.content)
    thought.redacted = bool(event.redacted) or thought.redacted
    if not thought.done:
        finish(state, thought, event.timestamp)


def _thought(state: State, event: ThinkingStartEvent | ThinkingDeltaEvent | ThinkingCompleteEvent) -> Thought:
    known = state.index.texts.get(("thought", event.message_id))
    if isinstance(known, Thought) and not known.done:
        return known
    return state.add(
        Thought(
            seq=event.seq,
            timestamp=event.timestamp,
            turn_id=state.turn_id,
            message_id=event.message_id,
            text=Text(),
            done=False,
        )
    )


HANDLERS: Mapping[type[Any], Callable[[State, Any], None]] = {
    MessageStartEvent: _message_start,
    MessageDeltaEvent: _message_delta,
    MessageCompleteEvent: _message_complete,
    ThinkingStartEvent: _thinking_start,
    ThinkingDeltaEvent: _thinking_delta,
    ThinkingCompleteEvent: _thinking_complete,
}
