"""A client: start an agent, send it a prompt, show what it does. Usage: client.py PROMPT COMMAND [ARG...]"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from pilothouse.acp import (
    AgentMessageChunk,
    AllowedOutcome,
    Client,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    WriteTextFileResponse,
    spawn_agent_process,
    text_block,
)


class Terminal(Client):
    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        if isinstance(update, AgentMessageChunk):
            content = update.content
            print(content.text if content.type == "text" else f"<{content.type}>", end="", flush=True)
        elif isinstance(update, ToolCallStart):
            print(f"[{update.title}]")
        elif isinstance(update, ToolCallProgress) and update.status:
            print(f"[{update.status}]")

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        print(f"{tool_call.title}? [y/N] ", end="", flush=True)
        answer = (await asyncio.to_thread(sys.stdin.readline)).strip()
        wanted = "allow_once" if answer == "y" else "reject_once"
        for option in options:
            if option.kind == wanted:
                return RequestPermissionResponse(outcome=AllowedOutcome(option_id=option.option_id))
        return RequestPermissionResponse(outcome=DeniedOutcome())

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> WriteTextFileResponse:
        await asyncio.to_thread(Path(path).write_text, content)
        return WriteTextFileResponse()


async def main(prompt: str, command: list[str]) -> None:
    async with spawn_agent_process(Terminal(), *command) as (agent, _):
        await agent.initialize(client_capabilities=ClientCapabilities(fs=FileSystemCapabilities(write_text_file=True)))
        session = await agent.new_session(cwd=str(Path.cwd()))
        response = await agent.prompt(session.session_id, [text_block(prompt)])
        print(f"\n({response.stop_reason})")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
