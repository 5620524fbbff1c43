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

from ...acp.errors import INVALID_PARAMS, ConnectionClosed, RequestError, SpawnError
from ...acp.model import to_wire
from ...adapters.running import AgentSilent, RunningAgent
from ...dialects.acp.content import as_blocks
from ...log.contract import EventLog
from ...model.events import ACPEvent
from ..agent.client_requests import Serving
from ..agent.inputs import fitted
from ..agent.process import AUTH_REQUIRED, AgentLink
from ..approvals.approvals import Approvals
from ..approvals.questions import Questions
from ..client.editors import Editor
from ..errors import Busy, HubError, IllegalCommand, NotStored, UnfitContent
from ..recording.recorder import Recorder
from .prompt_queue import Prompt, Prompts, TurnResult, digest_of, result_of, shown, title_of

logger = logging.getLogger(__name__)

End = Callable[[], list[ACPEvent]]
"""Makes the events that end a turn, as things are by then: until they are recorded, nothing may be awaited."""


class Conversation:
    """Runs a session's prompts. `open_agent` gives the agent with the session open.

    `turn` is the prompt that runs; `is_held` tells whether no further turn may begin, as the session is paused; `over`
    why no further prompt is taken.
    """

    def __init__(
        self,
        log: EventLog,
        recorder: Recorder,
        link: AgentLink,
        approvals: Approvals,
        questions: Questions,
        open_agent: Callable[[], Awaitable[RunningAgent]],
        tell_made: Callable[[], Awaitable[None]],
        serving: Serving,
        flag_unasked: Callable[[list[ACPEvent]], Awaitable[None]],
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
        self._tell_made = tell_made
        self._serving = serving
        self._flag_unasked = flag_unasked
        self._stopping: asyncio.Future[None] | None = None
        self._title = title
        self._cancel_deadline = cancel_deadline
        self._session_id = recorder.session.id
        self._told: ConnectionClosed | None = None
        self._stop: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self.prompts = Prompts(log, recorder)
        self.turn: Prompt | None = None
        self.is_held = False
        self.over: str | None = None
        self.prepare: Callable[[], Awaitable[None]] | None = None
        """What is done before a turn is told to begin; it never raises."""
        recorder.waiting = self._waiting

    @property
    def is_untouched(self) -> bool:
        """Whether nobody has prompted yet."""
        return self.turn is None and self.prompts.are_none and self._recorder.session.turns == 0

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs and none waits."""
        return self.turn is None and not self.prompts.queue

    @property
    def editor(self) -> Editor | None:
        """Who prompted the running turn, if that was an editor."""
        return self.turn.editor if self.turn is not None else None

    def _waiting(self) -> list[str]:
        return [prompt.turn_id for prompt in (self.turn, *self.prompts.queue) if prompt is not None]

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
            digest = digest_of(content)
            known = await self.prompts.known(client_request_id, digest)
            if isinstance(known, Prompt):
                known.editor = editor or known.editor  # it lost its connection, and has come back by another
                return known
            turn_id = known or turn_id
        self.check_not_over()
        if not queue and (not self.is_idle or self.is_held):
            turn = self.turn.turn_id if self.turn is not None else None
            raise Busy("another turn runs or waits in this session", sessionId=self._session_id, turnId=turn)
        prompt = Prompt(turn_id, content, client_request_id, digest)
        prompt.meta, prompt.editor = meta, editor
        shown(content)  # raises now, not later, for what is no content
        if self._link.capabilities is not None:
            self._fitted(prompt, self._link.capabilities)
        self.prompts.put(prompt, waits=self.turn is not None or self.is_held)
        self._link.around.agents = {}  # from the first prompt on there is no choice, and nothing to be kept for one
        self._start_next()
        return prompt

    def check_not_over(self) -> None:
        """A session that has ended stays so: no prompt is taken, and no status follows that one. Raises
        IllegalCommand."""
        if self.over is not None:
            raise IllegalCommand(self.over, sessionId=self._session_id)

    def pause(self, reason: str | None) -> None:
        """Start no further turn; the running one goes on. Raises IllegalCommand."""
        self.check_not_over()
        if not self.is_held:
            self.is_held = True
            self._recorder.record(self._recorder.translator.paused(self._recorder.now(), reason))

    def resume(self) -> None:
        """Go on with what waits. Raises IllegalCommand."""
        self.check_not_over()
        if self.is_held:
            self._recorder.record(self._recorder.translator.resumed(self._recorder.now()))
            self.is_held = False
            self._start_next()

    # -- one turn --

    def _start_next(self) -> None:
        if self.turn is not None or self.is_held or self.over is not None:
            return
        prompt = self.prompts.queue.take()
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
        self.prompts.forget(prompt)
        prompt.settle(outcome)
        self._start_next()

    async def _take_turn(self, prompt: Prompt) -> TurnResult:
        recorder = self._recorder
        await recorder.mend()
        await self._prepared()
        self._serving.begin_turn()
        started = recorder.translator.prompt(prompt.content, recorder.now(), turn_id=prompt.turn_id)
        in_sight = self._log.sessions.updating(self._session_id, archived=False)  # nothing runs that no list shows
        recorder.record(started, also=[*self.prompts.claim(prompt), in_sight])
        await recorder.commit()  # before anything is done that the log could not tell
        prompt.stored.set()
        self._give_title(prompt)
        end = await self._outcome(prompt)
        prompt.phase = "ending"
        if self._stopping is not None:  # a cancelled turn is over when all that it started is
            await asyncio.wait((self._stopping,))
            self._stopping = None
        ending = self._make_ending(prompt, end)
        recorder.record(ending)
        await self._flag_unasked(ending)
        # whatever still waits for an answer gets one; its event was among those of the end
        self._approvals.cancel_all("The turn is over.")
        self._questions.cancel_all()
        await recorder.commit()
        return result_of(prompt.turn_id, ending)

    async def _prepared(self) -> None:
        stop = self._stop
        if self.prepare is None or stop is None or stop.done():
            return
        preparing = asyncio.ensure_future(self.prepare())
        await asyncio.wait((preparing, stop), return_when=asyncio.FIRST_COMPLETED)
        preparing.cancel()
        await asyncio.wait((preparing,))
        if not preparing.cancelled():
            preparing.result()

    def _give_title(self, prompt: Prompt) -> None:
        """With its first turn a session has the title that it was started with, else the words of its prompt."""
        state = self._recorder.session
        title = self._title or title_of(shown(prompt.content))
        if state.turns > 1 or state.title or title is None:
            return
        also = [self._log.sessions.updating(self._session_id, title=title)]
        self._recorder.note("session_info_update", {"title": title}, also=also)

    async def _outcome(self, prompt: Prompt) -> End:
        """Converse with the agent; the result makes the events that end the turn."""
        try:
            return await self._converse(prompt)
        except RequestError as exc:
            return partial(self._failed, prompt, self._wire_error(exc))
        except ConnectionClosed as exc:
            if self._told is exc:
                return partial(self._failed, prompt, {"message": "the agent ended before it was told of the prompt"})
            self._told = exc
            if self.over is not None and not prompt.cancelled:
                return partial(self._stopped, prompt)
            return partial(self._died, prompt, exc)
        except AgentSilent as exc:
            return partial(self._failed, prompt, {"message": str(exc), "data": {"stderrTail": exc.stderr_tail}})
        except UnfitContent as exc:  # of an agent that had to be started to know
            error = {"code": INVALID_PARAMS, "message": str(exc), "data": exc.details}
            return partial(self._failed, prompt, error)
        except (SpawnError, OSError, HubError) as exc:
            return partial(self._failed, prompt, {"message": str(exc)})
        except Exception as exc:  # a defect must not leave the turn open
            return partial(self._defect, prompt, exc)

    def _make_ending(self, prompt: Prompt, end: End) -> list[ACPEvent]:
        try:
            return end()
        except Exception as exc:  # nor here
            return self._defect(prompt, exc)

    def _defect(self, prompt: Prompt, exc: Exception) -> list[ACPEvent]:
        logger.error("turn %s failed in an unforeseen way", prompt.turn_id, exc_info=exc)
        return self._failed(prompt, {"message": f"the turn failed in an unforeseen way: {exc!r}"})

    async def _converse(self, prompt: Prompt) -> End:
        prompt.phase = "opening"
        agent = await self._open(prompt)
        if agent is None:
            return partial(self._stopped, prompt)
        blocks = self._fitted(prompt, agent.capabilities)
        prompt.phase = "running"
        params: dict[str, Any] = {"sessionId": self._link.session_id, "prompt": blocks}
        if prompt.meta:
            params["_meta"] = prompt.meta
        try:
            raw = await agent.request("session/prompt", params, session=self._link.session_id)
        finally:
            await self._tell_made()  # whatever its end is, it comes after what the turn made
        self._link.around.origin = None  # it has words of its own, and is no mere copy any more
        if prompt.cancelled:
            return partial(self._cancelled, raw)
        if _wants_login(raw):
            raise RequestError(AUTH_REQUIRED, "Authentication required")
        return partial(self._answered, raw)

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

    def _answered(self, raw: bytes) -> list[ACPEvent]:
        return self._recorder.translator.result(raw, self._recorder.now())

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
        message = f"{exc.message.rstrip('.')}: {how['login']}" if "login" in how else exc.message
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
            self._stopping = asyncio.ensure_future(self._serving.stop_turn("its turn was cancelled"))
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
        self.prompts.cancel_all(reason)
        self._stop_opening()
        await self._link.close()  # before what is pending is answered, or the agent would still go on with that
        prompt = self.turn
        if prompt is not None:
            await asyncio.wait((prompt.done,))
        self._end_asking(reason)


def _wants_login(answer: bytes) -> bool:
    """Whether an agent says by the reason for which its turn stopped what is an error: a turn that did nothing."""
    value = msgspec.json.decode(answer) if b'"auth_required"' in answer else None
    return isinstance(value, dict) and value.get("stopReason") == "auth_required"
