"""The actor of one session: the only one who writes its events.

Its public methods may be called by anyone, at any time, as often as they like. What they change comes back as events;
`committed` waits until those are stored. An agent that dies is an event; the next prompt starts it again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..acp.errors import ConnectionClosed, RequestError, SpawnError
from ..adapters.running import RunningAgent
from ..log.base import EventLog
from ..log.errors import LogClosed
from ..log.follow import Follower
from ..log.records import Approval, SessionRecord
from ..model.events import Event, decode_event
from ..model.policy import Policy
from ..model.session import Session, summary
from .approvals import Approvals, Remember
from .choices import Choices
from .conduct import Conduct
from .conversation import Conversation, shown
from .errors import AgentFailed, IllegalCommand, Unsupported
from .link import HUB, AgentLink, AgentSpec, Setup
from .listening import Listener
from .questions import Action, Questions
from .recorder import Recorder
from .serving import Serving
from .standing import StandingRules
from .turns import Prompt, TurnResult
from .workspace import Workspace

__all__ = ["CANCEL_DEADLINE", "HubSession"]

CANCEL_DEADLINE = 10.0
"""Seconds an agent has to answer a cancelled prompt before its processes are ended."""
CALL_TIMEOUT = 60.0
"""Seconds for the answer to a call that is no prompt."""
METHOD_NOT_FOUND = -32601


class HubSession:
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
    ) -> None:
        self.id = record.id
        self.agent_name = record.agent
        self.cwd = record.cwd
        self._log = log
        self._known = record.agent_session_id
        self._is_startable = spec is not None
        self._choosing: Callable[[Choices], None] | None = None
        self._aside: set[asyncio.Task[None]] = set()
        self._users = 0
        self._terminating = asyncio.Lock()
        self._recorder = recorder = Recorder(log, record, state, self._log_failed)
        self._standing = StandingRules(log, record.id, record.cwd)
        self._standing.policy = policy
        is_home = home is not None and home.resolve() == Path(record.cwd).resolve()  # then all of it was meant
        workspace = Workspace(record.cwd, private=None if is_home else home)
        self._conduct = Conduct(recorder, self._standing, workspace, record.cwd)
        self._approvals = Approvals(log, recorder, self._standing, self._conduct, timeout=approval_timeout)
        self._questions = Questions(recorder, self._approvals, timeout=approval_timeout)
        mark = (HUB, hub_id) if hub_id else None
        self._serving = Serving(
            workspace,
            self._approvals,
            self._questions,
            self._conduct,
            mark=mark,
            on_output=lambda *output: self._listener.printed(*output),  # noqa: PLW0108 - it is made below
            on_end=lambda *ending: self._listener.terminated(*ending),  # noqa: PLW0108
        )
        self._listener = Listener(log, recorder, self._serving, self._conduct, lambda: self._link)
        self._link = AgentLink(
            spec or AgentSpec(name=record.agent, command=(record.agent,)),
            self._listener,
            record.cwd,
            opened=self._taken_up,
            ended=self._agent_ended,
            chosen=self._choices,
            dropped=self._end_terminals,
            hub_id=hub_id,
        )
        self._turns = Conversation(
            log,
            recorder,
            self._link,
            self._approvals,
            self._questions,
            self._open,
            title=record.title,
            cancel_deadline=cancel_deadline,
        )
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

    # -- what consumers see --

    @property
    def state(self) -> Session:
        """The session as its committed events tell it."""
        return self._recorder.session

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs and none waits."""
        return self._turns.turn is None and not self._turns.queue

    @property
    def agent_pid(self) -> int | None:
        """The process of the agent, while it runs."""
        process = self._link.process
        return process.pid if process is not None else None

    def follow(self, after: int = 0) -> Follower:
        """Batches of stored entries beyond a seq: history, then live."""
        return self._log.follow(self.id, after)

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Events beyond a seq: history, then live, until the hub closes."""
        follower = self.follow(after)
        while True:
            try:
                batch = await follower.next()
            except LogClosed:
                return
            for entry in batch:
                event = decode_event(entry.data)
                event.source = entry.source
                yield event

    def snapshot(self, *, items: bool = True) -> dict[str, Any]:
        """The session as its committed events tell it, with the `seq` to go on from, and the queue.

        Without `items` it is small, whatever the session's length.
        """
        return {**self.state.snapshot(items=items), "queue": self.queue}

    @property
    def queue(self) -> list[dict[str, Any]]:
        """The prompts that wait, the next one first: those that the log knows of."""
        known = [prompt for prompt in self._turns.queue if prompt.queued and 0 < prompt.queued.seq <= self.state.seq]
        return [{"promptId": prompt.turn_id, "content": shown(prompt.content)} for prompt in known]

    async def committed(self) -> int:
        """Wait until all that was done so far is stored; the last seq. Raises NotStored."""
        return await self._recorder.commit()

    # -- prompts --

    async def send(self, content: Any, *, client_request_id: str | None = None, queue: bool = True) -> Prompt:
        """Accept a prompt: text, or content blocks. It runs when those before it are done; await its `done`.

        The same `client_request_id` again is the same prompt, also after a restart. Raises IllegalCommand; IdReused
        when that one said something else; QueueFull, NotStored; Busy when it would have to wait and `queue` is false.
        """
        return await self._turns.send(content, client_request_id, queue=queue)

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

    async def cancel(self) -> bool:
        """End the running turn with `cancelled`; returns when it has ended, and whether there was one to end.

        What waits in the queue runs next; cancel that by `cancel_queued`.
        """
        return await self._turns.cancel()

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
        decided = await self._approvals.decide(
            request_id,
            approved=approved,
            option_id=option_id,
            reason=reason,
            by=by,
            remember=remember,
            remember_for=remember_for,
        )
        self._note_trust(decided)
        return decided

    def _note_trust(self, decided: Approval) -> None:
        """Who chooses the agent's own "always" will not be asked again, and that is no offence of the agent."""
        chosen = (decided.decision or {}).get("optionId")
        kinds = {option.get("optionId"): option.get("kind") for option in decided.options}
        if kinds.get(chosen) == "allow_always":
            self._conduct.trust(str(decided.request.get("toolName")))

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

    async def set_mode(self, mode_id: str) -> None:
        """Raises Unsupported, AgentFailed. An agent that says that it went into another mode is in that one."""
        chosen = partial(Choices.choose_mode, mode_id=mode_id)
        told, _ = await self._choose("session/set_mode", {"modeId": mode_id}, chosen)
        if not told and self.state.mode != mode_id:
            self._told({"sessionUpdate": "current_mode_update", "currentModeId": mode_id})
        await self._recorder.commit()

    async def set_config_option(self, config_id: str, value: Any) -> None:
        """Raises Unsupported, AgentFailed."""
        kind = {"type": "boolean"} if isinstance(value, bool) else {}
        params = {"configId": config_id, "value": value, **kind}
        chosen = partial(Choices.choose_option, config_id=config_id, value=value)
        _, answer = await self._choose("session/set_config_option", params, chosen)
        options = answer.get("configOptions")
        if isinstance(options, list) and options != self.state.config_options:
            self._told({"sessionUpdate": "config_option_update", "configOptions": options})
        await self._recorder.commit()

    async def _choose(
        self, method: str, params: dict[str, Any], chosen: Callable[[Choices], None]
    ) -> tuple[bool, dict[str, Any]]:
        """A call that chooses something; whether the agent said which mode it is in now, and its answer.

        An agent that must be started first is to have what is chosen now, not what was before.
        """
        self._choosing = chosen
        try:
            await self._started()
        finally:
            self._choosing = None
        before = self._listener.modes_told
        answer = await self.call(method, params)
        return self._listener.modes_told > before, answer

    async def _choices(self) -> Choices:
        """What was chosen in this session, by whomever. Raises NotStored."""
        choosing = self._choosing
        await self._recorder.commit()
        choices = Choices(self.state)
        if choosing is not None:
            choosing(choices)
        return choices

    def _told(self, update: dict[str, Any]) -> None:
        """An agent answered with what it did not also send as an update."""
        self._recorder.record(self._recorder.translator.update(update, self._recorder.now()))

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A session call of the protocol (`session/set_mode` …); all updates before its answer are committed.

        Raises Unsupported, AgentFailed, NotStored.
        """
        with self._in_use():
            agent = await self._started()
            params = {"sessionId": self._link.session_id, **params}
            return await self._ask(agent, method, params, self._link.session_id)

    async def authenticate(self, method_id: str) -> None:
        """Log in with one of the agent's `authMethods`; afterwards prompts work. Raises Unsupported, AgentFailed."""
        self._check_not_over()
        with self._in_use():
            await self._authenticate(method_id)

    async def _authenticate(self, method_id: str) -> None:
        try:
            agent = await self._open()
        except RequestError as exc:
            if self._link.process is None:
                raise self._not_started(exc) from exc
            agent = self._link.process
        except (SpawnError, ConnectionClosed, TimeoutError) as exc:
            raise self._not_started(exc) from exc
        await self._ask(agent, "authenticate", {"methodId": method_id}, None)

    async def _ask(
        self, agent: RunningAgent, method: str, params: dict[str, Any], session: str | None
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                raw = await agent.request(method, params, session=session)
        except RequestError as exc:
            if exc.code == METHOD_NOT_FOUND:
                raise Unsupported(f"{self.agent_name} does not support {method}", method=method) from None
            raise AgentFailed(f"{self.agent_name} refused {method}: {exc}", method=method) from None
        except (ConnectionClosed, TimeoutError) as exc:
            raise AgentFailed(f"{self.agent_name} did not answer {method}: {exc}", method=method) from None
        await self._recorder.commit()
        value = msgspec.json.decode(raw)
        return value if isinstance(value, dict) else {}

    # -- the agent --

    async def start(self) -> None:
        """Start the agent now, not with the first prompt. Raises AgentFailed, NotStored."""
        await self._started()

    async def _started(self) -> RunningAgent:
        self._check_not_over()
        with self._in_use():
            await self._recorder.mend()
            try:
                agent = await self._open()
            except (SpawnError, ConnectionClosed, RequestError, TimeoutError) as exc:
                raise self._not_started(exc) from exc
            await self._recorder.commit()
        return agent

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Somebody needs the agent, though no turn runs."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._recorder.touch()

    def rest(self, seconds: float) -> None:
        """End an agent that has had nothing to do for so long, if it can take up the session again when it is needed.

        It is kept while anything of it is open: a turn, a prompt that waits, a question, a call, a program.
        """
        recorder = self._recorder
        since = asyncio.get_running_loop().time() - recorder.touched
        index = self.state.index
        busy = self._users or not self.is_idle or index.pending or index.open or self._serving.has_programs
        if busy or since < seconds or recorder.failure is not None:
            return
        ending = self._link.rest()
        if ending is not None:
            self._listener.forget()
            recorder.note("agent_rested", {"seconds": seconds})
            self._keep(ending)

    async def _open(self) -> RunningAgent:
        if not self._is_startable:
            raise AgentFailed(f"no agent {self.agent_name!r} is configured any more", agent=self.agent_name)
        return await self._link.open(self._known)

    def _not_started(self, exc: BaseException) -> AgentFailed:
        methods = self._link.initialized.get("authMethods")
        return AgentFailed(f"{self.agent_name} could not be started: {exc}", agent=self.agent_name, authMethods=methods)

    def _taken_up(self, setup: Setup) -> None:
        recorder = self._recorder
        now = recorder.now()
        if setup.how in ("new", "reset"):
            info = self._link.initialized.get("agentInfo")
            events = recorder.translator.started(now, agent=self.agent_name, result=setup.result, info=info)
        else:
            events = recorder.translator.resumed(now, previous=self._known, result=setup.result)
        if setup.how == "reset":
            data = {"previousSessionId": self._known, **({"refused": setup.refused} if setup.refused else {})}
            events += recorder.translator.fact("session_reset", data, now)
        if setup.restored:
            events += recorder.translator.fact("choices_restored", setup.restored, now)
        self._known = setup.session_id
        recorder.record(events, also=[self._log.sessions.updating(self.id, agent_session_id=setup.session_id)])

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
        await self._serving.end_terminals(for_good=True)
        if self._aside:
            await asyncio.wait(self._aside)
