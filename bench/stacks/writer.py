"""An agent that writes one long answer in small pieces, or does many small things: what a page has to keep up with."""

from __future__ import annotations

import asyncio
from typing import Any

from pilothouse.acp import Agent, PromptResponse, run_agent, text_block, update_agent_message
from pilothouse.acp.helpers import start_tool_call, tool_content, update_tool_call
from pilothouse.acp.schema import InitializeResponse, NewSessionResponse

PARAGRAPHS = (
    "## Part {n}\n\nSome words about part {n}, with `code`, **weight** and a [link](https://example.org/{n}).\n\n",
    "- one thing of {n}\n- another thing\n  - below it\n- [x] done\n\n",
    "```python\ndef part_{n}(values):\n    return [value * {n} for value in values if value]\n```\n\n",
    "| name | amount |\n| --- | ---: |\n| apples {n} | 12 |\n| pears | {n} |\n\n",
)
PIECE = 25


def long_text(size: int) -> str:
    """Markdown of every kind, of this many characters."""
    text, number = "", 0
    while len(text) < size:
        text += PARAGRAPHS[number % len(PARAGRAPHS)].format(n=number)
        number += 1
    return text[:size]


class Writer(Agent):
    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="one")

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> PromptResponse:
        what, _, amount = prompt[0].text.partition(" ")
        await {"write": self._write, "steps": self._steps}[what](session_id, int(amount))
        return PromptResponse(stop_reason="end_turn")

    async def _write(self, session_id: str, size: int) -> None:
        text = long_text(size)
        for at in range(0, len(text), PIECE):
            piece = update_agent_message(text_block(text[at : at + PIECE]))
            await self._client.session_update(session_id, piece)
            await asyncio.sleep(0.001)  # as a model's words come: a few at a time

    async def _steps(self, session_id: str, steps: int) -> None:
        for step in range(steps):
            update = update_agent_message(text_block(f"Step {step}: looking at **file {step}**.\n\n"))
            await self._client.session_update(session_id, update)
            call = f"call-{step}"
            started = start_tool_call(call, f"Read src/file{step}.py", kind="read", status="in_progress")
            await self._client.session_update(session_id, started)
            content = [tool_content(text_block(f"line of file {step}\n" * 20))]
            await self._client.session_update(session_id, update_tool_call(call, status="completed", content=content))


if __name__ == "__main__":
    asyncio.run(run_agent(Writer()))
