"""The model with its tools and instructions: for a turn, and for the sub-agents that it delegates to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pydantic_ai import Agent, FunctionToolset, Tool, UsageLimits
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset

from . import modes, names, prompts
from .compaction import Room
from .patience import Patience
from .spelling import Spelling
from .tools import CHANGING, FOR_SUB_AGENTS, TOOLS
from .work import Work

__all__ = ["context_window", "limits", "worker"]

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

    about = prompts.about_the_work(work.host, session, sub_agent=is_sub_agent)

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
        instructions=lambda: f"{about}\n\n{prompts.about_the_mode(session)}",
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
    told = (host.options.context_window, known) if names.is_elsewhere(name) else (known, host.options.context_window)
    window: int = next(size for size in (host.windows.get(name), *told, WINDOW) if size)
    return window
