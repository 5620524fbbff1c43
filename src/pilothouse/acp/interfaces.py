"""What an agent and a client may implement.

Subclass `Agent` or `Client`, or write a class of its own with the methods that matter: whatever is not implemented
is answered with "method not found". Handlers are called by keyword; `**kwargs` receives the keys of `_meta` that
are no parameters. A handler that declares `raw_params` also gets the untouched JSON, one that declares
`field_meta` gets `_meta` as it came.
"""

from __future__ import annotations

from typing import Any, Protocol

from .errors import RequestError
from .schema import (
    AuthenticateResponse,
    AuthStatusResponse,
    ClientCapabilities,
    CloseSessionResponse,
    ContentBlock,
    CreateElicitationResponse,
    CreateTerminalResponse,
    DeleteSessionResponse,
    ElicitationMode,
    EnvVariable,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    KillTerminalResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    LogoutResponse,
    McpServer,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    ResumeSessionResponse,
    SessionUpdate,
    SetSessionConfigOptionResponse,
    SetSessionModelResponse,
    SetSessionModeResponse,
    TerminalOutputResponse,
    ToolCallUpdate,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)

__all__ = ["Agent", "Client"]


class Client(Protocol):
    """The editor's side: shows updates, asks the user, and lends its files and terminals."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        raise RequestError.method_not_found("request_permission")

    async def session_update(self, session_id: str, update: SessionUpdate, **kwargs: Any) -> None:
        raise RequestError.method_not_found("session_update")

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> WriteTextFileResponse | None:
        raise RequestError.method_not_found("write_text_file")

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        raise RequestError.method_not_found("read_text_file")

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
        raise RequestError.method_not_found("create_terminal")

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> TerminalOutputResponse:
        raise RequestError.method_not_found("terminal_output")

    async def release_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> ReleaseTerminalResponse | None:
        raise RequestError.method_not_found("release_terminal")

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        raise RequestError.method_not_found("wait_for_terminal_exit")

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> KillTerminalResponse | None:
        raise RequestError.method_not_found("kill_terminal")

    async def create_elicitation(self, message: str, mode: ElicitationMode, **kwargs: Any) -> CreateElicitationResponse:
        raise RequestError.method_not_found("create_elicitation")

    async def complete_elicitation(self, elicitation_id: str, **kwargs: Any) -> None:
        raise RequestError.method_not_found("complete_elicitation")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found("ext_method")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        raise RequestError.method_not_found("ext_notification")

    def on_connect(self, conn: Agent) -> None:
        """Called once with the other side, before anything is received."""


class Agent(Protocol):
    """The agent's side: owns sessions and answers prompts."""

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **kwargs: Any,
    ) -> InitializeResponse:
        raise RequestError.method_not_found("initialize")

    async def authenticate(self, method_id: str, **kwargs: Any) -> AuthenticateResponse | None:
        raise RequestError.method_not_found("authenticate")

    async def logout(self, **kwargs: Any) -> LogoutResponse | None:
        raise RequestError.method_not_found("logout")

    async def auth_status(self, **kwargs: Any) -> AuthStatusResponse:
        raise RequestError.method_not_found("auth_status")

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        raise RequestError.method_not_found("new_session")

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> LoadSessionResponse | None:
        raise RequestError.method_not_found("load_session")

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        raise RequestError.method_not_found("list_sessions")

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> ResumeSessionResponse:
        raise RequestError.method_not_found("resume_session")

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> ForkSessionResponse:
        raise RequestError.method_not_found("fork_session")

    async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse | None:
        raise RequestError.method_not_found("close_session")

    async def delete_session(self, session_id: str, **kwargs: Any) -> DeleteSessionResponse | None:
        raise RequestError.method_not_found("delete_session")

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> SetSessionModeResponse | None:
        raise RequestError.method_not_found("set_session_mode")

    async def set_session_model(self, session_id: str, model_id: str, **kwargs: Any) -> SetSessionModelResponse | None:
        raise RequestError.method_not_found("set_session_model")

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> SetSessionConfigOptionResponse | None:
        raise RequestError.method_not_found("set_config_option")

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **kwargs: Any) -> PromptResponse:
        raise RequestError.method_not_found("prompt")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        raise RequestError.method_not_found("cancel")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found("ext_method")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        raise RequestError.method_not_found("ext_notification")

    def on_connect(self, conn: Client) -> None:
        """Called once with the other side, before anything is received."""
