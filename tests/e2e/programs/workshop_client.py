"""A client for a coding agent: lends files and terminals, asks the user (or not), shows every kind of update."""

from __future__ import annotations

import argparse
import asyncio
import asyncio.subprocess
import contextlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from acp_root import PROTOCOL_VERSION, Client, RequestError, connect_to_agent, text_block
from acp_root.core import ClientSideConnection
from acp_root.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AllowedOutcome,
    AvailableCommandsUpdate,
    ClientCapabilities,
    CreateElicitationResponse,
    CreateTerminalResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    ElicitationMode,
    EmbeddedResourceContentBlock,
    EnvVariable,
    FileEditToolCallContent,
    FileSystemCapabilities,
    KillTerminalResponse,
    PermissionOption,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    ResourceContentBlock,
    TerminalExitStatus,
    TerminalOutputResponse,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UserMessageChunk,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)


def say(*words: object) -> None:
    print(*words, flush=True)


async def ask(question: str) -> str:
    return (await asyncio.get_running_loop().run_in_executor(None, input, question)).strip()


class Bench(Client):
    def __init__(self, *, trusting: bool) -> None:
        self._trusting = trusting
        self._terminals: dict[str, asyncio.subprocess.Process] = {}

    # -- permission --

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        if self._trusting:
            option = preferred(options)
            if option is None:
                return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
            return RequestPermissionResponse(outcome=AllowedOutcome(option_id=option.option_id, outcome="selected"))
        say(f"may I: {tool_call.title or '?'}")
        for number, option in enumerate(options, start=1):
            say(f"  {number}. {option.name} ({option.kind})")
        while True:
            try:
                answer = await ask("")
            except EOFError:
                return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
            if answer.isdigit() and 1 <= int(answer) <= len(options):
                chosen = options[int(answer) - 1]
                return RequestPermissionResponse(outcome=AllowedOutcome(option_id=chosen.option_id, outcome="selected"))
            say("one of the numbers, please")

    # -- files --

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> WriteTextFileResponse | None:
        file = absolute(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        say(f"[wrote {file.name}: {len(content)}]")
        return WriteTextFileResponse()

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        file = absolute(path)
        text = file.read_text()
        say(f"[read {file.name}: {len(text)} from {line} limit {limit}]")
        if line is not None or limit is not None:
            start = max((line or 1) - 1, 0)
            lines = text.splitlines()
            text = "\n".join(lines[start : start + limit if limit else None])
        return ReadTextFileResponse(content=text)

    # -- terminals --

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
        terminal_id = f"term-{len(self._terminals) + 1}"
        say(f"[terminal {terminal_id}: {command} {args or []} limit {output_byte_limit}]")
        self._terminals[terminal_id] = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            cwd=cwd,
            env={**os.environ, **{variable.name: variable.value for variable in env or []}},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        return CreateTerminalResponse(terminal_id=terminal_id)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        return WaitForTerminalExitResponse(exit_code=await self._terminals[terminal_id].wait())

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> TerminalOutputResponse:
        process = self._terminals[terminal_id]
        output = await process.stdout.read() if process.stdout else b""
        status = TerminalExitStatus(exit_code=process.returncode)
        return TerminalOutputResponse(output=output.decode(), truncated=False, exit_status=status)

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> KillTerminalResponse | None:
        with contextlib.suppress(ProcessLookupError):
            self._terminals[terminal_id].kill()
        return KillTerminalResponse()

    async def release_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> ReleaseTerminalResponse | None:
        say(f"[released {terminal_id}]")
        return ReleaseTerminalResponse()

    # -- the rest --

    async def create_elicitation(self, message: str, mode: ElicitationMode, **kwargs: Any) -> CreateElicitationResponse:
        say(f"asked: {message} ({type(mode).__name__})")
        return DeclineElicitationResponse(action="decline")

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        if isinstance(update, AgentMessageChunk):
            show_content(update.content)
        elif isinstance(update, AgentThoughtChunk):
            say("(thinks)")
            show_content(update.content)
        elif isinstance(update, UserMessageChunk):
            say("(you said)")
            show_content(update.content)
        elif isinstance(update, AgentPlanUpdate):
            say("plan:")
            for entry in update.entries:
                say(f"  {entry.status.upper():<10} {entry.content} ({entry.priority})")
        elif isinstance(update, ToolCallStart):
            say(f"* {update.title} ({update.status or 'pending'})")
        elif isinstance(update, ToolCallProgress):
            say(f"* {update.tool_call_id} -> {update.status or 'in_progress'}")
            for item in update.content or []:
                if isinstance(item, FileEditToolCallContent):
                    say(f"  diff: {Path(item.path).name}")
                elif isinstance(item, TerminalToolCallContent):
                    say(f"  terminal: {item.terminal_id}")
                elif isinstance(item, dict):
                    say(f"  raw: {json.dumps(item)}")
                else:
                    say(f"  {item.type}")
        elif isinstance(update, AvailableCommandsUpdate):
            say("commands:", ", ".join(command.name for command in update.available_commands))
        else:
            say(f"[{type(update).__name__}]")


def preferred(options: Iterable[PermissionOption]) -> PermissionOption | None:
    """The first option that allows; the first at all where none does."""
    every = list(options)
    return next(
        (option for option in every if option.kind in {"allow_once", "allow_always"}), every[0] if every else None
    )


def absolute(path: str) -> Path:
    if not Path(path).is_absolute():
        raise RequestError.invalid_params({"path": path, "reason": "must be absolute"})
    return Path(path)


def show_content(content: object) -> None:
    if isinstance(content, TextContentBlock):
        say(content.text)
    elif isinstance(content, ResourceContentBlock):
        say(content.name or content.uri)
    elif isinstance(content, EmbeddedResourceContentBlock):
        say(getattr(content.resource, "text", None) or getattr(content.resource, "blob", None) or "<resource>")


def complain(stage: str, error: RequestError) -> None:
    payload = error.to_error_obj()
    print(f"{stage} failed ({payload['code']}): {payload['message']}", file=sys.stderr)
    if payload.get("data") is not None:
        print(json.dumps(payload["data"]), file=sys.stderr)


async def send(conn: ClientSideConnection, session_id: str, text: str, timeout: float | None) -> None:
    request = conn.prompt(session_id=session_id, prompt=[text_block(text)])
    response = await (request if timeout is None else asyncio.wait_for(request, timeout=timeout))
    say(f"({response.stop_reason})")


async def give_up(conn: ClientSideConnection, session_id: str) -> None:
    print("no answer in time", file=sys.stderr)
    with contextlib.suppress(Exception):
        await asyncio.wait_for(conn.cancel(session_id=session_id), timeout=2)


async def converse(conn: ClientSideConnection, session_id: str, timeout: float | None) -> None:
    while True:
        try:
            line = await ask("")
        except EOFError:
            return
        if line == ":exit":
            return
        try:
            if line == ":cancel":
                await conn.cancel(session_id=session_id)
            elif line:
                await send(conn, session_id, line, timeout)
        except TimeoutError:
            await give_up(conn, session_id)
        except RequestError as error:
            complain("prompt", error)


async def shut_down(process: asyncio.subprocess.Process, conn: ClientSideConnection) -> None:
    with contextlib.suppress(Exception):
        await asyncio.wait_for(conn.close(), timeout=2)
    if process.stdin is not None:
        with contextlib.suppress(Exception):
            process.stdin.close()
            await asyncio.wait_for(process.stdin.wait_closed(), timeout=2)
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), timeout=5)
        except TimeoutError:
            process.kill()
            await process.wait()


