"""Running commands, and how the tool calls end that they run in."""

from __future__ import annotations

from ...acp import text_block, tool_content
from ..commands import Command, Outcome, prepare
from .turn import Call, Turn

__all__ = ["Outcome", "kill_after_start", "run"]


async def run(turn: Turn, call: Call, line: str, *, directory: str = "") -> Outcome:
    """Run a command and end the call with its outcome; non-zero is a failure."""
    async with _command(turn, call, line, directory) as running:
        outcome = await running.wait()
        await _end(call, outcome, ok=outcome.ok)
    return outcome


async def kill_after_start(turn: Turn, call: Call, line: str) -> Outcome:
    """Start a command that would run for long, and kill it; being killed is its success."""
    async with _command(turn, call, line) as running:
        await running.kill()
        outcome = await running.wait()
        await _end(call, outcome, ok=True)
    return outcome


def _command(turn: Turn, call: Call, line: str, directory: str = "") -> Command:
    cwd = str(turn.session.cwd / directory)
    return prepare(turn.client, turn.session.id, call, line, cwd, lent=bool(turn.capabilities.terminal))


async def _end(call: Call, outcome: Outcome, *, ok: bool) -> None:
    # A replay comes when the terminal is long gone, so it shows the output itself.
    shown = [tool_content(text_block(f"```\n{outcome.output.rstrip()}\n```\n{outcome}"))]
    await call.end("completed" if ok else "failed", raw_output=outcome.raw, replay_content=shown)
