"""An agent that implements every handler and keeps a journal of what it was asked; `_journal` reads it."""

import asyncio
import logging
from typing import Any

from acp_root import (
    PROTOCOL_VERSION,
    Agent,
    AuthenticateResponse,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    SetSessionModeResponse,
    run_agent,
    text_block,
    update_agent_message,
)
from acp_root.interfaces import Client
from acp_root.schema import (
    AgentCapabilities,
    AgentMessageChunk,
    AuthMethodAgent,
    ClientCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    ListSessionsResponse,
    PromptCapabilities,
    ResumeSessionResponse,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfo,
    SessionMode,
    SessionModeState,
    SetSessionConfigOptionResponse,
)


class Journalist(Agent):
    _client: Client

    def __init__(self) -> None:
        self._journal: list[list[Any]] = []
        self._sessions: dict[str, str] = {}

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    def _note(self, what: str, *details: Any) -> None:
        logging.info("%s %s", what, details)
        self._journal.append([what, *details])

    async def _say(self, session_id: str, content: Any) -> None:
        update = content if isinstance(content, AgentMessageChunk) else update_agent_message(content)
        await self._client.session_update(session_id, update)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **kwargs: Any,
    ) -> InitializeResponse:
        may_read = bool(client_capabilities and client_capabilities.fs and client_capabilities.fs.read_text_file)
        self._note("initialize", protocol_version, may_read, client_info.name if client_info else None)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True, prompt_capabilities=PromptCapabilities(image=True, embedded_context=True)
            ),
            agent_info=Implementation(name="journalist", title="Journalist", version="1.0"),
            auth_methods=[AuthMethodAgent(id="pass", name="Password", description="Any will do")],
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> AuthenticateResponse | None:
        self._note("authenticate", method_id)
        return AuthenticateResponse()

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        session_id = f"session-{len(self._sessions)}"
        self._sessions[session_id] = cwd
        servers = [[type(server).__name__, server.name] for server in mcp_servers or []]
        self._note("new_session", cwd, additional_directories or [], servers)
        modes = SessionModeState(
            current_mode_id="write",
            available_modes=[SessionMode(id="write", name="Write"), SessionMode(id="edit", name="Edit")],
        )
        return NewSessionResponse(session_id=session_id, modes=modes)

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **kwargs: Any,
    ) -> LoadSessionResponse | None:
        self._note("load_session", cwd, session_id)
        self._sessions[session_id] = cwd
        await self._say(session_id, text_block("as I was saying"))
        return LoadSessionResponse()

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        self._note("list_sessions", cwd, cursor)
        return ListSessionsResponse(sessions=[SessionInfo(session_id=i, cwd=c) for i, c in self._sessions.items()])

    async def resume_session(self, session_id: str, cwd: str, **kwargs: Any) -> ResumeSessionResponse:
        self._note("resume_session", session_id, cwd)
        return ResumeSessionResponse()

    async def fork_session(self, session_id: str, cwd: str, **kwargs: Any) -> ForkSessionResponse:
        self._note("fork_session", session_id, cwd)
        return ForkSessionResponse(session_id=f"{session_id}-fork")

    async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse | None:
        self._note("close_session", session_id)
        return None

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> SetSessionModeResponse | None:
        self._note("set_session_mode", session_id, mode_id)
        return None

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> SetSessionConfigOptionResponse | None:
        self._note("set_config_option", config_id, session_id, value)
        return SetSessionConfigOptionResponse(
            config_options=[
                SessionConfigOptionBoolean(type="boolean", id="loud", name="Loud", current_value=value is True),
                SessionConfigOptionSelect(
                    type="select",
                    id="style",
                    name="Style",
                    current_value=value if isinstance(value, str) else "plain",
                    options=[SessionConfigSelectOption(value="plain", name="Plain")],
                ),
            ]
        )

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        self._note("prompt", session_id, [type(block).__name__ for block in prompt], kwargs)
        if session_id not in self._sessions:
            raise RequestError.invalid_params({"session_id": session_id})
        await self._say(session_id, text_block("You said:"))
        for block in prompt:
            await self._say(session_id, block)
        await self._say(session_id, update_agent_message(text_block("That was all.")))
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self._note("cancel", session_id)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "journal":
            return {"journal": self._journal}
        if method == "fail":
            raise RequestError(-32050, "no paper left", {"pages": 0})
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self._note("ext_notification", method, params)


async def main() -> None:
    logging.basicConfig(level=logging.INFO)
    await run_agent(Journalist(), use_unstable_protocol=True)


if __name__ == "__main__":
    asyncio.run(main())
