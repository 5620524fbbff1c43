"""The protocol side of the scripted agent: sessions, prompts, cancellation."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from ... import __version__
from ...acp import (
    PROTOCOL_VERSION,
    Agent,
    AgentAuthCapabilities,
    AgentCapabilities,
    AgentSideConnection,
    AuthenticateResponse,
    Client,
    ClientCapabilities,
    CloseSessionResponse,
    ConfigOptionUpdate,
    ConnectionClosed,
    ContentBlock,
    CurrentModeUpdate,
    DeleteSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
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
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SessionUpdate,
    SetSessionConfigOptionResponse,
    SetSessionModelResponse,
    SetSessionModeResponse,
    StopReason,
    run_agent,
    stdio_streams,
    update_available_commands,
)
from .script import available_commands, perform
from .status import config_options, mode_state, set_option
from .store import Session, Settings, Store
from .turn import Cancelled, Host, Turn

__all__ = ["DemoAgent", "serve"]

PAGE = 100
CLOSE_TIMEOUT = 2.0


class DemoAgent:
    """The scripted agent. `output` is the stream of its connection, for the command that makes noise on it."""

    def __init__(
        self, *, home: Path | None = None, pace: float = 0.0, output: asyncio.StreamWriter | None = None
    ) -> None:
        self._store = Store(home)
        self._pace = pace
        self._output = output
        self._tasks: set[asyncio.Task[None]] = set()
        self._host: Host

    def on_connect(self, conn: Client) -> None:
        assert isinstance(conn, AgentSideConnection)
        self._host = Host(conn, ClientCapabilities(), self._output, self._pace)

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
        session = self._store.create(Settings(_absolute(cwd)))
        return NewSessionResponse(session_id=session.id, **self._opened(session))

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> LoadSessionResponse:
        session = self._reopen(session_id, cwd)
        session.history.settle()
        for update in tuple(session.history.updates):
            # as it was sent, an explicit null included
            params = {"sessionId": session.id, "update": msgspec.Raw(update)}
            await self._host.client.connection.send_notification("session/update", params)
        return LoadSessionResponse(**self._opened(session))

    async def resume_session(self, session_id: str, cwd: str, **kwargs: Any) -> ResumeSessionResponse:
        return ResumeSessionResponse(**self._opened(self._reopen(session_id, cwd)))

    async def fork_session(self, session_id: str, cwd: str, **kwargs: Any) -> ForkSessionResponse:
        session = self._store.fork(self._known(session_id), _absolute(cwd))
        return ForkSessionResponse(session_id=session.id, **self._opened(session))

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        if cursor and cursor != str(start):
            raise RequestError.invalid_params({"cursor": cursor, "details": "not a cursor of this agent"})
        found = [session for session in self._store if cwd is None or session.settings.cwd == cwd]
        page = [
            SessionInfo(
                session_id=session.id,
                cwd=session.settings.cwd,
                title=session.settings.title,
                updated_at=dt.datetime.fromtimestamp(session.updated_at, dt.UTC).isoformat(timespec="seconds"),
            )
            for session in found[start : start + PAGE]
        ]
        following = str(start + PAGE) if len(found) > start + PAGE else None
        return ListSessionsResponse(sessions=page, next_cursor=following)

    async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse:
        await self._end_turns(self._known(session_id))
        self._known(session_id).is_open = False
        return CloseSessionResponse()

    async def delete_session(self, session_id: str, **kwargs: Any) -> DeleteSessionResponse:
        """Deleting what does not exist is no error: it is gone either way."""
        session = self._store.find(session_id)
        if session is not None:
            await self._end_turns(session)
        self._store.delete(session_id)
        return DeleteSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> SetSessionModeResponse:
        session = self._open(session_id)
        set_option(session, "mode", mode_id)
        self._afterwards(session, ConfigOptionUpdate(config_options=config_options(session, self._host)))
        return SetSessionModeResponse()

    async def set_session_model(self, session_id: str, model_id: str, **kwargs: Any) -> SetSessionModelResponse:
        session = self._open(session_id)
        set_option(session, "model", model_id)
        self._afterwards(session, ConfigOptionUpdate(config_options=config_options(session, self._host)))
        return SetSessionModelResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> SetSessionConfigOptionResponse:
        session = self._open(session_id)
        set_option(session, config_id, value)
        if config_id == "mode":
            self._afterwards(session, CurrentModeUpdate(current_mode_id=str(value)))
        return SetSessionConfigOptionResponse(config_options=config_options(session, self._host))

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

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """End everything under way in a session, also the prompts that still wait for their turn."""
        session = self._store.find(session_id)
        if session is not None:
            session.cancel()

    # -- private --

    def _known(self, session_id: str) -> Session:
        session = self._store.find(session_id)
        if session is None:
            raise RequestError.resource_not_found(session_id)
        return session

    def _open(self, session_id: str) -> Session:
        session = self._known(session_id)
        if not session.is_open:
            raise RequestError.resource_not_found(session_id)
        return session

    def _reopen(self, session_id: str, cwd: str) -> Session:
        session = self._known(session_id)
        session.settings.cwd = _absolute(cwd)
        session.is_open = True
        session.save()
        return session

    def _opened(self, session: Session) -> dict[str, Any]:
        self._afterwards(session, update_available_commands(available_commands()))
        return {"modes": mode_state(session), "config_options": config_options(session, self._host)}

    def _afterwards(self, session: Session, update: SessionUpdate) -> None:
        """Send an update right behind the answer to the request that is being handled.

        A handler's answer is written in the step in which it returns, and this task runs in a later one.
        """
        task = asyncio.get_running_loop().create_task(self._send(session.id, update))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, session_id: str, update: SessionUpdate) -> None:
        with suppress(ConnectionClosed):
            await self._host.client.session_update(session_id=session_id, update=update)

    async def _end_turns(self, session: Session) -> None:
        session.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT), session.lock:
                pass


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


def _absolute(cwd: str) -> str:
    if not Path(cwd).is_absolute():
        raise RequestError.invalid_params({"field": "cwd", "reason": f"expected an absolute path, got {cwd!r}"})
    return cwd


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
