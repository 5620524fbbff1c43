"""Delegation: a sub-agent with a memory of its own does a part of the work and reports."""

from __future__ import annotations

from pydantic_ai import RunContext

from ....acp import text_block, tool_content
from ..work import Work

__all__ = ["task"]


async def task(ctx: RunContext[Work], description: str, prompt: str) -> str:
    """Let a sub-agent do a part of the work, such as a long search. It knows nothing of this conversation.

    Args:
        description: What it is to do, in three to five words.
        prompt: All that it needs to know, and what it is to report.
    """
    work = ctx.deps
    raw_input = {"description": description, "prompt": prompt}
    async with work.call("task", f"Task: {description}", "think", of=ctx.tool_call_id, raw_input=raw_input) as call:
        await call.start()
        report = await work.turn.delegate(prompt, call)
        await call.end(content=[tool_content(text_block(report))], raw_output={"report": report})
        return report
