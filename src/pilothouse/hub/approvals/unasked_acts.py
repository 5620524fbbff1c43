"""Flags tool calls that acted without permission: one `acted_without_asking` for each of them.

The hub cannot prevent what an agent does in its own process, but it can report it. A call is judged when it ends,
whether the agent, the end of its turn or the agent's exit ended it. It is flagged if it shows an act that nothing
permits, even if other calls were approved, and even if the agent reports a failure or nothing.

Each permission stands for one call: an act that the hub carried out, or an act that an approved request showed.
Requests may have another id than their calls, so acts are compared (`matching_acts`), and the request of the same id
comes first. Names and shapes of calls are used here only to find out their effects; they never grant permission.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...acp.errors import RequestError
from ...dialects.acp import Translator
from ...dialects.acp.calls import EndedEffects
from ...model.acts import CommandAct, Effects, FileEdit, apply_edits, normalize_text
from ...model.events import (
    ACPEvent,
    ApprovalRequestedEvent,
    ToolCallErrorEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ...model.session import Approval
from ...model.tools.harmless import HARMLESS_KINDS, is_foreign_tool, is_harmless_tool, is_risky
from ..client.refusals import NoSuchFile, Refusal
from ..client.workspace import Workspace
from ..recording.recorder import Recorder
from ..recording.rules import StandingRules
from .authorization import Authorization, resolve_effects
from .matching_acts import (
    ApprovedEdits,
    ReportedEdits,
    has_same_input,
    has_same_settings,
    is_same_command,
    is_same_edit,
)

MOST_FOREIGN = 16
MANY_PERMISSIONS = 1000
"""Permissions of one turn after which those that were used up are dropped."""
_ABANDONED = frozenset({"cancelled", "turn_failed", "agent_died", "interrupted", "session_completed"})
"""Error codes of calls that were open when their turn did not complete; such a call may never have started."""
_CLOSED_BY_HUB = _ABANDONED | {"unfinished"}
_REFUSED = re.compile(
    r"permission|denied|not allowed|reject|refus|declin|forbidden|interrupt|cancelled|aborted|plan mode|read-only"
    r"|no such tool|unknown tool|tool \S+ (?:is )?not found|InputValidationError|hook error|blocked by",
    re.IGNORECASE,
)
"""Words in error messages which mean that a tool did nothing."""
_REFUSED_BY_USER = re.compile(r"\buser\b.{0,40}\b(?:reject|refus|declin|denied|cancel)", re.IGNORECASE)
_EXIT_CODE = re.compile(r"\bexit(?:ed)?(?: with)?(?: code| status)?:? ?[1-9]\d{0,2}\b", re.IGNORECASE)
"""Words which mean that a command ran and failed."""
LONGEST_REFUSAL = 1000
"""Characters of a message that refuses a tool call; anything longer is output."""
_PROGRAM_ERROR = re.compile(
    r":[^:\n]*\b(?:permission denied|operation not permitted|aborted|interrupted)", re.IGNORECASE
)
"""Errors of the program that ran, such as `touch: x: Permission denied`; they are not refusals."""
_NOTHING_THERE = re.compile(r"no such file|not found|not exist|ENOENT", re.IGNORECASE)


class Request(NamedTuple):
    """A permission request of a call, and the texts of the files that it was shown against."""

    event: ApprovalRequestedEvent
    shown: Effects
    files: Mapping[str, str | None]


class Record:
    """The requests of one call in this turn. An id that is used again gets a new record.

    `is_excused`: when it was judged it had done nothing yet, so a late report of its agent counts.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.is_ended = self.is_flagged = self.is_excused = False

    def has_request(self, request_id: str) -> bool:
        return any(request.event.request_id == request_id for request in self.requests)


class Permission:
    """One act that was approved or carried out, as long as no other call has used it up.

    `act` is a command, the edits of a file, or the whole input of a tool that shows no act.
    """

    def __init__(
        self, act: CommandAct | ApprovedEdits | str, owner: Record | None = None, request: Request | None = None
    ) -> None:
        self.act = act
        self.owner = owner
        self.request = request
        self.used_by: Record | None = None


