"""The actor of one session: the only one who writes its events.

Prompts run one after another, and each is answered exactly once, after all events of its turn are committed. A cancel
always ends the turn: the agent is told, what is pending is answered `cancelled`, and if the agent has not answered
when the deadline passes, its processes are ended. An agent that dies is an event; the next prompt starts it again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from msgspec import Raw

from ..acp.errors import ConnectionClosed, RequestError, SpawnError
from ..acp.model import to_wire
from ..acp.watching import Diagnostic
from ..dialects.acp import Translator, to_content
from ..dialects.acp.content import as_blocks
from ..log.base import EventLog
from ..log.follow import Follower
from ..log.records import SessionRecord
from ..model.events import (
    Event,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
    decode_event,
)
from ..model.policy import Policy, decide
from ..model.risk import worst
from ..model.session import Session, summary
from .approvals import Approvals
from .errors import AgentFailed, HubError, IllegalCommand, Unsupported
from .link import AgentLink, AgentSpec, Setup
from .recorder import Recorder
from .serving import Serving
from .terminals import Terminals
from .turns import Prompt, PromptQueue, TurnResult
from .workspace import Workspace

__all__ = ["HubSession"]

CANCEL_DEADLINE = 10.0
"""Seconds an agent has to answer a cancelled prompt before its processes are ended."""


class HubSession:
    """A live session. Its public methods may be called by anyone, at any time, as often as they like."""

    def __init__(
        self,
        log: EventLog,
        record: SessionRecord,
        state: Session,
        spec: AgentSpec,
        *,
        cancel_deadline: float = CANCEL_DEADLINE,
        approval_timeout: float | None = None,
        on_closed: Callable[[str], None] | None = None,
    ) -> None:
        self.id = record.id
        self.agent_name = record.agent
        self.cwd = record.cwd
        self._log = log
        self._agent_session_id = record.agent_session_id
        self._cancel_deadline = cancel_deadline
        self._on_closed = on_closed
        self.state = state
        self._recorder = Recorder(log, state, record.last_seq, self._log_failed)
        self._translator = Translator(
            record.id,
            workspace=record.cwd,
            status=state.status,
            usage=state.usage,
            cost=state.cost,
            prefix=f"{record.last_seq}." if record.last_seq else "",
        )
        self._approvals = Approvals(log, self._recorder, lambda: self._translator, record.cwd, timeout=approval_timeout)
        self._workspace = Workspace(record.cwd)
        self._terminals = Terminals(self._workspace)
        self._serving = Serving(self._workspace, self._terminals, self._approvals)
        self._link = AgentLink(spec, self, record.cwd)
        self._spec = spec
        self._queue = PromptQueue()
        self._turn: Prompt | None = None
        self._task: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._asked: dict[str, ToolCallExecutingEvent] = {}
        self._known_turns: dict[str, Prompt] = {}
        self._is_paused = state.status == "paused"
        self._failure: BaseException | None = None
        self._opening = asyncio.Lock()

    # -- what consumers see --

    def follow(self, after: int = 0) -> Follower:
        """Batches of stored entries beyond a seq: history, then live."""
        return self._log.follow(self.id, after)

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Events beyond a seq: history, then live, until the hub closes."""
        async for batch in self.follow(after):
            for entry in batch:
                event = decode_event(entry.data)
                event.source = entry.source
                yield event

    def snapshot(self) -> dict[str, Any]:
        """The session as its committed events tell it, with the `seq` to go on from, and the queue."""
        queue = [{"promptId": prompt.turn_id, "content": _shown(prompt.content)} for prompt in self._queue]
        return {**self.state.snapshot(), "queue": queue}

    @property
    def status(self) -> str:
        return self._translator.status

    # -- prompts --

    def send(self, content: Any, *, client_request_id: str | None = None) -> Prompt:
        """Accept a prompt: text, or content blocks. It runs when those before it are done; await its `done`.

        The same `client_request_id` again is the same prompt. Raises IllegalCommand, QueueFull.
        """
        if client_request_id is not None and client_request_id in self._known_turns:
            return self._known_turns[client_request_id]
        if self.status == "completed":
            raise IllegalCommand(f"session {self.id} is over; start another one", status=self.status)
        prompt = Prompt(f"turn_{secrets.token_hex(6)}", content, client_request_id)
        self._queue.put(prompt)
        if client_request_id is not None:
            self._known_turns[client_request_id] = prompt
        if self._turn is not None or self._is_paused:
            data = {"promptId": prompt.turn_id, "content": _shown(content)}
            self._note("prompt_queued", data)
        self._start_next()
        return prompt

    async def prompt(self, content: Any, *, client_request_id: str | None = None) -> TurnResult:
        """`send`, and wait for the end of the turn."""
        return await asyncio.shield(self.send(content, client_request_id=client_request_id).done)

    def edit_queued(self, prompt_id: str, content: Any) -> None:
        """Change a prompt that still waits. Raises IllegalCommand."""
        self._queued(prompt_id).content = content
        self._note("prompt_edited", {"promptId": prompt_id, "content": _shown(content)})

    def cancel_queued(self, prompt_id: str) -> None:
        """Take a prompt out of the queue; it is answered `cancelled`. Raises IllegalCommand."""
        prompt = self._queued(prompt_id)
        self._queue.remove(prompt)
        self._note("prompt_cancelled", {"promptId": prompt_id})
        prompt.settle(TurnResult(prompt_id, "cancelled", self._recorder.seq))

    def move_queued(self, prompt_id: str, place: int) -> None:
        """Let a prompt wait elsewhere in the queue. Raises IllegalCommand."""
        self._queue.move(self._queued(prompt_id), place)
        self._note("prompt_moved", {"promptId": prompt_id, "place": place})

    def _queued(self, prompt_id: str) -> Prompt:
        prompt = self._queue.find(prompt_id)
        if prompt is None:
            raise IllegalCommand(f"no prompt {prompt_id!r} is waiting; it runs or has ended", promptId=prompt_id)
        return prompt

    async def cancel(self) -> bool:
        """End the running turn with `cancelled`; returns when it has ended, and whether there was one."""
        prompt = self._turn
        if prompt is None:
            return False
        if not prompt.cancelled:
            prompt.cancelled = True
            self._approvals.cancel_all()
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self._cancel_deadline, self._escalate, prompt)
            agent = self._link.agent
            if agent is None or self._opening.locked():
                if self._task is not None:
                    self._task.cancel()
            else:
                await self._tell_cancel(agent)
        await asyncio.wait((prompt.done,))
        return True

    async def _tell_cancel(self, agent: Any) -> None:
        try:
            await agent.notify("session/cancel", {"sessionId": self._link.session_id})
        except ConnectionClosed:
            pass  # the turn notices by itself

    def _escalate(self, prompt: Prompt) -> None:
        if self._turn is prompt:
            self._note("agent_killed", {"reason": f"it did not end its turn within {self._cancel_deadline:g} s"})
            self._link.kill()

    # -- one turn --

    def _start_next(self) -> None:
        if self._turn is not None or self._is_paused or self._failure is not None:
            return
        prompt = self._queue.take()
        if prompt is not None:
            self._turn = prompt
            self._task = asyncio.get_running_loop().create_task(self._run(prompt), name=f"turn {prompt.turn_id}")

    async def _run(self, prompt: Prompt) -> None:
        record, now = self._recorder.record, self._recorder.now
        record(self._translator.prompt(prompt.content, now(), turn_id=prompt.turn_id))
        try:
            try:
                ending = await self._converse(prompt)
            except RequestError as exc:
                ending = self._failed(prompt, _wire_error(exc))
            except ConnectionClosed as exc:
                ending = self._died(prompt, exc)
            except (SpawnError, TimeoutError, OSError) as exc:
                ending = self._failed(prompt, {"message": str(exc)})
            except asyncio.CancelledError:
                if not prompt.cancelled:
                    ending = self._translator.interrupted(now())
                    record(ending)
                    raise
                ending = self._cancelled()
            record(ending)
        finally:
            await self._settle(prompt)

    async def _converse(self, prompt: Prompt) -> list[Event]:
        agent = await self._open()
        params = {"sessionId": self._link.session_id, "prompt": _blocks(prompt.content)}
        raw = await agent.request("session/prompt", params, session=self._link.session_id)
        if prompt.cancelled:
            return self._cancelled(raw)
        return self._translator.result(raw, self._recorder.now())

    async def _settle(self, prompt: Prompt) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._approvals.cancel_all("The turn is over.")
        error: BaseException | None = None
        seq = self._recorder.seq
        try:
            seq = await self._recorder.commit()
        except Exception as exc:
            error = exc
        self._turn, self._task = None, None
        self._asked.clear()
        if error is not None:
            if not prompt.done.done():
                prompt.done.set_exception(HubError(f"the events of the turn could not be stored: {error}"))
            return
        turn = self.state.turn
        reason = turn.stop_reason if turn is not None and turn.turn_id == prompt.turn_id else None
        prompt.settle(TurnResult(prompt.turn_id, reason or "cancelled", seq))
        self._start_next()

    def _failed(self, prompt: Prompt, error: dict[str, Any]) -> list[Event]:
        return self._cancelled() if prompt.cancelled else self._translator.failed(error, self._recorder.now())

    def _died(self, prompt: Prompt, end: ConnectionClosed) -> list[Event]:
        if prompt.cancelled:
            return self._cancelled()
        now = self._recorder.now()
        return self._translator.died(now, exit_code=end.exit_code, stderr_tail=end.stderr_tail or "")

    def _cancelled(self, raw: bytes | None = None) -> list[Event]:
        """Whatever the agent answered to a cancelled prompt, the turn was cancelled."""
        result: dict[str, Any] = {}
        if raw is not None:
            value = msgspec.json.decode(raw)
            result = value if isinstance(value, dict) else {}
        return self._translator.result({**result, "stopReason": "cancelled"}, self._recorder.now())

    # -- the agent --

    async def _open(self) -> Any:
        async with self._opening:
            agent, setup = await self._link.open(self._agent_session_id)
        if setup is not None:
            self._taken_up(setup)
        return agent

    async def start(self) -> None:
        """Start the agent now, not with the first prompt. Raises AgentFailed."""
        try:
            await self._open()
        except (SpawnError, ConnectionClosed, RequestError, TimeoutError) as exc:
            raise AgentFailed(f"{self.agent_name} could not be started: {exc}", agent=self.agent_name) from exc
        await self._recorder.commit()

    def _taken_up(self, setup: Setup) -> None:
        now = self._recorder.now()
        if setup.how in ("new", "reset"):
            info = self._link.initialized.get("agentInfo")
            events = self._translator.started(now, agent=self.agent_name, result=setup.result, info=info)
        else:
            events = self._translator.resumed(now, previous=self._agent_session_id, result=setup.result)
        if setup.how == "reset":
            events += self._translator.fact("session_reset", {"previousSessionId": self._agent_session_id}, now)
        self._agent_session_id = setup.session_id
        self._recorder.record(events, also=[self._log.sessions.updating(self.id, agent_session_id=setup.session_id)])

    # the agent's side, as `Owner`

    async def updated(self, session_id: str, update: Raw) -> None:
        if self._link.is_replaying:
            return  # the log has it
        if self._link.session_id is not None and session_id not in (self._link.session_id, ""):
            self._note("foreign_update", {"sessionId": session_id})
            return
        events = self._translator.update(bytes(update), self._recorder.now())
        self._watch(events)
        self._recorder.record(events)
        if self._recorder.is_behind:
            await self._recorder.catch_up()

    async def requested(self, method: str, params: Any, raw: bytes) -> Any:
        return await self._serving.answer(method, params, raw)

    def notified(self, method: str, params: Any) -> None:
        self._recorder.record(self._translator.extension(method, params, self._recorder.now()))

    def diagnosed(self, diagnostic: Diagnostic) -> None:
        text = diagnostic.excerpt or diagnostic.message
        self._recorder.record(self._translator.unreadable(text, diagnostic.message, self._recorder.now()))

    def _watch(self, events: list[Event]) -> None:
        """Flag what an agent did without the approval that it should have asked for."""
        for event in events:
            if type(event) is ToolCallExecutingEvent:
                self._asked[event.tool_call_id] = event
            elif type(event) is ToolCallResultEvent:
                ran = self._asked.pop(event.tool_call_id, None)
                if ran is not None and not ran.requires_approval and self._should_have_asked(ran):
                    data = {"toolCallId": ran.tool_call_id, "name": ran.name, "riskLevel": ran.risk_level}
                    self._note("acted_without_asking", data)

    def _should_have_asked(self, ran: ToolCallExecutingEvent) -> bool:
        if worst([ran.risk_level, "medium"]) != ran.risk_level:
            return False
        return decide(self._approvals.policy, ran.name, ran.input, self.cwd).outcome != "allow"

    # -- decisions --

    async def decide(self, request_id: str, **decision: Any) -> Any:
        """Decide an approval. See `Approvals.decide`."""
        return await self._approvals.decide(request_id, **decision)

    def answer(self, question_id: str, answer: Any) -> None:
        """Answer a question; None declines."""
        self._approvals.answer(question_id, answer)

    def set_initial_policy(self, policy: Policy | None) -> None:
        """The policy that the session was stored with."""
        self._approvals.policy = policy

    def set_policy(self, policy: Policy | None) -> None:
        """What is answered without asking from now on."""
        self._approvals.policy = policy
        value = msgspec.to_builtins(policy) if policy is not None else None
        also = [self._log.sessions.updating(self.id, policy=value)]
        self._recorder.record(self._translator.fact("policy_set", {"policy": value}, self._recorder.now()), also=also)

    # -- control --

    def pause(self, reason: str | None = None) -> None:
        """Start no further turn until `resume`; the running one goes on."""
        if not self._is_paused:
            self._is_paused = True
            self._recorder.record(self._translator.paused(self._recorder.now(), reason))

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._recorder.record(self._translator.resumed(self._recorder.now()))
            self._start_next()

    def rename(self, title: str | None) -> None:
        also = [self._log.sessions.updating(self.id, title=title)]
        events = self._translator.fact("session_info_update", {"title": title}, self._recorder.now())
        self._recorder.record(events, also=also)

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A session call of the protocol (`session/set_mode` …). Raises Unsupported, AgentFailed."""
        agent = await self._open()
        try:
            raw = await agent.request(method, {"sessionId": self._link.session_id, **params})
        except RequestError as exc:
            if exc.code == -32601:
                raise Unsupported(f"{self.agent_name} does not support {method}", method=method) from None
            raise AgentFailed(f"{self.agent_name} refused {method}: {exc}", method=method) from None
        value = msgspec.json.decode(raw)
        return value if isinstance(value, dict) else {}

    async def terminate(self) -> None:
        """End the session for good: the turn, the queue, the agent."""
        for prompt in self._queue.clear():
            prompt.settle(TurnResult(prompt.turn_id, "cancelled", self._recorder.seq))
        await self.cancel()
        await self._link.close()
        await self._terminals.close()
        await self._recorder.commit()
        if self.status != "completed":
            now = self._recorder.now()
            self._recorder.record(self._translator.completed(summary(self.state), now))
        await self._recorder.commit()

    async def close(self) -> None:
        """The hub closes: end the agent, say so in the log, keep the session for later."""
        for prompt in self._queue.clear():
            prompt.settle(TurnResult(prompt.turn_id, "cancelled", self._recorder.seq))
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        self._approvals.cancel_all("The hub was closed.")
        await self._link.close()
        await self._terminals.close()
        try:
            await self._recorder.commit()
        finally:
            if self._on_closed is not None:
                self._on_closed(self.id)

    # -- parts --

    def _note(self, name: str, data: dict[str, Any]) -> None:
        self._recorder.record(self._translator.fact(name, data, self._recorder.now()))

    def _log_failed(self, error: BaseException) -> None:
        """Nothing more can be said durably: the agent must not go on unseen."""
        if self._failure is None:
            self._failure = error
            self._link.kill()


def _shown(content: Any) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(to_content(block)) for block in as_blocks(content)]


def _blocks(content: Any) -> list[Any]:
    blocks: list[Any] = to_wire(as_blocks(content))
    return blocks


def _wire_error(exc: RequestError) -> dict[str, Any]:
    return {"code": exc.code, "message": str(exc), "data": exc.data}
