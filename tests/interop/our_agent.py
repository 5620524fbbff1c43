"""The interop agent on Pilothouse: `python our_agent.py [frames.jsonl]`. tests/e2e/test_interop.py says what it does.

With a file it writes down every frame that passes, for the schema check.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilothouse import acp


@dataclass
class Session:
    cwd: str
    mode: str = "ask"
    config: dict[str, Any] = field(default_factory=lambda: {"model": "small", "web": False})
    notes: list[Any] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def modes(self) -> acp.SessionModeState:
        ask = acp.SessionMode(id="ask", name="Ask", description="Asks first")
        return acp.SessionModeState(
            current_mode_id=self.mode, available_modes=[ask, acp.SessionMode(id="code", name="Code")]
        )

    @property
    def config_options(self) -> list[acp.SessionConfigOption]:
        sizes = [acp.SessionConfigSelectOption(value=name.lower(), name=name) for name in ("Small", "Large")]
        model = acp.SessionConfigOptionSelect(
            id="model", name="Model", category="model", current_value=self.config["model"], options=sizes
        )
        return [model, acp.SessionConfigOptionBoolean(id="web", name="Web", current_value=self.config["web"])]


class InteropAgent(acp.Agent):
    def __init__(self, diagnostics: list[str]) -> None:
        self._diagnostics = diagnostics
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    # -- before and between prompts --

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: acp.ClientCapabilities | None = None,
        client_info: acp.Implementation | None = None,
        **kwargs: Any,
    ) -> acp.InitializeResponse:
        seen = {"client": client_info.name, "terminal": client_capabilities.terminal, "meta": kwargs}
        return acp.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_info=acp.Implementation(name="interop-agent", title="Interop Ω", version="1.0"),
            agent_capabilities=acp.AgentCapabilities(
                load_session=True,
                prompt_capabilities=acp.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=acp.SessionCapabilities(
                    list=acp.SessionListCapabilities(),
                    resume=acp.SessionResumeCapabilities(),
                    close=acp.SessionCloseCapabilities(),
                    delete=acp.SessionDeleteCapabilities(),
                ),
            ),
            auth_methods=[acp.AuthMethodAgent(id="token", name="Token", description="A token")],
            field_meta={"seen": seen},
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> acp.AuthenticateResponse:
        if method_id != "token":
            raise acp.RequestError.auth_required({"methodId": method_id})
        return acp.AuthenticateResponse()

    async def logout(self, **kwargs: Any) -> acp.LogoutResponse:
        return acp.LogoutResponse()

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[acp.McpServer] | None = None,
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
    ) -> acp.ListSessionsResponse:
        page = 2 if cursor == "page-2" else 1
        info = acp.SessionInfo(
            session_id=f"old-{page}", cwd=cwd, title=f"Gespräch {page}", updated_at="2026-11-01T12:00:00Z"
        )
        return acp.ListSessionsResponse(sessions=[info], next_cursor="page-2" if page == 1 else None)

    async def resume_session(self, session_id: str, cwd: str, **kwargs: Any) -> acp.ResumeSessionResponse:
        session = self._sessions[session_id] = Session(cwd)
        return acp.ResumeSessionResponse(modes=session.modes)

    async def close_session(self, session_id: str, **kwargs: Any) -> acp.CloseSessionResponse:
        del self._sessions[session_id]
        return acp.CloseSessionResponse()

    async def delete_session(self, session_id: str, **kwargs: Any) -> acp.DeleteSessionResponse:
        return acp.DeleteSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> acp.SetSessionModeResponse:
        if mode_id not in ("ask", "code"):
            raise acp.RequestError.invalid_params({"modeId": mode_id})
        self._session(session_id).mode = mode_id
        await self._client.session_update(session_id, acp.update_current_mode(mode_id))
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
            return {"diagnostics": self._diagnostics}
        raise acp.RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self._session(params["sessionId"]).notes.append([method, params["note"]])

    # -- prompts: the first word of the first block is a command, what follows are its arguments --

    async def prompt(self, session_id: str, prompt: list[acp.ContentBlock], **kwargs: Any) -> acp.PromptResponse:
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
        test = acp.AvailableCommand(name="test", description="Run tests", input=acp.AvailableCommandInput(hint="which"))
        for update in (
            acp.update_available_commands([test, acp.AvailableCommand(name="help", description="Show help")]),
            acp.SessionInfoUpdate(title="Neuer Titel", updated_at="2026-11-15T00:00:00Z"),
            acp.UsageUpdate(used=1200, size=200_000, cost=acp.Cost(amount=0.25, currency="EUR")),
        ):
            await self._client.session_update(session_id, update)

    async def _tool(self, session_id: str, path: str, content: str) -> str:
        where = acp.ToolCallLocation(path=path, line=1)
        start = acp.start_tool_call(
            "t1", "Write a file", kind="edit", status="pending", locations=[where], raw_input={"path": path}
        )
        await self._client.session_update(session_id, start)
        options = [
            acp.PermissionOption(option_id=f"option-{number}", name=kind, kind=kind)
            for number, kind in enumerate(("reject_always", "reject_once", "allow_always", "allow_once"))
        ]
        answer = await self._client.request_permission(session_id, acp.ToolCallUpdate(tool_call_id="t1"), options)
        if answer.outcome.outcome == "cancelled":
            await self._client.session_update(session_id, acp.update_tool_call("t1", status="failed"))
            return "cancelled"
        if acp.is_allowed(answer, options):
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
            env=[acp.EnvVariable(name="GREETING", value="cześć")],
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
        except asyncio.CancelledError:
            session.ended.set_result("aborted")
            raise
        await self._say(session_id, "stopped")
        session.ended.set_result("cancelled")
        return "cancelled"

    async def _say(self, session_id: str, text: str) -> None:
        await self._client.session_update(session_id, acp.update_agent_message_text(text))

    async def _echo(self, session_id: str, blocks: list[acp.ContentBlock]) -> None:
        for block in blocks:
            await self._client.session_update(session_id, acp.update_agent_message(block))

    def _session(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise acp.RequestError.resource_not_found(session_id)
        return session


async def main(frames: str | None = None) -> None:
    diagnostics: list[str] = []
    passed: list[str] = []
    record = [lambda event: passed.append(json.dumps([event.direction.value, event.raw.decode()]))]
    await acp.run_agent(
        InteropAgent(diagnostics),
        observers=record if frames else None,
        on_diagnostic=lambda found: diagnostics.append(str(found)),
    )
    if frames:
        Path(frames).write_text("\n".join(passed))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
