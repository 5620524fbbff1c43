"""The to-do list of the model, and delegation of a part of the work to a sub-agent."""

from __future__ import annotations

from typing import Literal

from pydantic_ai import RunContext
from typing_extensions import TypedDict  # pydantic reads no other before Python 3.12

from ....acp import plan_entry, text_block, tool_content, update_plan
from ..work import Work


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


MARKS = {"pending": " ", "in_progress": "~", "completed": "x"}


class Entry(TypedDict):
    """One step of the plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["high", "medium", "low"]


async def todo(ctx: RunContext[Work], entries: list[Entry]) -> str:
    """Write down the plan for a task of several steps, or bring it up to date. It replaces the plan as a whole.

    Args:
        entries: All steps in order. One is in progress at a time; mark it completed as soon as it is.
    """
    work = ctx.deps
    done = sum(entry["status"] == "completed" for entry in entries)
    title = f"Plan: {done} of {len(entries)} steps done"
    async with work.call("todo", title, "think", of=ctx.tool_call_id, raw_input={"entries": list(entries)}) as call:
        await call.start()
        await work.speech.send(
            update_plan(
                plan_entry(entry["content"], priority=entry["priority"], status=entry["status"]) for entry in entries
            )
        )
        listed = "\n".join(f"- [{MARKS[entry['status']]}] {entry['content']}" for entry in entries)
        await call.end(content=[tool_content(text_block(listed or "The plan is empty."))])
        return "The plan is shown to the user."
