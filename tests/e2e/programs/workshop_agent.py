"""An agent that works: reads, asks, edits and runs commands through its client. Prompts are its commands."""

import asyncio
import sys
from typing import Any

from acp_root import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    plan_entry,
    resource_block,
    resource_link_block,
    run_agent,
    start_edit_tool_call,
    start_read_tool_call,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    tool_terminal_ref,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp_root.helpers import embedded_text_resource, update_available_commands
from acp_root.interfaces import Client
from acp_root.schema import AllowedOutcome, AvailableCommand, PermissionOption, ToolCallUpdate

OPTIONS = [
    PermissionOption(option_id="no", name="Leave it", kind="reject_once"),
    PermissionOption(option_id="yes", name="Do it", kind="allow_once"),
    PermissionOption(option_id="always", name="Do it always", kind="allow_always"),
]


class Workshop(Agent):
    _client: Client

    def __init__(self, *, locked: bool) -> None:
        self._locked = locked
        self._cwd = "/"
        self._stopped = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, client_capabilities: Any = None, **kwargs: Any) -> Any:
        if self._locked:
            raise RequestError.auth_required({"hint": "unlock it first"})
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, mcp_servers: Any = None, **kwargs: Any) -> NewSessionResponse:
        self._cwd = cwd
        return NewSessionResponse(session_id="shop")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self._stopped.set()

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        command, _, rest = prompt[0].text.partition(" ")
        if command == "wait":
            await self._stopped.wait()
            return PromptResponse(stop_reason="cancelled")
        if command == "fail":
            raise RequestError.resource_not_found("file:///missing")
        await {"show": self.show, "edit": self.edit, "run": self.run}[command](session_id, rest)
        return PromptResponse(stop_reason="end_turn")

    async def show(self, session_id: str, rest: str) -> None:
        """One of each thing that can be shown."""
        for update in (
            update_user_message_text("show"),
            update_agent_thought_text("let me see"),
            update_plan([plan_entry("look", status="completed"), plan_entry("tell", priority="high")]),
            update_agent_message(resource_link_block("notes", "file:///notes.txt")),
            update_agent_message(resource_block(embedded_text_resource("file:///a.txt", "inside"))),
            start_tool_call("t1", "Thinking hard", kind="think"),
            update_tool_call("t1", content=[tool_content(text_block("hm"))]),
            update_tool_call("t1", status="completed"),
            update_available_commands([AvailableCommand(name="edit", description="Edit a file")]),
            update_agent_message_text("that is all"),
        ):
            await self._client.session_update(session_id, update)

    async def edit(self, session_id: str, rest: str) -> None:
        name, _, new = rest.partition(" ")
        path = f"{self._cwd}/{name}"
        await self._client.session_update(session_id, start_read_tool_call("r", f"Read {name}", path))
        old = (await self._client.read_text_file(path=path, session_id=session_id)).content
        first = (await self._client.read_text_file(path=path, session_id=session_id, line=1, limit=1)).content
        await self._client.session_update(session_id, update_tool_call("r", status="completed"))
        await self._client.session_update(session_id, start_edit_tool_call("e", f"Edit {name}", path, new))
        response = await self._client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id="e", title=f"Edit {name}", kind="edit"),
            options=OPTIONS,
        )
        chosen = response.outcome.option_id if isinstance(response.outcome, AllowedOutcome) else None
        kind = next((option.kind for option in OPTIONS if option.option_id == chosen), "none")
        if not kind.startswith("allow"):
            await self._client.session_update(session_id, update_tool_call("e", status="failed"))
            await self._client.session_update(session_id, update_agent_message_text(f"left {name} alone ({kind})"))
            return
        await self._client.write_text_file(path=path, content=new, session_id=session_id)
        diff = tool_diff_content(path, new, old)
        await self._client.session_update(session_id, update_tool_call("e", status="completed", content=[diff]))
        await self._client.session_update(session_id, update_agent_message_text(f"{first!r} is now {new!r}"))

    async def run(self, session_id: str, rest: str) -> None:
        command, *args = rest.split()
        terminal = await self._client.create_terminal(
            command=command, args=args, session_id=session_id, cwd=self._cwd, output_byte_limit=1000
        )
        where = {"session_id": session_id, "terminal_id": terminal.terminal_id}
        await self._client.session_update(
            session_id,
            start_tool_call("x", f"Run {command}", kind="execute", content=[tool_terminal_ref(terminal.terminal_id)]),
        )
        ended = await self._client.wait_for_terminal_exit(**where)
        output = await self._client.terminal_output(**where)
        await self._client.kill_terminal(**where)
        content = [tool_terminal_ref(terminal.terminal_id)]
        await self._client.session_update(session_id, update_tool_call("x", status="completed", content=content))
        await self._client.release_terminal(**where)
        told = f"{command} ended with {ended.exit_code}: {output.output.strip()}"
        await self._client.session_update(session_id, update_agent_message_text(told))


async def main() -> None:
    if "--dead" in sys.argv:
        print("cannot find my tools", file=sys.stderr)
        raise SystemExit(3)
    await run_agent(Workshop(locked="--locked" in sys.argv))


if __name__ == "__main__":
    asyncio.run(main())
