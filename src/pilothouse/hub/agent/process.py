"""The agent process of a session: started when it is needed, resumed after it died, stopped with its process tree.

Starting is one task, whoever asked for it: it is never done twice at a time, and `close` ends it wherever it is. An
agent that wants to be authenticated first is kept running, so that it can be.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ...acp.errors import METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, ConnectionClosed, RequestError
from ...adapters.catalog import PermissionBehavior, permission_behavior_of, without_flaws
from ...adapters.running import HUB, INITIALIZE_TIMEOUT, Owner, RunningAgent, start_agent
from .choices import Choices
from .client_requests import CLIENT_CAPABILITIES
from .inputs import Provisions, Surroundings

AUTH_REQUIRED = -32000

_decode = msgspec.json.Decoder().decode


class AgentSpec(Struct, frozen=True, kw_only=True):
    """How an agent is started."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = {}
    title: str | None = None
    login: str | None = None
    """What a user does who is not logged in to it, where the agent does not say."""
    start_timeout: float = INITIALIZE_TIMEOUT
    """Seconds for `initialize`, and again for opening the session."""
    behavior: PermissionBehavior | None = None
    """How it asks for permission; None looks it up by the command."""


class Setup(Struct, frozen=True):
    """How a session came to its agent: `new`, `forked`, `resumed`, `loaded`, or `reset` when that had forgotten it.

    `result` is what the agent offers and has chosen, `restored` what of that was set again, and `refused` what it
    answered when it was to go on with the session.
    """

    how: str
    session_id: str
    result: dict[str, Any]
    restored: dict[str, Any] = {}
    refused: dict[str, str] = {}


class Claim(Protocol):
    """Sees to it that a session which an agent keeps has one writer, whoever runs that agent."""

    async def take(self, agent: str, session_id: str) -> None:
        """Have a session, before anything is written to it. Raises Held."""

    async def give_back(self) -> None:
        """The agent that had it has ended. Again is no harm."""


