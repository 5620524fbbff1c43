"""ACP in, unified events out.

A translator follows one session: it is told everything the agent sent and everything that was answered, in order,
with the time, and returns the events of each. It holds just enough state to know what is open. An update's JSON
rides on the first of its events as `source`; a request's and an answer's rides on the event that names it
(`approval:requested`, `interaction:question`, the end of the turn), because what is announced or closed on the way
there has to reach consumers before it.

Nothing is swallowed: what has no event type becomes `custom`, what cannot be read becomes a diagnostic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from ...acp.errors import how_it_ended, with_cause
from ...acp.lenient import Repair
from ...model.errors import ACPError, ValidationError
from ...model.events import (
    DERIVED,
    ACPEvent,
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    EnvironmentInfoEvent,
    Event,
    SessionCompletedEvent,
    SessionErrorEvent,
    SessionPausedEvent,
    SessionResumedEvent,
    SessionStartedEvent,
    UserQuestionEvent,
)
from ...model.records import (
    CostBreakdown,
    EnvironmentAgent,
    EnvironmentContext,
    EnvironmentProject,
    EnvironmentRuntime,
    SessionStatus,
    SessionSummary,
    TokenUsage,
)
from ...model.risk import LEVELS, Risk
from ...model.session import sound
from .asking import headline, preview, question
from .call import judged_input, known_input, risk_of
from .content import as_blocks, to_content
from .reading import last_segment, mapping, model_of, permission_of, source_of, string, values_of
from .resources import rate_limit
from .stream import Stream
from .updates import Updates

__all__ = ["Translator"]


class Translator:
    """The events of one session.

    `status`, `usage`, `cost` and `prefix` take up a session that was left: where it stood, and what the ids of
    messages that the agent does not name begin with, so that they stay different from the earlier ones.
    """

    def __init__(
        self,
        session_id: str,
        *,
        workspace: str | None = None,
        status: SessionStatus = "idle",
        usage: TokenUsage | None = None,
        cost: CostBreakdown | None = None,
        plan_mode: bool = False,
        prefix: str = "",
        on_repair: Callable[[Repair], None] | None = None,
    ) -> None:
        self.workspace = workspace
        self.turn: str | None = None
        self._stream = Stream(session_id, status)
        self._updates = Updates(
            self._stream,
            workspace=workspace,
            usage=usage,
            cost=cost,
            prefix=prefix,
            on_repair=on_repair,
        )
        self._stream.plan_mode = plan_mode
        self._speech = self._updates.speech
        self._calls = self._updates.calls
        self._resources = self._updates.resources
        self._approvals: dict[str, str] = {}
        self._questions: list[str] = []

    @property
    def status(self) -> SessionStatus:
        return self._stream.status

    def spoken(self, message_ids: Iterable[str]) -> None:
        """Messages that were told before this session was left: what goes on of them is a part of its own."""
        self._speech.spoken(message_ids)

    def left(self, updates: Iterable[bytes], now: str) -> None:
        """What was told, before this session was left, of calls that were closed then: their ends may still come."""
        status = self.status
        for update in updates:
            self._updates.take(update, now)
        self._calls.close("interrupted", "")
        self._stream.move(status)
        self._stream.take()

    def taken_up(self, turn_id: str, updates: Iterable[bytes], now: str) -> None:
        """The turn that was open when this session was left, and what was told of its open calls: they go on."""
        status = self.status
        self.turn, self._stream.turn = turn_id, True
        for update in updates:
            self._updates.take(update, now)
        self._stream.move(status)
        self._stream.take()

    def update(self, update: Any, now: str, *, typed: Any = None) -> list[ACPEvent]:
        """The events of one `session/update`: its `update` object as JSON bytes, as a dict, or decoded.

        Bytes are kept verbatim as the source; give them whenever there are any, and beside them what `read_update` made
        of them, if that was done already. There is always at least one event.
        """
        return self._updates.take(update, now, typed)

    def pieces(self, updates: Sequence[bytes], now: str) -> list[ACPEvent]:
        """The events of updates that go on with the message or thought that is open, one of each.

        It ends before the first update that does anything else, which `update` must be given.
        """
        return self._updates.pieces(updates, now)

    # -- the session --

    def started(
        self,
        now: str,
        *,
        agent: str,
        result: Any = None,
        info: Any = None,
        runtime: EnvironmentRuntime | None = None,
    ) -> list[ACPEvent]:
        """The agent answered `session/new` with `result`; `info` is how it named itself in `initialize`."""
        self._stream.now = now
        setup = mapping(result)
        path = self.workspace or ""
        model = model_of(setup)
        with self._stream.unsourced():
            self._stream.emit(
                SessionStartedEvent,
                agent=agent,
                project_path=path,
                project_name=last_segment(path),
                working_directory=path,
                model=model.id if model else None,
            )
            self._setup(setup)
            named = mapping(info)
            who = EnvironmentAgent(
                name=string(named, "name") or agent,
                version=string(named, "version"),
                display_name=string(named, "title") or string(named, "name") or agent,
            )
            project = EnvironmentProject(path=path, name=last_segment(path))
            context = EnvironmentContext(agent=who, project=project, runtime=runtime, model=model)
            self._stream.emit(EnvironmentInfoEvent, context=context)
        return self._stream.take()

    def resumed(self, now: str, *, previous: str | None = None, result: Any = None) -> list[ACPEvent]:
        """The agent answered `session/load` or `session/resume` with `result`; without one, a pause is over."""
        self._stream.now = now
        self._stream.is_held = self._stream.is_held and result is not None
        if self.turn is None:
            self._close("unfinished", "The session was resumed; how the tool call ended was not told.", "end_turn")
        with self._stream.unsourced():
            self._stream.emit(SessionResumedEvent, previous_session_id=previous)
            self._setup(mapping(result))
        return self._stream.take()

    def _setup(self, setup: Mapping[str, Any]) -> None:
        told = {key: setup[key] for key in ("modes", "configOptions", "models") if setup.get(key) is not None}
        if told:
            self._custom("acp", "session_setup", told)
        modes = told.get("modes")
        mode = modes.get("currentModeId") if isinstance(modes, Mapping) else None
        if isinstance(mode, str):
            self._updates.entered(mode)

    def paused(self, now: str, reason: str | None = None) -> list[ACPEvent]:
        """No further turn begins until the session is resumed."""
        self._stream.now = now
        self._stream.is_held = True
        with self._stream.unsourced():
            self._stream.emit(SessionPausedEvent, reason=sound(reason))
        return self._stream.take()

    def completed(self, summary: SessionSummary, now: str) -> list[ACPEvent]:
        """The session is over. What is open is closed first."""
        self._stream.now = now
        self._close("session_completed", "The session was closed before the tool call ended.", "cancelled")
        with self._stream.unsourced():
            self._stream.emit(SessionCompletedEvent, summary=summary)
        return self._stream.take()

    # -- turns --

    def prompt(self, prompt: Any, now: str, *, turn_id: str, message_id: str | None = None) -> list[ACPEvent]:
        """A prompt is sent to the agent: text, or content blocks."""
        self._stream.now = now
        with self._stream.unsourced():
            self.turn, self._stream.turn = turn_id, True
            self._custom("pilothouse", "turn_started", {"turnId": turn_id})
            content = [to_content(block) for block in as_blocks(prompt)]
            self._speech.say("user", content, message_id)
        return self._stream.take()

    def began(self, now: str, *, turn_id: str) -> list[ACPEvent]:
        """A turn began that nobody prompted here; what was said to begin it is `said`."""
        self._stream.now = now
        with self._stream.unsourced():
            self.turn, self._stream.turn = turn_id, True
            self._custom("pilothouse", "turn_started", {"turnId": turn_id})
        return self._stream.take()

    def said(self, prompt: Any, now: str, *, message_id: str | None = None) -> list[ACPEvent]:
        """The user said something, to the agent and not here: text, or content blocks."""
        self._stream.now = now
        with self._stream.unsourced():
            self._speech.say("user", [to_content(block) for block in as_blocks(prompt)], message_id)
        return self._stream.take()

    def moved(self, to: SessionStatus, now: str, reason: str | None = None) -> list[ACPEvent]:
        """The session is known to be in this status, whatever its events imply; no event when it is."""
        self._stream.now = now
        with self._stream.unsourced():
            self._stream.move(to, reason)
        return self._stream.take()

    def result(self, result: Any, now: str) -> list[ACPEvent]:
        """The agent answered the prompt."""
        self._stream.now = now
        answer = mapping(result)
        stop_reason = string(answer, "stopReason")
        if not stop_reason:
            stop_reason = "unknown"
            self._updates.unreadable(repr(result), "the answer to a prompt has no stopReason")
        if stop_reason == "cancelled":
            self._close("cancelled", "The turn was cancelled.", stop_reason)
        else:
            self._close("unfinished", "The turn ended before the agent told how the tool call ended.", stop_reason)
        self._resources.answer(answer)
        return self._end(stop_reason, source_of(result))

    def failed(self, error: Any, now: str) -> list[ACPEvent]:
        """The agent answered the prompt with a JSON-RPC error."""
        self._stream.now = now
        fields = mapping(error)
        message = string(fields, "message") or "The agent answered with an error."
        code, data = fields.get("code"), fields.get("data")
        self._close("turn_failed", "The turn failed before the tool call ended.", "error")
        with self._stream.unsourced():
            limited = rate_limit(self._stream, code, message, data)
            name = "rate_limited" if limited else _ERRORS.get(code if isinstance(code, int) else 0, "agent_error")
            agent_code = str(code) if code is not None else None
            self._emit_error(name, with_cause(message, data), data, agent_code)
        return self._end("error", source_of(error))

    def died(
        self, now: str, *, exit_code: int | None = None, stderr_tail: str = "", ends_turn: bool = True
    ) -> list[ACPEvent]:
        """The agent's process is gone, and the turn ends with it, unless that is to be another agent's."""
        self._stream.now = now
        how = "was killed or vanished" if exit_code is None else how_it_ended(exit_code)
        self._close("agent_died", f"The agent {how} before the tool call ended.", "error")
        details = {"exitCode": exit_code, "stderrTail": sound(stderr_tail)}
        with self._stream.unsourced():
            self._emit_error("agent_died", f"The agent {how}.", details, None)
        return self._end("error", None) if ends_turn and self.turn is not None else self._stream.take()

    def interrupted(self, now: str) -> list[ACPEvent]:
        """The hub was restarted while things were open."""
        self._stream.now = now
        self._close("interrupted", "The hub was restarted before the tool call ended.", "interrupted")
        return self._end("interrupted", None) if self.turn is not None else self._stream.take()

    def unheard(self, now: str) -> list[ACPEvent]:
        """Nobody hears the agent any more, which goes on: what it was saying is complete as far as it was heard."""
        self._stream.now = now
        self._speech.close()
        return self._stream.take()

    def _emit_error(self, code: str, message: str, details: Any, agent_code: str | None) -> None:
        error = ACPError(code=code, message=message, recoverable=True, details=details, agent_code=agent_code)
        self._stream.emit(SessionErrorEvent, error=error)

    def _close(self, code: str, message: str, stop_reason: str) -> None:
        """Close everything that is open, in the order a reader expects: words, questions, calls."""
        self._speech.close(stop_reason)
        with self._stream.unsourced():
            for request_id in list(self._approvals):
                self._resolved(request_id, approved=False, resolved_by="cancelled", reason=message)
            for question_id in list(self._questions):
                self._answered(question_id, "cancelled", None)
            self._calls.close(code, message)
            self._updates.end_sub_agents(message)

    def _end(self, stop_reason: str, source: bytes | None) -> list[ACPEvent]:
        turn, self.turn, self._stream.turn = self.turn, None, False
        with self._stream.unsourced():
            data = {"turnId": turn or "", "stopReason": stop_reason}
            event = self._custom("pilothouse", "turn_ended", data, because=stop_reason)
            event.source = source
        return self._stream.take()

    # -- questions to the user --

    def permission(self, params: Any, now: str, *, request_id: str, expires_at: str | None = None) -> list[ACPEvent]:
        """The agent asks, by `session/request_permission`, whether a tool call may go on."""
        self._stream.now = now
        self._speech.close()
        wire = mapping(params)
        asked, options = permission_of(wire)
        # a call that nothing else announced reaches consumers of updates through what is made of these events
        self._stream.source = DERIVED if self._calls.is_open(asked.tool_call_id) else None
        call, view = self._calls.asked(asked)
        self._approvals[request_id] = call.id
        self._stream.waiting[request_id] = "waiting_for_approval"
        self._calls.execute(call, requires_approval=True)
        tool_input = known_input(view)
        risk = max(risk_of(view, self.workspace), risk_of(call, self.workspace), key=severity)
        event = self._stream.emit(
            ApprovalRequestedEvent,
            request_id=request_id,
            tool_call_id=call.id,
            tool_name=view.name,
            tool_input=tool_input,
            description=headline(view, tool_input, self.workspace),
            risk_level=risk.level,
            expires_at=expires_at,
            preview=preview(view, judged_input(view, tool_input), self.workspace),
            options=options,
            risk_reasons=[str(reason) for reason in risk.reasons],
        )
        event.source = source_of(params)
        self._stream.source = DERIVED
        return self._stream.take()

    def resolve(
        self,
        request_id: str,
        now: str,
        *,
        approved: bool,
        resolved_by: Literal["user", "policy", "timeout", "cancelled"],
        reason: str | None = None,
        option_id: str | None = None,
        decided_by: str | None = None,
        device_id: str | None = None,
    ) -> list[ACPEvent]:
        """A permission was decided. Deciding one that is not pending gives no event. A call that nobody asks for any
        more ends with that, unless it belongs to a turn, which ends it."""
        if resolved_by not in _DECIDERS:
            raise ValidationError(f"Expected one of {', '.join(_DECIDERS)}; got {resolved_by!r}", "resolved_by")
        self._stream.now = now
        with self._stream.unsourced():
            call_id = self._approvals.get(request_id)
            if call_id is not None:
                self._resolved(
                    request_id,
                    approved=approved,
                    resolved_by=resolved_by,
                    reason=reason,
                    option_id=option_id,
                    decided_by=decided_by,
                    device_id=device_id,
                )
                if resolved_by == "cancelled" and self.turn is None and call_id not in self._approvals.values():
                    self._calls.withdraw(call_id, reason or "The request was withdrawn.")
        return self._stream.take()

    def _resolved(self, request_id: str, *, approved: bool, **fields: Any) -> None:
        call_id = self._approvals.pop(request_id)
        self._stream.waiting.pop(request_id, None)
        call = self._calls.get(call_id)
        if call is not None and fields["resolved_by"] != "cancelled":
            call.rejected = not approved
            call.since = self._stream.now  # the time that a person took is not the tool's
        self._stream.emit(
            ApprovalResolvedEvent, request_id=request_id, tool_call_id=call_id, approved=approved, **fields
        )

    def question(self, params: Any, now: str, *, question_id: str, expires_at: str | None = None) -> list[ACPEvent]:
        """The agent asks, by `elicitation/create`, for input."""
        self._stream.now = now
        self._speech.close()
        wire = mapping(params)
        call_id = wire.get("toolCallId")
        if isinstance(call_id, str):
            self._calls.elicited(call_id)
        with self._stream.unsourced():
            self._questions.append(question_id)
            self._stream.waiting[question_id] = "waiting_for_input"
            event = self._stream.emit(
                UserQuestionEvent,
                question_id=question_id,
                expires_at=expires_at,
                tool_call_id=call_id if isinstance(call_id, str) else None,
                **question(wire),
            )
            event.source = source_of(params)
        return self._stream.take()

    def answer(self, question_id: str, now: str, *, outcome: str, answer: Any = None) -> list[ACPEvent]:
        """A question was answered (`answered`), refused (`declined`) or dropped (`cancelled`)."""
        self._stream.now = now
        with self._stream.unsourced():
            if question_id in self._questions:
                self._answered(question_id, outcome, sound(answer))
            else:
                self._calls.answered(question_id, outcome, sound(answer))
        return self._stream.take()

    def _answered(self, question_id: str, outcome: str, answer: Any) -> None:
        self._questions.remove(question_id)
        self._stream.waiting.pop(question_id, None)
        data = {"questionId": question_id, "outcome": outcome, "answer": answer}
        self._custom("pilothouse", "question_answered", data)

    # -- terminals that the client lends --

    def terminal_output(self, terminal_id: str, text: str, now: str) -> list[ACPEvent]:
        """Something was printed in a terminal of the client.

        It is progress of the tool call that shows the terminal. Without an open one it gives no event, and is told
        when a call names the terminal.
        """
        self._stream.now = now
        with self._stream.unsourced():
            self._calls.printed(terminal_id, sound(text))
        return self._stream.take()

    def terminal_ended(
        self,
        terminal_id: str,
        *,
        output: str | None = None,
        left_out: int = 0,
        exit_code: int | None = None,
        signal: str | None = None,
    ) -> None:
        """The program in a terminal ended; `output` is the end of what it printed after `left_out` bytes.

        That gives no event: the end of the call that shows the terminal has it, unless its agent says otherwise.
        """
        self._calls.terminated(terminal_id, sound(output), left_out, exit_code, signal)

    # -- everything else --

    def extension(self, method: str, params: Any, now: str) -> list[ACPEvent]:
        """A notification outside the protocol."""
        self._stream.now = now
        data = values_of(params)
        self._custom("acp", method, data if isinstance(data, dict) else {"params": data})
        events = self._stream.take()
        for event in events:
            event.source = DERIVED
        return events

    def fact(self, name: str, data: dict[str, Any], now: str) -> list[ACPEvent]:
        """Something that only the hub knows, as a `custom` event of namespace `pilothouse`."""
        self._stream.now = now
        with self._stream.unsourced():
            self._custom("pilothouse", name, sound(data))
        return self._stream.take()

    def unreadable(self, text: str, reason: str, now: str) -> list[ACPEvent]:
        """A line of the agent that is no message."""
        self._stream.now = now
        self._updates.unreadable(text, reason)
        return self._stream.take()

    def _custom(self, namespace: str, name: str, data: dict[str, Any], because: str | None = None) -> Event:
        return self._stream.emit(CustomEvent, because=because, namespace=namespace, event_name=name, data=data)


_DECIDERS = ("user", "policy", "timeout", "cancelled")
_ERRORS: Mapping[int, str] = {-32000: "auth_required", -32002: "not_found", -32800: "cancelled"}


def severity(risk: Risk) -> int:
    return LEVELS.index(risk.level)
