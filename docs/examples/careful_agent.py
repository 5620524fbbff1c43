"""An agent that edits a file, and asks before it does."""

import asyncio
from pathlib import Path
from typing import Any

from pilothouse.acp import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    ToolCallLocation,
    run_agent,
    tool_diff_content,
)
from pilothouse.acp.contrib import PermissionBroker, ToolCallTracker


class Careful(Agent):
    def on_connect(self, conn: Any) -> None:
        self.client = conn
        self.cwd = "/"

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=1)

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        self.cwd = cwd
        return NewSessionResponse(session_id="careful")

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        path = str(Path(self.cwd, "note.txt"))
        tracker = ToolCallTracker()
        broker = PermissionBroker(session_id, self.client.request_permission, tracker=tracker)

        start = tracker.start(
            "note",
            title="Write note.txt",
            kind="edit",
            status="pending",
            content=[tool_diff_content(path, new_text=prompt[0].text)],
            locations=[ToolCallLocation(path=path)],
        )
        await self.client.session_update(session_id, start)

        # A chosen option may be a rejection: ask for the kind of the choice, never for the class of the outcome.
        if await broker.is_allowed("note"):
            await self.client.write_text_file(session_id, path, prompt[0].text)
            done = tracker.progress("note", status="completed")
        else:
            done = tracker.progress("note", status="failed")
        await self.client.session_update(session_id, done)
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(Careful()))
