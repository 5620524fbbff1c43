"""An agent that says back what it is told, a chunk for every block, and marks each as an echo."""

import asyncio
from typing import Any
from uuid import uuid4

from acp_root import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    text_block,
    update_agent_message,
)
from acp_root.interfaces import Client
from acp_root.schema import (
    AudioContentBlock,
    ClientCapabilities,
    EmbeddedResourceContentBlock,
    HttpMcpServer,
    ImageContentBlock,
    Implementation,
    McpServerStdio,
    ResourceContentBlock,
    SseMcpServer,
    TextContentBlock,
)

Server = HttpMcpServer | SseMcpServer | McpServerStdio
Block = TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock


class Echo(Agent):
    _client: Client

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **kwargs: Any,
    ) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Server] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Block], **kwargs: Any) -> PromptResponse:
        for number, block in enumerate(prompt):
            said = block.get("text", "") if isinstance(block, dict) else getattr(block, "text", "")
            chunk = update_agent_message(text_block(said))
            chunk.field_meta = {"echo": True, "number": number}
            chunk.content.field_meta = {"of": getattr(block, "type", None)}
            # keywords that the protocol does not know travel as `_meta` of the notification, and come that way too
            await self._client.session_update(session_id=session_id, update=chunk, source="echo", heard=kwargs)
        return PromptResponse(stop_reason="end_turn")


async def main() -> None:
    await run_agent(Echo())


if __name__ == "__main__":
    asyncio.run(main())