class EndedCall(NamedTuple):
    """A tool call that ended. `effects` are those of `last` with resolved paths."""

    call_id: str
    name: str
    last: EndedEffects
    error: ToolCallErrorEvent | None
    output: str
    effects: Effects
    record: Record
    session_id: str | None = None

    @property
    def is_closed_by_hub(self) -> bool:
        return self.error is not None and self.error.error.code in _CLOSED_BY_HUB


class UnaskedActs:
    """Watches the tool calls of one session's agent."""

    def __init__(
        self,
        recorder: Recorder,
        standing: StandingRules,
        authorization: Authorization,
        workspace: Workspace,
        cwd: str,
    ) -> None:
        self._recorder = recorder
        self._standing = standing
        self._authorization = authorization
        self._workspace = workspace
        self._cwd = cwd
        self._turn: str | None = None
        self._records: dict[str, Record] = {}
        self._earlier: dict[str, Record] = {}
        self._permissions: list[Permission] = []
        self._known_requests: set[str] = set()
        self._done: Counter[Any] = Counter()
        self._unfinished: dict[str, Record] = {}
        """Calls that were closed for their agent before they did anything, as far as was known."""
        self._foreign: dict[str, Translator] = {}

    # -- watching --

    def observe(self, events: Iterable[ACPEvent]) -> list[EndedCall]:
        """Take note of requests; returns the calls that ended with these events and may have had effects."""
        return self._observe(events, self._recorder.translator)

    def _observe(
        self, events: Iterable[ACPEvent], translator: Translator, session_id: str | None = None
    ) -> list[EndedCall]:
        ended: list[EndedCall] = []
        if session_id is None:
            self._enter_turn()
        for event in events:
            if type(event) is ToolCallStartEvent and session_id is None:
                self._unfinished.pop(event.tool_call_id, None)
                earlier = self._records.pop(event.tool_call_id, None)
                if earlier is not None:
                    self._earlier[event.tool_call_id] = earlier
            elif type(event) is ApprovalRequestedEvent:
                requested = translator.requested[event.request_id]
                record = self._records.setdefault(event.tool_call_id, Record())
                record.requests.append(Request(event, requested.shown, requested.files))
            elif type(event) is ToolCallResultEvent or type(event) is ToolCallErrorEvent:
                last = translator.take_ended_effects(event.tool_call_id)
                late = self._unfinished.pop(event.tool_call_id, None) if session_id is None else None
                if last is None or (last.is_late and late is None):
                    continue  # it was judged when it was closed
                record = late or self._find_record(event.tool_call_id, last, session_id)
                if session_id is None and last.is_unfinished:
                    self._unfinished[event.tool_call_id] = record
                error = event if type(event) is ToolCallErrorEvent else None
                if not _is_harmless(event.name, last, is_done=error is None):
                    about = (event.tool_call_id, event.name, last, error, event.output or "")
                    ended.append(EndedCall(*about, resolve_effects(last.effects), record, session_id))
        return ended

    def _find_record(self, call_id: str, last: EndedEffects, session_id: str | None) -> Record:
        """The record of a call that ended. The requests of all sessions are kept together."""
        if session_id is not None:
            asked = self._records.get(call_id)
            return asked if asked is not None and asked.requests else Record()
        earlier = self._earlier.pop(call_id, None)
        record = self._records.setdefault(call_id, earlier if earlier and last.is_continued else Record())
        record.is_ended = True
        return record

    def note_approval(self, request: ApprovalRequestedEvent, effects: Effects) -> None:
        """Record that the user or a rule approved a request with these effects."""
        self._enter_turn()
        record = self._records.setdefault(request.tool_call_id, Record())
        asked = next((one for one in record.requests if one.event.request_id == request.request_id), None)
        asked = asked or Request(request, effects, {})
        self._known_requests.add(request.request_id)
        if len(self._permissions) >= MANY_PERMISSIONS:
            self._permissions = [one for one in self._permissions if one.used_by is None]
        self._permissions += _list_permissions(effects, asked.files, record, asked)

    def _enter_turn(self) -> None:
        """Forget the permissions of an earlier turn, but those of calls that are still open."""
        turn = self._recorder.translator.turn
        if turn is None or turn == self._turn:  # what is reported between turns belongs to the last one
            return
        self._turn = turn
        self._records = {key: record for key, record in self._records.items() if not record.is_ended}
        self._earlier.clear()
        kept = {id(record) for record in self._records.values()}
        self._permissions = [one for one in self._permissions if id(one.owner) in kept]
        self._known_requests.clear()
        self._done.clear()

    # -- other sessions --

    def observe_foreign(self, session_id: str, update: bytes) -> list[EndedCall]:
        """Like `observe`, for an update of another session than the agent was given."""
        ended: list[EndedCall] = []
        if session_id not in self._foreign and len(self._foreign) >= MOST_FOREIGN:
            ended = self._close_foreign(next(iter(self._foreign)))
        translator = self._foreign.setdefault(session_id, Translator(session_id, workspace=self._cwd))
        return ended + self._observe(translator.update(update, self._recorder.now()), translator, session_id)

    def end_foreign(self) -> list[EndedCall]:
        """The calls of other sessions that are open at the end of the turn, as calls that never reported their end."""
        return [call for session_id in list(self._foreign) for call in self._close_foreign(session_id)]

    def _close_foreign(self, session_id: str) -> list[EndedCall]:
        translator = self._foreign.pop(session_id)
        return self._observe(translator.resumed(self._recorder.now()), translator, session_id)

    # -- judging --

    async def flag(self, ended: Iterable[EndedCall]) -> None:
        """Record a flag for each of these calls that nothing permits, once even if it ends again."""
        for call in ended:
            data = await self._judge(call)
            if not call.record.is_excused and self._unfinished.get(call.call_id) is call.record:
                del self._unfinished[call.call_id]
            if data is not None and not call.record.is_flagged:
                call.record.is_flagged = True
                about = {"toolCallId": call.call_id, "name": call.name, "riskLevel": call.last.risk_level}
                foreign = {"sessionId": call.session_id} if call.session_id is not None else {}
                self._recorder.note("acted_without_asking", {**about, **data, **foreign})

    async def _judge(self, call: EndedCall) -> dict[str, Any] | None:
        """More fields for the flag of a call; None if the call is not flagged."""
        is_done, effects = call.error is None, call.effects
        has_proof = not is_done and await self._has_proof_of_effects(call)
        decided, is_undecided = self._decisions_about(call)
        if decided and decided[-1].approved is False and not self._was_done_before(call, decided[-1]):
            call.record.is_excused = not self._acted_after_denial(call, decided[-1], has_proof)
            return None if call.record.is_excused else {"denied": True}
        if self._use_permissions(call):
            return None
        if not is_done and not has_proof:
            assert call.error is not None
            is_waiting = is_undecided or (call.error.error.code in _ABANDONED and not call.last.has_begun)
            call.record.is_excused = is_waiting or self._was_refused(effects)
            if call.record.is_excused or call.last.is_late:
                return None  # the agent was still waiting or had not started, or the hub did not do it
        if self._authorization.was_denied(effects) and (is_done or has_proof):
            return {"denied": True}
        if self._authorization.is_covered_by_mode(effects):
            return None
        rules = await self._standing.rules()
        is_allowed = self._standing.allows(rules, call.name, call.last.input)
        if is_allowed and self._authorization.rules_allow(rules, call.last.input, call.last.effects, effects):
            return None
        return {} if is_done or has_proof or _had_effects(call) else None

    def _was_done_before(self, call: EndedCall, denial: Approval) -> bool:
        """Whether the user denied only more than this call shows, such as doing it again through the hub."""
        return denial.origin == "hub" and self._find_permissions(call) is not None

    def _decisions_about(self, call: EndedCall) -> tuple[list[Approval], bool]:
        """The decided requests of a call in their order, and whether it was asked about and never decided."""
        approvals = self._recorder.session.index.approvals
        asked = [approvals.get(request.event.request_id) for request in call.record.requests]
        decided = [one for one in asked if one is not None and one.resolved_by not in (None, "cancelled")]
        return decided, bool(asked) and not decided and not any(one.owner is call.record for one in self._permissions)

    def _acted_after_denial(self, call: EndedCall, denial: Approval, has_proof: bool) -> bool:
        """Whether a call acted although its request was denied. The request may have shown something harmless."""
        if not is_risky(denial.risk_level) and not is_risky(call.last.risk_level):
            return False
        if call.error is None:
            is_refusal = len(call.output) <= LONGEST_REFUSAL and _REFUSED_BY_USER.search(call.output) is not None
            return not is_refusal
        if has_proof and not self._find_permissions(call):
            return True
        if call.is_closed_by_hub or call.effects.edits:
            return False
        message = call.output.replace(denial.reason or "", "")
        return bool(message.strip()) and _is_output(message)

    # -- permissions --

    def _use_permissions(self, call: EndedCall) -> bool:
        """Whether each act of a call has a permission; they stand for this call from now on.

        A call that the hub closed, after its agent did not report what became of it, uses up none of its own: the agent
        may report the act under another id.
        """
        found = self._find_permissions(call)
        if found is None:
            return False
        for one in found:
            if not (call.is_closed_by_hub and one.owner is call.record):
                one.used_by = call.record
        return True

    def _find_permissions(self, call: EndedCall) -> list[Permission] | None:
        """A permission for each act of a call; None if one of them has none."""
        self._add_acts_of_hub()
        free = [one for one in self._permissions if one.used_by in (None, call.record)]
        own = [one for one in free if one.owner is call.record]
        others = [one for one in free if one.owner is not call.record]
        if call.is_closed_by_hub:
            own = [one for one in self._permissions if one.owner is call.record]
        effects, last = call.effects, call.last
        if not effects.commands and not effects.edits:
            fitting = [one for one in own if one.request and has_same_input(one.request.event, call.name, last.input)]
            fitting += [one for one in others if isinstance(one.act, str) and one.act == effects.other]
            return fitting[:1] or None
        if last.has_only_title and own and not effects.edits:
            return own
        free = [one for one in [*own, *others] if has_same_settings(one.request and one.request.event, last.input)]
        found: list[Permission] = []
        for act in self._list_acts(call, is_titled=last.has_only_title and bool(own)):
            fits = next((one for one in free if one not in found and self._fits(act, one.act)), None)
            if fits is None:
                return None
            found.append(fits)
        return found

    def _fits(self, reported: CommandAct | ReportedEdits, approved: CommandAct | ApprovedEdits | str) -> bool:
        if isinstance(reported, CommandAct):
            return isinstance(approved, CommandAct) and is_same_command(reported, approved, self._cwd)
        return isinstance(approved, ApprovedEdits) and is_same_edit(reported, approved)

    def _list_acts(self, call: EndedCall, *, is_titled: bool) -> Iterator[CommandAct | ReportedEdits]:
        """The commands of a call, and its edits by file. A title says nothing next to a request (`is_titled`)."""
        if not is_titled:
            yield from call.effects.commands
        shown = {real.path: given.path for given, real in zip(call.last.effects.edits, call.effects.edits, strict=True)}
        for path, edits in call.effects.group_edits().items():
            yield ReportedEdits(path, shown[path], edits, call.last.has_diffs, self._cwd)

    def _add_acts_of_hub(self) -> None:
        """Add the permissions of acts that the hub asked about itself, or carried out by a rule or a mode."""
        decisions = self._authorization.current_decisions()
        done: Counter[Any] = Counter(decisions.done.commands)
        done.update(edit.path for edit in decisions.done.edits)
        for grant in decisions.grants:
            done.subtract(grant.used_commands)
            done.subtract(grant.used_files)
            if grant.request_id not in self._known_requests:
                self._known_requests.add(grant.request_id)
                owner = next((one for one in self._records.values() if one.has_request(grant.request_id)), None)
                self._permissions += _list_permissions(grant.effects, grant.base, owner, None)
        texts = {edit.path: edit for edit in decisions.done.edits}
        for act in (done - self._done).elements():
            known = ApprovedEdits(act, act, [texts[act]], {}) if isinstance(act, str) else act
            self._permissions.append(Permission(known))
            self._done[act] += 1

    def _was_refused(self, effects: Effects) -> bool:
        """Whether the hub refused one of these acts in this turn."""
        refused = self._authorization.current_decisions().refused
        paths = {edit.path for edit in refused.edits}
        return any(edit.path in paths for edit in effects.edits) or any(
            is_same_command(act, one, self._cwd) for act in effects.commands for one in refused.commands
        )

    # -- effects of calls that are reported as failed --

    async def _has_proof_of_effects(self, call: EndedCall) -> bool:
        """Whether a call had effects whatever the agent says: it has an exit code, or its change is in the file."""
        assert call.error is not None
        error = call.error.error
        details = error.details if isinstance(error.details, dict) else {}
        if error.code == "exit_code" or details.get("exitCode") is not None:
            return True
        base = {path: text for request in call.record.requests for path, text in request.files.items()}
        is_removal = call.last.kind in ("delete", "move") and _NOTHING_THERE.search(error.message) is None
        return any([await self._is_carried_out(edit, base, is_removal) for edit in call.last.effects.edits])

    async def _is_carried_out(self, edit: FileEdit, base: Mapping[str, str | None], is_removal: bool) -> bool:
        """Whether a file is as after an edit. `base` has the texts from when the user was asked."""
        try:
            text: str | None = normalize_text(await self._workspace.read_text(edit.path))
        except NoSuchFile:
            text = None
        except (Refusal, RequestError):
            return False
        if edit.new is None:  # only its existence can be compared
            return (text is None) != (base[edit.path] is None) if edit.path in base else text is None and is_removal
        if text is None or text in self._known_texts(edit.path):
            return False
        new, old = normalize_text(edit.new), normalize_text(edit.old or "")
        if edit.path in base:
            before = base[edit.path]
            before = None if before is None else normalize_text(before)
            is_applied = text == apply_edits(before, [edit])
            return text != before and (is_applied or (bool(new) and text.count(new) > (before or "").count(new)))
        if not old:
            return bool(new) and text == new
        return bool(new) and new in text and old not in text.replace(new, "")

    def _known_texts(self, path: str) -> set[str | None]:
        """The texts that a file may have by the acts that were allowed in this turn."""
        decisions = self._authorization.current_decisions()
        done = {normalize_text(one.new) for one in decisions.done.edits if one.path == path and one.new is not None}
        return done | {grant.results.get(path) for grant in decisions.grants}


