"""Step 2: a model answers, and its words are shown as they come."""

import asyncio
import os
import uuid
from typing import Any

from pydantic_ai import Agent as ModelAgent
from pydantic_ai import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.exceptions import AgentRunError, UserError
from stand_in import STAND_IN

from pilothouse.acp import (
    PROTOCOL_VERSION,
    Agent,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    update_agent_message_text,
)

MODEL = os.environ.get("PILOTHOUSE_MODEL") or STAND_IN


def words(prompt: list[Any]) -> str:
    """What was asked: a text as it is, a link to a file as its address."""
    blocks = [block for block in prompt if block.type in ("text", "resource_link")]
    return "\n".join(block.text if block.type == "text" else block.uri for block in blocks)


mind = ModelAgent(instructions="You are a deckhand: brief, exact, and careful with what is not yours.")


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
        try:
            async with mind.run_stream_events(words(prompt), model=MODEL) as events:
                async for event in events:
                    await self.show(session_id, event)
        except (AgentRunError, UserError) as exc:
            raise RequestError(-32603, f"The model failed: {exc}") from exc
        return PromptResponse(stop_reason="end_turn")

    async def show(self, session_id: str, event: Any) -> None:
        """Send on what the model says, piece by piece."""
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                if text:
                    await self.client.session_update(session_id, update_agent_message_text(text))


if __name__ == "__main__":
    asyncio.run(run_agent(Deckhand()))
