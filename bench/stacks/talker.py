"""The agent of the benchmarks as one would write it: made with a library, an awaited call for each update.

    python talker.py pilothouse|sdk

Prompts: `flood N` · `ping N SECONDS`.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from typing import Any


async def main(package: str) -> None:
    acp = importlib.import_module(package)

    class Talker(acp.Agent):  # type: ignore[misc]  # one of two packages
        def on_connect(self, conn: Any) -> None:
            self._client = conn

        async def initialize(self, protocol_version: int, **_: Any) -> Any:
            return acp.InitializeResponse(protocol_version=protocol_version)

        async def new_session(self, cwd: str, **_: Any) -> Any:
            return acp.NewSessionResponse(session_id="bench")

        async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> Any:
            word, count, *rest = prompt[0].text.split()
            if word == "flood":
                await self._say(session_id, f"begin {time.time()} ")
                for number in range(int(count)):
                    await self._say(session_id, f"chunk number {number} of the answer")
            else:
                for _ in range(int(count)):
                    await self._say(session_id, f"sent {time.time()} ")
                    await asyncio.sleep(float(rest[0]))
            return acp.PromptResponse(stop_reason="end_turn")

        async def _say(self, session_id: str, text: str) -> None:
            await self._client.session_update(session_id, acp.update_agent_message_text(text))

    await acp.run_agent(Talker())


if __name__ == "__main__":
    asyncio.run(main({"pilothouse": "pilothouse.acp", "sdk": "acp"}[sys.argv[1]]))
