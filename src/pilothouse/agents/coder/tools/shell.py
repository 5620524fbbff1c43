"""Commands, which the user is asked about to the letter."""

from __future__ import annotations

import asyncio

from pydantic_ai import RunContext

from ....acp import ToolCallStatus, text_block, tool_content
from ...commands import Command, Failure, Outcome, prepare
from ..host import Grant
from ..work import Work
from .texts import cut, fenced

CHARACTERS = 30_000
SECONDS = 120
MOST_SECONDS = 600


async def bash(ctx: RunContext[Work], command: str, timeout: int = SECONDS, cwd: str = ".") -> str:
    """Run a shell command in the workspace and get its output and exit code. It gets no input.

    Args:
        command: The command line.
        timeout: Seconds after which it is ended, at most 600.
        cwd: The directory to run it in.
    """
    work = ctx.deps
    elsewhere = {} if cwd == "." else {"cwd": cwd}  # whoever is asked knows the session's own directory
    raw_input = {"command": command, "timeout": timeout, **elsewhere}
    title = f"`{command}`" + ("" if cwd == "." else f" in {cwd}")
    async with work.call("bash", title, "execute", of=ctx.tool_call_id, raw_input=raw_input) as call:
        directory = work.workspace.locate(cwd)
        if not directory.is_dir():
            raise Failure(f"There is no directory `{cwd}`.")
        if not command.strip():
            raise Failure("The command is empty.")
        if "\0" in command:
            raise Failure("The command has a character in it that no command can have.")
        await call.permit(Grant(("bash", command, str(directory)), f"`{command}`"))
        work.workspace.locate(cwd)  # a link may have been put in its way since it was asked about
        lent = bool(work.host.capabilities.terminal)
        async with prepare(work.client, work.session.id, call, command, str(directory), lent=lent) as running:
            outcome, ending = await _waited(running, min(max(timeout, 1), MOST_SECONDS))
            # a replay comes when the terminal is long gone, so it shows the output itself
            shown = [tool_content(text_block(f"{fenced(outcome.output)}\n{ending}"))]
            status: ToolCallStatus = "completed" if outcome.ok else "failed"
            await call.end(status, raw_output=outcome.raw, replay_content=shown)
        before = "[what it wrote first is left out]\n" if outcome.is_cut else ""
        return f"{before}{cut(outcome.output.rstrip(), CHARACTERS)}\n[{ending}]"


async def _waited(running: Command, seconds: int) -> tuple[Outcome, str]:
    """How a command ended, also in words; one that takes longer is ended."""
    try:
        async with asyncio.timeout(seconds):
            outcome = await running.wait()
    except TimeoutError:
        await running.kill()
        outcome = await running.wait()
        outcome.exit_code = None  # it may have been about to end by itself
        return outcome, f"ended after {seconds} seconds, as it was still running"
    return outcome, str(outcome)
