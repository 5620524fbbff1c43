"""The model with its tools and instructions, for a turn and for its sub-agents; retries and tool names.

A busy model server is tried again, and the user sees that. Names of tools are spelled in the letters that every server
accepts, and calls get unique ids.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from pydantic_ai import (
    Agent,
    FunctionToolset,
    ModelResponse,
    RetryModelRequest,
    RunContext,
    Tool,
    ToolCallPart,
    UsageLimits,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset

from . import compaction, model_names, modes
from .compaction import Room
from .errors import BROKEN_OFF, is_passing, kind_of
from .tools import CHANGING, FOR_SUB_AGENTS, TOOLS
from .work import Work

ATTEMPTS = 5
FIRST = 1.0
LONGEST_PAUSE = 60.0
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
        if seconds > LONGEST_PAUSE:
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


ODD = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 64


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
    return ODD.sub("_", name)[:LONGEST_NAME] or "unnamed"


REQUESTS = 200
"""Of a turn to the model; more than any honest work needs."""
RETRIES = 3
"""Of a tool whose arguments do not fit."""
WINDOW = 128_000
"""Tokens of context of a model of which that is not known."""
WINDOWS = {"gemini-2.5-": 1_048_576, "gemini-3": 1_048_576}
"""The same of models, by how their names begin, that the library leaves out."""


async def worker(model: Any, work: Work) -> Agent[Work, str]:
    """The model, ready to work. One that works for a call of another is a sub-agent."""
    session, is_sub_agent = work.session, work.parent is not None
    tools = FOR_SUB_AGENTS if is_sub_agent else TOOLS
    own: FunctionToolset[Work] = FunctionToolset([Tool(tool, sequential=tool in CHANGING) for tool in tools])

    about = compaction.about_the_work(work.host, session, sub_agent=is_sub_agent)

    def is_offered(_: Any, tool: Any) -> bool:
        return modes.offers(session.settings.mode, tool.name)

    # patience tries again, and says so, instead of the provider's own package
    settings = ModelSettings(max_retries=0, cache=True)
    if session.settings.thinking in modes.THINKING:
        settings["thinking"] = modes.THINKING[session.settings.thinking]
    return Agent(
        model,
        deps_type=Work,
        # in one piece, as some servers take no second one; the mode may change meanwhile
        instructions=lambda: f"{about}\n\n{compaction.about_the_mode(session)}",
        toolsets=[toolset.filtered(is_offered) for toolset in (own, *await _servers(work))],
        retries=RETRIES,
        capabilities=[Patience(), Spelling(), *(() if is_sub_agent else (Room(context_window(model, work)),))],
        model_settings=settings,
    )


async def _servers(work: Work) -> Sequence[AbstractToolset[Work]]:
    """The tools of the session's MCP servers, which are started here if they do not run yet."""
    session = work.session
    if not session.servers:
        return ()
    if session.connected is None:
        # it brings a client of its own, and most sessions have no server
        mcp = await asyncio.to_thread(import_module, f"{__package__}.tools.mcp")
        session.connected = await mcp.Servers.start(session.servers, session.settings.cwd)
        for problem in session.connected.problems:
            await work.speech.notice(problem)
    return session.connected.toolsets


def limits(done: int = 0) -> UsageLimits:
    """What is left of the requests that a turn may make."""
    return UsageLimits(request_limit=max(REQUESTS - done, 0))


def context_window(model: Any, work: Work) -> int:
    """Tokens that the model takes in: as its server once said, as is known of its name, or as is configured."""
    host, name = work.host, work.session.settings.model or ""
    known = model.profile.get("context_window") or next(
        (size for begin, size in WINDOWS.items() if model.model_name.startswith(begin)), None
    )
    # a server of one's own may have loaded a model of a known name with less
    told = (
        (host.options.context_window, known) if model_names.is_elsewhere(name) else (known, host.options.context_window)
    )
    window: int = next(size for size in (host.windows.get(name), *told, WINDOW) if size)
    return window
