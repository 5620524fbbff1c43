"""The console's end of the protocol: it shows updates, asks its user, and lends its workspace."""

from __future__ import annotations

import asyncio
from typing import Any

from ...acp import (
    AcceptElicitationResponse,
    AllowedOutcome,
    BooleanConfigOptionCapabilities,
    CancelElicitationResponse,
    ClientCapabilities,
    ClientSessionCapabilities,
    CompactionCapabilities,
    CreateElicitationResponse,
    CreateTerminalResponse,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationFormSessionMode,
    ElicitationMode,
    EnvVariable,
    FileSystemCapabilities,
    NoticeCapabilities,
    PermissionOption,
    ReadTextFileResponse,
    RequestError,
    RequestPermissionResponse,
    SessionConfigOptionsCapabilities,
    SessionUpdate,
    TerminalOutputResponse,
    ToolCallUpdate,
    WaitForTerminalExitResponse,
)
from . import form
from .keyboard import Keyboard
from .screen import Screen
from .workspace import Workspace

__all__ = ["ConsoleClient"]


class ConsoleClient:
    """Serves an agent. Without a keyboard nobody can be asked, and what needs an answer is denied."""

    def __init__(
        self, screen: Screen, workspace: Workspace, keyboard: Keyboard | None, *, approve_all: bool = False
    ) -> None:
        self._screen = screen
        self._workspace = workspace
        self._keyboard = keyboard
        self._approve_all = approve_all
        self._asking = asyncio.Lock()
        self._question: asyncio.Task[Any] | None = None

    @property
    def capabilities(self) -> ClientCapabilities:
        form_too = ElicitationCapabilities(form=ElicitationFormCapabilities()) if self._keyboard else None
        return ClientCapabilities(
            fs=FileSystemCapabilities(read_text_file=True, write_text_file=True),
            terminal=True,
            elicitation=form_too,
            session=ClientSessionCapabilities(
                notices=NoticeCapabilities(),
                compaction=CompactionCapabilities(),
                config_options=SessionConfigOptionsCapabilities(boolean=BooleanConfigOptionCapabilities()),
            ),
        )

    def cancel_question(self) -> None:
        """The turn is being cancelled: whatever is being asked gets that as its answer."""
        if self._question is not None:
            self._question.cancel()

    # -- what the agent says and asks --

    async def session_update(self, session_id: str, update: SessionUpdate, **kwargs: Any) -> None:
        self._screen.show(update)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        async with self._asking:
            option = await self._decide(tool_call, options)
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome())
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=option.option_id))

    async def create_elicitation(self, message: str, mode: ElicitationMode, **kwargs: Any) -> CreateElicitationResponse:
        if not isinstance(mode, ElicitationFormSessionMode) or self._keyboard is None:
            raise RequestError.invalid_params({"details": "only forms can be asked here"})
        async with self._asking:
            values = await self._while_paused(self._fill_in(message, mode))
        return CancelElicitationResponse() if values is None else AcceptElicitationResponse(content=values)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method != "pilothouse.dev/ping":
            raise RequestError.method_not_found(f"_{method}")
        return {"pong": params.get("text")}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self._screen.note(f"notified: {method}")

    async def _decide(self, tool_call: ToolCallUpdate, options: list[PermissionOption]) -> PermissionOption | None:
        allow, reject = (_first(options, kind) for kind in ("allow", "reject"))
        if self._approve_all or self._keyboard is None:
            self._screen.permission(tool_call, None)
            answer = (
                "allowed by --approve-all"
                if self._approve_all
                else "denied: no terminal to ask on, and no --approve-all"
            )
            self._screen.answer(answer)
            return allow if self._approve_all else reject
        choice: PermissionOption | None = await self._while_paused(self._choose(tool_call, options, allow, reject))
        return choice

    async def _choose(
        self,
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        allow: PermissionOption | None,
        reject: PermissionOption | None,
    ) -> PermissionOption | None:
        assert self._keyboard is not None
        self._screen.permission(tool_call, options)
        self._keyboard.forget()
        while True:
            self._screen.ask(f"  1-{len(options)}, or a to allow, d to reject ›")
            line = await self._keyboard.line()
            word = "d" if line is None else line.strip().lower()
            if word in ("a", "y"):
                return allow
            if word in ("d", "n"):
                return reject
            if word.isdecimal() and 1 <= int(word) <= len(options):
                return options[int(word) - 1]

    async def _fill_in(self, message: str, mode: ElicitationFormSessionMode) -> dict[str, Any] | None:
        assert self._keyboard is not None
        self._screen.note(f"{message} Enter takes what is in brackets, Ctrl-D leaves.", "bold yellow")
        self._keyboard.forget()
        values: dict[str, Any] = {}
        for name, schema in mode.requested_schema.properties.items():
            default = form.default_of(schema)
            while name not in values:
                self._screen.ask(f"  {form.question(name, schema)} ›")
                line = await self._keyboard.line()
                if line is None:
                    return None
                if not line.strip() and default is not None:
                    values[name] = default
                elif not line.strip() and name not in (mode.requested_schema.required or ()):
                    break
                else:
                    try:
                        values[name] = form.parse(schema, line)
                    except ValueError as exc:
                        self._screen.note(f"  {exc}", "red")
        return values

    async def _while_paused(self, question: Any) -> Any:
        """Ask with the live region out of the way; None when the turn is cancelled meanwhile."""
        self._screen.pause()
        self._question = asyncio.ensure_future(question)
        try:
            return await self._question
        except asyncio.CancelledError:
            if not self._question.cancelled():
                self._question.cancel()
                raise
            return None
        finally:
            self._question = None
            self._screen.resume()

    # -- what the agent may use --

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=await self._workspace.read(path, line, limit))

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> None:
        await self._workspace.write(path, content)

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
        variables = {variable.name: variable.value for variable in env or ()}
        started = await self._workspace.start([command, *(args or ())], cwd=cwd, env=variables, limit=output_byte_limit)
        return CreateTerminalResponse(terminal_id=started)

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> TerminalOutputResponse:
        return self._workspace.output(terminal_id)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        return await self._workspace.wait(terminal_id)

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None:
        self._workspace.kill(terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None:
        await self._workspace.release(terminal_id)


def _first(options: list[PermissionOption], kind: str) -> PermissionOption | None:
    return next((option for option in options if option.kind.startswith(kind)), None)
