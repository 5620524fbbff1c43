"""Calls to the agent between turns: setting a mode or an option, extension methods, logging in.

The agent is started for a call that needs it, with the option that is being set and not the one before; the choice is
recorded once, as the agent reports it. Answers and errors of extension methods are passed on unchanged; the hub's own
methods are refused there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import msgspec

from ...acp.errors import METHOD_NOT_FOUND, ConnectionClosed, RequestError
from ...adapters.catalog import PermissionBehavior
from ...adapters.running import RunningAgent
from ..approvals.authorization import Authorization
from ..errors import AgentFailed, Unsupported
from ..recording.recorder import Recorder
from .choices import Choices, is_mode_option, list_mode_names, matches_mode_id
from .inbound import Listener
from .process import AgentLink

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


Chosen = Callable[[Choices], None]


class Choosing:
    """Of one session. `started` gives the agent with the session open, `behavior` how it asks for permission."""

    def __init__(
        self,
        recorder: Recorder,
        listener: Listener,
        calls: Calls,
        started: Callable[[], Awaitable[RunningAgent]],
        authorization: Authorization,
        behavior: Callable[[], PermissionBehavior],
    ) -> None:
        self._authorization = authorization
        self._behavior = behavior
        self._recorder = recorder
        self._listener = listener
        self._calls = calls
        self._started = started
        self._under_way: Chosen | None = None

    async def mode(self, mode_id: str, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the agent answers. Raises Unsupported, AgentFailed.

        An agent that says that it went into another mode is in that one. One that says it by its options alone, or not
        at all, is spoken for: not every consumer knows options.
        """
        chosen = partial(Choices.choose_mode, mode_id=mode_id)
        names = self._list_names(mode_id)
        self._authorization.leave_mode(mode_id)
        before = self._listener.modes_named
        told, answer = await self._choose("session/set_mode", _with(meta, modeId=mode_id), chosen)
        is_there = self._recorder.session.mode == mode_id
        if self._listener.modes_named == before and told == is_there:
            self._told({"sessionUpdate": "current_mode_update", "currentModeId": mode_id})
        await self._recorder.commit()
        self._note_mode(mode_id, names)
        return answer

    async def option(self, config_id: str, value: Any, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the agent answers. Raises Unsupported, AgentFailed."""
        kind = {"type": "boolean"} if isinstance(value, bool) else {}
        params = _with(meta, configId=config_id, value=value, **kind)
        chosen = partial(Choices.choose_option, config_id=config_id, value=value)
        names = self._list_names(value)
        if isinstance(value, str) and is_mode_option(self._recorder.session.config_options, config_id):
            self._authorization.leave_mode(value)
        _, answer = await self._choose("session/set_config_option", params, chosen)
        options = answer.get("configOptions")
        if isinstance(options, list) and options != self._recorder.session.config_options:
            self._told({"sessionUpdate": "config_option_update", "configOptions": options})
        await self._recorder.commit()
        if isinstance(value, str) and is_mode_option(self._recorder.session.config_options, config_id):
            self._note_mode(value, names)
        return answer

    def _list_names(self, mode_id: Any) -> list[str]:
        """The names of a mode that the user sees now, but the one under which its agent is known to offer it."""
        session = self._recorder.session
        known = self._behavior().mode_names
        names = list_mode_names(session.modes, session.config_options, mode_id)
        return [name for name in names if name != known.get(mode_id)]

    def _note_mode(self, mode_id: str, names: list[str]) -> None:
        """Record the user's choice of a mode, if the session is in it now and its names matched its id before."""
        if self._recorder.session.mode == mode_id and matches_mode_id(mode_id, [*names, *self._list_names(mode_id)]):
            self._authorization.choose_mode(mode_id)

    async def _choose(self, method: str, params: dict[str, Any], chosen: Chosen) -> tuple[bool, dict[str, Any]]:
        """A call that chooses something; whether the agent said which mode it is in now, and its answer."""
        self._under_way = chosen
        try:
            await self._started()
        finally:
            self._under_way = None
        before = self._listener.modes_told
        answer = await self._calls.call(method, params)
        return self._listener.modes_told > before, answer

    async def choices(self) -> Choices:
        """What was chosen in the session, by whomever. Raises NotStored."""
        choosing = self._under_way
        await self._recorder.commit()
        choices = Choices(self._recorder.session)
        if choosing is not None:
            choosing(choices)
        return choices

    def _told(self, update: dict[str, Any]) -> None:
        """An agent answered with what it did not also send as an update."""
        self._recorder.record(self._recorder.translator.update(update, self._recorder.now()))


def _with(meta: Mapping[str, Any] | None, **params: Any) -> dict[str, Any]:
    """Params, with `_meta` if there is any."""
    return {**params, "_meta": dict(meta)} if meta else params
