"""The conversation as the model has it: read, written, and repaired after an interruption.

Providers refuse a conversation in which a tool call has no result, so an interrupted one gets a result that says so.
Half of a surrogate pair, as some servers send it, cannot be encoded in UTF-8 and is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from pydantic_ai import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_core import PydanticSerializationError, ValidationError

from ...acp.model import encode, to_wire
from ..commands import Failure

S = TypeVar("S")


def clean(value: Any) -> Any:
    """Any JSON value, with a mark in the place of each half of a character; two halves that meet are one again."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {clean(key): clean(one) for key, one in value.items()}
    return [clean(one) for one in value] if isinstance(value, (list, tuple)) else value


def sendable(update: S) -> S:
    """An update, or one in its place that can be sent."""
    try:
        encode(update)
    except UnicodeEncodeError:
        return msgspec.convert(clean(to_wire(update)), type(update))
    return update


CUT_OFF = "This call was interrupted: the turn was cancelled before it was finished."


def load(raw: msgspec.Raw) -> list[ModelMessage]:
    """Raises Failure for messages that cannot be read."""
    try:
        return settled(ModelMessagesTypeAdapter.validate_json(bytes(raw)))
    except ValidationError as exc:
        raise Failure(f"The memory of this session cannot be read: {exc.error_count()} errors in it.") from exc


def dump(messages: Sequence[ModelMessage]) -> msgspec.Raw:
    try:
        return msgspec.Raw(ModelMessagesTypeAdapter.dump_json(list(messages)))
    except PydanticSerializationError:
        # half of a character, which some servers send, has no place in a file
        plain = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        return msgspec.Raw(msgspec.json.encode(clean(plain)))


def settled(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The same conversation with a result for every call, and without answers that have nothing in them."""
    whole: list[ModelMessage] = []
    for message, following in pairwise([*messages, None]):
        assert message is not None
        if isinstance(message, ModelResponse) and not message.parts:
            continue
        if isinstance(message, ModelRequest) and all(isinstance(part, RetryFeedbackPart) for part in message.parts):
            # words of the library about an answer that says nothing; some servers refuse them, or two answers in a row
            if whole and isinstance(last := whole[-1], ModelResponse) and _says_nothing(last):
                whole.pop()
            continue
        whole.append(message)
        missing = _unanswered(message, following)
        if missing:
            results = [ToolReturnPart(part.tool_name, CUT_OFF, tool_call_id=part.tool_call_id) for part in missing]
            whole.append(ModelRequest(parts=results))
    return _joined(whole)


def _says_nothing(answer: ModelResponse) -> bool:
    return all(isinstance(part, ThinkingPart) for part in answer.parts)


def _unanswered(message: ModelMessage, following: ModelMessage | None) -> list[ToolCallPart]:
    if not isinstance(message, ModelResponse):
        return []
    parts = following.parts if isinstance(following, ModelRequest) else ()
    # a result of any kind has the id of its call, one that says "try again" too
    answered = {getattr(part, "tool_call_id", None) for part in parts}
    return [part for part in message.parts if isinstance(part, ToolCallPart) and part.tool_call_id not in answered]


def _joined(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Results that were added stand in one request with those that were there: all follow the answer that asked."""
    joined: list[ModelMessage] = []
    for message in messages:
        last = joined[-1] if joined else None
        if isinstance(message, ModelRequest) and isinstance(last, ModelRequest) and _only_results(last):
            joined[-1] = ModelRequest(parts=[*last.parts, *message.parts])
        else:
            joined.append(message)
    return joined


def _only_results(request: ModelRequest) -> bool:
    return all(isinstance(part, ToolReturnPart) for part in request.parts)