def _is_harmless(name: str, last: EndedEffects, *, is_done: bool) -> bool:
    """Whether a call needs no permission. Kinds and names excuse only calls that show no act."""
    if last.effects.edits:
        return False
    is_known = bool(last.effects.commands) and not last.has_only_title
    is_excused = last.kind in HARMLESS_KINDS or any(map(is_harmless_tool, last.names))
    if is_excused and not is_known and not any(map(is_foreign_tool, [name, *last.names])):
        return True
    if last.hides_command and is_done:
        return False
    return not is_risky(last.risk_level)


def _list_permissions(
    effects: Effects, files: Mapping[str, str | None], owner: Record | None, request: Request | None
) -> Iterator[Permission]:
    """The acts that a request showed, each as a permission of its own."""
    shown = request.shown.edits if request is not None else effects.edits
    names = dict(zip((edit.path for edit in effects.edits), (edit.path for edit in shown), strict=False))
    for act in effects.commands:
        yield Permission(act, owner, request)
    for path, edits in effects.group_edits().items():
        yield Permission(ApprovedEdits(path, names.get(path, path), edits, files), owner, request)
    if not effects.commands and not effects.edits:
        yield Permission(effects.other, owner, request)


def _had_effects(call: EndedCall) -> bool:
    """Whether a call that did not complete had effects, by its error code and message."""
    assert call.error is not None
    if call.is_closed_by_hub:
        return True
    if not call.effects.commands and (call.effects.edits or _shows_nothing(call)):
        return False
    return _is_output(f"{call.error.error.message} {call.output}")


def _shows_nothing(call: EndedCall) -> bool:
    """Whether a call has no input; agents reject a wrong input without showing it."""
    return not call.last.input and not any(map(is_foreign_tool, call.last.names))


def _is_output(message: str) -> bool:
    """Whether a message is the output of a tool, and not a refusal to run it."""
    if _EXIT_CODE.search(message) or len(message) > LONGEST_REFUSAL:
        return True
    return _REFUSED.search(_PROGRAM_ERROR.sub("", message)) is None
