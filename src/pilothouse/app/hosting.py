"""Sessions of the hub as adapters and their users see them: the contract of `AgentSession`, kept by the hub's log.

A follower of the log feeds the callbacks, so what they are told is durable and in order; commands go to the actor that
owns the session. Detaching ends the follower and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from ..adapters.contract import AdapterError, AgentSession, OnEvent, SessionHost, Stop
from ..hub.errors import HubError
from ..hub.hub import Hub
from ..hub.session.commands import execute
from ..hub.session.session import HubSession
from ..log.errors import LogError
from ..model.capabilities import ACPCapabilities, capabilities_from_acp, observe
from ..model.commands import ACPCommand, Command, SetModelCommand
from ..model.discovery import StartSessionOptions
from ..model.errors import ValidationError
from ..model.events import Event, decode_event

logger = logging.getLogger(__name__)


class HubHost(SessionHost):
    """Runs adapters' sessions in a hub. `close` it before the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._open: set[HubAgentSession] = set()

    async def start_session(self, agent: str, options: StartSessionOptions) -> AgentSession:
        given = options.agent_options or {}
        try:
            session = await self._hub.start_session(
                agent, options.project_path, title=given.get("title"), policy=given.get("policy"), start=True
            )
            if options.model is not None:
                await execute(session, SetModelCommand(model_id=options.model))
            view = self._view(session)
            if options.prompt.strip():
                await session.send(options.prompt)
        except (HubError, LogError, ValidationError) as exc:
            raise AdapterError(str(exc)) from exc
        return view

    async def attach_to_session(self, agent: str, session_id: str) -> AgentSession:
        try:
            session = await self._hub.session(session_id)
        except (HubError, LogError) as exc:
            raise AdapterError(str(exc)) from exc
        if session.agent_name != agent:
            raise AdapterError(f"session {session_id} is one of {session.agent_name}, not of {agent}")
        return self._view(session)

    async def close(self) -> None:
        for view in list(self._open):
            await view.detach()

    def _view(self, session: HubSession) -> HubAgentSession:
        view = HubAgentSession(session, self._hub, self._open.discard)
        self._open.add(view)
        return view


class HubAgentSession(AgentSession):
    """One session, followed for its user."""

    def __init__(self, session: HubSession, hub: Hub, gone: Callable[[HubAgentSession], None]) -> None:
        self._session = session
        self._hub = hub
        self._gone = gone
        self._callbacks: list[OnEvent] = []
        self._capabilities = capabilities_from_acp({}, name=session.agent_name)
        self._after = session.state.seq
        self._task: asyncio.Task[None] | None = None

    @property
    def session_id(self) -> str:
        return self._session.id

    @property
    def capabilities(self) -> ACPCapabilities:
        return self._capabilities

    def on_event(self, callback: OnEvent) -> Stop:
        self._callbacks.append(callback)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._follow(), name=f"follow {self.session_id}")

        def stop() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return stop

    async def execute(self, command: Command) -> None:
        try:
            await execute(self._session, cast(ACPCommand, command))
        except (HubError, LogError, ValidationError) as exc:
            raise AdapterError(str(exc)) from exc

    async def get_history(self) -> list[Event]:
        events: list[Event] = []
        while entries := await self._hub.log.read(self.session_id, len(events)):
            events += (decode_event(entry.data) for entry in entries)
        return events

    async def detach(self) -> None:
        self._callbacks.clear()
        self._gone(self)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _follow(self) -> None:
        try:
            async for event in self._session.events(self._after):
                self._capabilities = observe(self._capabilities, event)
                for callback in list(self._callbacks):
                    try:
                        callback(event)
                    except Exception:
                        logger.exception("a callback for events of %s failed", self.session_id)
        except LogError:
            pass  # the hub closed
