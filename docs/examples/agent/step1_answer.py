"""Step 1: an agent that answers."""

import asyncio
import uuid
from typing import Any

from pilothouse.acp import (
    PROTOCOL_VERSION,
    Agent,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    update_agent_message_text,
)


def words(prompt: list[Any]) -> str:
    """What was asked: a text as it is, a link to a file as its address."""
    blocks = [block for block in prompt if block.type in ("text", "resource_link")]
    return "\n".join(block.text if block.type == "text" else block.uri for block in blocks)


class Deckhand(Agent):
    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION, agent_info=Implementation(name="deckhand", version="0.1")
        )

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid.uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        await self.client.session_update(session_id, update_agent_message_text(f"Aye: {words(prompt)}"))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(Deckhand()))
