"""The protocol side of the built-in agent: sessions, prompts, cancellation.

Nothing here needs pydantic-ai: the agent answers `initialize` at once, and what talks to models is imported when a
session has been open for a moment, or a prompt comes. What is the same for every agent that keeps sessions is in
`../sessions.py`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ... import __version__
from ...acp import (
    PROTOCOL_VERSION,
    Agent,
    AgentAuthCapabilities,
    AgentCapabilities,
    AuthenticateResponse,
    AuthMethodAgent,
    AvailableCommand,
    Client,
    ClientCapabilities,
    ConnectionClosed,
    ContentBlock,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServer,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    RequestError,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOption,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
    StopReason,
    Usage,
    run_agent,
    update_agent_message_text,
    update_available_commands,
)
from ...acp.errors import AUTH_REQUIRED, INTERNAL_ERROR
from ..sessions import SessionAgent, absolute, directory
from . import model_names, modes
from .host import Host, Options
from .session import History, Prompt, Session, Settings

METHOD = "model"
LEISURE = 0.3
"""Seconds after which a session that was opened is there to stay."""
COMMANDS = [AvailableCommand(name="compact", description="Replace the conversation so far by a summary of it.")]


class CoderAgent(SessionAgent[Session]):
    """The built-in agent. `resolve` makes a model of pydantic-ai from its name; by default that is `models.resolve`."""

    def __init__(
        self,
        options: Options | None = None,
        *,
        home: Path | None = None,
        resolve: Callable[[str], Any] | None = None,
        reload: Callable[[], Options] | None = None,
    ) -> None:
        self._history = History(home)
        super().__init__(self._history)
        self._options = options or Options()
        self._resolve = resolve or _resolve
        self._reload = reload
        self._host: Host

    def on_connect(self, conn: Client) -> None:
        super().on_connect(conn)
        self._host = Host(self._client, self._options, self._resolve)

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
                mcp_capabilities=McpCapabilities(http=True, sse=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    delete=SessionDeleteCapabilities(),
                    fork=SessionForkCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
                auth=AgentAuthCapabilities(),
            ),
            auth_methods=[AuthMethodAgent(id=METHOD, name="Choose a model", description=model_names.SETTING)],
            agent_info=Implementation(name="pilothouse-coder", title="Pilothouse agent", version=__version__),
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> AuthenticateResponse:
        """There is nothing to log in to here; look again whether a model is configured by now."""
        if method_id != METHOD:
            raise RequestError.invalid_params(
                {"field": "methodId", "reason": f"expected {METHOD!r}, got {method_id!r}"}
            )
        if self._reload is not None:
            self._host.options = self._options = self._reload()
        if self._options.model is None:
            raise RequestError(AUTH_REQUIRED, model_names.HOW, {"errorKind": "auth_required"})
        return AuthenticateResponse()

    # -- sessions --

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> NewSessionResponse:
        options = self._options
        directories = _directories(additional_directories)
        settings = Settings(cwd=directory(cwd), directories=directories, mode=options.mode, model=options.model)
        session = self._history.create(settings)
        session.servers = tuple(mcp_servers or ())
        return NewSessionResponse(session_id=session.id, **self._opened(session))

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> LoadSessionResponse:
        session = await self._reopen(session_id, cwd, additional_directories, mcp_servers)
        await self._replay(session, session.journal)
        return LoadSessionResponse(**self._opened(session))

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> ResumeSessionResponse:
        session = await self._reopen(session_id, cwd, additional_directories, mcp_servers)
        return ResumeSessionResponse(**self._opened(session))

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **kwargs: Any,
    ) -> ForkSessionResponse:
        known, directories = self._known(session_id), _directories(additional_directories)
        session = self._history.fork(known, directory(cwd))
        session.take_up(cwd, directories, mcp_servers)
        return ForkSessionResponse(session_id=session.id, **self._opened(session))

    # -- turns --

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **kwargs: Any) -> PromptResponse:
        session = self._open(session_id)
        if not self._has_model(session):
            await self._host.client.session_update(
                session_id=session.id, update=update_agent_message_text(model_names.HOW)
            )
            raise RequestError(AUTH_REQUIRED, model_names.MISSING, {"errorKind": "auth_required"})
        under_way = Prompt()
        session.prompts.append(under_way)
        reason: StopReason = "cancelled"
        usage: Usage | None = None
        try:
            # prompts that come while one runs wait here, in order
            async with session.lock, self._claimed(session):
                session.journal.end()  # what a process before this one was at
                session.journal.add_prompt(prompt, f"prompt-{uuid.uuid4().hex[:12]}")
                session.unheard.append(prompt)
                turn = None
                try:
                    turn = (await _turns()).Turn(self._host, session, under_way.cancel)
                    reason = await turn.run(prompt)
                finally:
                    under_way.is_ending = True
                    usage = turn.usage() if turn is not None else None
                    session.journal.settle()
                    session.save()
        except asyncio.CancelledError:
            if not under_way.is_cancelled:
                raise  # not the user's doing: `$/cancel_request`, or the connection closes
        except RequestError:
            if not under_way.is_cancelled:
                raise
        except ConnectionClosed:
            pass  # nobody is there any more to be answered, and that is no failure to be reported
        finally:
            session.prompts.remove(under_way)
        return PromptResponse(stop_reason="cancelled" if under_way.is_cancelled else reason, usage=usage)

    async def close(self) -> None:
        """End all turns, and the MCP servers of all sessions."""
        for task in self._tasks:
            task.cancel()
        ends = (self._end_turns(session) for session in self._history.known)
        await asyncio.gather(*self._tasks, *ends, return_exceptions=True)

    # -- private --

    async def _reopen(
        self, session_id: str, cwd: str, directories: Sequence[str] | None, servers: Sequence[McpServer] | None
    ) -> Session:
        session = self._known(session_id)
        place = absolute(cwd), _directories(directories)
        if not session.prompts:
            await session.disconnect()
        session.take_up(*place, servers)
        return session

    def _opened(self, session: Session) -> dict[str, Any]:
        self._begin(self._make_ready(session))
        self._afterwards(session, update_available_commands(COMMANDS))
        return {"modes": modes.mode_state(session), "config_options": self._config_options(session)}

    async def _make_ready(self, session: Session) -> None:
        """Load what a prompt needs, as one is likely to follow: that takes seconds on a slow machine.

        What is wrong with it is told by the prompt. Whoever only opens a session, and leaves, does not pay for it.
        """
        await asyncio.sleep(LEISURE)
        await _turns()
        if session.settings.model is not None:
            await self._host.model(session.settings.model)

    @asynccontextmanager
    async def _claimed(self, session: Session) -> AsyncIterator[None]:
        """A turn's hold on a session that other processes may have open as well."""
        with ExitStack() as held:
            try:
                held.enter_context(session.journal.claimed())
            except BlockingIOError:
                message = "Another process has a turn in this session. Wait for it to end, or fork the session"
                raise RequestError(INTERNAL_ERROR, message, {"errorKind": "busy"}) from None
            if not self._history.catch_up(session):
                raise RequestError.resource_not_found(session.id)
            yield

    def _has_model(self, session: Session) -> bool:
        """A session that was begun before there was a model takes the one that there is now."""
        if session.settings.model is None:
            session.settings.model = self._options.model
        return session.settings.model is not None

    def _set_option(self, session: Session, option: str, value: str | bool) -> None:
        modes.set_option(session, option, value)

    def _config_options(self, session: Session) -> list[SessionConfigOption]:
        return modes.config_options(session, self._options.all_models)

    async def _end_turns(self, session: Session) -> None:
        await super()._end_turns(session)
        await session.disconnect()


def _directories(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(absolute(one, "additionalDirectories") for one in given or ())


async def _turns() -> Any:
    """The module that talks to models. It is imported aside: the client is still answered meanwhile."""
    try:
        return await asyncio.to_thread(import_module, f"{__package__}.turn")
    except ImportError as exc:
        message = f"A package of the built-in agent is missing: {exc}. To install it: pip install 'pilothouse[agent]'"
        raise RequestError(INTERNAL_ERROR, message) from exc


def _resolve(name: str) -> Any:
    return import_module(f"{__package__}.models").resolve(name)


async def serve(options: Options, home: Path, reload: Callable[[], Options] | None = None) -> None:
    """The agent on stdin and stdout, until the client closes its end."""
    agent = CoderAgent(options, home=home, reload=reload)
    try:
        # the interface lists all that an agent may do, and this one does not do all of it
        await run_agent(cast(Agent, agent))
    finally:
        await agent.close()
