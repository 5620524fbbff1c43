"""Pictures, sounds and documents in the conversation, and words in their place where the model does not take them.

Whatever is in the conversation is sent with each request. So one attachment that the model refuses would be the end of
the session, if it stayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import BinaryContent, ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart
from pydantic_ai.messages import is_multi_modal_content

__all__ = ["about", "last_answer", "left_out", "replaced"]


def about(attachment: Any) -> str:
    """Its type and its size."""
    if isinstance(attachment, BinaryContent):
        return f"type {attachment.media_type}, {len(attachment.data)} bytes"
    return f"type {attachment.media_type}"


def left_out(what: str, why: str = "the model's server did not take it") -> str:
    """What the model reads in the place of an attachment."""
    return f"[An attachment, {what}, was left out: {why}.]"


def last_answer(messages: Sequence[ModelMessage]) -> int:
    """How many messages there are up to the last answer of the model."""
    answers = [number for number, message in enumerate(messages, 1) if isinstance(message, ModelResponse)]
    return answers[-1] if answers else 0


def replaced(messages: Sequence[ModelMessage], since: int = 0) -> tuple[list[ModelMessage], list[Any]]:
    """The conversation with words for every attachment in the messages from `since` on, and these attachments."""
    found: list[Any] = []
    later = [_replaced(message, found) for message in messages[since:]]
    return [*messages[:since], *later], found


def _replaced(message: ModelMessage, found: list[Any]) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    count = len(found)
    parts: list[Any] = list(message.parts)
    for number, part in enumerate(parts):
        if isinstance(part, (UserPromptPart, ToolReturnPart)):
            parts[number] = replace(part, content=_words(part.content, found))
    return replace(message, parts=parts) if len(found) > count else message


def _words(content: Any, found: list[Any]) -> Any:
    if is_multi_modal_content(content):
        found.append(content)
        return left_out(about(content))
    if isinstance(content, (list, tuple)):
        return [_words(one, found) for one in content]
    if isinstance(content, dict):
        return {name: _words(one, found) for name, one in content.items()}
    return content