async def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("agent", nargs="+")
    parser.add_argument("--prompt")
    parser.add_argument("--prompt-timeout", type=float, default=30.0)
    parser.add_argument("--trust", action="store_true")
    options, rest = parser.parse_known_args(arguments)
    timeout = options.prompt_timeout or None
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *options.agent,
        *rest,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    conn = connect_to_agent(Bench(trusting=options.trust), process.stdin, process.stdout)
    try:
        capabilities = ClientCapabilities(
            fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
        )
        started = await conn.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=capabilities)
        session = await conn.new_session(cwd=os.getcwd(), mcp_servers=[])
    except RequestError as error:
        complain("start", error)
        await shut_down(process, conn)
        return 1
    except Exception as error:
        print(f"start failed: {type(error).__name__}", file=sys.stderr)
        await shut_down(process, conn)
        return 1
    say(f"connected by version {started.protocol_version}, session {session.session_id}")
    try:
        if options.prompt is None:
            await converse(conn, session.session_id, timeout)
        else:
            await send(conn, session.session_id, options.prompt, timeout)
    except TimeoutError:
        await give_up(conn, session.session_id)
        return 1
    finally:
        await shut_down(process, conn)
    say(f"the agent has ended: {process.returncode is not None}")
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(run(sys.argv[1:])))
