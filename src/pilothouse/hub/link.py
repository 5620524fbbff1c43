"""The link of a session to its agent: started when it is needed, taken up again after it died, ended with its tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ..acp.errors import RequestError
from ..adapters.running import Owner, RunningAgent, start_agent
from .serving import CLIENT_CAPABILITIES

__all__ = ["AgentLink", "AgentSpec", "Setup"]

AUTH_REQUIRED = -32000

_decode = msgspec.json.Decoder().decode


class AgentSpec(Struct, frozen=True, kw_only=True):
    """How an agent is started."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = {}
    title: str | None = None


class Setup(Struct, frozen=True):
    """How a session came to its agent: `new`, `resumed`, `loaded`, or `reset` when the agent had forgotten it."""

    how: str
    session_id: str
    result: dict[str, Any]


class AgentLink:
    """At most one running agent for one session."""

    def __init__(self, spec: AgentSpec, owner: Owner, cwd: str) -> None:
        self._spec = spec
        self._owner = owner
        self._cwd = cwd
        self._agent: RunningAgent | None = None
        self.session_id: str | None = None
        self.is_replaying = False

    @property
    def agent(self) -> RunningAgent | None:
        """The agent, while it runs and has this session open."""
        return self._agent if self._agent is not None and self._agent.is_running else None

    @property
    def initialized(self) -> dict[str, Any]:
        return self._agent.initialized if self._agent is not None else {}

    async def open(self, known: str | None) -> tuple[RunningAgent, Setup | None]:
        """The running agent, started if need be; with how it took up the session if it was just started.

        `known` is the agent's own id of the session, if it had one. Raises what `start_agent` raises.
        """
        if self.agent is not None:
            return self.agent, None
        await self.close()
        agent = await start_agent(
            self._spec.command,
            self._owner,
            cwd=self._cwd,
            env=self._spec.env,
            client_capabilities=CLIENT_CAPABILITIES,
        )
        self._agent = agent
        try:
            setup = await self._take_up(agent, known)
        except BaseException:
            await self.close()
            raise
        self.session_id = setup.session_id
        return agent, setup

    async def _take_up(self, agent: RunningAgent, known: str | None) -> Setup:
        params: dict[str, Any] = {"cwd": self._cwd, "mcpServers": []}
        if known is not None:
            for how, method in self._ways(agent):
                try:
                    self.is_replaying = how == "loaded"
                    raw = await agent.request(method, {**params, "sessionId": known}, session=known)
                    return Setup(how, known, _object(raw))
                except RequestError as exc:
                    if exc.code == AUTH_REQUIRED:
                        raise
                finally:
                    self.is_replaying = False
        # the owner learns the id with the answer; updates that come before it are of this session, there is no other
        result = _object(await agent.request("session/new", params))
        session_id = result.get("sessionId")
        if not isinstance(session_id, str):
            raise RequestError(-32603, "the agent answered session/new without a sessionId", {"result": result})
        return Setup("reset" if known is not None else "new", session_id, result)

    def _ways(self, agent: RunningAgent) -> list[tuple[str, str]]:
        capabilities = agent.capabilities
        sessions = capabilities.get("sessionCapabilities")
        ways = []
        if isinstance(sessions, dict) and sessions.get("resume") is not None:
            ways.append(("resumed", "session/resume"))
        if capabilities.get("loadSession") is True:
            ways.append(("loaded", "session/load"))
        return ways

    def kill(self) -> None:
        if self._agent is not None:
            self._agent.kill()

    async def close(self) -> None:
        """End the agent with its tree; a new one can be started afterwards."""
        agent, self._agent = self._agent, None
        if agent is not None:
            await agent.stop()


def _object(raw: bytes) -> dict[str, Any]:
    value = _decode(raw)
    return value if isinstance(value, dict) else {}
