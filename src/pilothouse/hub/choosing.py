"""Choosing a mode or an option in a session: the agent is told, and what it makes of that is recorded once.

An agent that must be started first is to have what is chosen now, not what was before; so what is being chosen is known
to whoever restores choices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from ..adapters.known import PermissionBehavior
from ..adapters.running import RunningAgent
from .authorization import Authorization
from .calls import Calls
from .choices import Choices, is_mode_option, list_mode_names, matches_mode_id
from .listening import Listener
from .recorder import Recorder

__all__ = ["Choosing"]

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
