"""The actor of one session: the only one who writes its events.

Its public methods may be called by anyone, at any time, as often as they like. What they change comes back as events;
`committed` waits until those are stored. An agent that dies is an event; the next prompt starts it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..acp.errors import ConnectionClosed
from ..log.base import EventLog
from ..log.records import Approval, SessionRecord
from ..model.policy import Policy
from ..model.session import Session, summary
from .agent_choice import AGENT_OPTION
from .approvals import Approvals, Remember
from .calls import Calls
from .choosing import Choosing
from .conduct import Conduct
from .conversation import Conversation, shown
from .editors import Editor, Editors
from .errors import IllegalCommand
from .link import HUB, AgentSpec
from .listening import Listener
from .provisions import Provisions
from .questions import Action, Questions
from .recorder import Recorder
from .serving import Serving
from .session_agent import SessionAgent
from .standing import StandingRules
from .surroundings import Surroundings
from .turns import Prompt, TurnResult
from .views import SessionView
from .workspace import Workspace

__all__ = ["CANCEL_DEADLINE", "HubSession"]

CANCEL_DEADLINE = 10.0
"""Seconds an agent has to answer a cancelled prompt before its processes are ended."""


class HubSession(SessionView):
    """A live session."""

    def __init__(
        self,
        log: EventLog,
        record: SessionRecord,
        state: Session,
        spec: AgentSpec | None,
        *,
        policy: Policy | None = None,
        cancel_deadline: float = CANCEL_DEADLINE,
        approval_timeout: float | None = None,
        hub_id: str = "",
        home: Path | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.cwd = record.cwd
        self._around = around = surroundings or Surroundings()
        self._aside: set[asyncio.Task[None]] = set()
        self._terminating = asyncio.Lock()
        recorder = Recorder(log, record, state, self._log_failed)
        self._standing = StandingRules(log, record.id, record.cwd)
        self._standing.policy = policy
        is_home = home is not None and home.resolve() == Path(record.cwd).resolve()  # then all of it was meant
        self._workspace = workspace = Workspace(record.cwd, private=None if is_home else home)
        self._conduct = Conduct(recorder, self._standing, workspace, record.cwd)
        self._approvals = Approvals(log, recorder, self._standing, self._conduct, timeout=approval_timeout)
        self._questions = Questions(recorder, self._approvals, timeout=approval_timeout)
        mark = (HUB, hub_id) if hub_id else None
        self._editors = Editors(record.id, around.editors, lambda: self._turns.editor, recorder.note)
        self._serving = Serving(
            workspace,
            self._approvals,
            self._questions,
            self._conduct,
            self._editors,
            cwd=record.cwd,
            mark=mark,
            on_output=lambda *output: self._listener.printed(*output),  # noqa: PLW0108 - it is made below
            on_end=lambda *ending: self._listener.terminated(*ending),  # noqa: PLW0108
        )
        self._listener = Listener(log, recorder, self._serving, self._conduct, lambda: self._link)
        self._agent = SessionAgent(
            log,
            record,
            spec,
            recorder,
            self._listener,
            workspace,
            around,
            ended=self._agent_ended,
            dropped=self._end_terminals,
            chosen=lambda: self._choosing.choices(),  # noqa: PLW0108 - it is made below
            is_untouched=lambda: self._turns.is_untouched,
            check_not_over=self._check_not_over,
            hub_id=hub_id,
        )
        self._link = self._agent.link
        self._turns = Conversation(
            log,
            recorder,
            self._link,
            self._approvals,
            self._questions,
            self._agent.open,
            title=record.title,
            cancel_deadline=cancel_deadline,
        )
        super().__init__(log, record.id, recorder, self._turns.queue)
        self._calls = Calls(record.id, recorder, self._link, self._agent.started, self._agent.in_use)
        self._choosing = Choosing(recorder, self._listener, self._calls, self._agent.started)
        self._turns.is_held = state.status == "paused"
        if state.status == "completed":
            self._turns.over = self._over

    @property
    def _over(self) -> str:
        return f"session {self.id} is over; start another one"

    def _check_not_over(self) -> None:
        """A session that has ended stays so: no agent is started for it, and no status follows that one."""
        if self._turns.over is not None:
            raise IllegalCommand(self._turns.over, sessionId=self.id)

    # -- what it is doing, and by whom --

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs and none waits."""
        return self._turns.turn is None and not self._turns.queue

    @property
    def agent_name(self) -> str:
        return self._agent.name

    @property
    def agent_meta(self) -> Any:
        """What the agent that runs said in `_meta` when it took up the session."""
        return self._agent.meta

    @property
    def agent_session_id(self) -> str | None:
        """What the agent calls the session, if it has ever had it."""
        return self._agent.known

    @property
    def agent_pid(self) -> int | None:
        """The process of the agent, while it runs."""
        process = self._link.process
        return process.pid if process is not None else None

    # -- prompts --

    async def send(
        self,
        content: Any,
        *,
        client_request_id: str | None = None,
        queue: bool = True,
        meta: Mapping[str, Any] | None = None,
        editor: Editor | None = None,
    ) -> Prompt:
        """Accept a prompt: text, or content blocks. It runs when those before it are done; await its `done`.

        The same `client_request_id` again is the same prompt, also after a restart. `meta` goes to the agent with it;
        `editor` is who sends it, if that is one. Raises IllegalCommand; IdReused when that one said something else;
        QueueFull, NotStored; Busy when it would have to wait and `queue` is false; UnfitContent when it is known that
        the agent does not take what is in it.
        """
        return await self._turns.send(content, client_request_id, queue=queue, meta=meta, editor=editor)

    async def prompt(self, content: Any, *, client_request_id: str | None = None) -> TurnResult:
        """`send`, and wait for the end of the turn. Who is cancelled here leaves the turn running.

        Raises what `send` raises, and NotStored when the log did not take the events of the turn.
        """
        prompt = await self.send(content, client_request_id=client_request_id)
        return await asyncio.shield(prompt.done)

    def edit_queued(self, prompt_id: str, content: Any) -> None:
        """Change a prompt that still waits. Raises IllegalCommand."""
        prompt, data = self._turns.queued(prompt_id), {"promptId": prompt_id, "content": shown(content)}
        prompt.content = content
        self._recorder.note("prompt_edited", data)

    def cancel_queued(self, prompt_id: str) -> None:
        """Take a prompt out of the queue; it is answered `cancelled`. Raises IllegalCommand."""
        prompt = self._turns.queued(prompt_id)
        self._turns.queue.remove(prompt)
        self._turns.withdraw([prompt])

    def move_queued(self, prompt_id: str, place: int) -> None:
        """Let a prompt wait elsewhere in the queue. Raises IllegalCommand."""
        place = self._turns.queue.move(self._turns.queued(prompt_id), place)
        self._recorder.note("prompt_moved", {"promptId": prompt_id, "place": place})

    async def cancel(self, *, force: bool = False) -> bool:
        """End the running turn with `cancelled`; returns when it has ended, and whether there was one to end.

        With `force` the agent is ended now, not when its time to stop by itself is over. What waits in the queue runs
        next; cancel that by `cancel_queued`.
        """
        return await self._turns.cancel(force=force)

    # -- decisions --

    async def decide(
        self,
        request_id: str,
        *,
        approved: bool | None = None,
        option_id: str | None = None,
        reason: str | None = None,
        by: str = "user",
        remember: Remember = "once",
        remember_for: float | None = None,
    ) -> Approval:
        """Decide an approval. See `Approvals.decide`."""
        return await self._approvals.decide(
            request_id,
            approved=approved,
            option_id=option_id,
            reason=reason,
            by=by,
            remember=remember,
            remember_for=remember_for,
        )

    def answer(self, question_id: str, answer: Any = None, *, action: Action | None = None, by: str = "user") -> None:
        """Answer a question; None declines, unless `action` says otherwise. The same answer again changes nothing.

        Raises UnknownApproval, DecidedOtherwise, Unsupported.
        """
        self._questions.answer(question_id, answer, action or ("decline" if answer is None else "accept"), by)

    def set_policy(self, policy: Policy | None) -> None:
        """What is answered without asking from now on."""
        value = msgspec.to_builtins(policy) if policy is not None else None
        self._standing.policy = policy
        self._recorder.note("policy_set", {"policy": value}, also=[self._log.sessions.updating(self.id, policy=value)])

    @property
    def policy(self) -> Policy | None:
        return self._standing.policy

    # -- control --

    def pause(self, reason: str | None = None) -> None:
        """Start no further turn until `resume`; the running one goes on. Raises IllegalCommand."""
        self._check_not_over()
        if not self._turns.is_held:
            self._turns.is_held = True
            self._recorder.record(self._recorder.translator.paused(self._recorder.now(), reason))

    def resume(self) -> None:
        """Go on with what waits. Raises IllegalCommand."""
        self._check_not_over()
        if self._turns.is_held:
            self._recorder.record(self._recorder.translator.resumed(self._recorder.now()))
            self._turns.resume()

    def rename(self, title: str | None) -> None:
        also = [self._log.sessions.updating(self.id, title=title)]
        self._recorder.note("session_info_update", {"title": title}, also=also)

    async def set_mode(self, mode_id: str, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the agent answers. See `Choosing.mode`."""
        return await self._choosing.mode(mode_id, meta)

    async def set_config_option(
        self, config_id: str, value: Any, meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What the agent answers. See `Choosing.option`, and `change_agent` for the option that is the agent itself."""
        if config_id == AGENT_OPTION:
            await self.change_agent(str(value))
            return {}
        return await self._choosing.option(config_id, value, meta)

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A session call of the protocol (`session/set_mode` …); all updates before its answer are committed.

        Raises Unsupported, AgentFailed, NotStored.
        """
        return await self._calls.call(method, params)

    async def extension(self, method: str, params: dict[str, Any]) -> Any:
        """A request that only the agent knows, its name as on the wire. See `Calls.extension`."""
        return await self._calls.extension(method, params)

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """A notification that only the agent knows; nothing happens when none runs."""
        await self._calls.tell(method, params)

    async def authenticate(self, method_id: str) -> None:
        """Log in with one of the agent's `authMethods`; afterwards prompts work. Raises Unsupported, AgentFailed."""
        self._check_not_over()
        with self._agent.in_use():
            agent = await self._agent.reached()
            await self._calls.ask(agent, "authenticate", {"methodId": method_id}, None)

    # -- editors --

    def attach_editor(self, editor: Editor) -> None:
        """From now on this editor may be asked for what the agent wants of its client."""
        self._editors.attach(editor)

    def detach_editor(self, editor: Editor) -> None:
        """It leaves: the hub does what it did. Its terminals in this session have ended. Again is no harm."""
        self._editors.detach(editor)
        self._serving.lose(editor)

    def provide(self, provisions: Provisions) -> bool:
        """What agents are given for the session when they are started; whether the one that runs has it."""
        return self._agent.provide(provisions)

    async def forked_from(self, session_id: str, seq: int) -> None:
        """Say whose history this session has, and let its agent begin. Raises AgentFailed, NotStored."""
        self._recorder.note("session_forked", {"sessionId": session_id, "seq": seq})
        await self.start()

    @property
    def ignored(self) -> list[dict[str, Any]]:
        """What the agent that runs cannot be given, and why."""
        return self._agent.ignored

    # -- the agent --

    @property
    def agent_option(self) -> dict[str, Any] | None:
        """The choice of the agent, as on the wire, while there is one."""
        return self._agent.option

    async def change_agent(self, name: str) -> None:
        """Let another agent have the session. See `SessionAgent.change`."""
        await self._agent.change(name)

    async def start(self) -> None:
        """Start the agent now, not with the first prompt. Raises AgentFailed, NotStored."""
        await self._agent.started()

    def rest(self, seconds: float) -> None:
        """End an agent that has had nothing to do for so long, if it can take up the session again when it is needed.

        It is kept while anything of it is open: a turn, a prompt that waits, a question, a call, a program.
        """
        recorder = self._recorder
        since = asyncio.get_running_loop().time() - recorder.touched
        index = self.state.index
        busy = self._agent.is_needed or not self.is_idle or index.pending or index.open or self._serving.has_programs
        if busy or since < seconds or recorder.failure is not None:
            return
        ending = self._link.rest()
        if ending is not None:
            self._listener.forget()
            recorder.note("agent_rested", {"seconds": seconds})
            self._keep(ending)

    def has_slept(self, seconds: float) -> bool:
        """Whether it has no agent and nothing was done with it for so long: all that matters is in the log."""
        busy = (
            self._agent.is_needed or self._aside or not self.is_idle or self.state.index.pending or self._around.editors
        )
        if busy or self._link.is_in_use or not self._recorder.is_at_rest:
            return False
        return asyncio.get_running_loop().time() - self._recorder.touched >= seconds

    def _agent_ended(self, end: ConnectionClosed) -> None:
        """The agent is gone. A turn that it leaves tells of that itself; otherwise it is told here."""
        self._listener.forget()
        recorder = self._recorder
        if not self._turns.knows(end):
            self._approvals.cancel_all("The agent is gone.")
            self._questions.cancel_all()
            tail, code = end.stderr_tail or "", end.exit_code
            recorder.record(recorder.translator.died(recorder.now(), exit_code=code, stderr_tail=tail, ends_turn=False))
        self._end_terminals()

    def _end_terminals(self) -> None:
        """The agent, or what was to become one, is gone; what runs in its terminals goes with it."""
        self._keep(asyncio.get_running_loop().create_task(self._serving.end_terminals(), name="ending terminals"))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    def _log_failed(self, error: BaseException) -> None:
        """Nothing more can be said durably: the agent must not go on unseen."""
        self._approvals.abandon()
        self._questions.abandon()
        self._turns.log_failed(error)
        self._link.kill()

    # -- ends --

    async def terminate(self) -> None:
        """End the session for good: the queue, the turn, the agent."""
        async with self._terminating:
            await self._terminate()

    async def _terminate(self) -> None:
        why = self._over
        self._turns.over = why
        self._turns.withdraw(self._turns.queue.clear(), "The session was ended.")
        await self._turns.cancel()
        await self._shut(why, "The session was ended.")
        if self.status != "completed":
            events = self._recorder.translator.completed(summary(self.state), self._recorder.now())
            self._recorder.record(events)
        await self._recorder.commit()

    async def close(self) -> None:
        """The hub closes: end the agent, say so in the log, keep the session for later."""
        await self._shut("the hub is closing", "The hub was closed.")
        if self._recorder.failure is None:
            # what an agent began after its turn, nobody else ends
            self._recorder.record(self._recorder.translator.interrupted(self._recorder.now()))
            await self._recorder.commit()

    async def _shut(self, why: str, reason: str) -> None:
        await self._turns.interrupt(why, reason)
        await self._agent.settled()
        await self._serving.end_terminals(for_good=True)
        if self._aside:
            await asyncio.wait(self._aside)
