"""The client's end of a connection: it serves a `Client` and calls the agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from .. import methods
from ..interfaces import Agent, Client
from ..schema import (
    AuthenticateRequest,
    AuthenticateResponse,
    AuthStatusRequest,
    AuthStatusResponse,
    CancelNotification,
    ClientCapabilities,
    CloseSessionRequest,
    CloseSessionResponse,
    ContentBlock,
    DeleteSessionRequest,
    DeleteSessionResponse,
    ForkSessionRequest,
    ForkSessionResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    LogoutRequest,
    LogoutResponse,
    McpServer,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SetSessionConfigOptionBooleanRequest,
    SetSessionConfigOptionResponse,
    SetSessionConfigOptionSelectRequest,
    SetSessionModelRequest,
    SetSessionModelResponse,
    SetSessionModeRequest,
    SetSessionModeResponse,
)
from ..side import Side, accepts_request_objects
from .router import build_client_router

__all__ = ["ClientSideConnection"]


@final
@accepts_request_objects
class ClientSideConnection(Side):
    """Serves a client; to that client it is the agent. Keyword arguments beyond a method's own travel in `_meta`."""

    _calls = methods.AGENT
    _build_router = staticmethod(build_client_router)
    # An agent's stray output is not a conversation: some agents exit when they are sent an error for it.
    _replies_to_malformed = False

    def __init__(
        self,
        to_client: Callable[[Agent], Client] | Client,
        input_stream: Any,
        output_stream: Any = None,
        listening: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(to_client, input_stream, output_stream, listening, **kwargs)

    async def initialize(
        self,
        protocol_version: int = methods.PROTOCOL_VERSION,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **kwargs: Any,
    ) -> InitializeResponse:
        request = InitializeRequest(
            protocol_version=protocol_version,
            client_capabilities=client_capabilities or ClientCapabilities(),
            client_info=client_info,
            field_meta=kwargs or None,
        )
        response: InitializeResponse = await self._request("initialize", request, InitializeResponse)
        return response

    async def authenticate(self, method_id: str, **kwargs: Any) -> AuthenticateResponse | None:
        request = AuthenticateRequest(method_id=method_id, field_meta=kwargs or None)
        response: AuthenticateResponse = await self._request("authenticate", request, AuthenticateResponse)
        return response

    async def logout(self, **kwargs: Any) -> LogoutResponse | None:
        response: LogoutResponse = await self._request(
            "logout", LogoutRequest(field_meta=kwargs or None), LogoutResponse
        )
        return response

    async def auth_status(self, **kwargs: Any) -> AuthStatusResponse:
        response: AuthStatusResponse = await self._request(
            "auth/status", AuthStatusRequest(field_meta=kwargs or None), AuthStatusResponse
        )
        return response

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        request = NewSessionRequest(
            cwd=cwd,
            additional_directories=additional_directories,
            mcp_servers=mcp_servers or [],
            field_meta=kwargs or None,
        )
        response: NewSessionResponse = await self._request("session/new", request, NewSessionResponse)
        return response

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> LoadSessionResponse:
        """Reopen a session with its history; every replayed update has been handled when this returns."""
        request = LoadSessionRequest(
            cwd=cwd,
            session_id=session_id,
            mcp_servers=mcp_servers or [],
            additional_directories=additional_directories,
            field_meta=kwargs or None,
        )
        response: LoadSessionResponse = await self._request("session/load", request, LoadSessionResponse)
        return response

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        request = ListSessionsRequest(cwd=cwd, cursor=cursor, field_meta=kwargs or None)
        response: ListSessionsResponse = await self._request("session/list", request, ListSessionsResponse)
        return response

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> ResumeSessionResponse:
        request = ResumeSessionRequest(
            session_id=session_id,
            cwd=cwd,
            additional_directories=additional_directories,
            mcp_servers=mcp_servers or [],
            field_meta=kwargs or None,
        )
        response: ResumeSessionResponse = await self._request("session/resume", request, ResumeSessionResponse)
        return response

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> ForkSessionResponse:
        request = ForkSessionRequest(
            session_id=session_id,
            cwd=cwd,
            additional_directories=additional_directories,
            mcp_servers=mcp_servers or [],
            field_meta=kwargs or None,
        )
        response: ForkSessionResponse = await self._request("session/fork", request, ForkSessionResponse)
        return response

    async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse | None:
        request = CloseSessionRequest(session_id=session_id, field_meta=kwargs or None)
        response: CloseSessionResponse = await self._request("session/close", request, CloseSessionResponse)
        return response

    async def delete_session(self, session_id: str, **kwargs: Any) -> DeleteSessionResponse | None:
        request = DeleteSessionRequest(session_id=session_id, field_meta=kwargs or None)
        response: DeleteSessionResponse = await self._request("session/delete", request, DeleteSessionResponse)
        return response

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> SetSessionModeResponse:
        request = SetSessionModeRequest(session_id=session_id, mode_id=mode_id, field_meta=kwargs or None)
        response: SetSessionModeResponse = await self._request("session/set_mode", request, SetSessionModeResponse)
        return response

    async def set_session_model(self, session_id: str, model_id: str, **kwargs: Any) -> SetSessionModelResponse:
        """The way to choose a model before `set_config_option`; agents of that time still need it."""
        request = SetSessionModelRequest(session_id=session_id, model_id=model_id, field_meta=kwargs or None)
        response: SetSessionModelResponse = await self._request("session/set_model", request, SetSessionModelResponse)
        return response

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> SetSessionConfigOptionResponse:
        meta = {name: item for name, item in kwargs.items() if name != "type"} or None
        request: SetSessionConfigOptionBooleanRequest | SetSessionConfigOptionSelectRequest
        if isinstance(value, bool):
            request = SetSessionConfigOptionBooleanRequest(
                session_id=session_id, config_id=config_id, value=value, field_meta=meta
            )
        else:
            request = SetSessionConfigOptionSelectRequest(
                session_id=session_id, config_id=config_id, value=value, field_meta=meta
            )
        response: SetSessionConfigOptionResponse = await self._request(
            "session/set_config_option", request, SetSessionConfigOptionResponse
        )
        return response

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **kwargs: Any) -> PromptResponse:
        """Run one turn; every update of it has been handled when this returns."""
        request = PromptRequest(session_id=session_id, prompt=list(prompt), field_meta=kwargs or None)
        response: PromptResponse = await self._request("session/prompt", request, PromptResponse)
        return response

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """Ask the agent to end the turn; its prompt then returns with the stop reason `cancelled`."""
        await self._notify("session/cancel", CancelNotification(session_id=session_id, field_meta=kwargs or None))

    def on_connect(self, conn: Client) -> None:
        """Part of the `Agent` interface; nothing to do."""
