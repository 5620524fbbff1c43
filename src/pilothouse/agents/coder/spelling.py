"""Names of tools in the letters that every model's server takes, and ids of calls that tell them apart.

A model may call a tool by a name that it made up, in letters that its server does not take back: that server would then
refuse every request that follows, as the whole conversation is in each. And some servers give calls of one answer the
same id, by which nobody would know whose result is whose.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from typing import Any

from pydantic_ai import ModelResponse, RunContext, ToolCallPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext

from .work import Work

__all__ = ["Spelling"]

ODD = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST = 64


class Spelling(AbstractCapability[Work]):
    """Sends the conversation with plain names. What is remembered stays as the model wrote it, but for ids."""

    async def before_model_request(
        self, ctx: RunContext[Work], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        messages = request_context.messages
        messages[:] = [_spelled(message) for message in messages]
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Work], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        ids = [part.tool_call_id for part in response.parts if isinstance(part, ToolCallPart)]
        return response if len(set(ids)) == len(ids) else _told_apart(response)


def _told_apart(response: ModelResponse) -> ModelResponse:
    """The answer with an id of its own for every call."""
    taken: set[str] = set()
    parts: list[Any] = []
    for part in response.parts:
        if isinstance(part, ToolCallPart) and part.tool_call_id in taken:
            parts.append(replace(part, tool_call_id=f"call_{uuid.uuid4().hex}"))
        else:
            parts.append(part)
        taken.add(getattr(part, "tool_call_id", ""))
    return replace(response, parts=parts)


def _spelled(message: Any) -> Any:
    if not any(_is_odd(part) for part in message.parts):
        return message
    parts = [replace(part, tool_name=_plain(part.tool_name)) if _is_odd(part) else part for part in message.parts]
    return replace(message, parts=parts)


def _is_odd(part: Any) -> bool:
    name = getattr(part, "tool_name", None)
    return name is not None and name != _plain(name)


def _plain(name: str) -> str:
    return ODD.sub("_", name)[:LONGEST] or "unnamed"
