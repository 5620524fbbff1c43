"""An agent that writes one long answer in small pieces, or does many small things: what a page has to keep up with."""

from __future__ import annotations

import asyncio
from typing import Any

from pilothouse.acp import Agent, PromptResponse, run_agent, text_block, update_agent_message
from pilothouse.acp.helpers import start_tool_call, tool_content, update_tool_call
from pilothouse.acp.schema import InitializeResponse, NewSessionResponse

PROSE = (
    "Part {n} keeps its **state** in one place, and whoever wants to change it says so by a message; that is why the "
    "`reader_{n}` never sees half of a change. The old way held a lock for as long as a request took, which made a "
    "slow client everybody's problem. See [the notes](https://example.org/{n}) for the figures; mind that they were "
    "taken on a machine with *two* cores.\n\n"
)
PARAGRAPHS = (
    "## Part {n}\n\n" + PROSE,
    PROSE,
    "".join(
        f"- point {point} of {{n}}, with `some_code({point})` and a few more words about it\n" for point in range(6)
    )
    + "\n",
    "```python\n"
    + "".join(
        f"def part_{{n}}_{line}(values):\n    return [value * {line} for value in values]\n\n" for line in range(5)
    )
    + "```\n\n",
    PROSE,
    "| name | amount | remark |\n| --- | ---: | --- |\n"
    + "".join(f"| row {row} | {{n}} | about `{row}` |\n" for row in range(6))
    + "\n",
)
"""An answer as models give them: prose, lists, code, a table; 4 KB for all of them, then again."""
DENSE = (
    "## Part {n}\n\nSome words about part {n}, with `code`, **weight** and a [link](https://example.org/{n}).\n\n",
    "- one thing of {n}\n- another thing\n  - below it\n- [x] done\n\n",
    "```python\ndef part_{n}(values):\n    return [value * {n} for value in values if value]\n```\n\n",
    "| name | amount |\n| --- | ---: |\n| apples {n} | 12 |\n| pears | {n} |\n\n",
)
"""Hardly any prose: a block every eighty characters, three hundred of them code."""
TEXTS = {"write": PARAGRAPHS, "dense": DENSE}
PIECE = 25


def long_text(size: int, paragraphs: tuple[str, ...] = PARAGRAPHS) -> str:
    """Markdown of every kind, of this many characters."""
    text, number = "", 0
    while len(text) < size:
        text += paragraphs[number % len(paragraphs)].format(n=number)
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
        if what == "steps":
            await self._steps(session_id, int(amount))
        else:
            await self._write(session_id, long_text(int(amount), TEXTS[what]))
        return PromptResponse(stop_reason="end_turn")

    async def _write(self, session_id: str, text: str) -> None:
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
