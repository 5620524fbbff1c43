"""Calls to a session's agent beside its turns: choices, extensions, logging in. The agent is started for them.

What is called by the hub's own vocabulary is refused in that; an extension is nobody's but the agent's, so its answer
and its error come back as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from ..acp.errors import METHOD_NOT_FOUND, ConnectionClosed, RequestError
from ..adapters.running import RunningAgent
from .errors import AgentFailed, Unsupported
from .link import AgentLink
from .recorder import Recorder

__all__ = ["Calls"]

CALL_TIMEOUT = 60.0
"""Seconds for the answer to a call that is no prompt."""


class Calls:
    """`started` gives the agent with the session open; `in_use` keeps it from being ended meanwhile."""

    def __init__(
        self,
        session_id: str,
        recorder: Recorder,
        link: AgentLink,
        started: Callable[[], Awaitable[RunningAgent]],
        in_use: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._session_id = session_id
        self._recorder = recorder
        self._link = link
        self._started = started
        self._in_use = in_use

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A session call of the protocol; all updates before its answer are committed.

        Raises Unsupported, AgentFailed, NotStored.
        """
        with self._in_use():
            agent = await self._started()
            params = {**params, "sessionId": self._link.session_id}
            return await self.ask(agent, method, params, self._link.session_id)

    async def ask(
        self, agent: RunningAgent, method: str, params: dict[str, Any], session: str | None
    ) -> dict[str, Any]:
        """Raises Unsupported, AgentFailed, NotStored."""
        name = self._link.name
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                raw = await agent.request(method, params, session=session)
        except RequestError as exc:
            if exc.code == METHOD_NOT_FOUND:
                raise Unsupported(f"{name} does not support {method}", method=method) from None
            raise AgentFailed(f"{name} refused {method}: {exc}", method=method) from None
        except (ConnectionClosed, TimeoutError) as exc:
            raise AgentFailed(f"{name} did not answer {method}: {exc}", method=method) from None
        await self._recorder.commit()
        value = msgspec.json.decode(raw)
        return value if isinstance(value, dict) else {}

    # -- extensions --

    async def extension(self, method: str, params: dict[str, Any]) -> Any:
        """A request that only the agent knows. There is no limit to how long it takes: who gives up cancels.

        Raises AgentFailed, NotStored, and RequestError with the agent's own words.
        """
        _check_extension(method)
        with self._in_use():
            agent = await self._started()
            own = self._link.session_id
            try:
                raw = await agent.request(method, {**params, "sessionId": own}, session=own)
            except ConnectionClosed as exc:
                message = f"{self._link.name} was gone before it answered {method}: {exc}"
                raise AgentFailed(message, method=method) from None
            await self._recorder.commit()
        answer = msgspec.json.decode(raw)
        if isinstance(answer, dict) and answer.get("sessionId") == own:
            answer["sessionId"] = self._session_id
        return answer

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """A notification that only the agent knows. None is started to be told."""
        _check_extension(method)
        agent = self._link.agent
        if agent is not None:
            try:
                await agent.notify(method, {**params, "sessionId": self._link.session_id})
            except ConnectionClosed:
                pass  # who it was for is gone


def _check_extension(method: str) -> None:
    """What the protocol itself knows is not to be had by this way."""
    if not method.startswith("_"):
        raise RequestError.method_not_found(method)
