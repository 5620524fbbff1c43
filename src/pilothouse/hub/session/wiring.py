"""The parts of one session, put together, and how they end: with their agent, the session, the hub, or the log.

Each part knows only those that it is given here. Rules a change must not break: what an agent left running ends with
it; what waits for an answer gets one whatever ends; once nothing can be stored, no agent goes on unseen; whatever was
begun aside has ended before `shut` returns.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from ...acp.errors import ConnectionClosed
from ...adapters.catalog import PermissionBehavior
from ...log.contract import EventLog
from ...log.records import SessionRecord
from ...model.marks import HUB
from ...model.policy import Policy
from ...model.session import Session, summary
from ..agent.client_requests import Serving
from ..agent.inbound import Listener
from ..agent.inputs import Surroundings
from ..agent.process import AgentSpec, Claim
from ..agent.settings import Calls, Choosing
from ..agent.switch import SessionAgent
from ..approvals.approvals import Approvals
from ..approvals.authorization import Authorization
from ..approvals.questions import Questions
from ..approvals.unasked_acts import UnaskedActs
from ..client.artifacts import Artifacts
from ..client.browse import WorkspaceFiles
from ..client.editors import Editors
from ..client.terminals import find_shells
from ..client.workspace import FILE_LIMIT, Workspace
from ..recording.recorder import Recorder
from ..recording.recovery import find_chosen_mode
from ..recording.rules import StandingRules
from .turns import Conversation

CANCEL_DEADLINE = 10.0
"""Seconds an agent has to answer a cancelled prompt before its processes are ended."""


class Parts:
    """Of one session in memory. `claim` is what its agents need for being its only writer."""

    def __init__(
        self,
        log: EventLog,
        record: SessionRecord,
        state: Session,
        spec: AgentSpec | None,
        *,
        policy: Policy | None,
        cancel_deadline: float,
        approval_timeout: float | None,
        hub_id: str,
        home: Path | None,
        surroundings: Surroundings,
        claim: Claim,
    ) -> None:
        self._session_id = record.id
        self._aside: set[asyncio.Task[None]] = set()
        self._terminating = asyncio.Lock()
        self.around = around = surroundings
        chosen_mode = find_chosen_mode(state)
        self.recorder = recorder = Recorder(log, record, state, self._log_failed, find_shells())
        self.standing = StandingRules(log, record.id, record.cwd)
        self.standing.policy = policy
        is_home = home is not None and home.resolve() == Path(record.cwd).resolve()  # then all of it was meant
        workspace = Workspace(record.cwd, private=None if is_home else home)
        self.artifacts = Artifacts(recorder, WorkspaceFiles(record.cwd, home=home, file_limit=FILE_LIMIT))
        self.editors = Editors(record.id, around.editors, lambda: self.turns.editor, recorder.note)
        authorization = Authorization(
            recorder,
            self.standing,
            workspace,
            self.editors,
            record.cwd,
            self._behavior,
            chosen_mode,
        )
        unasked = UnaskedActs(recorder, self.standing, authorization, workspace, record.cwd)
        self.approvals = Approvals(
            log, recorder, self.standing, authorization, unasked, self._behavior, timeout=approval_timeout
        )
        authorization.ask = self.approvals.ask_about_act
        self.questions = Questions(recorder, self.approvals, timeout=approval_timeout)
        self.serving = Serving(
            workspace,
            self.approvals,
            self.questions,
            authorization,
            self.editors,
            mark=(HUB, hub_id) if hub_id else None,
            on_output=lambda *output: self._listener.printed(*output),  # noqa: PLW0108 - it is made below
            on_end=lambda *ending: self._listener.terminated(*ending),  # noqa: PLW0108
        )
        self._listener = Listener(
            log,
            recorder,
            self.serving,
            self.approvals,
            authorization,
            unasked,
            self.artifacts,
            lambda: self.agent.link,
        )
        self.agent = SessionAgent(
            log,
            record,
            spec,
            recorder,
            self._listener,
            workspace,
            around,
            ended=self._agent_ended,
            dropped=self._end_terminals,
            chosen=lambda: self.choosing.choices(),  # noqa: PLW0108 - it is made below
            is_untouched=lambda: self.turns.is_untouched,
            check_not_over=lambda: self.turns.check_not_over(),  # noqa: PLW0108
            hub_id=hub_id,
            claim=claim,
        )
        self.turns = Conversation(
            log,
            recorder,
            self.agent.link,
            self.approvals,
            self.questions,
            self.agent.open,
            self.artifacts.tell,
            self.serving,
            self._listener.flag_unasked,
            title=record.title,
            cancel_deadline=cancel_deadline,
        )
        self.calls = Calls(record.id, recorder, self.agent.link, self.agent.started, self.agent.in_use)
        self.choosing = Choosing(
            recorder, self._listener, self.calls, self.agent.started, authorization, self._behavior
        )
        self.turns.is_held = state.status == "paused"
        self.turns.over = self._over if state.status == "completed" else None

    def _behavior(self) -> PermissionBehavior:
        """How the current agent asks for permission."""
        return self.agent.link.behavior

    @property
    def _over(self) -> str:
        return f"session {self._session_id} is over; start another one"

    # -- nothing to do --

    def rest(self, seconds: float) -> None:
        """End an agent that has had nothing to do for so long, if it can take up the session again when it is needed.

        It is kept while anything of it is open: a turn, a prompt that waits, a question, a call, a program.
        """
        recorder = self.recorder
        busy = self._is_busy or recorder.session.index.open or self.serving.has_programs
        if busy or not self._was_untouched(seconds) or recorder.failure is not None:
            return
        ending = self.agent.link.rest()
        if ending is not None:
            self._listener.forget()
            recorder.note("agent_rested", {"seconds": seconds})
            self._keep(ending)

    def renew(self) -> None:
        """End an agent that does not know all of its session; the next one takes that up as it is by now."""
        ending = self.agent.link.rest()
        if ending is not None:
            self._listener.forget()
            self.recorder.note("agent_renewed", {"reason": "the session was gone on with elsewhere"})
            self._keep(ending)

    def have_slept(self, seconds: float) -> bool:
        """Whether there is no agent and nothing was done with the session for so long."""
        if self._is_busy or self._aside or self.around.editors or self.agent.link.is_in_use:
            return False
        return self.recorder.is_at_rest and self._was_untouched(seconds)

    @property
    def _is_busy(self) -> bool:
        return self.agent.is_needed or not self.turns.is_idle or bool(self.recorder.session.index.pending)

    def _was_untouched(self, seconds: float) -> bool:
        return asyncio.get_running_loop().time() - self.recorder.touched >= seconds

    # -- a part fails --

    def _agent_ended(self, end: ConnectionClosed) -> None:
        """The agent is gone. A turn that it leaves tells of that itself; otherwise it is told here."""
        self._listener.forget()
        recorder = self.recorder
        if not self.turns.knows(end):
            self.approvals.cancel_all("The agent is gone.")
            self.questions.cancel_all()
            tail, code = end.stderr_tail or "", end.exit_code
            events = recorder.translator.died(recorder.now(), exit_code=code, stderr_tail=tail, ends_turn=False)
            recorder.record(events)
            flagging = self._listener.flag_unasked(events)
            self._keep(asyncio.get_running_loop().create_task(flagging, name="flagging calls of an agent that exited"))
        self._end_terminals()

    def _end_terminals(self) -> None:
        """The agent, or what was to become one, is gone; what runs in its terminals goes with it."""
        self._keep(asyncio.get_running_loop().create_task(self.serving.end_terminals(), name="ending terminals"))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    def _log_failed(self, error: BaseException) -> None:
        """Nothing more can be said durably: the agent must not go on unseen."""
        self.approvals.abandon()
        self.questions.abandon()
        self.turns.prompts.log_failed(error)
        self.agent.link.kill()

    # -- the end --

    async def terminate(self) -> None:
        """End the session for good: the queue, the turn, the agent."""
        async with self._terminating:
            await self._terminate()

    async def _terminate(self) -> None:
        turns, recorder = self.turns, self.recorder
        turns.over = self._over
        turns.prompts.cancel_all("The session was ended.")
        await turns.cancel()
        await self._shut(self._over, "The session was ended.")
        if recorder.session.status != "completed":
            recorder.record(recorder.translator.completed(summary(recorder.session), recorder.now()))
        await recorder.commit()

    async def close(self, *, goes_on: bool = False) -> None:
        """The hub closes: end the agent, say so in the log, keep the session for later.

        With `goes_on` another program is in a turn of it, which does not end because nobody here looks on.
        """
        await self._shut("the hub is closing", "The hub was closed.")
        recorder = self.recorder
        if recorder.failure is None:
            # what an agent began after its turn, nobody else ends
            ending = recorder.translator.unheard if goes_on else recorder.translator.interrupted
            recorder.record(ending(recorder.now()))
            await recorder.commit()

    async def _shut(self, why: str, reason: str) -> None:
        await self.turns.interrupt(why, reason)
        await self.agent.settled()
        await self.serving.end_terminals(for_good=True)
        if self._aside:
            await asyncio.wait(self._aside)
