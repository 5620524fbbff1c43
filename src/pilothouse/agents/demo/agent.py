"""The protocol side of the scripted agent: sessions, prompts, cancellation."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
from pathlib import Path
from typing import Any, cast

from ... import __version__
from ...acp import (
    PROTOCOL_VERSION,
    Agent,
    AgentAuthCapabilities,
    AgentCapabilities,
    AuthenticateResponse,
    Client,
    ClientCapabilities,
    ConnectionClosed,
    ContentBlock,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    LogoutCapabilities,
    LogoutResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    RequestError,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOption,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
    StopReason,
    run_agent,
    stdio_streams,
    update_available_commands,
)
from ..sessions import SessionAgent, absolute
from .script import available_commands, perform
from .status import config_options, mode_state, set_option
from .store import Session, Settings, Store
from .turn import Cancelled, Host, Turn


class DemoAgent(SessionAgent[Session]):
    """The scripted agent. `output` is the stream of its connection, for the command that makes noise on it."""

    def __init__(
        self, *, home: Path | None = None, pace: float = 0.0, output: asyncio.StreamWriter | None = None
    ) -> None:
        self._sessions = Store(home)
        super().__init__(self._sessions)
        self._pace = pace
        self._output = output
        self._host: Host

    def on_connect(self, conn: Client) -> None:
        super().on_connect(conn)
        self._host = Host(self._client, ClientCapabilities(), self._output, self._pace)

    # -- the connection --

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **kwargs: Any
    ) -> InitializeResponse:
        self._host.capabilities = client_capabilities or ClientCapabilities()
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    delete=SessionDeleteCapabilities(),
                    fork=SessionForkCapabilities(),
                ),
                auth=AgentAuthCapabilities(logout=LogoutCapabilities()),
            ),
            auth_methods=[],
            agent_info=Implementation(name="pilothouse-demo", title="Scripted agent", version=__version__),
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> AuthenticateResponse:
        if method_id != "none":
            raise RequestError.invalid_params({"methodId": method_id, "details": "there is nothing to log in to"})
        return AuthenticateResponse()

    async def logout(self, **kwargs: Any) -> LogoutResponse:
        return LogoutResponse()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """`_pilothouse.dev/echo` answers its parameters."""
        if method != "pilothouse.dev/echo":
            raise RequestError.method_not_found(f"_{method}")
        return params

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Extension notifications that nobody knows are to be ignored."""

    # -- sessions --

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        session = self._sessions.create(Settings(absolute(cwd)))
        return NewSessionResponse(session_id=session.id, **self._opened(session))

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> LoadSessionResponse:
        session = self._reopen(session_id, cwd)
        await self._replay(session, session.history)
        return LoadSessionResponse(**self._opened(session))

    async def resume_session(self, session_id: str, cwd: str, **kwargs: Any) -> ResumeSessionResponse:
        return ResumeSessionResponse(**self._opened(self._reopen(session_id, cwd)))

    async def fork_session(self, session_id: str, cwd: str, **kwargs: Any) -> ForkSessionResponse:
        session = self._sessions.fork(self._known(session_id), absolute(cwd))
        return ForkSessionResponse(session_id=session.id, **self._opened(session))

    # -- turns --

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **kwargs: Any) -> PromptResponse:
        session = self._open(session_id)
        turn = Turn(self._host, session, prompt)
        session.turns.append(turn)
        reason: StopReason = "cancelled"
        try:
            async with session.lock:  # prompts that come while one runs wait here, in order
                reason = await _run(turn)
        except asyncio.CancelledError:
            if not turn.cancelled:
                raise  # not the user's doing: `$/cancel_request`, or the connection closes
        except (Cancelled, ConnectionClosed):
            pass
        finally:
            session.turns.remove(turn)
        return PromptResponse(stop_reason="cancelled" if turn.cancelled else reason, usage=turn.usage())

    # -- private --

    def _reopen(self, session_id: str, cwd: str) -> Session:
        session = self._known(session_id)
        session.settings.cwd = absolute(cwd)
        session.is_open = True
        session.save()
        return session

    def _opened(self, session: Session) -> dict[str, Any]:
        self._afterwards(session, update_available_commands(available_commands()))
        return {"modes": mode_state(session), "config_options": self._config_options(session)}

    def _set_option(self, session: Session, option: str, value: str | bool) -> None:
        set_option(session, option, value)

    def _config_options(self, session: Session) -> list[SessionConfigOption]:
        return config_options(session, self._host)


async def _run(turn: Turn) -> StopReason:
    session = turn.session
    session.history.add_prompt(turn.blocks, session.next_id("prompt"))
    try:
        return await perform(turn)
    finally:
        turn.ending = True
        session.history.settle()
        session.updated_at = dt.datetime.now(dt.UTC).timestamp()
        session.settings.used += turn.usage().total_tokens
        session.save()


async def serve() -> None:
    """The scripted agent on stdin and stdout, until the client closes its end.

    `PILOTHOUSE_DEMO_HOME` is a directory that keeps its sessions, `PILOTHOUSE_DEMO_PACE` how many seconds pass between
    two pieces of streamed text.
    """
    home = os.environ.get("PILOTHOUSE_DEMO_HOME")
    reader, writer = await stdio_streams()
    agent = DemoAgent(
        home=Path(home) if home else None, pace=float(os.environ.get("PILOTHOUSE_DEMO_PACE") or 0), output=writer
    )
    # the interface lists all that an agent may do, and this one does not do all of it
    await run_agent(cast(Agent, agent), writer, reader)
