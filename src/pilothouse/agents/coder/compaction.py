"""A long conversation replaced by a summary of it, so that it fits into the model again.

The model writes the summary from a record of the conversation in plain text, in which long results are cut: so it can
also be made when the conversation itself has become too long to be sent. How much the model takes in is not always
known: a record that is refused as too long is cut further.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RunContext,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.models import ModelRequestContext

from ...acp import CompactionStatus, CompactionUpdate, text_block
from ..failure import Failure
from .errors import is_overflow, window_of
from .prompts import SUMMARISE, summarised
from .speech import Speech
from .tools.texts import cut
from .work import Work

__all__ = ["Full", "Room", "compacted", "context_tokens", "is_due", "record", "replace_by"]

SHARE = 0.8
"""Of the context that may be used before it is time."""
RESULT = 2000
"""Characters of a tool's result in the record."""
PER_TOKEN = 4
PICTURE = 4000
"""Characters that an attachment counts for."""
SHORTEST = 1000
"""Characters of a record that any model can take."""


class Full(Exception):
    """The conversation has grown so much in a run that it is time to make it shorter."""


class Room(AbstractCapability[Work]):
    """Ends a run, between two requests of it, when the conversation has filled the model's context meanwhile."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._was_due = False

    async def before_model_request(
        self, ctx: RunContext[Work], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        due = is_due(request_context.messages, self._window)
        if ctx.run_step <= 1:
            self._was_due = due  # it could not be made shorter before, and goes on while the model takes it
        elif due and not self._was_due:
            raise Full
        return request_context


def context_tokens(messages: Sequence[ModelMessage]) -> int:
    """Tokens that the conversation takes: as the model last said, and an estimate of what was said since."""
    since = 0
    for message in reversed(messages):
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            return message.usage.input_tokens + message.usage.output_tokens + since // PER_TOKEN
        since += sum(map(_length, message.parts))
    return since // PER_TOKEN


def _length(part: Any) -> int:
    """Characters of one part, uncut: so it is sent."""
    if isinstance(part, UserPromptPart):
        pieces = [part.content] if isinstance(part.content, str) else part.content
        return sum(len(one) if isinstance(one, str) else PICTURE for one in pieces)
    if isinstance(part, ToolCallPart):
        return len(part.args_as_json_str())
    if isinstance(part, ToolReturnPart):
        return len(part.model_response_str()) + PICTURE * len(part.files)
    return len(part.content) if isinstance(getattr(part, "content", None), str) else 0


def is_due(messages: Sequence[ModelMessage], window: int) -> bool:
    return bool(messages) and context_tokens(messages) > SHARE * window


async def compacted(
    model: Any, messages: Sequence[ModelMessage], window: int, speech: Speech, *, told: bool
) -> list[ModelMessage]:
    """A short conversation in the place of a long one. Raises Failure, and what the model raises.

    With `told` the client is told of it in its own kind of update.
    """
    if not messages:
        raise Failure("There is nothing to compact yet.")
    compaction_id = f"compaction-{uuid.uuid4().hex[:12]}"

    async def tell(status: CompactionStatus, **more: Any) -> None:
        if told:
            await speech.send(CompactionUpdate(compaction_id=compaction_id, status=status, **more))

    await tell("in_progress")
    try:
        summary = await _summary(model, "\n\n".join(record(messages)), max(window * PER_TOKEN // 2, 4000))
        if not summary:
            raise Failure("The model wrote no summary.")
    except asyncio.CancelledError:
        await tell("cancelled")
        raise
    except Exception as exc:
        await tell("failed", error=str(exc))
        raise
    await tell("completed", summary=[text_block(summary)])
    return replace_by(summary)


async def _summary(model: Any, text: str, limit: int) -> str:
    """What the model makes of a record, of which it gets as much as it takes."""
    writer = Agent(model, instructions=SUMMARISE)
    while True:
        given = cut(text, limit)
        try:
            return (await writer.run(given)).output.strip()
        except AgentRunError as exc:
            limit = min(len(given), (window_of(exc) or limit) * PER_TOKEN) // 2
            if not is_overflow(exc) or limit < SHORTEST:
                raise


def replace_by(summary: str) -> list[ModelMessage]:
    return [
        ModelRequest(parts=[UserPromptPart(summarised(summary))]),
        ModelResponse(parts=[TextPart("I know what was said and done before.")]),
    ]


def record(messages: Sequence[ModelMessage]) -> list[str]:
    """The conversation as text."""
    return [line for message in messages for line in _lines(message)]


def _lines(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            yield f"USER: {_said(part.content)}"
        elif isinstance(part, TextPart) and part.content:
            yield f"AGENT: {part.content}"
        elif isinstance(part, ToolCallPart):
            yield f"CALL {part.tool_name}: {cut(part.args_as_json_str(), RESULT)}"
        elif isinstance(part, ToolReturnPart):
            yield f"RESULT {part.tool_name}: {cut(part.model_response_str(), RESULT)}"


def _said(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(f"[{one.media_type}]" if isinstance(one, BinaryContent) else str(one) for one in content)
