"""Trying again when the model's server is busy, and saying so; and when it breaks off."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import ModelResponse, RetryModelRequest, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext

from .errors import BROKEN_OFF, is_passing, kind_of
from .work import Work

__all__ = ["Patience"]

ATTEMPTS = 5
FIRST = 1.0
LONGEST = 60.0
WORDS = {
    "rate_limit": "The model's server has reached its rate limit",
    "overloaded": "The model's server is overloaded",
}


class Patience(AbstractCapability[Work]):
    """Sends a request again after a wait that doubles, or that the server asked for; a few times, then gives up.

    An answer that has begun is not asked for again: it was told already.
    """

    async def on_model_request_error(
        self, ctx: RunContext[Work], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        attempt = request_context.attempt
        if not is_passing(error) or attempt >= ATTEMPTS:
            raise error
        asked: Any = getattr(error, "retry_after", None)
        seconds = asked if isinstance(asked, (int, float)) else FIRST * 2 ** (attempt - 1)
        if seconds > LONGEST:
            raise error
        what = WORDS[kind_of(error) or ""]
        await ctx.deps.speech.notice(f"{what}; trying again in {seconds:.0f} s ({attempt} of {ATTEMPTS - 1}).")
        await asyncio.sleep(seconds)
        raise RetryModelRequest

    async def after_model_request(
        self, ctx: RunContext[Work], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        if _has_no_end(request_context.model, response):
            await ctx.deps.speech.notice(f"{BROKEN_OFF}, or did not say that this is its end.")
        return response


def _has_no_end(model: Any, response: ModelResponse) -> bool:
    """Whether a server of Chat Completions closed its answer without the reason that ends one."""
    # the library takes it for the end, as some servers never give a reason; its class needs a package to be imported
    is_chat = "OpenAIChatModel" in (kind.__name__ for kind in type(model).__mro__)
    return is_chat and response.finish_reason == "stop" and "finish_reason" not in (response.provider_details or {})
