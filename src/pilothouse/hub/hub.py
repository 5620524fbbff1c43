"""The hub: all sessions, one log, and the agents that are known.

async with Hub(home=directory, agents={"demo": AgentSpec(...)}) as hub:
    session = await hub.start_session("demo", cwd="/home/me/project")
    result = await session.prompt("Fix the login bug")
    async for event in session.events(after=0):
        ...
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

import msgspec

from ..log.contract import EventLog
from ..log.errors import UnknownRecord, UnknownSession
from ..log.records import Approval, Rule, SessionPage, SessionRecord
from ..log.sqlite.log import SQLiteLog
from ..model.discovery import DiscoveredSession
from ..model.policy import parse_policy
from ..model.session import Session, sound
from .agent.inputs import Provisions, Surroundings
from .agent.process import AgentSpec
from .client.editors import Editor
from .errors import HubClosing, HubError, UnknownAgent, UnknownApproval
from .external.discovery import Discovery
from .external.writer_lock import How
from .recording.recovery import closing_events, end_open, fold
from .session.forks import Fork, check_unmoved, copy_history, forkable, unable
from .session.session import HubSession
from .session.wiring import CANCEL_DEADLINE, Parts
from .startup import Inheritance, leave_in_order, take_over

logger = logging.getLogger(__name__)

DATABASE = "pilothouse.db"
IDLE_TIMEOUT = 30 * 60.0
"""Seconds that an agent is kept although it has nothing to do."""
LOOK = 60.0
"""Seconds between two looks for such agents, at most."""


class Hub:
    """Runs sessions. Open it by `async with`; nothing it started outlives it.

    `notices` are things its user should be told. `orphans_ended` counts the processes that a dead hub had left. An
    agent that has had nothing to do for `idle_timeout` seconds is ended, and the next prompt resumes it; a session
    without agent leaves memory after that time, and `session` takes it up again. 0 keeps all.
    """

    def __init__(
        self,
        *,
        home: str | Path | None = None,
        log: EventLog | None = None,
        agents: Mapping[str, AgentSpec] | None = None,
        cancel_deadline: float = CANCEL_DEADLINE,
        approval_timeout: float | None = None,
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> None:
        if (home is None) == (log is None):
            raise TypeError("give either `home`, a directory for the database, or a `log`")
        self.log: EventLog = log if log is not None else SQLiteLog(Path(str(home)) / DATABASE)
        self.home = Path(home) if home is not None else None
        self.agents = dict(agents or {})
        self.look_for: Callable[[str], Awaitable[str | None]] | None = None
        """Looks for an agent that is not among `agents`, and says what to do when it is not to be had either."""
        self.notices: list[str] = []
        self.orphans_ended = 0
        self.recovered: list[str] = []
        self._cancel_deadline = cancel_deadline
        self._approval_timeout = approval_timeout
        self._idle_timeout = idle_timeout
        self._resting: asyncio.Task[None] | None = None
        self._hub_id = ""
        self._sessions = LiveSessions()
        self._loading: dict[str, asyncio.Task[HubSession]] = {}
        self._deleting: set[str] = set()
        self._surroundings: dict[str, Surroundings] = {}
        self._ending: asyncio.Task[bool] | None = None
        self._closing: asyncio.Task[None] | None = None
        self.discovery = Discovery(self.log, self.session, self._check_agent, check_directory, self.delete_session)
        """Sessions that were begun elsewhere."""

    async def __aenter__(self) -> Self:
        await self.log.open()
        try:
            self._inherit(await take_over(self.log))
        except BaseException:
            await self.log.close()
            raise
        if self._idle_timeout > 0:
            self._resting = asyncio.get_running_loop().create_task(self._rest_agents(), name="ending idle agents")
        return self

    def _inherit(self, had: Inheritance) -> None:
        self._hub_id = self.discovery.hub_id = had.hub_id
        self.orphans_ended, self.recovered = had.orphans_ended, had.recovered
        self.notices += [*self.log.notices, *had.notices]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all agents, then the log. Always ends; closing twice is fine."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(), name="closing the hub")
        await asyncio.shield(self._closing)

    async def _rest_agents(self) -> None:
        while True:
            await asyncio.sleep(min(self._idle_timeout / 4, LOOK))
            self._sessions.rest(self._idle_timeout)
            for session_id in [one for one in self._surroundings if one not in self._sessions]:
                self._forget(session_id)

    async def _close(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            await asyncio.wait((self._resting,))
        is_clean = await self._sessions_ended()
        self._sessions.clear()
        try:
            if is_clean:
                await leave_in_order(self.log)
        finally:
            await self.log.close()

    async def end_sessions(self) -> None:
        """Take no more work, and end the turns and agents there are; what is stored can still be read and followed.

        Do this before those leave whom agents rely on: a program that ends because its editor was let go must not look
        to its agent like one that was done. `close` does the rest.
        """
        await self._sessions_ended()

    async def _sessions_ended(self) -> bool:
        """Whether all came to an orderly end."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end_sessions(), name="ending all sessions")
        return await asyncio.shield(self._ending)

    async def _end_sessions(self) -> bool:
        for task in list(self._loading.values()):
            await asyncio.wait((task,))
        await self.discovery.close()
        sessions = list(self._sessions.values())
        endings = await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
        failures = [ending for ending in endings if isinstance(ending, BaseException)]
        for failure in failures:
            logger.error("a session could not be closed in order", exc_info=failure)
        return not failures

    # -- sessions --

    async def start_session(
        self,
        agent: str,
        cwd: str | Path,
        *,
        title: str | None = None,
        policy: Any = None,
        start: bool = False,
        choosable: bool = False,
    ) -> HubSession:
        """A new session. With `start` its agent is started at once, and a failure of that is raised.

        `choosable`: until the first prompt another agent may be chosen. Raises UnknownAgent, ValidationError for the
        policy, HubError for the directory, AgentFailed.
        """
        self.check_open()
        await self._check_agent(agent)
        directory = await check_directory(cwd)
        rules = _stored(policy)
        session_id = f"ses_{secrets.token_hex(8)}"
        record = await self.log.sessions.create(
            session_id,
            agent=agent,
            cwd=str(directory),
            title=title,
            status="idle",
            policy=rules,
        )
        self.check_open()
        if choosable:
            self._around(session_id).agents = self.agents
        session = self._take_in(record, Session(id=session_id))
        if start:
            await session.start()
        return session

    async def fork_session(
        self, session_id: str, *, cwd: str | Path | None = None, provisions: Provisions | None = None
    ) -> Fork:
        """A new session that goes on from where this one is, by its agent's own doing, and has its history.

        Raises UnknownSession; IllegalCommand while a turn runs or when its agent has never had it; Unsupported when
        that cannot fork; HubError for the directory, AgentFailed.
        """
        self.check_open()
        parent = await self.session(session_id)
        directory = await check_directory(cwd or parent.cwd)
        until, turns, origin = parent.state.seq, parent.state.turns, forkable(parent)
        record = await self.log.sessions.get(session_id)
        fork_id = f"ses_{secrets.token_hex(8)}"
        await self.log.sessions.create(
            fork_id, agent=parent.agent_name, cwd=str(directory), title=record.title, policy=record.policy
        )
        try:
            # out of the way until it is whole: should the hub die now, nobody must take it for a session
            await self.log.sessions.update(fork_id, archived=True)
            await copy_history(self.log, session_id, fork_id, until)
            around = self._around(fork_id)
            around.origin = origin
            around.provisions = self._around(session_id).provisions.joined(provisions or Provisions())
            fork = await self.session(fork_id)
            await fork.forked_from(session_id, until)
            check_unmoved(parent, turns)
            await self.log.sessions.update(fork_id, archived=False)
        except BaseException as exc:
            await self.delete_session(fork_id)  # nobody has heard of it
            if (refusal := unable(exc, parent.agent_name)) is not None:
                raise refusal from exc
            raise
        return Fork(fork, until)

    async def watch_session(self, found: DiscoveredSession, *, policy: Any = None) -> HubSession:
        """The session that tells what happens in one that another program runs; again it is the same.

        Raises HubError when this hub looks for none.
        """
        self.check_open()
        return await self.discovery.watch(found, _stored(policy))

    async def adopt_session(
        self,
        found: DiscoveredSession | str,
        how: How = "resume",
        *,
        by: str = "user",
        pid: int | None = None,
        policy: Any = None,
    ) -> HubSession:
        """Go on with a session that was begun elsewhere, or is watched here; see `Discovery.adopt`.

        Raises UnknownSession, NotFound, Held, UnknownAgent, Unsupported, AgentFailed, HubError.
        """
        self.check_open()
        if isinstance(found, str):
            found = await self.discovery.of_record(await self.log.sessions.get(found))
        return await self.discovery.adopt(found, how, by=by, pid=pid, policy=_stored(policy))

    async def _check_agent(self, name: str) -> None:
        """Raises UnknownAgent for one that is not here, also not since a moment ago."""
        advice = None
        if name not in self.agents and self.look_for is not None:
            advice = await self.look_for(name)
        if name not in self.agents:
            known = ", ".join(sorted(self.agents)) or "none"
            raise UnknownAgent(advice or f"no agent {name!r} is configured; there are: {known}", agent=name)

    async def session(self, session_id: str) -> HubSession:
        """A session by its id, taken up from the log if it is not live. Raises UnknownSession.

        One whose agent is no longer configured can be read, and not prompted.
        """
        if session_id in self._deleting:
            raise UnknownSession(session_id)
        live = self._sessions.wake(session_id)
        if live is not None:
            return live
        self.check_open()
        task = self._loading.get(session_id)
        if task is None:
            task = self._loading[session_id] = asyncio.get_running_loop().create_task(self._load(session_id))
            task.add_done_callback(lambda task: self._loaded(session_id, task))
        return await asyncio.shield(task)

    async def _load(self, session_id: str) -> HubSession:
        record = await self.log.sessions.get(session_id)
        state, queued = await fold(self.log, session_id)
        if closing_events(state, self.log.now(), queued):  # begun after a turn, so no status told of it when a hub died
            state = await end_open(self.log, record)
            record = await self.log.sessions.get(session_id)
        return self._take_in(record, state)

    def _loaded(self, session_id: str, task: asyncio.Task[HubSession]) -> None:
        self._loading.pop(session_id, None)
        if not task.cancelled():
            task.exception()  # told to those who asked

    @property
    def live(self) -> Mapping[str, HubSession]:
        """The sessions that are in memory now, by their id; the log has all."""
        return MappingProxyType(self._sessions)

    async def sessions(self, **chosen: Any) -> SessionPage:
        """A page of sessions, the one last active first."""
        return await self.log.sessions.list(**chosen)

    async def release(self, session_id: str) -> None:
        """End a session's agent and forget what is known of it here; the next `session` takes it up from the log."""
        session = self._sessions.get(session_id)
        await self.discovery.left(session_id)
        if session is not None:
            try:
                await session.close()
            finally:
                if self._sessions.get(session_id) is session:  # not the one that another release made room for
                    del self._sessions[session_id]
                    self._forget(session_id)

    def detach_editor(self, session_id: str, editor: Editor) -> None:
        """An editor leaves a session, be it in memory or not. Again is no harm."""
        live, around = self._sessions.get(session_id), self._surroundings.get(session_id)
        if live is not None:
            live.detach_editor(editor)
        elif around is not None and editor in around.editors:
            around.editors.remove(editor)
            self._forget(session_id)

    def _forget(self, session_id: str) -> None:
        """Let go of what a session that is not in memory has around it, if that is nothing."""
        if self._around(session_id).are_empty:
            del self._surroundings[session_id]

    async def delete_session(self, session_id: str) -> None:
        """End a session and delete it with all its events. Raises UnknownSession."""
        self._deleting.add(session_id)  # nobody is given it any more, or it would stay in memory without a log
        try:
            if (loading := self._loading.get(session_id)) is not None:
                await asyncio.wait((loading,))
            await self.release(session_id)
            await self.log.sessions.delete(session_id)
        finally:
            self._deleting.discard(session_id)
        self._surroundings.pop(session_id, None)

    def check_open(self) -> None:
        """Raises HubClosing when it takes no more work."""
        if self._closing is not None or self._ending is not None:
            raise HubClosing

    def _around(self, session_id: str) -> Surroundings:
        return self._surroundings.setdefault(session_id, Surroundings())

    def _take_in(self, record: SessionRecord, state: Session) -> HubSession:
        """A session is in memory from now on."""
        parts = Parts(
            self.log,
            record,
            state,
            self.agents.get(record.agent),
            policy=parse_policy(record.policy) if record.policy is not None else None,
            cancel_deadline=self._cancel_deadline,
            approval_timeout=self._approval_timeout,
            hub_id=self._hub_id,
            home=self.home,
            surroundings=self._around(record.id),
            claim=self.discovery.holding.claim(record),
        )
        session = self._sessions[record.id] = HubSession(self.log, record, parts)
        self.discovery.loaded(session)
        return session

    # -- approvals --

    async def approvals(self, session_id: str | None = None) -> list[Approval]:
        """What waits for a decision, oldest first."""
        return await self.log.approvals.pending(session_id)

    async def decide(self, approval_id: str, **decision: Any) -> Approval:
        """Decide an approval of any session, as `HubSession.decide`. Raises UnknownApproval, DecidedOtherwise."""
        try:
            record = await self.log.approvals.get(approval_id)
        except UnknownRecord:
            raise UnknownApproval(f"there is no approval {approval_id!r}", approvalId=approval_id) from None
        session = await self.session(record.session_id)
        return await session.decide(approval_id, **decision)

    async def rules(self) -> list[Rule]:
        """The "always" answers, also those expired or revoked, oldest first."""
        return await self.log.rules.list()

    async def revoke_rule(self, rule_id: str) -> Rule:
        """From now on it answers nothing. Raises UnknownRecord."""
        return await self.log.rules.revoke(rule_id)


