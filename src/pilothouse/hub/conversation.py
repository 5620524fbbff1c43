"""The turns of one session: prompts run one after another, and each is answered once, after its events are committed.

A cancel always ends the turn: what is pending is answered `cancelled`, the agent is told, and if it has not answered
when the deadline passes, its processes are ended. Rules a change must not break: a turn that began ends by exactly one
`turn_ended`; a prompt is settled on every path; the task of a turn is never cancelled from outside, because a task that
is cancelled before its first step never gets to answer anybody.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from ..acp.errors import INVALID_PARAMS, ConnectionClosed, RequestError, SpawnError
from ..acp.model import to_wire
from ..adapters.running import AgentSilent, RunningAgent
from ..dialects.acp import to_content
from ..dialects.acp.content import as_blocks
from ..log.base import EventLog
from ..model.events import ACPEvent, Event
from ..model.session import sound
from .approvals import Approvals
from .contents import fitted
from .editors import Editor
from .errors import Busy, HubError, IdReused, IllegalCommand, NotStored, UnfitContent
from .link import AUTH_REQUIRED, AgentLink
from .questions import Questions
from .recorder import Recorder
from .turns import Prompt, PromptQueue, TurnResult, digest_of, result_of, stored_result, title_of

__all__ = ["Conversation", "shown"]

logger = logging.getLogger(__name__)


class Conversation:
    """Runs a session's prompts. `open_agent` gives the agent with the session open."""

    def __init__(
        self,
        log: EventLog,
        recorder: Recorder,
        link: AgentLink,
        approvals: Approvals,
        questions: Questions,
        open_agent: Callable[[], Awaitable[RunningAgent]],
        *,
        title: str | None = None,
        cancel_deadline: float,
    ) -> None:
        self._log = log
        self._recorder = recorder
        self._link = link
        self._approvals = approvals
        self._questions = questions
        self._open_agent = open_agent
        self._title = title
        self._cancel_deadline = cancel_deadline
        self._session_id = recorder.session.id
        self._requests: dict[str, Prompt] = {}
        self._leaving: set[Prompt] = set()
        self._told: ConnectionClosed | None = None
        self._stop: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self.queue = PromptQueue()
        self.turn: Prompt | None = None
        self.is_held = False
        """Whether no further turn may begin: the session is paused."""
        self.over: str | None = None
        """Why no further prompt is taken."""
        recorder.waiting = self._waiting

    @property
    def is_untouched(self) -> bool:
        """Whether nobody has prompted yet."""
        return self.turn is None and not self.queue and not self._requests and self._recorder.session.turns == 0

    @property
    def editor(self) -> Editor | None:
        """Who prompted the running turn, if that was an editor."""
        return self.turn.editor if self.turn is not None else None

    def _waiting(self) -> list[str]:
        return [prompt.turn_id for prompt in (self.turn, *self.queue) if prompt is not None]

    # -- prompts --

    async def send(
        self,
        content: Any,
        client_request_id: str | None = None,
        *,
        queue: bool = True,
        meta: Mapping[str, Any] | None = None,
        editor: Editor | None = None,
    ) -> Prompt:
        """Accept a prompt; it runs when those before it are done. The same `client_request_id` is the same prompt.

        Raises IllegalCommand, IdReused, QueueFull, NotStored; Busy when it would have to wait and `queue` is false;
        UnfitContent when it is known that the agent does not take what is in it.
        """
        turn_id, digest = f"turn_{secrets.token_hex(6)}", None
        if client_request_id is not None:
            if sound(client_request_id) != client_request_id:  # stored as another one, it could become a third's
                raise IllegalCommand(f"`client_request_id` has half a character in it: {client_request_id!a}")
            digest = digest_of(content)
            known = self._requests.get(client_request_id) or await self._known(client_request_id, digest)
            if isinstance(known, Prompt):
                _check_same(client_request_id, known.digest, digest)
                known.editor = editor or known.editor  # it lost its connection, and has come back by another
                return known
            turn_id = known or turn_id
        if self.over is not None:
            raise IllegalCommand(self.over, sessionId=self._session_id)
        if not queue and (self.turn is not None or self.queue or self.is_held):
            turn = self.turn.turn_id if self.turn is not None else None
            raise Busy("another turn runs or waits in this session", sessionId=self._session_id, turnId=turn)
        prompt = Prompt(turn_id, content, client_request_id, digest)
        prompt.meta, prompt.editor = meta, editor
        shown(content)  # raises now, not later, for what is no content
        if self._link.capabilities is not None:
            self._fitted(prompt, self._link.capabilities)
        self.queue.put(prompt)
        self._link.around.agents = {}  # from the first prompt on there is no choice, and nothing to be kept for one
        if client_request_id is not None:
            self._requests[client_request_id] = prompt
        if self.turn is not None or self.is_held:
            data = {"promptId": turn_id, "content": shown(content), "clientRequestId": client_request_id}
            events = self._recorder.translator.fact("prompt_queued", data, self._recorder.now())
            prompt.queued = events[0]
            self._recorder.record(events, also=self._claim(prompt))
        self._start_next()
        return prompt

    async def _known(self, client_request_id: str, digest: str) -> Prompt | str | None:
        """The prompt that this request became: live, or one that has ended; or the turn that it was to become."""
        record = await self._log.turns.record(self._session_id, client_request_id)
        live = self._requests.get(client_request_id)  # it may have come meanwhile
        if live is not None or record is None:
            return live
        _check_same(client_request_id, record.digest, digest)
        turn_id = record.turn_id
        result = await stored_result(self._log, self._session_id, turn_id)
        live = self._requests.get(client_request_id)
        if live is not None or result is None:
            return live or turn_id
        prompt = Prompt(turn_id, None, client_request_id, record.digest)
        prompt.phase = "ending"
        prompt.settle(result)
        return prompt

    def _claim(self, prompt: Prompt) -> list[Any]:
        if prompt.client_request_id is None:
            return []
        claim = self._log.turns.claiming(self._session_id, prompt.client_request_id, prompt.turn_id, prompt.digest)
        return [msgspec.structs.replace(claim, keep=True)]

    def queued(self, prompt_id: str) -> Prompt:
        """A prompt that waits. Raises IllegalCommand."""
        prompt = self.queue.find(prompt_id)
        if prompt is None:
            raise IllegalCommand(f"no prompt {prompt_id!r} is waiting; it runs or has ended", promptId=prompt_id)
        return prompt

    def withdraw(self, prompts: list[Prompt], reason: str | None = None) -> None:
        """Prompts that were taken out of the queue are answered `cancelled`, when the log has it."""
        for prompt in prompts:
            data = {"promptId": prompt.turn_id, "reason": reason}
            events = self._recorder.translator.fact("prompt_cancelled", data, self._recorder.now())
            self._leaving.add(prompt)
            self._recorder.record(events, then=partial(self._left, prompt, events[0]))
            if self._recorder.failure is not None:
                self._lost(prompt, self._recorder.failure)

    def _left(self, prompt: Prompt, event: Event) -> None:
        self._leaving.discard(prompt)
        self._forget(prompt)
        prompt.settle(TurnResult(prompt.turn_id, "cancelled", event.seq))

    def _lost(self, prompt: Prompt, error: BaseException) -> None:
        self._leaving.discard(prompt)
        self._forget(prompt)
        prompt.settle(NotStored(f"that the prompt was cancelled could not be stored: {error}"))

    def log_failed(self, error: BaseException) -> None:
        """Who waits for the log waits in vain."""
        for prompt in list(self._leaving):
            self._lost(prompt, error)

    def _forget(self, prompt: Prompt) -> None:
        if prompt.client_request_id is not None:
            self._requests.pop(prompt.client_request_id, None)

    # -- one turn --

    def resume(self) -> None:
        """Go on with what waits."""
        self.is_held = False
        self._start_next()

    def _start_next(self) -> None:
        if self.turn is not None or self.is_held or self.over is not None:
            return
        prompt = self.queue.take()
        if prompt is not None:
            self.turn = prompt
            self._stop = asyncio.get_running_loop().create_future()
            self._task = asyncio.get_running_loop().create_task(self._run(prompt), name=f"turn {prompt.turn_id}")

    async def _run(self, prompt: Prompt) -> None:
        outcome: TurnResult | BaseException
        try:
            outcome = await self._take_turn(prompt)
        except NotStored as exc:
            outcome = exc
        except Exception as exc:  # a defect must not leave the caller waiting
            logger.exception("turn %s failed in an unforeseen way", prompt.turn_id)
            outcome = HubError(f"the turn failed in an unforeseen way: {exc!r}")
        self.turn = self._task = None
        self._approvals.closed = self.over  # also when the log refused the end of a turn that was cancelled
        self._forget(prompt)
        prompt.settle(outcome)
        self._start_next()

    async def _take_turn(self, prompt: Prompt) -> TurnResult:
        recorder = self._recorder
        await recorder.mend()
        started = recorder.translator.prompt(prompt.content, recorder.now(), turn_id=prompt.turn_id)
        recorder.record(started, also=self._claim(prompt))
        await recorder.commit()  # before anything is done that the log could not tell
        prompt.stored.set()
        self._give_title(prompt)
        ending = await self._outcome(prompt)
        prompt.phase = "ending"
        recorder.record(ending)
        # whatever still waits for an answer gets one; its event was among those of the end
        self._approvals.cancel_all("The turn is over.")
        self._questions.cancel_all()
        await recorder.commit()
        return result_of(prompt.turn_id, ending)

    def _give_title(self, prompt: Prompt) -> None:
        """With its first turn a session has the title that it was started with, else the words of its prompt."""
        state = self._recorder.session
        title = self._title or title_of(shown(prompt.content))
        if state.turns > 1 or state.title or title is None:
            return
        also = [self._log.sessions.updating(self._session_id, title=title)]
        self._recorder.note("session_info_update", {"title": title}, also=also)

    async def _outcome(self, prompt: Prompt) -> list[ACPEvent]:
        """Converse with the agent; the events that end the turn."""
        try:
            return await self._converse(prompt)
        except RequestError as exc:
            return self._failed(prompt, self._wire_error(exc))
        except ConnectionClosed as exc:
            if self._told is exc:
                return self._failed(prompt, {"message": "the agent ended before it was told of the prompt"})
            self._told = exc
            if self.over is not None and not prompt.cancelled:
                return self._recorder.translator.interrupted(self._recorder.now())
            return self._died(prompt, exc)
        except AgentSilent as exc:
            return self._failed(prompt, {"message": str(exc), "data": {"stderrTail": exc.stderr_tail}})
        except UnfitContent as exc:  # of an agent that had to be started to know
            return self._failed(prompt, {"code": INVALID_PARAMS, "message": str(exc), "data": exc.details})
        except (SpawnError, OSError, HubError) as exc:
            return self._failed(prompt, {"message": str(exc)})
        except Exception as exc:  # a defect must not leave the turn open
            logger.exception("turn %s failed in an unforeseen way", prompt.turn_id)
            return self._failed(prompt, {"message": f"the turn failed in an unforeseen way: {exc!r}"})

    async def _converse(self, prompt: Prompt) -> list[ACPEvent]:
        prompt.phase = "opening"
        agent = await self._open(prompt)
        if agent is None:
            return self._stopped(prompt)
        blocks = self._fitted(prompt, agent.capabilities)
        prompt.phase = "running"
        params: dict[str, Any] = {"sessionId": self._link.session_id, "prompt": blocks}
        if prompt.meta:
            params["_meta"] = prompt.meta
        raw = await agent.request("session/prompt", params, session=self._link.session_id)
        self._link.around.origin = None  # it has words of its own, and is no mere copy any more
        if prompt.cancelled:
            return self._cancelled(raw)
        return self._recorder.translator.result(raw, self._recorder.now())

    def _fitted(self, prompt: Prompt, capabilities: Mapping[str, Any]) -> list[Any]:
        """Its content as such an agent takes it. Raises UnfitContent."""
        return fitted(to_wire(as_blocks(prompt.content)), capabilities, self._link.name)

    async def _open(self, prompt: Prompt) -> RunningAgent | None:
        """The agent; None when the turn is to end before it is there."""
        stop = self._stop
        assert stop is not None
        if stop.done():
            return None
        before = self._link.agent
        opening = asyncio.ensure_future(self._open_agent())
        await asyncio.wait((opening, stop), return_when=asyncio.FIRST_COMPLETED)
        if stop.done():
            await self._link.abandon()
            opening.cancel()
            await asyncio.wait((opening,))
            if not opening.cancelled():
                opening.exception()
            return None
        agent = opening.result()
        await self._recorder.commit()  # how it was opened; the agent must not work unseen
        if agent is before and not agent.is_running:  # it had died unnoticed, and has not been told of the prompt
            return await self._open(prompt)
        return None if stop.done() else agent

    def _stopped(self, prompt: Prompt) -> list[ACPEvent]:
        return self._cancelled() if prompt.cancelled else self._recorder.translator.interrupted(self._recorder.now())

    def _failed(self, prompt: Prompt, error: dict[str, Any]) -> list[ACPEvent]:
        return self._cancelled() if prompt.cancelled else self._recorder.translator.failed(error, self._recorder.now())

    def _died(self, prompt: Prompt, end: ConnectionClosed) -> list[ACPEvent]:
        if prompt.cancelled:
            return self._cancelled()
        now = self._recorder.now()
        return self._recorder.translator.died(now, exit_code=end.exit_code, stderr_tail=end.stderr_tail or "")

    def _cancelled(self, raw: bytes | None = None) -> list[ACPEvent]:
        """Whatever the agent answered to a cancelled prompt, the turn was cancelled."""
        value = msgspec.json.decode(raw) if raw is not None else None
        result = value if isinstance(value, dict) else {}
        return self._recorder.translator.result({**result, "stopReason": "cancelled"}, self._recorder.now())

    def _wire_error(self, exc: RequestError) -> dict[str, Any]:
        if exc.code != AUTH_REQUIRED:
            return {"code": exc.code, "message": exc.message, "data": exc.data}
        how = self._link.auth_required
        message = f"{exc.message}: {how['login']}" if "login" in how else exc.message
        return {"code": exc.code, "message": message, "data": {**how, "data": exc.data}}

    def knows(self, end: ConnectionClosed) -> bool:
        """Whether a turn tells, or has told, of this end of the agent; otherwise the caller does."""
        if self._told is end or (self.turn is not None and self.turn.phase == "running"):
            return True
        self._told = end
        return False

    # -- ends --

    async def cancel(self, *, force: bool = False) -> bool:
        """End the running turn with `cancelled`; returns when it has ended, and whether there was one to end.

        With `force` the agent gets no time to end it by itself.
        """
        prompt = self.turn
        if prompt is None:
            return False
        cancels = prompt.phase != "ending"
        if cancels and not prompt.cancelled:
            prompt.cancelled = True
            self._end_asking("The turn was cancelled.")
            late = f"it did not end its turn within {self._cancel_deadline:g} s"
            prompt.deadline = asyncio.get_running_loop().call_later(self._cancel_deadline, self._escalate, prompt, late)
            self._stop_opening()
            if prompt.phase == "running":
                await self._tell_cancel()
        if force:
            self._escalate(prompt, "somebody did not want to wait for the end of its turn")
        await asyncio.wait((prompt.done,))
        return cancels

    def _end_asking(self, reason: str) -> None:
        self._approvals.closed = reason
        self._approvals.cancel_all(reason)
        self._questions.cancel_all()

    def _stop_opening(self) -> None:
        if self._stop is not None and not self._stop.done():
            self._stop.set_result(None)

    async def _tell_cancel(self) -> None:
        agent = self._link.agent
        if agent is not None:
            try:
                await agent.notify("session/cancel", {"sessionId": self._link.session_id})
            except ConnectionClosed:
                pass  # the turn notices by itself

    def _escalate(self, prompt: Prompt, reason: str) -> None:
        if self.turn is prompt and prompt.phase != "ending":
            self._recorder.note("agent_killed", {"reason": reason})
            self._link.kill()

    async def interrupt(self, why: str, reason: str) -> None:
        """Take no more prompts (`why`), drop those that wait, end the agent, and the turn with it."""
        self.over = why
        self._approvals.closed = reason
        self.withdraw(self.queue.clear(), reason)
        self._stop_opening()
        await self._link.close()  # before what is pending is answered, or the agent would still go on with that
        prompt = self.turn
        if prompt is not None:
            await asyncio.wait((prompt.done,))
        self._end_asking(reason)


def _check_same(client_request_id: str, before: str | None, now: str) -> None:
    """Raises IdReused when it is known that another request had this id."""
    if before is not None and before != now:
        message = f"`client_request_id` {client_request_id!r} was given to a prompt that says something else"
        raise IdReused(f"{message}; choose a new one", field="client_request_id")


def shown(content: Any) -> list[dict[str, Any]]:
    """A prompt as events show it."""
    return [msgspec.to_builtins(to_content(block)) for block in as_blocks(content)]
