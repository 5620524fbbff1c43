"""The agent of one session: which one it is, how it starts and resumes the session, and how another one replaces it.

The choice of the agent is one more option beside the agent's own, open until the first prompt. It is not an option of
any agent, so the log does not keep it among those; a change is an event, stored with the session's record.

Rules a change must not break: requests to the agent wait while the session is given to another one; a change that began
is carried through even if its caller stopped waiting; an agent that is in use is not ended as idle.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...acp.errors import ConnectionClosed, RequestError, SpawnError
from ...adapters.running import RunningAgent
from ...log.contract import EventLog
from ...log.records import SessionRecord, Update
from ...model.events import CustomEvent
from ..client.workspace import Workspace
from ..errors import AgentFailed, HubError, IllegalCommand, UnknownAgent
from ..recording.recorder import Recorder
from .choices import Choices
from .inbound import Listener
from .inputs import Provisions, Surroundings
from .process import AgentLink, AgentSpec, Claim, Setup

AGENT_OPTION = "pilothouse.agent"


def agent_option(current: str, agents: Mapping[str, AgentSpec], *, is_open: bool) -> dict[str, Any] | None:
    """The option, as on the wire; None when there is nothing to choose."""
    if len(agents) < 2 or not is_open:
        return None
    return {
        "type": "select",
        "id": AGENT_OPTION,
        "name": "Agent",
        "description": "Who works in this session; it can be chosen until the first prompt.",
        "currentValue": current,
        "options": [{"value": name, "name": spec.title or name} for name, spec in agents.items()],
    }


def check_change(session_id: str, name: str, agents: Mapping[str, AgentSpec], *, is_open: bool) -> None:
    """Raises IllegalCommand when the agent was fixed or somebody has prompted, UnknownAgent."""
    if not agents or not is_open:
        why = "it is fixed" if is_open else "somebody has prompted"
        raise IllegalCommand(f"the agent of {session_id} cannot be changed: {why}", sessionId=session_id)
    if name not in agents:
        known = ", ".join(sorted(agents))
        raise UnknownAgent(f"no agent {name!r} is configured; there are: {known}", agent=name)


def record_change(recorder: Recorder, session_id: str, before: str, after: str) -> None:
    """Say who has the session now, and that nothing is known yet of what that one offers."""
    now = recorder.now()
    values = {"agent": after, "agent_session_id": None, "updated": now}
    change = Update(SessionRecord, (session_id,), values, where={"deleted": None}, strict=True)
    recorder.note("agent_changed", {"from": before, "to": after}, also=[change])
    nothing = {"modes": {"availableModes": []}, "models": {"availableModels": []}, "configOptions": []}
    setup = CustomEvent(
        seq=0, session_id=session_id, timestamp=now, namespace="acp", event_name="session_setup", data=nothing
    )
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    recorder.record([setup, *recorder.translator.update(commands, now)])


FAILURES = (SpawnError, ConnectionClosed, RequestError, TimeoutError)
"""How a start fails."""
_OWN = ("errorKind", "stderrTail")
"""What an agent says of its error that is also for whoever asked for the start."""


class SessionAgent:
    """`name` is the agent's, `known` its own id of the session if it has ever had it, `meta` what it said in `_meta`
    when it took it up. `ended`, `dropped` and `chosen` are those of the link; `is_untouched` tells whether nobody has
    prompted yet, and `check_not_over` raises IllegalCommand for a session that has ended."""

    def __init__(
        self,
        log: EventLog,
        record: SessionRecord,
        spec: AgentSpec | None,
        recorder: Recorder,
        listener: Listener,
        workspace: Workspace,
        around: Surroundings,
        *,
        ended: Callable[[ConnectionClosed], None],
        dropped: Callable[[], None],
        chosen: Callable[[], Awaitable[Choices]],
        is_untouched: Callable[[], bool],
        check_not_over: Callable[[], None],
        hub_id: str = "",
        claim: Claim | None = None,
    ) -> None:
        self.name = record.agent
        self.known = record.agent_session_id
        self.meta: Any = None
        self._log = log
        self._session_id = record.id
        self._recorder = recorder
        self._listener = listener
        self._workspace = workspace
        self._around = around
        self._is_untouched = is_untouched
        self._check_not_over = check_not_over
        self._is_startable = spec is not None
        self._users = 0
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self.link = AgentLink(
            spec or AgentSpec(name=record.agent, command=(record.agent,)),
            listener,
            record.cwd,
            opened=self._taken_up,
            ended=ended,
            chosen=chosen,
            dropped=dropped,
            told=self._tell,
            hub_id=hub_id,
            surroundings=around,
            claim=claim,
        )
        adopted = record.meta.get("adopted")
        self.link.never_anew = isinstance(adopted, dict) and adopted.get("how") != "fork"

    # -- in use --

    @property
    def is_needed(self) -> bool:
        """Whether somebody needs it, though no turn may run."""
        return self._users > 0 or bool(self._changes)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Somebody needs the agent, though no turn runs."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._recorder.touch()

    async def settled(self) -> None:
        """Wait for a change that is under way."""
        if self._changes:
            await asyncio.wait(set(self._changes))

    # -- its start --

    async def started(self) -> RunningAgent:
        """The agent with the session open, all of that stored. Raises IllegalCommand, AgentFailed, NotStored."""
        self._check_not_over()
        with self.in_use():
            await self._recorder.mend()
            try:
                agent = await self.open()
            except FAILURES as exc:
                raise self.not_started(exc) from exc
            await self._recorder.commit()
        return agent

    async def open(self) -> RunningAgent:
        """The agent with the session open. Raises AgentFailed, and what `AgentLink.open` raises."""
        async with self._changing:
            pass  # the agent that is wanted is the one that is there afterwards
        if not self._is_startable:
            raise AgentFailed(f"no agent {self.name!r} is configured any more", agent=self.name)
        return await self.link.open(self.known)

    async def reached(self) -> RunningAgent:
        """The agent, also one that would not open the session before its user has logged in. Raises AgentFailed."""
        try:
            return await self.open()
        except FAILURES as exc:
            if not isinstance(exc, RequestError) or self.link.process is None:
                raise self.not_started(exc) from exc
            return self.link.process

    def not_started(self, exc: BaseException) -> AgentFailed:
        own = exc.data if isinstance(exc, RequestError) and isinstance(exc.data, dict) else {}
        told = {name: own.get(name) for name in _OWN} | {"authMethods": self.link.initialized.get("authMethods")}
        known = {name: value for name, value in told.items() if value is not None}
        return AgentFailed(f"{self.name} could not be started: {exc}", agent=self.name, **known)

    def _tell(self, what: str) -> None:
        """What the start waits for, to whoever follows the session."""
        title, _, message = what.partition("; ")
        self._recorder.notify("info", title, message[:1].upper() + message[1:])

    def _taken_up(self, setup: Setup) -> None:
        recorder = self._recorder
        now = recorder.now()
        self.meta = setup.result.get("_meta")
        self._workspace.additional = tuple(Path(os.path.realpath(one)) for one in self.link.directories)
        if setup.how in ("new", "reset"):
            info = self.link.initialized.get("agentInfo")
            events = recorder.translator.started(now, agent=self.name, result=setup.result, info=info)
        else:
            previous = self._around.origin if setup.how == "forked" else self.known
            events = recorder.translator.resumed(now, previous=previous, result=setup.result)
        if setup.how == "reset":
            data = {"previousSessionId": self.known, **({"refused": setup.refused} if setup.refused else {})}
            events += recorder.translator.fact("session_reset", data, now)
        if setup.restored:
            events += recorder.translator.fact("choices_restored", setup.restored, now)
        self.known = setup.session_id
        recorder.record(events, also=[self._log.sessions.updating(self._session_id, agent_session_id=setup.session_id)])

    # -- what it is given --

    def provide(self, provisions: Provisions) -> bool:
        """What agents are given for the session when they are started; whether the one that runs has it."""
        around = self._around
        around.provisions = around.provisions.joined(provisions)
        return self.link.agent is None or self.link.given.means == around.provisions.means

    @property
    def ignored(self) -> list[dict[str, Any]]:
        """What the agent that runs cannot be given, and why."""
        agent = self.link.agent
        return self.link.given.ignored(agent.capabilities) if agent is not None else []

    # -- another one --

    @property
    def option(self) -> dict[str, Any] | None:
        """The choice of the agent, as on the wire, while there is one."""
        return agent_option(self.name, self._around.agents, is_open=self._is_untouched())

    async def change(self, name: str) -> None:
        """Let another agent have the session. If that one cannot be started, all is as before.

        Raises IllegalCommand when the agent was fixed or somebody has prompted; UnknownAgent, AgentFailed, NotStored.
        """
        self._check_not_over()
        await self._changing.acquire()
        agents, before = self._around.agents, self.name  # a prompt that comes meanwhile ends the choice
        try:
            check_change(self._session_id, name, agents, is_open=self._is_untouched())
        except HubError:
            self._changing.release()
            raise
        task = asyncio.get_running_loop().create_task(self._change(before, name, agents), name="changing an agent")
        self._changes.add(task)
        task.add_done_callback(self._changed)
        await asyncio.shield(task)

    def _changed(self, task: asyncio.Task[None]) -> None:
        self._changing.release()
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # told to who asked for it, who may be gone

    async def _change(self, before: str, name: str, agents: Mapping[str, AgentSpec]) -> None:
        if name == before:
            return
        with self.in_use():
            try:
                await self._hand_over(name, agents)
            except AgentFailed:
                await self._hand_over(before, agents)
                raise

    async def _hand_over(self, name: str, agents: Mapping[str, AgentSpec]) -> None:
        await self._recorder.mend()
        await self.link.change(agents[name])
        self._listener.forget()  # from here until it is said who has the session now, nobody else gets a turn
        record_change(self._recorder, self._session_id, self.name, name)
        self.name, self.known, self.meta = name, None, None
        try:
            await self.link.open(None)
        except FAILURES as exc:
            raise self.not_started(exc) from exc
        await self._recorder.commit()