def _stored(policy: Any) -> dict[str, Any] | None:
    """A policy as records have it. Raises ValidationError."""
    return msgspec.to_builtins(parse_policy(policy)) if policy is not None else None


class LiveSessions(MutableMapping[str, HubSession]):
    def __init__(self) -> None:
        self._held: dict[str, HubSession] = {}
        self._remembered: WeakValueDictionary[str, HubSession] = WeakValueDictionary()

    def __getitem__(self, session_id: str) -> HubSession:
        held = self._held.get(session_id)
        return held if held is not None else self._remembered[session_id]

    def __setitem__(self, session_id: str, session: HubSession) -> None:
        self._remembered.pop(session_id, None)
        self._held[session_id] = session

    def __delitem__(self, session_id: str) -> None:
        if self._held.pop(session_id, None) is None:
            del self._remembered[session_id]

    def __iter__(self) -> Iterator[str]:
        found = [*self._held.items(), *self._remembered.items()]  # none of them goes while they are looked at
        for session_id, _ in found:
            yield session_id

    def __len__(self) -> int:
        return len(self._held) + len(self._remembered)

    def clear(self) -> None:
        self._held.clear()
        self._remembered.clear()

    def wake(self, session_id: str) -> HubSession | None:
        """A session that is wanted, held again; None when it is not in memory."""
        session = self.get(session_id)
        if session is not None:
            self[session_id] = session
        return session

    def rest(self, seconds: float) -> None:
        """End agents that had nothing to do for so long, and hold no longer the sessions that nobody needed as long."""
        for session_id, session in list(self.items()):
            session.rest(seconds)
            if not session.has_slept(seconds):
                self[session_id] = session  # somebody who had it may have set it to work
            elif self._held.pop(session_id, None) is not None:
                self._remembered[session_id] = session


async def check_directory(cwd: str | Path) -> Path:
    """Where a session can work. Raises HubError."""
    directory = Path(cwd)
    if (wrong := await asyncio.to_thread(_wrong_with, directory)) is not None:
        raise HubError(f"{str(cwd)!r} {wrong}", field="cwd", cwd=str(cwd))
    if sound(str(directory)) != str(directory):  # no message could name it to an agent
        message = f"the name of {str(cwd)!r} is not UTF-8; rename the directory"
        raise HubError(message, field="cwd", cwd=ascii(str(cwd)))
    return directory


def _wrong_with(directory: Path) -> str | None:
    """Why no session can work there; None if one can."""
    if not directory.is_absolute():
        return "is not absolute; give the absolute path of the project's directory"
    # os.path's say no, where the path's own raise, to a name that no system takes
    if os.path.isdir(directory):  # noqa: PTH112
        return None
    what = "is no directory" if os.path.exists(directory) else "does not exist"  # noqa: PTH110
    return f"{what}; give the absolute path of the project's directory"
