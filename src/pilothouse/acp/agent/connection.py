"""The agent's end of a connection: it serves an `Agent` and calls the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from .. import methods
from ..interfaces import Agent, Client
from ..routing import ELICITATION_MODES
from ..schema import (
    CompleteElicitationNotification,
    CreateElicitationResponse,
    CreateTerminalRequest,
    CreateTerminalResponse,
    ElicitationMode,
    EnvVariable,
    KillTerminalRequest,
    KillTerminalResponse,
    PermissionOption,
    ReadTextFileRequest,
    ReadTextFileResponse,
    ReleaseTerminalRequest,
    ReleaseTerminalResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    SessionUpdate,
    TerminalOutputRequest,
    TerminalOutputResponse,
    ToolCallUpdate,
    WaitForTerminalExitRequest,
    WaitForTerminalExitResponse,
    WriteTextFileRequest,
    WriteTextFileResponse,
)
from ..side import Side, accepts_request_objects
from .router import build_agent_router

__all__ = ["AgentSideConnection"]

_MODES = {mode: request for request, mode in ELICITATION_MODES.items()}


@final
@accepts_request_objects
class AgentSideConnection(Side):
    """Serves an agent; to that agent it is the client. Keyword arguments beyond a method's own travel in `_meta`."""

    _calls = methods.CLIENT
    _build_router = staticmethod(build_agent_router)
    _replies_to_malformed = True

    def __init__(
        self,
        to_agent: Callable[[Client], Agent] | Agent,
        input_stream: Any,
        output_stream: Any = None,
        listening: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(to_agent, input_stream, output_stream, listening, **kwargs)

    async def session_update(self, session_id: str, update: SessionUpdate, **kwargs: Any) -> None:
        await self._notify(
            "session/update", SessionNotification(session_id=session_id, update=update, field_meta=kwargs or None)
        )

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        """Ask the user. Use `pilothouse.acp.is_allowed` on the answer: a chosen option may be a rejection."""
        request = RequestPermissionRequest(
            session_id=session_id, tool_call=tool_call, options=list(options), field_meta=kwargs or None
        )
        response: RequestPermissionResponse = await self._request(
            "session/request_permission", request, RequestPermissionResponse
        )
        return response

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        request = ReadTextFileRequest(
            session_id=session_id, path=path, line=line, limit=limit, field_meta=kwargs or None
        )
        response: ReadTextFileResponse = await self._request("fs/read_text_file", request, ReadTextFileResponse)
        return response

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> WriteTextFileResponse | None:
        request = WriteTextFileRequest(session_id=session_id, path=path, content=content, field_meta=kwargs or None)
        response: WriteTextFileResponse = await self._request("fs/write_text_file", request, WriteTextFileResponse)
        return response

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
        request = CreateTerminalRequest(
            session_id=session_id,
            command=command,
            args=args,
            env=env,
            cwd=cwd,
            output_byte_limit=output_byte_limit,
            field_meta=kwargs or None,
        )
        response: CreateTerminalResponse = await self._request("terminal/create", request, CreateTerminalResponse)
        return response

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> TerminalOutputResponse:
        request = TerminalOutputRequest(session_id=session_id, terminal_id=terminal_id, field_meta=kwargs or None)
        response: TerminalOutputResponse = await self._request("terminal/output", request, TerminalOutputResponse)
        return response

    async def release_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> ReleaseTerminalResponse | None:
        request = ReleaseTerminalRequest(session_id=session_id, terminal_id=terminal_id, field_meta=kwargs or None)
        response: ReleaseTerminalResponse = await self._request("terminal/release", request, ReleaseTerminalResponse)
        return response

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        request = WaitForTerminalExitRequest(session_id=session_id, terminal_id=terminal_id, field_meta=kwargs or None)
        response: WaitForTerminalExitResponse = await self._request(
            "terminal/wait_for_exit", request, WaitForTerminalExitResponse
        )
        return response

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> KillTerminalResponse | None:
        request = KillTerminalRequest(session_id=session_id, terminal_id=terminal_id, field_meta=kwargs or None)
        response: KillTerminalResponse = await self._request("terminal/kill", request, KillTerminalResponse)
        return response

    async def create_elicitation(self, message: str, mode: ElicitationMode, **kwargs: Any) -> CreateElicitationResponse:
        """Ask the user for input by a form or a web page."""
        request_type = _MODES.get(type(mode))
        if request_type is None:
            raise TypeError(f"expected an elicitation mode, got {mode!r}")
        fields = {name: getattr(mode, name) for name in type(mode).__struct_fields__}
        request = request_type(message=message, field_meta=kwargs or None, **fields)
        response: CreateElicitationResponse = await self._request(
            "elicitation/create", request, CreateElicitationResponse
        )
        return response

    async def complete_elicitation(self, elicitation_id: str, **kwargs: Any) -> None:
        await self._notify(
            "elicitation/complete",
            CompleteElicitationNotification(elicitation_id=elicitation_id, field_meta=kwargs or None),
        )

    def on_connect(self, conn: Agent) -> None:
        """Part of the `Client` interface; nothing to do."""
