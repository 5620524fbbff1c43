"""One session, the actor that alone writes its events: all that anyone may ask of it.

Its public methods may be called by anyone, at any time, as often as they like. What they change comes back as events;
`committed` waits until those are stored. An agent that dies is an event; the next prompt starts it again. The rule a
change must not break: nothing is kept here; each command has a part of the session that carries it out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...acp.model import encode
from ...log.contract import EventLog
from ...log.records import Approval, SessionRecord
from ...model.commands import OfferId, Remember
from ...model.policy import Policy
from ...model.session import sound
from ..agent.inputs import Provisions
from ..agent.switch import AGENT_OPTION
from ..approvals.questions import Action
from ..client.editors import Editor
from ..mirror.external_turns import Elsewhere
from ..mirror.importer import Watched
from .origin import Custody
from .prompt_queue import Prompt, TurnResult
from .view import SessionView
from .wiring import Parts


class HubSession(SessionView):
    """A live session, made of its parts."""

    def __init__(self, log: EventLog, record: SessionRecord, parts: Parts) -> None:
        super().__init__(log, record.id, parts.recorder, parts.turns.prompts.queue)
        self.cwd = record.cwd
        self._parts = parts
        self._turns = parts.turns
        self._agent = parts.agent
        self._custody = Custody(log, record, parts)

    # -- what it is doing, and by whom --

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs and none waits."""
        return self._turns.is_idle

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
        process = self._agent.link.process
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
        prompt = await self._turns.send(content, client_request_id, queue=queue, meta=meta, editor=editor)
        self._custody.prompted()
        return prompt

    async def prompt(self, content: Any, *, client_request_id: str | None = None) -> TurnResult:
        """`send`, and wait for the end of the turn. Who is cancelled here leaves the turn running.

        Raises what `send` raises, and NotStored when the log did not take the events of the turn.
        """
        prompt = await self.send(content, client_request_id=client_request_id)
        return await asyncio.shield(prompt.done)

    def edit_queued(self, prompt_id: str, content: Any) -> None:
        """Change a prompt that still waits. Raises IllegalCommand."""
        self._turns.prompts.edit(prompt_id, content)

    def cancel_queued(self, prompt_id: str) -> None:
        """Take a prompt out of the queue; it is answered `cancelled`. Raises IllegalCommand."""
        self._turns.prompts.cancel(prompt_id)

    def move_queued(self, prompt_id: str, place: int) -> None:
        """Let a prompt wait elsewhere in the queue. Raises IllegalCommand."""
        self._turns.prompts.move(prompt_id, place)

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
        tool_call_id: str | None = None,
        reason: str | None = None,
        by: str = "user",
        device_id: str | None = None,
        remember: Remember = "once",
        remember_for: float | None = None,
        rule: OfferId | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> Approval:
        """Decide an approval. See `Approvals.decide`."""
        return await self._parts.approvals.decide(
            request_id,
            approved=approved,
            option_id=option_id,
            tool_call_id=tool_call_id,
            reason=reason,
            by=by,
            device_id=device_id,
            remember=remember,
            remember_for=remember_for,
            rule=rule,
            answers=answers,
        )

    async def park(
        self, tool_call: Mapping[str, Any], options: Sequence[Mapping[str, Any]], *, request_id: str | None = None
    ) -> dict[str, Any]:
        """Ask for a permission in the name of a program that the hub does not run; the result as ACP has it.

        `tool_call` and `options` are those of `session/request_permission`; `request_id` is the approval's own, one
        that nobody had before. Rules count as for any request. Who no longer waits cancels, and the approval is then
        cancelled as well. Raises RequestError when nothing can be stored.
        """
        params = {"sessionId": self.agent_session_id or "", "toolCall": dict(tool_call), "options": list(options)}
        return await self._parts.approvals.ask(encode(sound(params)), request_id)

    def answer(
        self,
        question_id: str,
        answer: Any = None,
        *,
        action: Action | None = None,
        by: str = "user",
        device_id: str | None = None,
    ) -> None:
        """Answer a question; None declines, unless `action` says otherwise. The same answer again changes nothing.

        Raises UnknownApproval, DecidedOtherwise, Unsupported.
        """
        action = action or ("decline" if answer is None else "accept")
        self._parts.questions.answer(question_id, answer, action, by, device_id)

    def set_policy(self, policy: Policy | None) -> None:
        """What is answered without asking from now on."""
        value = msgspec.to_builtins(policy) if policy is not None else None
        self._parts.standing.policy = policy
        self._recorder.note("policy_set", {"policy": value}, also=[self._log.sessions.updating(self.id, policy=value)])

    @property
    def policy(self) -> Policy | None:
        return self._parts.standing.policy

    # -- control --

    def pause(self, reason: str | None = None) -> None:
        """Start no further turn until `resume`; the running one goes on. Raises IllegalCommand."""
        self._turns.pause(reason)

    def resume(self) -> None:
        """Go on with what waits. Raises IllegalCommand."""
        self._turns.resume()

    def rename(self, title: str | None) -> None:
        also = [self._log.sessions.updating(self.id, title=title)]
        self._recorder.note("session_info_update", {"title": title}, also=also)

    async def set_mode(self, mode_id: str, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the agent answers. See `Choosing.mode`."""
        return await self._parts.choosing.mode(mode_id, meta)

    async def set_config_option(
        self, config_id: str, value: Any, meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What the agent answers. See `Choosing.option`, and `change_agent` for the option that is the agent itself."""
        if config_id == AGENT_OPTION:
            await self.change_agent(str(value))
            return {}
        return await self._parts.choosing.option(config_id, value, meta)

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A session call of the protocol (`session/set_mode` …); all updates before its answer are committed.

        Raises Unsupported, AgentFailed, NotStored.
        """
        return await self._parts.calls.call(method, params)

    async def extension(self, method: str, params: dict[str, Any]) -> Any:
        """A request that only the agent knows, its name as on the wire. See `Calls.extension`."""
        return await self._parts.calls.extension(method, params)

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """A notification that only the agent knows; nothing happens when none runs."""
        await self._parts.calls.tell(method, params)

    async def authenticate(self, method_id: str) -> None:
        """Log in with one of the agent's `authMethods`; afterwards prompts work. Raises Unsupported, AgentFailed."""
        self._turns.check_not_over()
        with self._agent.in_use():
            agent = await self._agent.reached()
            await self._parts.calls.ask(agent, "authenticate", {"methodId": method_id}, None)

    # -- editors --

    def attach_editor(self, editor: Editor) -> None:
        """From now on this editor may be asked for what the agent wants of its client."""
        self._parts.editors.attach(editor)

    def detach_editor(self, editor: Editor) -> None:
        """It leaves: the hub does what it did. Its terminals in this session have ended. Again is no harm."""
        self._parts.editors.detach(editor)
        self._parts.serving.lose(editor)

    def provide(self, provisions: Provisions) -> bool:
        """What agents are given for the session when they are started; whether the one that runs has it."""
        return self._agent.provide(provisions)

    @property
    def ignored(self) -> list[dict[str, Any]]:
        """What the agent that runs cannot be given, and why."""
        return self._agent.ignored

    # -- who has it --

    @property
    def watched(self) -> Watched | None:
        """Of a session that another program runs; its record is told by this."""
        return self._custody.watched

    @property
    def elsewhere(self) -> Elsewhere | None:
        """Of a session that was begun elsewhere and adopted; what others do in it is told by this."""
        return self._custody.elsewhere

    async def read_on(self, *, waits: bool = False, holds: bool = False) -> bool:
        """Tell what was done elsewhere in an adopted session, unless a turn runs here; whether there was anything.

        With `waits` a turn that is not over there is told when it is, with `holds` up to the first call in it that is
        not.
        """
        return await self._custody.read_on(waits=waits, holds=holds)

    async def adopt(self, fact: Mapping[str, Any], *, fork_of: str | None = None) -> None:
        """From now on the hub runs it: the next prompt starts its agent. Its record has been told. Raises NotStored.

        `fork_of` is the agent's id of the session that the agent is to fork, now; then AgentFailed may be raised too.
        """
        await self._custody.adopt(fact, fork_of)
        if fork_of is not None:
            await self.start()

    def taken_back(self, fact: Mapping[str, Any]) -> None:
        """The program that had it beside the hub was ended."""
        self._custody.taken_back(fact)

    def warn(self, message: str | None) -> None:
        """Something is wrong with who has this session; told now and with every prompt until it is over (None)."""
        self._custody.warn(message)

    async def forked_from(self, session_id: str, seq: int) -> None:
        """Say whose history this session has, and let its agent begin. Raises AgentFailed, NotStored."""
        self._recorder.note("session_forked", {"sessionId": session_id, "seq": seq})
        await self.start()

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

    # -- ends --

    def rest(self, seconds: float) -> None:
        """End an agent that has had nothing to do for so long. See `Parts.rest`."""
        self._parts.rest(seconds)

    def has_slept(self, seconds: float) -> bool:
        """Whether it has no agent and nothing was done with it for so long: all that matters is in the log."""
        return not self._custody.is_at_work_elsewhere and self._parts.have_slept(seconds)

    async def terminate(self) -> None:
        """End the session for good: the queue, the turn, the agent."""
        await self._parts.terminate()

    async def close(self) -> None:
        """The hub closes: end the agent, say so in the log, keep the session for later."""
        await self._parts.close(goes_on=self._custody.is_at_work_elsewhere)
