"""An agent that plays a recorded session: what was sent then is sent again, turn by turn, as it was.

It is made for those who write clients: each prompt plays the next turn, whatever the prompt says. Permissions and forms
are asked for again, and the recording goes on as it went, whatever is answered. Rules a change must not break: updates
are sent byte for byte; every prompt is answered once; nothing but the protocol goes to stdout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from msgspec import Raw

from .. import __version__
from ..acp import (
    PROTOCOL_VERSION,
    Agent,
    AgentCapabilities,
    AgentSideConnection,
    Client,
    ClientCapabilities,
    CloseSessionResponse,
    ConnectionClosed,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    PromptCapabilities,
    RequestError,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    run_agent,
)

FORMS = "elicitation/create"


@dataclass(frozen=True)
class Step:
    """Something that the agent did `wait` seconds after the step before: an update, or a request (`method`).

    `echo` is what the user said; a client that plays a turn has just said it itself.
    """

    wait: float = 0.0
    update: bytes = b""
    method: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    echo: bool = False


@dataclass(frozen=True)
class Turn:
    """One prompt: what the agent did, and how it answered, by a result or by a JSON-RPC error."""

    steps: Sequence[Step]
    result: Mapping[str, Any]
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Recording:
    """A session: `setup` is what its agent told when it was opened, `opening` what it sent before the first prompt."""

    session_id: str
    cwd: str
    turns: Sequence[Turn]
    title: str | None = None
    updated: str | None = None
    setup: Mapping[str, Any] = field(default_factory=dict)
    opening: Sequence[Step] = ()


class _Session:
    """Where a client is in the recording."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.played = 0
        self.lock = asyncio.Lock()
        self.playing: asyncio.Task[None] | None = None
        self.cancels = 0

    def cancel(self) -> None:
        self.cancels += 1
        if self.playing is not None:
            self.playing.cancel()


class ReplayAgent:
    """Plays one recording, in any number of sessions. Each of them begins with the first turn."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._sessions: dict[str, _Session] = {}
        self._made = 0
        self._aside: set[asyncio.Task[None]] = set()
        self._capabilities = ClientCapabilities()
        self._client: AgentSideConnection

    def on_connect(self, conn: Client) -> None:
        assert isinstance(conn, AgentSideConnection)
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **kwargs: Any
    ) -> InitializeResponse:
        self._capabilities = client_capabilities or self._capabilities
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="pilothouse-replay", title="Replayed session", version=__version__),
        )

    # -- sessions --

    async def new_session(self, cwd: str, **kwargs: Any) -> dict[str, Any]:
        self._made += 1
        session_id = f"{self._recording.session_id}-replay-{self._made}"
        self._sessions[session_id] = _Session(cwd)
        self._afterwards(session_id)
        return {"sessionId": session_id, **self._recording.setup}

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> dict[str, Any]:
        """The whole recording at once, without waiting and without asking; prompts play it from the beginning."""
        self._reopen(session_id, cwd)
        for steps in (self._recording.opening, *(turn.steps for turn in self._recording.turns)):
            for step in steps:
                await self._send(session_id, step)
        return dict(self._recording.setup)

    async def resume_session(self, session_id: str, cwd: str, **kwargs: Any) -> dict[str, Any]:
        self._reopen(session_id, cwd)
        self._afterwards(session_id)
        return dict(self._recording.setup)

    async def list_sessions(self, cwd: str | None = None, **kwargs: Any) -> ListSessionsResponse:
        """The recorded session, and those that play it."""
        places = {self._recording.session_id: self._recording.cwd}
        places |= {session_id: session.cwd for session_id, session in self._sessions.items()}
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=session_id,
                    cwd=place,
                    title=self._recording.title,
                    updated_at=self._recording.updated,
                )
                for session_id, place in places.items()
                if cwd in (None, place)
            ]
        )

    async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse:
        session = self._known(session_id)
        session.cancel()
        del self._sessions[session_id]
        return CloseSessionResponse()

    def _known(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError.resource_not_found(session_id)
        return session

    def _reopen(self, session_id: str, cwd: str) -> None:
        if session_id != self._recording.session_id:
            self._known(session_id)
        before = self._sessions.get(session_id)
        if before is not None:
            before.cancel()
        self._sessions[session_id] = _Session(cwd)

    # -- turns --

    async def prompt(self, session_id: str, prompt: Any, **kwargs: Any) -> dict[str, Any]:
        """Play the next turn. Prompts that come meanwhile wait, in order."""
        session = self._known(session_id)
        cancels = session.cancels
        async with session.lock:
            if session.cancels != cancels:
                return {"stopReason": "cancelled"}
            turn = self._next(session)
            session.playing = asyncio.ensure_future(self._play(session_id, turn.steps))
            try:
                await asyncio.wait((session.playing,))
            finally:
                session.playing.cancel()
            if session.playing.cancelled():
                return {"stopReason": "cancelled"}
            session.playing.result()
        if turn.error is not None:
            raise RequestError(turn.error["code"], turn.error["message"], turn.error.get("data"))
        return dict(turn.result)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """End what is played; the next prompt plays the turn after it."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.cancel()

    def _next(self, session: _Session) -> Turn:
        turns = self._recording.turns
        if session.played == len(turns):
            details = f"the recording has {len(turns)} turns, and all of them were played; open another session"
            raise RequestError.invalid_request({"details": details})
        session.played += 1
        return turns[session.played - 1]

    async def _play(self, session_id: str, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.echo:
                continue
            if step.wait > 0:
                await asyncio.sleep(step.wait)
            if step.method:
                await self._ask(session_id, step)
            else:
                await self._send(session_id, step)

    async def _ask(self, session_id: str, step: Step) -> None:
        """Ask, and wait for the answer, whatever it is."""
        if step.method == FORMS and self._capabilities.elicitation is None:
            return
        params = {**step.params, "sessionId": session_id}
        with suppress(RequestError):
            await self._client.connection.request(step.method, params, session=session_id)

    async def _send(self, session_id: str, step: Step) -> None:
        if step.update:
            params = {"sessionId": session_id, "update": Raw(step.update)}
            await self._client.connection.send_notification("session/update", params)

    def _afterwards(self, session_id: str) -> None:
        """Send what comes before the first prompt, right behind the answer to the request that is being handled."""
        task = asyncio.get_running_loop().create_task(self._open(session_id))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _open(self, session_id: str) -> None:
        with suppress(ConnectionClosed):
            for step in self._recording.opening:
                await self._send(session_id, step)


async def serve(recording: Recording) -> None:
    """Play a recording to the client on stdin and stdout, until it closes its end."""
    # the interface lists all that an agent may do, and this one does not do all of it
    await run_agent(cast(Agent, ReplayAgent(recording)))