class AgentLink:
    """At most one running agent for one session.

    `opened` is called when an agent has taken up the session, before anyone who waits for that; `ended` when an agent
    that had is gone, unless the link ended it; `dropped` when the link has ended one, or its start; `told` with what a
    start waits for that takes its time. `chosen` tells what was chosen in the session; it is asked before an agent is
    started anew, so that nothing that one says can change the answer.
    """

    def __init__(
        self,
        spec: AgentSpec,
        owner: Owner,
        cwd: str,
        *,
        opened: Callable[[Setup], None],
        ended: Callable[[ConnectionClosed], None],
        chosen: Callable[[], Awaitable[Choices]] | None = None,
        dropped: Callable[[], None] | None = None,
        told: Callable[[str], None] | None = None,
        hub_id: str = "",
        surroundings: Surroundings | None = None,
        claim: Claim | None = None,
    ) -> None:
        self._spec = spec
        self._claim = claim
        self.never_anew = False
        """Whether an agent that does not know the session any more has failed."""
        self._owner = owner
        self._cwd = cwd
        self._opened = opened
        self._ended = ended
        self._chosen = chosen
        self._dropped = dropped
        self._told = told
        self._current: dict[str, Any] | None = None
        self._hub_id = hub_id
        self._agent: RunningAgent | None = None
        self._opening: asyncio.Task[RunningAgent] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._resting: asyncio.Task[None] | None = None
        self._distrusted: str | None = None
        self._closed = False
        self._is_killed = False
        self.session_id: str | None = None
        self.is_replaying = False
        self.around = surroundings or Surroundings()
        self.given = Provisions()
        """What there was to give when the agent took up the session."""
        self.directories: tuple[str, ...] = ()
        """Those that it was told of besides the session's own."""
        self.capabilities: dict[str, Any] | None = None
        """What the agent can do, as the last one said that took up the session; None before there was one."""

    @property
    def behavior(self) -> PermissionBehavior:
        """How the agent asks for permission, as far as it is known."""
        return self._spec.behavior if self._spec.behavior is not None else permission_behavior_of(self._spec.command)

    @property
    def name(self) -> str:
        return self._spec.name

    async def change(self, spec: AgentSpec) -> None:
        """End the agent; the next one is another."""
        await self.abandon()
        await self._drop()
        self._spec, self._distrusted, self.capabilities = spec, None, None

    @property
    def agent(self) -> RunningAgent | None:
        """The agent, while it runs and has this session open."""
        return self.process if self.session_id is not None else None

    @property
    def auth_required(self) -> dict[str, Any]:
        """How the user may log in: the agent's own methods, and what is known of it besides."""
        hint = {"login": self._spec.login} if self._spec.login is not None else {}
        return {"authMethods": self.initialized.get("authMethods"), **hint}

    @property
    def initialized(self) -> dict[str, Any]:
        return self._agent.initialized if self._agent is not None else {}

    async def open(self, known: str | None) -> RunningAgent:
        """The running agent with the session open, started if need be. Raises what `start_agent` raises.

        `known` is the agent's own id of the session, if it had one. Who is cancelled here leaves the start running;
        `abandon` ends that.
        """
        if self._opening is None and self.agent is not None:
            return self.agent
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open(known), name="opening an agent")
            self._opening.add_done_callback(self._done_opening)
        opening = self._opening
        await asyncio.wait((opening,))
        if opening.cancelled():  # by somebody else, and whoever shared the start was not cancelled with it
            raise ConnectionClosed("its start was broken off")
        return opening.result()

    def _done_opening(self, task: asyncio.Task[RunningAgent]) -> None:
        if self._opening is task:
            self._opening = None
        if not task.cancelled():
            task.exception()  # told to those who wait; there may be none

    @property
    def process(self) -> RunningAgent | None:
        """The agent, while it runs, be the session open or not."""
        agent = self._agent
        return agent if agent is not None and agent.is_running and not self._is_killed else None

    @property
    def is_in_use(self) -> bool:
        """Whether there is an agent, or one begins or ends."""
        resting = self._resting is not None and not self._resting.done()
        return self._agent is not None or self._opening is not None or resting

    async def _start(self) -> RunningAgent:
        if self.process is not None:
            return self.process
        await self._drop()
        if self._closed:
            raise ConnectionClosed("the session is closed")
        env = {**self._spec.env, HUB: self._hub_id} if self._hub_id else self._spec.env
        self._agent = await start_agent(
            self._spec.command,
            self._owner,
            cwd=self._cwd,
            env=env,
            client_capabilities=without_flaws(CLIENT_CAPABILITIES, self._spec.command),
            timeout=self._spec.start_timeout,
            told=self._told,
        )
        return self._agent

    @property
    def is_restoring(self) -> bool:
        """Whether what an agent says of its modes and options is not yet the session's."""
        return self._current is not None

    def observe(self, update: Any) -> None:
        """The agent told of its mode or its options while it takes up a session that had some."""
        current = self._current
        if current is None or not isinstance(update, dict):
            return
        if isinstance(mode := update.get("currentModeId"), str):
            modes = current.get("modes")
            current["modes"] = {**(modes if isinstance(modes, dict) else {}), "currentModeId": mode}
        if isinstance(options := update.get("configOptions"), list):
            current["configOptions"] = options

    async def _open(self, known: str | None) -> RunningAgent:
        had_any = known is not None or self.around.origin is not None  # a fork has the choices of its parent
        chosen = await self._chosen() if self._chosen is not None and had_any else None
        try:
            self._current = {} if chosen is not None else None
            agent = await self._start()
            if self._claim is not None and known is not None:
                await self._claim.take(self.name, known)
            setup = await self._take_up(agent, known)
            if self._claim is not None and setup.session_id != known:
                await self._claim.take(self.name, setup.session_id)
            if chosen is not None:
                setup = await self._restore(agent, setup, chosen)
        except RequestError as exc:
            if exc.code != AUTH_REQUIRED:
                await self._drop()
            raise
        except BaseException:
            await self._drop()
            raise
        finally:
            self._current = None
        self.session_id, self.capabilities = setup.session_id, agent.capabilities
        self._opened(setup)
        self._watching = asyncio.get_running_loop().create_task(self._watch(agent), name="watching an agent")
        return agent

    async def _take_up(self, agent: RunningAgent, known: str | None) -> Setup:
        self.given = self.around.provisions
        params: dict[str, Any] = {"cwd": self._cwd, **self.given.params(agent.capabilities)}
        self.directories = tuple(params.get("additionalDirectories", ()))
        refused: dict[str, str] = {}
        if known is not None and (known != self._distrusted or self.never_anew):
            for how, method in _ways(agent):
                try:
                    self.is_replaying = how == "loaded"
                    raw = await self._call(agent, method, {**params, "sessionId": known}, known)
                    return Setup(how, known, _object(raw))
                except RequestError as exc:
                    if exc.code == AUTH_REQUIRED:
                        raise
                    refused[method] = str(exc)
                except (ConnectionClosed, TimeoutError):
                    self._distrusted = known  # it may do so each time; the next start begins anew
                    raise
                finally:
                    self.is_replaying = False
        if self.never_anew and known is not None:
            why = "; ".join(refused.values()) or "it can neither resume nor load a session"
            message = f"{self.name} cannot go on with its session {known}: {why}"
            raise RequestError(RESOURCE_NOT_FOUND, message, {"refused": refused})
        if self.around.origin is not None:
            return await self._fork(agent, self.around.origin, params)
        return await self._begin(agent, "session/new", params, "reset" if known is not None else "new", refused)

    async def _fork(self, agent: RunningAgent, origin: str, params: dict[str, Any]) -> Setup:
        sessions = agent.capabilities.get("sessionCapabilities")
        if not isinstance(sessions, dict) or sessions.get("fork") is None:
            raise RequestError(METHOD_NOT_FOUND, f"{self.name} cannot fork a session", {"method": "session/fork"})
        return await self._begin(agent, "session/fork", {**params, "sessionId": origin}, "forked", {})

    async def _begin(
        self, agent: RunningAgent, method: str, params: dict[str, Any], how: str, refused: dict[str, str]
    ) -> Setup:
        # the owner learns the id with the answer; updates that come before it are of this session, there is no other
        result = _object(await self._call(agent, method, params, None))
        session_id = result.get("sessionId")
        if not isinstance(session_id, str):
            raise RequestError(-32603, f"the agent answered {method} without a sessionId", {"result": result})
        return Setup(how, session_id, result, refused=refused)

    async def _restore(self, agent: RunningAgent, setup: Setup, chosen: Choices) -> Setup:
        """Set again what was chosen in the session. Raises NotRestored."""
        current = self._current
        assert current is not None
        current.update((key, value) for key, value in setup.result.items() if value is not None)

        async def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
            session_id = setup.session_id
            return _object(await self._call(agent, method, {"sessionId": session_id, **params}, session_id))

        done = await chosen.restore(call, current)
        return msgspec.structs.replace(setup, result=current, restored=done.fact)

    async def _call(self, agent: RunningAgent, method: str, params: dict[str, Any], session: str | None) -> bytes:
        try:
            async with asyncio.timeout(self._spec.start_timeout):
                return await agent.request(method, params, session=session)
        except TimeoutError:
            raise agent.silent(method, self._spec.start_timeout) from None
        except RequestError as exc:  # on its way into the log
            hidden = self.given.scrubbed
            raise RequestError(exc.code, hidden(exc.message), hidden(exc.data)) from None

    async def _watch(self, agent: RunningAgent) -> None:
        end = await agent.wait_ended()
        if self._agent is agent:
            self.session_id = None
        self._ended(end)
        await agent.stop(timeout=0.5)  # what it left behind
        await self._give_back()

    async def _give_back(self) -> None:
        if self._claim is not None:
            await self._claim.give_back()

    # -- ends --

    def kill(self) -> None:
        """End the agent at once, without waiting; from now on it is none of ours."""
        if self._agent is not None:
            self._is_killed = True
            self._agent.kill()

    async def abandon(self) -> None:
        """End a start that is under way, and wait for that."""
        task = self._opening
        if task is not None:
            if not task.cancelling():  # once: cancelled again it would leave an agent that is just being ended
                task.cancel()
            await asyncio.wait((task,))

    def rest(self) -> asyncio.Task[None] | None:
        """Let go of an agent that has nothing to do and can take up its session again; the task that ends it.

        None when there is no such agent.
        """
        if self._opening is not None or self.agent is None or not _ways(self.agent):
            return None
        self._resting = asyncio.get_running_loop().create_task(self._end(*self._let_go()), name="ending an idle agent")
        return self._resting

    async def _drop(self) -> None:
        """End the agent with its tree; a new one can be started afterwards."""
        if self._resting is not None:  # two agents must not have the same session
            await asyncio.wait((self._resting,))
            self._resting = None
        await self._end(*self._let_go())

    def _let_go(self) -> tuple[RunningAgent | None, asyncio.Task[None] | None]:
        agent, self._agent, self.session_id, self._is_killed = self._agent, None, None, False
        watching, self._watching = self._watching, None
        if watching is not None and agent is not None and agent.is_running:
            watching.cancel()
        return agent, watching

    async def _end(self, agent: RunningAgent | None, watching: asyncio.Task[None] | None) -> None:
        if watching is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((watching,))
        if agent is not None:
            await agent.stop()
            await self._give_back()
        if self._dropped is not None:
            self._dropped()

    async def close(self) -> None:
        """End the agent, or its start, for good."""
        self._closed = True
        await self.abandon()
        await self._drop()


def _ways(agent: RunningAgent) -> list[tuple[str, str]]:
    capabilities = agent.capabilities
    sessions = capabilities.get("sessionCapabilities")
    ways = []
    if isinstance(sessions, dict) and sessions.get("resume") is not None:
        ways.append(("resumed", "session/resume"))
    if capabilities.get("loadSession") is True:
        ways.append(("loaded", "session/load"))
    return ways


def _object(raw: bytes) -> dict[str, Any]:
    value = _decode(raw)
    return value if isinstance(value, dict) else {}
