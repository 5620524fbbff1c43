"""A client for the console: starts an agent, sends each line as a prompt, shows what comes back."""

import asyncio
import asyncio.subprocess
import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

from acp_root import PROTOCOL_VERSION, Client, RequestError, connect_to_agent, text_block
from acp_root.core import ClientSideConnection
from acp_root.schema import (
    AgentMessageChunk,
    AudioContentBlock,
    ClientCapabilities,
    CreateElicitationResponse,
    CreateTerminalResponse,
    DeclineElicitationResponse,
    ElicitationMode,
    EmbeddedResourceContentBlock,
    EnvVariable,
    ImageContentBlock,
    Implementation,
    KillTerminalResponse,
    PermissionOption,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    ResourceContentBlock,
    TerminalOutputResponse,
    TextContentBlock,
    ToolCallUpdate,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)


class Console(Client):
    """Shows messages and refuses everything else."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        raise RequestError.method_not_found("session/request_permission")

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> WriteTextFileResponse | None:
        raise RequestError.method_not_found("fs/write_text_file")

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        raise RequestError.method_not_found("fs/read_text_file")

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> CreateTerminalResponse:
        raise RequestError.method_not_found("terminal/create")

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> TerminalOutputResponse:
        raise RequestError.method_not_found("terminal/output")

    async def release_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> ReleaseTerminalResponse | None:
        raise RequestError.method_not_found("terminal/release")

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        raise RequestError.method_not_found("terminal/wait_for_exit")

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> KillTerminalResponse | None:
        raise RequestError.method_not_found("terminal/kill")

    async def create_elicitation(self, message: str, mode: ElicitationMode, **kwargs: Any) -> CreateElicitationResponse:
        print(f"asked: {message} ({type(mode).__name__})")
        return DeclineElicitationResponse(action="decline")

    async def complete_elicitation(self, elicitation_id: str, **kwargs: Any) -> None:
        print(f"asked no more: {elicitation_id}")

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        if not isinstance(update, AgentMessageChunk):
            return
        content = update.content
        if isinstance(content, TextContentBlock):
            shown = content.text
        elif isinstance(content, ImageContentBlock):
            shown = "<image>"
        elif isinstance(content, AudioContentBlock):
            shown = "<audio>"
        elif isinstance(content, ResourceContentBlock):
            shown = content.uri or "<link>"
        elif isinstance(content, EmbeddedResourceContentBlock):
            shown = "<resource>"
        else:
            shown = "<something>"
        print(f"agent: {shown}", flush=True)
        if kwargs:
            print(f"  with {sorted(kwargs)}", flush=True)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        raise RequestError.method_not_found(method)


async def next_line() -> str:
    return await asyncio.get_running_loop().run_in_executor(None, input)


async def converse(conn: ClientSideConnection, session_id: str) -> None:
    while True:
        try:
            line = await next_line()
        except EOFError:
            return
        if not line:
            continue
        try:
            response = await conn.prompt(session_id=session_id, prompt=[text_block(line)])
            print(f"({response.stop_reason})", flush=True)
        except Exception as exc:
            logging.error("prompt failed: %s", exc)


async def main(arguments: list[str]) -> int:
    logging.basicConfig(level=logging.INFO)
    if not arguments:
        print("usage: console_client.py AGENT [ARGUMENT ...]", file=sys.stderr)
        return 2
    program, *rest = arguments
    command = [program, *rest]
    if Path(program).exists() and not os.access(program, os.X_OK):
        command = [sys.executable, *command]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    if process.stdin is None or process.stdout is None:
        print("the agent has no pipes", file=sys.stderr)
        return 1
    conn = connect_to_agent(Console(), process.stdin, process.stdout)
    await conn.initialize(
        protocol_version=PROTOCOL_VERSION,
        client_capabilities=ClientCapabilities(),
        client_info=Implementation(name="console", title="Console", version="1.0"),
    )
    session = await conn.new_session(mcp_servers=[], cwd=os.getcwd())
    await converse(conn, session.session_id)
    if process.returncode is None:
        process.terminate()
        with contextlib.suppress(ProcessLookupError):
            await process.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(sys.argv[1:])))
