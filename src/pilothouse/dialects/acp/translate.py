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
from typing import Any, Literal, NamedTuple

from ...acp import schema
from ...acp.errors import how_it_ended, with_cause
from ...acp.lenient import Repair, repair
from ...model.acts import SHELLS, Effects
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
from ...model.previews import label_option, quote_code
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
from ...model.risk import Reason, Risk
from ...model.session import sound
from ...model.tools import chooses_mode, exact_path
from ..texts import shorten_middle
from .asking import describe_unshown_content, headline, preview, question
from .call import Call, known_input
from .calls import EndedEffects
from .content import (
    as_blocks,
    block_text,
    last_segment,
    mapping,
    model_of,
    permission_of,
    source_of,
    string,
    to_content,
    values_of,
)
from .effects import (
    NOT_SHOWN,
    FoundCommands,
    NamedFiles,
    commands_of,
    effects_of,
    find_named_files,
    has_only_title,
    judged_input,
    list_named_paths,
    prose_of,
    risk_of,
)
from .stream import Stream
from .updates import Updates, rate_limit

LONGEST_PROSE = 4000
"""Characters of an agent's own text in a note; the middle of a longer one is left out."""


class Requested(NamedTuple):
    """An open permission request: the effects that it shows, those of its call at that time, and its commands."""

    call_id: str
    shown: Effects
    of_call: Effects
    found: FoundCommands | None
    prose: str
    """Text of the request next to its diffs."""
    is_file_tool: bool
    files: Mapping[str, str | None]
    """The texts of the files that it changes, as they were then."""
    question_ids: tuple[str, ...]
    """The questions that the tool asks the user."""
    content: str
    """The text of its content."""
    names: NamedFiles
    """The files that it names, even if it does not show what happens to them."""

    def is_changed(self, now: Effects) -> bool:
        """Whether the call has other effects now than the request showed.

        Edits are compared by their results, because agents show the same edit with more or less context.
        """
        results = now.apply_to(self.files)
        known = [(effects, effects.apply_to(self.files)) for effects in (self.shown, self.of_call)]
        for path, result in results.items():
            others = {one.get(path) for _, one in known} - {None}
            if result is not None and others and result not in others:
                return True
        if self.of_call.is_same(now) or self.shown.covers(now):
            return False
        is_known = bool(results) and None not in results.values() and len(results) == len(now.group_edits())
        return not any(
            is_known and one == results and (effects.commands, effects.other) == (now.commands, now.other)
            for effects, one in known
        )


