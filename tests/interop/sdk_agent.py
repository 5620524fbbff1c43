"""The interop agent on the official Python SDK: `python sdk_agent.py`. tests/e2e/test_interop.py says what it does.

`session/delete` and `logout` are missing because SDK 0.12.1 has no route for them.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import acp
from acp import schema


@dataclass
class Session:
    cwd: str
    mode: str = "ask"
    config: dict[str, Any] = field(default_factory=lambda: {"model": "small", "web": False})
    notes: list[Any] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def modes(self) -> schema.SessionModeState:
        ask = schema.SessionMode(id="ask", name="Ask", description="Asks first")
        return schema.SessionModeState(
            current_mode_id=self.mode, available_modes=[ask, schema.SessionMode(id="code", name="Code")]
        )

    @property
    def config_options(self) -> list[Any]:
        sizes = [schema.SessionConfigSelectOption(value=name.lower(), name=name) for name in ("Small", "Large")]
        model = schema.SessionConfigOptionSelect(
            type="select", id="model", name="Model", category="model", current_value=self.config["model"], options=sizes
        )
        web = schema.SessionConfigOptionBoolean(type="boolean", id="web", name="Web", current_value=self.config["web"])
        return [model, web]


class InteropAgent(acp.Agent):
    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    # -- before and between prompts --

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **kwargs: Any,
    ) -> acp.InitializeResponse:
        seen = {"client": client_info.name, "terminal": client_capabilities.terminal, "meta": kwargs}
        return acp.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_info=schema.Implementation(name="interop-agent", title="Interop Ω", version="1.0"),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[schema.AuthMethodAgent(id="token", name="Token", description="A token")],
            field_meta={"seen": seen},
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> acp.AuthenticateResponse:
        if method_id != "token":
            raise acp.RequestError.auth_required({"methodId": method_id})
        return acp.AuthenticateResponse()

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **kwargs: Any,
    ) -> acp.NewSessionResponse:
        session_id = f"s{next(self._numbers)}"
        session = self._sessions[session_id] = Session(cwd)
        servers = [[server.name, getattr(server, "type", "stdio")] for server in mcp_servers]
        return acp.NewSessionResponse(
            session_id=session_id,
            modes=session.modes,
            config_options=session.config_options,
            field_meta={"cwd": cwd, "servers": servers},
        )

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> acp.LoadSessionResponse:
        if not session_id.startswith("old-"):
            raise acp.RequestError.resource_not_found(session_id)
        session = self._sessions[session_id] = Session(cwd)
        await self._client.session_update(session_id, acp.update_user_message_text("What is the answer?"))
        await self._client.session_update(session_id, acp.update_agent_thought_text("Hmm …"))
        await self._client.session_update(session_id, acp.update_agent_message_text("42 — żółw 🐢"))
        return acp.LoadSessionResponse(modes=session.modes)

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> schema.ListSessionsResponse:
        page = 2 if cursor == "page-2" else 1
        info = schema.SessionInfo(
            session_id=f"old-{page}", cwd=cwd, title=f"Gespräch {page}", updated_at="2026-11-01T12:00:00Z"
        )
        return schema.ListSessionsResponse(sessions=[info], next_cursor="page-2" if page == 1 else None)

    async def resume_session(self, session_id: str, cwd: str, **kwargs: Any) -> schema.ResumeSessionResponse:
        session = self._sessions[session_id] = Session(cwd)
        return schema.ResumeSessionResponse(modes=session.modes)

    async def close_session(self, session_id: str, **kwargs: Any) -> schema.CloseSessionResponse:
        del self._sessions[session_id]
        return schema.CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> acp.SetSessionModeResponse:
        if mode_id not in ("ask", "code"):
            raise acp.RequestError.invalid_params({"modeId": mode_id})
        self._session(session_id).mode = mode_id
        await self._client.session_update(
            session_id, schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode_id)
        )
        return acp.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> acp.SetSessionConfigOptionResponse:
        session = self._session(session_id)
        session.config[config_id] = value
        return acp.SetSessionConfigOptionResponse(config_options=session.config_options)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self._session(session_id).stop.set()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "interop/echo":
            return {"by": "agent", "echo": params}
        if method == "interop/ended":
            return {"ended": await self._session(params["sessionId"]).ended}
        if method == "interop/diagnostics":
            return {"diagnostics": []}
        raise acp.RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self._session(params["sessionId"]).notes.append([method, params["note"]])

    # -- prompts: the first word of the first block is a command, what follows are its arguments --

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> acp.PromptResponse:
        session = self._session(session_id)
        command, *arguments = prompt[0].text.split()
        blocks = prompt[1:]
        stop = "end_turn"
        match command:
            case "text":
                await self._client.session_update(session_id, acp.update_agent_thought(blocks[0]))
                await self._echo(session_id, blocks[1:])
            case "image":
                await self._echo(session_id, blocks)
            case "meta":
                await self._say(session_id, json.dumps(kwargs))
            case "plan":
                await self._plan(session_id)
            case "tool":
                stop = await self._tool(session_id, f"{session.cwd}/{arguments[0]}", blocks[0].text)
            case "read":
                await self._read(session_id, f"{session.cwd}/{arguments[0]}", *map(int, arguments[1:]))
            case "terminal":
                await self._terminal(session_id, session.cwd)
            case "ext":
                await self._ext(session_id, session)
            case "wait":
                stop = await self._wait(session_id, session)
            case "flood":
                for number in range(int(arguments[0])):
                    await self._say(session_id, str(number))
            case "big":
                await self._say(session_id, hashlib.sha256(blocks[0].text.encode()).hexdigest())
                await self._say(session_id, "水" * int(arguments[0]))
            case "stop":
                stop = arguments[0]
            case "error":
                raise acp.RequestError(-32050, "Interop failure", {"why": "żółw", "list": [1, None]})
            case "crash":
                raise RuntimeError("boom")
        return acp.PromptResponse(stop_reason=stop)

    async def _plan(self, session_id: str) -> None:
        for first, second in (("in_progress", "pending"), ("completed", "in_progress")):
            entries = [
                acp.plan_entry("Look", priority="high", status=first),
                acp.plan_entry("Répare", status=second),
                acp.plan_entry("Rest", priority="low"),
            ]
            await self._client.session_update(session_id, acp.update_plan(entries))
        hint = schema.UnstructuredCommandInput(hint="which")
        commands = [
            schema.AvailableCommand(name="test", description="Run tests", input=hint),
            schema.AvailableCommand(name="help", description="Show help"),
        ]
        for update in (
            schema.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands),
            schema.SessionInfoUpdate(
                session_update="session_info_update", title="Neuer Titel", updated_at="2026-11-15T00:00:00Z"
            ),
            schema.UsageUpdate(
                session_update="usage_update",
                used=1200,
                size=200_000,
                cost=schema.Cost(amount=0.25, currency="EUR"),
            ),
        ):
            await self._client.session_update(session_id, update)

    async def _tool(self, session_id: str, path: str, content: str) -> str:
        where = schema.ToolCallLocation(path=path, line=1)
        start = acp.start_tool_call(
            "t1", "Write a file", kind="edit", status="pending", locations=[where], raw_input={"path": path}
        )
        await self._client.session_update(session_id, start)
        options = [
            schema.PermissionOption(option_id=f"option-{number}", name=kind, kind=kind)
            for number, kind in enumerate(("reject_always", "reject_once", "allow_always", "allow_once"))
        ]
        answer = await self._client.request_permission(session_id, schema.ToolCallUpdate(tool_call_id="t1"), options)
        if answer.outcome.outcome == "cancelled":
            await self._client.session_update(session_id, acp.update_tool_call("t1", status="failed"))
            return "cancelled"
        kinds = {option.option_id: option.kind for option in options}
        if kinds[answer.outcome.option_id].startswith("allow"):
            await self._client.write_text_file(session_id, path, content)
            diff = acp.tool_diff_content(path, content)
            end = acp.update_tool_call("t1", status="completed", content=[diff], raw_output={"ok": True})
        else:
            refused = acp.tool_content(acp.text_block(f"refused by {answer.outcome.option_id}"))
            end = acp.update_tool_call("t1", status="failed", content=[refused])
        await self._client.session_update(session_id, end)
        return "end_turn"

    async def _read(self, session_id: str, path: str, line: int | None = None, limit: int | None = None) -> None:
        try:
            answer = await self._client.read_text_file(session_id, path, line=line, limit=limit)
            await self._say(session_id, answer.content)
        except acp.RequestError as exc:
            await self._say(session_id, json.dumps([exc.code, exc.data]))

    async def _terminal(self, session_id: str, cwd: str) -> None:
        client = self._client
        shell = await client.create_terminal(
            session_id,
            "sh",
            args=["-c", 'printf "%s|" "$GREETING"; pwd; exit 3'],
            env=[schema.EnvVariable(name="GREETING", value="cześć")],
            cwd=cwd,
            output_byte_limit=4096,
        )
        shown = acp.start_tool_call(
            "t2",
            "Run sh",
            kind="execute",
            status="in_progress",
            content=[acp.tool_terminal_ref(shell.terminal_id)],
        )
        await client.session_update(session_id, shown)
        exited = await client.wait_for_terminal_exit(session_id, shell.terminal_id)
        output = await client.terminal_output(session_id, shell.terminal_id)
        await client.release_terminal(session_id, shell.terminal_id)
        sleeper = await client.create_terminal(session_id, "sleep", args=["600"])
        # asked before the kill: the answer must not hold up what comes after the question
        waiting = asyncio.create_task(client.wait_for_terminal_exit(session_id, sleeper.terminal_id))
        before = await client.terminal_output(session_id, sleeper.terminal_id)
        await client.kill_terminal(session_id, sleeper.terminal_id)
        killed = await waiting
        await client.release_terminal(session_id, sleeper.terminal_id)
        try:
            await client.terminal_output(session_id, sleeper.terminal_id)
            gone = None
        except acp.RequestError as exc:
            gone = exc.code
        told = {
            "exit": [exited.exit_code, exited.signal],
            "output": [output.output, output.truncated, output.exit_status.exit_code],
            "running": before.exit_status is None,
            "killed": [killed.exit_code, killed.signal],
            "gone": gone,
        }
        await self._say(session_id, json.dumps(told))

    async def _ext(self, session_id: str, session: Session) -> None:
        answer = await self._client.ext_method("interop/echo", {"text": "żółw", "list": [1, 2.5, None, True]})
        await self._client.ext_notification("interop/note", {"sessionId": session_id, "note": "hello"})
        missing = None
        try:
            await self._client.ext_method("interop/missing", {})
        except acp.RequestError as exc:
            missing = exc.code
        await self._say(session_id, json.dumps({"answer": answer, "missing": missing, "notes": session.notes}))

    async def _wait(self, session_id: str, session: Session) -> str:
        await self._say(session_id, "waiting")
        try:
            await session.stop.wait()
        except asyncio.CancelledError:  # SDK 0.12.1 ignores `$/cancel_request`, so this does not happen with it
            session.ended.set_result("aborted")
            raise
        await self._say(session_id, "stopped")
        session.ended.set_result("cancelled")
        return "cancelled"

    async def _say(self, session_id: str, text: str) -> None:
        await self._client.session_update(session_id, acp.update_agent_message_text(text))

    async def _echo(self, session_id: str, blocks: list[Any]) -> None:
        for block in blocks:
            await self._client.session_update(session_id, acp.update_agent_message(block))

    def _session(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise acp.RequestError.resource_not_found(session_id)
        return session


if __name__ == "__main__":
    # resume and close are stable in the protocol, but this SDK serves them only as "unstable"
    asyncio.run(acp.run_agent(InteropAgent(), use_unstable_protocol=True))
