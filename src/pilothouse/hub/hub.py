"""The hub: all sessions, one log, and the agents that are known.

async with Hub(home=directory, agents={"demo": AgentSpec(...)}) as hub:
    session = await hub.start_session("demo", cwd="/home/me/project")
    result = await session.prompt("Fix the login bug")
    async for event in session.events(after=0):
        ...
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..log.base import EventLog
from ..log.errors import LogError
from ..log.records import Approval, SessionPage, SessionRecord
from ..log.sqlite import SQLiteLog
from ..model.events import decode_event
from ..model.policy import parse_policy
from ..model.session import Session
from .errors import HubError, UnknownAgent, UnknownApproval
from .link import AgentSpec
from .recovery import MESSAGE, closing_events
from .session import CANCEL_DEADLINE, HubSession

__all__ = ["Hub"]

DATABASE = "pilothouse.db"


class Hub:
    """Runs sessions. Open it by `async with`; nothing it started outlives it."""

    def __init__(
        self,
        *,
        home: str | Path | None = None,
        log: EventLog | None = None,
        agents: Mapping[str, AgentSpec] | None = None,
        cancel_deadline: float = CANCEL_DEADLINE,
        approval_timeout: float | None = None,
    ) -> None:
        if (home is None) == (log is None):
            raise TypeError("give either `home`, a directory for the database, or a `log`")
        self.log: EventLog = log if log is not None else SQLiteLog(Path(str(home)) / DATABASE)
        self.agents = dict(agents or {})
        self._cancel_deadline = cancel_deadline
        self._approval_timeout = approval_timeout
        self._sessions: dict[str, HubSession] = {}
        self._loading: dict[str, asyncio.Lock] = {}

    async def __aenter__(self) -> Self:
        await self.log.open()
        try:
            await self._recover()
        except BaseException:
            await self.log.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all agents, then the log."""
        await asyncio.gather(*(session.close() for session in list(self._sessions.values())), return_exceptions=True)
        self._sessions.clear()
        await self.log.close()

    # -- sessions --

    async def start_session(
        self,
        agent: str,
        cwd: str | Path,
        *,
        title: str | None = None,
        policy: Any = None,
        start: bool = False,
    ) -> HubSession:
        """A new session. With `start` its agent is started at once, and a failure of that is raised.

        Raises UnknownAgent, ValidationError for the policy, HubError for the directory, AgentFailed.
        """
        spec = self._spec(agent)
        directory = Path(cwd)
        if not directory.is_absolute() or not await asyncio.to_thread(directory.is_dir):
            raise HubError(f"{str(cwd)!r} is no directory with an absolute path; give the project's", cwd=str(cwd))
        rules = parse_policy(policy) if policy is not None else None
        session_id = f"ses_{secrets.token_hex(8)}"
        record = await self.log.sessions.create(
            session_id,
            agent=agent,
            cwd=str(directory),
            title=title,
            status="starting",
            policy=policy if isinstance(policy, dict) else None,
        )
        session = self._adopt(record, Session(id=session_id), spec)
        session.set_initial_policy(rules)
        if start:
            await session.start()
        return session

    async def session(self, session_id: str) -> HubSession:
        """A session by its id, taken up from the log if it is not live. Raises UnknownSession, UnknownAgent."""
        lock = self._loading.setdefault(session_id, asyncio.Lock())
        async with lock:
            live = self._sessions.get(session_id)
            if live is not None:
                return live
            record = await self.log.sessions.get(session_id)
            spec = self._spec(record.agent)
            state = await self._fold(session_id)
            session = self._adopt(record, state, spec)
            session.set_initial_policy(parse_policy(record.policy) if record.policy is not None else None)
            return session

    async def sessions(self, **chosen: Any) -> SessionPage:
        """A page of sessions, the one last active first."""
        return await self.log.sessions.list(**chosen)

    def _spec(self, name: str) -> AgentSpec:
        spec = self.agents.get(name)
        if spec is None:
            known = ", ".join(sorted(self.agents)) or "none"
            raise UnknownAgent(f"no agent {name!r} is configured; there are: {known}", agent=name)
        return spec

    def _adopt(self, record: SessionRecord, state: Session, spec: AgentSpec) -> HubSession:
        session = HubSession(
            self.log,
            record,
            state,
            spec,
            cancel_deadline=self._cancel_deadline,
            approval_timeout=self._approval_timeout,
        )
        self._sessions[record.id] = session
        return session

    async def _fold(self, session_id: str) -> Session:
        state = Session(id=session_id)
        cursor = 0
        while entries := await self.log.read(session_id, cursor):
            for entry in entries:
                event = decode_event(entry.data)
                state.apply(event)
            cursor = entries[-1].seq
        return state

    # -- approvals --

    async def approvals(self, session_id: str | None = None) -> list[Approval]:
        """What waits for a decision, oldest first."""
        return await self.log.approvals.pending(session_id)

    async def decide(self, approval_id: str, **decision: Any) -> Approval:
        """Decide an approval of any session. Raises UnknownApproval, DecidedOtherwise."""
        try:
            record = await self.log.approvals.get(approval_id)
        except LogError:
            raise UnknownApproval(f"there is no approval {approval_id!r}", approvalId=approval_id) from None
        session = await self.session(record.session_id)
        decided: Approval = await session.decide(approval_id, **decision)
        return decided

    # -- recovery --

    async def _recover(self) -> None:
        """End by events what was open when the last hub died."""
        page: SessionPage | None = None
        while page is None or page.next is not None:
            page = await self.log.sessions.list(archived=None, before=page.next if page else None, limit=200)
            for record in page.sessions:
                if record.last_seq and record.status not in ("idle", "completed", "paused", "error"):
                    await self._recover_session(record)

    async def _recover_session(self, record: SessionRecord) -> None:
        state = await self._fold(record.id)
        now = self.log.now()
        events = closing_events(state, now)
        also: list[Any] = [self.log.sessions.updating(record.id, status="idle")]
        for approval in await self.log.approvals.pending(record.id):
            decision = {"approved": False, "resolvedBy": "cancelled", "reason": MESSAGE, "optionId": None}
            also.append(self.log.approvals.resolving(approval.id, decision, decided_by="recovery", strict=False))
        await self.log.append(record.id, record.last_seq, events, also=also)