class Translator:
    """The events of one session. `shells` are the names of the hub's shells (see `model.acts`).

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
        shells: tuple[str, ...] = SHELLS,
        on_repair: Callable[[Repair], None] | None = None,
    ) -> None:
        self.workspace = workspace
        self.shells = shells
        self.turn: str | None = None
        self.period = 0
        """Counts the turns and the times between them; it grows whenever a turn starts or ends."""
        self.requested: dict[str, Requested] = {}
        """The open permission requests by id."""
        self._stream = Stream(session_id, status)
        self._updates = Updates(
            self._stream,
            workspace=workspace,
            shells=shells,
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
        self._set_turn(turn_id)
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

    def _set_turn(self, turn_id: str | None) -> None:
        self.turn, self._stream.turn = turn_id, turn_id is not None
        self.period += 1

    def prompt(self, prompt: Any, now: str, *, turn_id: str, message_id: str | None = None) -> list[ACPEvent]:
        """A prompt is sent to the agent: text, or content blocks."""
        self._stream.now = now
        with self._stream.unsourced():
            self._set_turn(turn_id)
            self._custom("pilothouse", "turn_started", {"turnId": turn_id})
            content = [to_content(block) for block in as_blocks(prompt)]
            self._speech.say("user", content, message_id)
        return self._stream.take()

    def began(self, now: str, *, turn_id: str) -> list[ACPEvent]:
        """A turn began that nobody prompted here; what was said to begin it is `said`."""
        self._stream.now = now
        with self._stream.unsourced():
            self._set_turn(turn_id)
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
        turn = self.turn
        self._set_turn(None)
        with self._stream.unsourced():
            data = {"turnId": turn or "", "stopReason": stop_reason}
            event = self._custom("pilothouse", "turn_ended", data, because=stop_reason)
            event.source = source
        return self._stream.take()

    # -- questions to the user --

    def effects_of_request(self, params: Any) -> Effects:
        """The effects that a `session/request_permission` shows, before it is recorded."""
        asked, _ = permission_of(mapping(params))
        return effects_of(self._calls.view_of_request(asked), self.workspace, self.shells)

    def effects_of_call(self, call_id: str) -> Effects:
        """The effects that a call shows now."""
        call = self._calls.get(call_id)
        return Effects() if call is None else effects_of(call, self.workspace, self.shells)

    def paths_of_request(self, params: Any) -> tuple[str, ...]:
        """The files that a `session/request_permission` names, before it is recorded."""
        asked, _ = permission_of(mapping(params))
        return list_named_paths(self._calls.view_of_request(asked), self.workspace)

    def paths_of_call(self, call_id: str) -> tuple[str, ...]:
        """The files that a call names now."""
        call = self._calls.get(call_id)
        return () if call is None else list_named_paths(call, self.workspace)

    def permission(
        self,
        params: Any,
        now: str,
        *,
        request_id: str,
        expires_at: str | None = None,
        files: Mapping[str, str | None] | None = None,
        real_paths: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
        reasons: Sequence[Reason] = (),
        origin: Literal["agent", "hub"] = "agent",
        is_renewed: bool = False,
    ) -> list[ACPEvent]:
        """The agent asks, by `session/request_permission`, whether a tool call may run.

        `files` are the texts of the files that it would change, by absolute path; `real_paths` are the paths that
        differ after links are resolved; `notes` and `reasons` are added to the request's own. `is_renewed`: the call
        changed since the agent asked, so its current state is shown. Adds the request to `requested`.
        """
        self._stream.now = now
        self._speech.close()
        wire = mapping(params)
        asked, options = permission_of(wire)
        # a call that nothing else announced reaches consumers of updates through what is made of these events
        self._stream.source = DERIVED if self._calls.is_open(asked.tool_call_id) else None
        call, view = self._calls.asked(asked, is_act=origin == "hub")
        view = call if is_renewed else view
        self._approvals[request_id] = call.id
        self._stream.waiting[request_id] = "waiting_for_approval"
        self._calls.execute(call, requires_approval=True)
        tool_input = known_input(view)
        shown, found_reasons = preview(view, judged_input(view), self.workspace, files, real_paths)
        of_call = risk_of(call, self.workspace).reasons if origin == "agent" else []
        if not has_only_title(view):  # the request shows the command that the call did not
            of_call = [reason for reason in of_call if reason != NOT_SHOWN]
        risk = Risk([*risk_of(view, self.workspace).reasons, *of_call, *found_reasons, *reasons])
        requested = Requested(
            call.id,
            effects_of(view, self.workspace, self.shells),
            effects_of(call, self.workspace, self.shells),
            commands_of(view),
            prose_of(view),
            view.category in ("file_write", "file_edit"),
            files or {},
            tuple(call.questions),
            block_text(view.content).strip(),
            find_named_files(view, self.workspace),
        )
        self.requested[request_id] = requested
        notes = [*notes, *_describe_extras(requested), *describe_unshown_content(view)]
        if is_renewed:
            own = Call(call.id, now)
            own.merge(asked)
            risk = Risk([*risk.reasons, *risk_of(own, self.workspace).reasons])
            notes += _describe_original(own, call, self.workspace)
        event = self._stream.emit(
            ApprovalRequestedEvent,
            request_id=request_id,
            tool_call_id=call.id,
            tool_name=view.name,
            tool_input=tool_input,
            description=headline(view, tool_input, self.workspace),
            risk_level=risk.level,
            expires_at=expires_at,
            preview=shown,
            options=[label_option(option) for option in options],
            risk_reasons=[str(reason) for reason in risk.reasons],
            notes=list(notes),
            origin=origin,
            chooses_mode=chooses_mode(view.name) and requested.found is None and not requested.shown.edits,
        )
        event.source = source_of(params) if origin == "agent" and not is_renewed else None
        self._stream.source = DERIVED
        return self._stream.take()

    def update_act(self, fields: Mapping[str, Any], now: str) -> list[ACPEvent]:
        """Update the entry of an act that the hub asked about, with the fields of a `tool_call_update`."""
        self._stream.now = now
        self._speech.close()
        update, _ = repair(schema.ToolCallUpdate, dict(fields), "act")
        with self._stream.unsourced():
            self._calls.update(update, announced=False)
        return self._stream.take()

    def take_ended_effects(self, call_id: str) -> EndedEffects | None:
        """The effects that a call showed when it ended, once. Call this right after the update that ended it."""
        return self._calls.ended_effects.pop(call_id, None)

    def find_changed_requests(self, call_id: str | None = None) -> list[str]:
        """The open requests whose call has other effects now than they show; of all calls, or of one."""
        changed = []
        for request_id, requested in self.requested.items():
            call = self._calls.get(requested.call_id)
            is_other = call_id not in (None, requested.call_id)
            if call is None or is_other or call.ended or request_id not in self._approvals:
                continue
            now = effects_of(call, self.workspace, self.shells)
            if requested.is_changed(now):
                changed.append(request_id)
        return changed

    def find_call(self, act: Effects) -> str | None:
        """The open call that an act belongs to by its command or its file; None if there is none, or more than one.

        It only decides where the act is shown.
        """
        lines, paths = {one.line for one in act.commands}, {edit.path for edit in act.edits}
        found = []
        for call in self._calls.open():
            effects = effects_of(call, self.workspace, self.shells)
            if lines & {one.line for one in effects.commands} or paths & {edit.path for edit in effects.edits}:
                found.append(call.id)
        return found[0] if len(found) == 1 else None

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
        is_renewed: bool = False,
    ) -> list[ACPEvent]:
        """A permission was decided. Deciding one that is not pending gives no event.

        A call outside of any turn ends when its last request is cancelled, unless the user is asked again
        (`is_renewed`).
        """
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
                is_last = self.turn is None and call_id not in self._approvals.values()
                if resolved_by == "cancelled" and is_last and not is_renewed:
                    self._calls.withdraw(call_id, reason or "The request was withdrawn.")
        return self._stream.take()

    def _resolved(self, request_id: str, *, approved: bool, **fields: Any) -> None:
        call_id = self._approvals.pop(request_id)
        self.requested.pop(request_id, None)
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


def _describe_extras(requested: Requested) -> list[str]:
    """Notes on what a request contains besides its preview."""
    found, shown = requested.found, requested.shown
    notes = []
    if found is not None and shown.edits:
        lines = "; ".join(map(quote_code, found.lines)) or "(not shown)"
        notes.append(f"Not covered by this approval: the request also contains the command {lines}")
    elif shown.edits and shown.other and not requested.is_file_tool and all(e.new is not None for e in shown.edits):
        notes.append(f"The request also contains: {quote_code(shorten_middle(shown.other, 1000))}")
    prose = requested.prose if found is None else found.prose
    if prose:
        notes.append(f"The agent adds: {shorten_middle(prose, LONGEST_PROSE)}")
    return notes


def _describe_original(own: Call, call: Call, workspace: str | None) -> list[str]:
    """Notes on what a request itself asks for, if its call shows something else by now."""
    before, now = effects_of(own, workspace), effects_of(call, workspace)
    if before.is_same(now) or now.covers(before):
        return []
    found = commands_of(own)
    if found is not None and found.lines:
        return [f"The request itself asks for: {'; '.join(map(quote_code, found.lines))}"]
    if before.edits:
        paths = ", ".join(dict.fromkeys(exact_path(edit.path, workspace) for edit in before.edits))
        return [f"The request itself shows another change of {quote_code(paths)}"]
    return [f"The request itself asks for: {quote_code(shorten_middle(before.other, 1000))}"] * bool(own.input)


_DECIDERS = ("user", "policy", "timeout", "cancelled")
_ERRORS: Mapping[int, str] = {-32000: "auth_required", -32002: "not_found", -32800: "cancelled"}
