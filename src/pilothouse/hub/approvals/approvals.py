"""Approvals of one session: durable, decided once, never allowed by silence.

A permission request is first checked against the rules: those of the session's policy and the stored "always" rules.
A request that no rule decides stays pending until the user decides, the turn is cancelled, the agent exits or the
request times out; only the user's decision can allow it. The request and its event are one commit, and so are the
decision and its event; an agent gets a decision only after it is committed.

An approval covers the acts that it shows (see `authorization`). If a call changes while its request is pending, the
request is withdrawn and the user is asked again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from ...acp.errors import RequestError
from ...acp.model import encode
from ...adapters.catalog import PermissionBehavior
from ...dialects.acp import Requested
from ...log.contract import EventLog
from ...log.errors import UnknownRecord
from ...log.records import Approval, Change, Insert
from ...model.acts import CommandAct, Effects
from ...model.commands import OfferId, Remember
from ...model.events import ApprovalRequestedEvent
from ...model.policy import Rule
from ...model.policy.calls import needs_exact_arguments
from ...model.policy.offers import offer_rules, rule_of_offer
from ...model.records import Option
from ...model.session import sound
from ...model.tools.harmless import is_foreign_tool
from ..errors import DecidedOtherwise, IllegalCommand, UnknownApproval
from ..recording.recorder import Recorder
from ..recording.rules import StandingRules, later
from .authorization import ActDecision, Authorization, explain_similar, resolve_effects, resolve_paths
from .unasked_acts import UnaskedActs

CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}
EXCERPT = 2000
"""Characters of a request that came too late, as the log keeps them."""
REBINDS = 5
"""How often the files of a request are read again because its call keeps changing."""
LONGEST = 100 * 365 * 24 * 3600
"""Most seconds after which a rule may expire."""
How = Literal["user", "policy", "timeout", "cancelled"]
RULE_KINDS = ("allow_always", "reject_always")
HUB_OPTIONS = (
    {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "reject_once", "name": "Deny", "kind": "reject_once"},
)
"""The options of a request that comes from the hub, not from the agent."""
CHANGED = "The agent changed this call while you were asked about it. Check it again."
DENIED_BEFORE = "Denied before in this turn."
BEYOND_RULES = "The request shows commands or files that no single rule covers."
ONLY_ONCE = "critical requests can only be allowed once; leave out `remember` and choose an “allow once” option"
ALWAYS_ASKED = "Critical requests are asked about each time."
QUESTION_MEMBERS = frozenset({"questions", "question", "options", "header", "multiSelect", "answers", "annotations"})
"""Members of the input of a tool that only asks the user, and of each of its questions."""
CHOICE_MEMBERS = frozenset({"label", "description", "value", "name", "id"})
ONLY_ALWAYS = (
    "The agent only offers to always allow this, so it may not ask again. No rule is stored unless you choose one."
)
NOT_STORABLE = "nothing can be stored, so the user cannot be asked"


class Pending:
    """A pending approval, and the acts that it covers.

    `effects` are the acts that it shows, with resolved paths; `files` are the texts that they were shown against.
    """

    def __init__(self, raw: bytes, origin: Literal["agent", "hub"]) -> None:
        self.raw = raw
        self.origin = origin
        self.answer: asyncio.Future[dict[str, Any] | None] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.event: ApprovalRequestedEvent
        self.requested: Requested
        self.effects = Effects()
        self.files: Mapping[str, str | None] = {}
        self.real_paths: Mapping[str, str] = {}
        self.real_names: Sequence[str] = ()
        """The resolved paths of all files that it names."""
        self.meta: dict[str, Any] = {}
        self.approved = False
        self.grants_acts = True
        """Whether the hub may carry out what is approved; a rule may allow only that the agent does it."""
        self.reason: str | None = None

    def disarm(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def settle(self, answer: dict[str, Any]) -> None:
        self.disarm()
        if not self.answer.done():
            self.answer.set_result(answer)

    def withdraw(self) -> None:
        """Wake the caller, who asks again and then waits for another answer."""
        withdrawn, self.answer = self.answer, self.answer.get_loop().create_future()
        withdrawn.set_result(None)


class Approvals:
    """Decides the permission requests of a session's agent, by a rule or by the user.

    `closed` is the reason for cancelling every request while the turn is being cancelled, else None. `behavior` returns
    how the agent asks for permission.
    """

    def __init__(
        self,
        log: EventLog,
        recorder: Recorder,
        standing: StandingRules,
        authorization: Authorization,
        unasked: UnaskedActs,
        behavior: Callable[[], PermissionBehavior],
        *,
        timeout: float | None = None,
    ) -> None:
        self._log = log
        self._recorder = recorder
        self._standing = standing
        self._authorization = authorization
        self._timeout = timeout
        self._unasked = unasked
        self._behavior = behavior
        self._session_id = recorder.session.id
        self._pending: dict[str, Pending] = {}
        self._settling: dict[Pending, None] = {}  # a dict takes less memory than a set while it is empty
        self._renewing: dict[Pending, None] = {}
        self._opening = asyncio.Lock()
        self.closed: str | None = None

    @property
    def has_pending(self) -> bool:
        """Whether any approval is pending."""
        return bool(self._pending)

    # -- asking --

    async def ask(self, raw: bytes, request_id: str | None = None) -> dict[str, Any]:
        """Answer a permission request, by a rule or by the user; returns the ACP result. `request_id` names it."""
        recorder = self._recorder
        turn = recorder.translator.turn
        pending = Pending(raw, "agent")
        translator = recorder.translator
        find = partial(translator.effects_of_request, raw), partial(translator.paths_of_request, raw)
        shown, rules = await self._bind(pending, *find)
        if recorder.failure is not None:
            raise RequestError.internal_error({"details": NOT_STORABLE})
        if turn not in (None, recorder.translator.turn):  # it ended without waiting for an answer
            request = raw.decode(errors="replace")[:EXCERPT]
            recorder.note("permission_too_late", {"request": request, "turnId": turn})
            return dict(CANCELLED)
        self._open(pending, shown, rules, request_id=request_id)
        self.withdraw_changed(pending.event.tool_call_id)  # others may ask about this call as it was before
        return await self._wait(pending)

    async def ask_about_act(
        self, call: dict[str, Any], act: Effects, notes: list[str], files: Mapping[str, str | None]
    ) -> ActDecision:
        """Ask the user about an act that has no permission yet. The caller has applied the rules."""
        if self._recorder.failure is not None:
            raise RequestError.internal_error({"details": NOT_STORABLE})
        pending = Pending(encode({"toolCall": call, "options": HUB_OPTIONS}), "hub")
        pending.effects, pending.files = act, files
        self._open(pending, None, [], notes=notes)
        await self._wait(pending)
        return ActDecision(pending.approved, pending.event.request_id, pending.reason)

    async def _wait(self, pending: Pending) -> dict[str, Any]:
        try:
            while (answer := await pending.answer) is None:
                await self._renew(pending)
        except asyncio.CancelledError:
            reason = "The agent withdrew its request, or is gone."
            self._renewing.pop(pending, None)
            self._resolve(pending.event.request_id, False, "cancelled", reason=reason)
            raise
        return answer

    async def _bind(
        self, pending: Pending, find_effects: Callable[[], Effects], find_paths: Callable[[], Sequence[str]]
    ) -> tuple[Effects, list[Rule]]:
        """Read the files and resolve the paths of a request, so that its approval covers exactly these.

        `find_paths` returns the paths of all files that it names; a denial covers them as well. Returns the effects and
        the current rules; the caller opens the request without awaiting anything else.
        """
        for attempt in range(REBINDS + 1):  # again if the call changed while its files were read
            shown, named = find_effects(), find_paths()
            resolved, pending.real_names = await asyncio.to_thread(_resolve_all, shown, named)
            files = await self._authorization.read_files(resolved)
            real_paths = {given.path: found.path for given, found in zip(shown.edits, resolved.edits, strict=True)}
            pending.real_paths, pending.effects = real_paths, resolved
            pending.files = {given: files[real] for given, real in real_paths.items() if real in files} | files
            async with self._opening:
                await asyncio.sleep(0)  # one request in each turn of the loop, so that many do not hold it up
                rules = await self._standing.rules()
                if attempt == REBINDS or find_effects() == shown:
                    break
        return shown, rules

    def _open(
        self,
        pending: Pending,
        bound: Effects | None,
        rules: list[Rule],
        *,
        request_id: str | None = None,
        notes: Sequence[str] = (),
        is_renewed: bool = False,
    ) -> None:
        """Record a request, and decide it if a rule does. `bound` are the effects that `_bind` was called with."""
        recorder = self._recorder
        request_id = request_id or f"apr_{secrets.token_hex(8)}"
        expires = later(self._timeout) if self._timeout is not None else None
        is_denied_before = self._authorization.was_denied(pending.effects)
        similar = None if is_denied_before else self._authorization.find_similar_denial(pending.effects)
        links, reasons = self._authorization.describe_links(bound, pending.effects) if bound is not None else ([], [])
        events = recorder.translator.permission(
            pending.raw,
            recorder.now(),
            request_id=request_id,
            expires_at=expires,
            files=pending.files,
            real_paths=pending.real_paths,
            notes=[*notes, *[DENIED_BEFORE] * is_denied_before, *explain_similar(similar), *links],
            reasons=reasons,
            origin=pending.origin,
            is_renewed=is_renewed,
        )
        event = next(event for event in events if isinstance(event, ApprovalRequestedEvent))
        pending.event, pending.requested = event, recorder.translator.requested[request_id]
        if bound is not None and pending.requested.shown != bound:
            pending.files = {}
            pending.effects = pending.requested.shown  # the call keeps changing: cover what is shown
        self._set_rule_offers(pending)
        if self._asks_only_questions(pending):
            event.question_ids = list(pending.requested.question_ids)
        self._pending[request_id] = pending
        self._unasked.observe(events)
        recorder.record(events, also=[Insert(self._record(event, expires))])
        if self.closed is not None:
            self._resolve(request_id, False, "cancelled", reason=self.closed)
            return
        must_ask = is_denied_before or similar is not None
        if not self._decide_by_rule(pending, rules, must_ask) and self._timeout is not None:
            loop = asyncio.get_running_loop()
            pending.timer = loop.call_later(self._timeout, self._expire, request_id)

    def _set_rule_offers(self, pending: Pending) -> None:
        """Set the rules that "always" can store, or the reason why there are none."""
        event, found = pending.event, pending.requested.found
        kinds = {option.kind for option in event.options if option.kind.startswith("allow")}
        if kinds and "allow_once" not in kinds and not event.chooses_mode:
            event.notes.append(ONLY_ALWAYS)
        if event.risk_level == "critical":
            event.rule_refusal = ALWAYS_ASKED
        elif found is not None and found.texts and not needs_exact_arguments(event.tool_name, event.tool_input):
            event.rule_refusal = "A rule cannot check the other text in this request."
        elif found is not None and found.source != "input":
            event.rule_refusal = "A rule cannot check this command, because it is not in the request's input."
        elif pending.effects.commands and event.tool_input.get("env"):
            event.rule_refusal = "Rules do not cover commands with their own environment variables."
        else:
            offers, refusal = offer_rules(event.tool_name, event.tool_input, self._recorder.translator.workspace)
            event.rule_offers = [
                one for one in offers if self._rules_allow_all_shown(pending, [rule_of_offer(one, "allow")])
            ]
            event.rule_refusal = None if event.rule_offers else refusal or BEYOND_RULES

    def _rules_allow_all_shown(self, pending: Pending, rules: list[Rule]) -> bool:
        """Whether rules allow all that a request shows, not only what its input says."""
        shown, resolved = pending.requested.shown, pending.effects
        return self._authorization.rules_allow(rules, pending.event.tool_input, shown, resolved)

    def _asks_only_questions(self, pending: Pending) -> bool:
        """Whether the request comes from a tool that only asks the user, and shows no act."""
        requested = pending.requested
        if pending.effects.commands or pending.effects.edits or requested.found is not None:
            return False
        if not _has_only_questions(pending.event.tool_input) or requested.content:
            return False  # it may do more than ask
        return bool(requested.question_ids) and pending.event.tool_name in self._behavior().question_tools

    def _decide_by_rule(self, pending: Pending, rules: list[Rule], must_ask: bool) -> bool:
        """Let a rule decide, if one does and the agent offers an option for it."""
        event, found = pending.event, pending.requested.found
        decision = self._standing.decide(rules, event.tool_name, event.tool_input)
        if decision.outcome != "deny" and found is not None and (found.source != "input" or found.texts):
            # a rule may deny what only the title, the content or another member shows, but never allow it
            lines = "\n".join([*found.lines, found.prose])
            # such a rule compares all members of the input
            is_exact = found.source == "input" and needs_exact_arguments(event.tool_name, event.tool_input)
            of_lines = self._standing.decide(rules, event.tool_name, {"command": lines})
            decision = decision if is_exact and of_lines.outcome != "deny" else of_lines
            if decision.outcome == "allow" and not is_exact:
                return False
        elif decision.outcome == "allow" and found is not None and found.prose:
            # text next to a command is a description, unless a rule denies it as a command
            prose = self._standing.decide(rules, event.tool_name, {"command": found.prose})
            decision = prose if prose.outcome == "deny" else decision
        if decision.outcome != "deny":
            denial = self._authorization.find_denial(rules, pending.requested.shown, pending.effects)
            decision = denial or decision
        if decision.outcome == "ask" or (decision.outcome == "allow" and must_ask):
            return False
        if decision.outcome == "allow" and not self._rules_allow_all_shown(pending, rules):
            return False
        allowed = decision.outcome == "allow"
        option = choose_option(event.options, approved=allowed)
        if allowed and option is None:
            return False
        shown, tool_name = pending.requested.shown, event.tool_name
        pending.grants_acts = self._authorization.rules_grant(rules, tool_name, shown, pending.effects)
        hits = self._standing.hits(decision, rules)
        self._resolve(
            event.request_id, allowed, "policy", reason=decision.reason, by=decision.rule, option=option, also=hits
        )
        return True

    def withdraw_changed(self, call_id: str | None = None) -> None:
        """Withdraw the requests (all, or of one call) whose call has other effects now. The user is asked again."""
        recorder = self._recorder
        for request_id in recorder.translator.find_changed_requests(call_id):
            pending = self._pending.get(request_id)
            if pending is None or pending.origin != "agent":
                continue
            del self._pending[request_id]
            pending.disarm()
            reason = "The agent changed the call while the request was pending."
            events = recorder.translator.resolve(
                request_id, recorder.now(), approved=False, resolved_by="cancelled", reason=reason, is_renewed=True
            )
            decision = {"approved": False, "resolvedBy": "cancelled", "reason": reason, "optionId": None}
            resolving = self._log.approvals.resolving(request_id, decision, decided_by="cancelled", strict=False)
            recorder.record(events, also=[resolving])
            pending.meta = {}  # answers were given to other questions
            self._renewing[pending] = None
            pending.withdraw()

    async def _renew(self, pending: Pending) -> None:
        """Ask again about a request that was withdrawn because its call changed."""
        translator, call_id = self._recorder.translator, pending.event.tool_call_id
        find = partial(translator.effects_of_call, call_id), partial(translator.paths_of_call, call_id)
        shown, rules = await self._bind(pending, *find)
        if pending not in self._renewing:
            return  # cancelled meanwhile
        del self._renewing[pending]
        if self._recorder.failure is not None:
            pending.settle(CANCELLED)
            return
        self._open(pending, shown, rules, notes=[CHANGED], is_renewed=True)

    def _record(self, event: ApprovalRequestedEvent, expires: str | None) -> Approval:
        request = msgspec.to_builtins(event)
        return Approval(
            id=event.request_id,
            session_id=self._session_id,
            request={key: value for key, value in request.items() if key not in ("seq", "options")},
            options=msgspec.to_builtins(event.options),
            created=event.timestamp,
            expires=expires,
        )

    # -- deciding --

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
        """Record the user's decision, by yes or no or by an option of the agent; returns when it is committed.

        It is signed with `by`, and with `device_id` if a paired device was used. `remember` stores the offered `rule`
        (the first one by default), for `remember_for` seconds or without an end; an "always" of the agent is stored as
        a rule of the session. `answers` go to a tool that asks the user. The same decision again changes nothing.
        Raises UnknownApproval, DecidedOtherwise that names the winner, NotStored, and IllegalCommand, for example if
        `option_id` contradicts `approved` or `tool_call_id` names another call.
        """
        if approved is None and option_id is None:
            raise IllegalCommand("give a decision, or one of the agent's options", approvalId=request_id)
        if remember_for is not None and not abs(remember_for) <= LONGEST:
            message = f"`remember_for` is a number of seconds, at most {LONGEST:,}; got {remember_for!r}"
            raise IllegalCommand(message, approvalId=request_id)
        pending = self._pending.get(request_id)
        if pending is None:
            if self._recorder.translator.turn is None:
                await self._recorder.mend()  # after a failure of the log it may be stored as pending
            await self._recorder.commit()
            return await self._decided(request_id, approved, option_id, remember)
        event = pending.event
        if tool_call_id not in (None, event.tool_call_id):
            message = f"{request_id!r} is about the tool call {event.tool_call_id!r}, not {tool_call_id!r}"
            raise IllegalCommand(message, approvalId=request_id, toolCallId=event.tool_call_id)
        reason, by = sound(reason), sound(by)
        option = _chosen(event, approved, option_id)
        allowed = option is not None and option.kind.startswith("allow")
        is_lasting = option is not None and _is_always(option)
        is_always = is_lasting and not event.chooses_mode
        is_rule = is_always and option is not None and option.kind in RULE_KINDS
        if is_rule and remember == "once" and option_id is not None:
            remember = "session"
        if allowed and event.risk_level == "critical" and (remember != "once" or is_lasting):
            raise IllegalCommand(ONLY_ONCE, **_about(event))
        offered = [offer.offer_id for offer in event.rule_offers]
        if rule is not None and rule not in offered:
            message = f"this request does not offer the rule {rule!r}; it offers: {', '.join(offered) or 'none'}"
            raise IllegalCommand(message, **_about(event))
        self._record_answers(pending, allowed, answers)
        maker: dict[str, Any] = {"by": by, "device_id": device_id}
        facts, also = self._remember(event, allowed, remember, remember_for, rule, **maker)
        self._resolve(request_id, allowed, "user", reason=reason, **maker, option=option, also=also, facts=facts)
        await self._recorder.commit()
        return await self._log.approvals.get(request_id)

    def _record_answers(self, pending: Pending, allowed: bool, answers: Mapping[str, Any] | None) -> None:
        """Check and record the answers to a tool's questions, which the agent gets with the approval."""
        if answers is None:
            return
        event = pending.event
        if not allowed or not answers.keys() <= set(event.question_ids):
            known = ", ".join(event.question_ids) or "none"
            message = f"`answers` can only be given with an approval, by the ids of its questions: {known}"
            raise IllegalCommand(message, **_about(event))
        questions = self._recorder.session.index.questions
        texts = {questions[one].question: answer for one, answer in answers.items() if one in questions}
        pending.meta["answers"] = sound(texts)
        for question_id, answer in answers.items():
            recorder = self._recorder
            recorder.record(
                recorder.translator.answer(question_id, recorder.now(), outcome="answered", answer=sound(answer))
            )

    def _remember(
        self,
        event: ApprovalRequestedEvent,
        allowed: bool,
        scope: Remember,
        seconds: float | None,
        rule: OfferId | None,
        **maker: Any,
    ) -> tuple[dict[str, Any], list[Change]]:
        """Prepare the rule that a decision stores; returns facts for the decision, and the changes of the log."""
        if scope == "once":
            return {}, []
        record = self._standing.remembering(event, allowed, scope, self._recorder.now(), seconds, rule=rule, **maker)
        if record is None:
            refusal = self._standing.explain_refusal(event)
            self._recorder.note("rule_not_kept", {"requestId": event.request_id, "scope": scope, "reason": refusal})
            return {"ruleRefusal": refusal}, []
        kept = {"ruleId": record.id, "scope": scope, "effect": record.effect, "rule": record.rule}
        self._recorder.note("rule_kept", {"requestId": event.request_id, **kept, "expires": record.expires})
        return {"rule": {"id": record.id, "text": record.rule.get("text", "")}}, [Insert(record)]

    def resolve(
        self,
        request_id: str,
        *,
        approved: bool,
        by: str,
        device_id: str | None = None,
        reason: str | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> None:
        """Decide the pending approval of a tool that only asks the user."""
        pending = self._pending[request_id]
        option = _chosen(pending.event, approved, None)
        self._record_answers(pending, approved, answers)
        self._resolve(request_id, approved, "user", reason=reason, by=by, device_id=device_id, option=option)

    def add_answer(self, call_id: str, question_id: str, answer: Any, outcome: str) -> bool:
        """Record the answer to a question of a tool call; False if no approval of that call is pending.

        This decides nothing. The agent gets the answer if the call is approved.
        """
        found = [one for one in self._pending.values() if one.event.tool_call_id == call_id and one.origin == "agent"]
        question = self._recorder.session.index.questions.get(question_id)
        if not found or question is None:
            return False
        if outcome == "answered":
            for pending in found:
                pending.meta["answers"] = {**pending.meta.get("answers", {}), question.question: answer}
        recorder = self._recorder
        recorder.record(recorder.translator.answer(question_id, recorder.now(), outcome=outcome, answer=answer))
        return True

    def questions_of(self, request_id: str) -> list[str]:
        """The questions that the tool of a pending approval asks the user."""
        return self._pending[request_id].event.question_ids

    def find_approval_of_question(self, question_id: str) -> str | None:
        """The pending approval whose tool asks the user this question."""
        found = (key for key, pending in self._pending.items() if question_id in pending.event.question_ids)
        return next(found, None)

    async def _decided(
        self, request_id: str, approved: bool | None, option_id: str | None, remember: Remember
    ) -> Approval:
        """The stored decision, if it is the same one. Raises DecidedOtherwise, even if only this one stores a rule."""
        try:
            record = await self._log.approvals.get(request_id)
        except UnknownRecord:
            raise UnknownApproval(f"there is no approval {request_id!r}", approvalId=request_id) from None
        decision = record.decision or {}
        same = decision.get("approved") == approved if option_id is None else decision.get("optionId") == option_id
        is_rule_missing = remember != "once" and not decision.keys() & {"rule", "ruleRefusal"}
        if not same or is_rule_missing:
            how = "approved" if decision.get("approved") else "not approved"
            message = f"{request_id!r} was {how} already, by {record.decided_by}"
            message += "; no rule was stored" if is_rule_missing else ""
            raise DecidedOtherwise(message, approvalId=request_id, decision=decision, decidedBy=record.decided_by)
        return record

    def _resolve(
        self,
        request_id: str,
        approved: bool,
        how: How,
        *,
        reason: str | None = None,
        by: str | None = None,
        device_id: str | None = None,
        option: Option | None = None,
        also: list[Change] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """The first to call this wins. The agent gets a decision after the commit, a cancellation at once."""
        pending = self._pending.pop(request_id, None)
        if pending is None:
            return
        pending.disarm()
        recorder = self._recorder
        option_id = option.option_id if option else None
        events = recorder.translator.resolve(
            request_id,
            recorder.now(),
            approved=approved,
            resolved_by=how,
            reason=reason,
            option_id=option_id,
            decided_by=by,
            device_id=device_id,
        )
        decision = {"approved": approved, "resolvedBy": how, "reason": reason, "optionId": option_id, **(facts or {})}
        if device_id is not None:
            decision["deviceId"] = device_id
        change = self._log.approvals.resolving(request_id, decision, decided_by=by or how, strict=False)
        if how == "cancelled":
            recorder.record(events, also=[change])
            pending.settle(CANCELLED)
            return
        self._settling[pending] = None
        pending.reason = reason
        if not approved:
            names = pending.requested.names
            self._authorization.deny(pending.effects, names._replace(paths=(*names.paths, *pending.real_names)))
        elif pending.origin == "agent":
            if pending.grants_acts:
                covered, mentioned = _split_covered(pending)
                self._authorization.allow(
                    request_id, covered, pending.files, mentioned=mentioned, is_by_rule=how == "policy"
                )
            self._unasked.note_approval(pending.event, pending.effects)
        sent = option if approved or option is None or option.kind.startswith("reject") else None
        if option is not None and _is_always(option) and not pending.event.chooses_mode:
            sent = choose_option(pending.event.options, approved=approved) or option  # the rule is the hub's own

        def deliver() -> None:
            self._settling.pop(pending, None)
            pending.approved = approved
            pending.settle(_answer(sent, {"reason": reason} if reason else {}, pending.meta if approved else {}))

        recorder.record(events, also=[change, *(also or ())], then=deliver)

    def _expire(self, request_id: str) -> None:
        pending = self._pending.get(request_id)
        if pending is not None:
            option = choose_option(pending.event.options, approved=False)
            self._resolve(request_id, False, "timeout", reason="Nobody decided in time.", option=option)

    # -- ends --

    def cancel_all(self, reason: str) -> None:
        """Answer every pending request with `cancelled`."""
        for pending in self._renewing:
            pending.settle(CANCELLED)
        self._renewing.clear()
        for request_id in list(self._pending):
            self._resolve(request_id, False, "cancelled", reason=reason)

    def abandon(self) -> None:
        """The log failed: what was decided does not count, and nothing is allowed."""
        for pending in [*self._pending.values(), *self._settling, *self._renewing]:
            pending.settle(CANCELLED)
        self._pending.clear()
        self._renewing.clear()
        self._settling.clear()


def _resolve_all(effects: Effects, paths: Sequence[str]) -> tuple[Effects, list[str]]:
    return resolve_effects(effects), resolve_paths(paths)


def _split_covered(pending: Pending) -> tuple[Effects, Sequence[CommandAct]]:
    """The acts that the hub may carry out for an approved request, and the commands that the request only mentions.

    The hub cannot do what a server's tool does, nor run a command with settings that it does not know.
    """
    effects, found, name = pending.effects, pending.requested.found, pending.event.tool_name
    if is_foreign_tool(name) and len(name.split()) == 1:  # several words are a title, such as `Change __init__.py`
        return effects._replace(commands=(), edits=()), effects.commands
    if found is not None and found.texts:
        return effects._replace(commands=()), effects.commands
    return effects, ()


def _has_only_questions(tool_input: Mapping[str, Any]) -> bool:
    """Whether the input of a tool has questions with choices and nothing else."""
    items = tool_input.get("questions")
    questions = [tool_input, *(items if isinstance(items, list) else [])]
    for question in questions:
        if isinstance(question, str):
            continue
        if not isinstance(question, Mapping) or not question.keys() <= QUESTION_MEMBERS:
            return False
        if question.get("answers") or question.get("annotations"):
            return False
        if not isinstance(question.get("multiSelect"), bool | None):
            return False
        texts = (question.get(name) for name in ("question", "header"))
        choices = question.get("options")
        if any(not isinstance(text, str | None) for text in texts) or not isinstance(choices, list | None):
            return False
        for choice in choices or ():
            if isinstance(choice, str):
                continue
            if not isinstance(choice, Mapping) or not choice.keys() <= CHOICE_MEMBERS:
                return False
            if not all(isinstance(value, str | int | None) for value in choice.values()):
                return False
    return True


def _is_always(option: Option) -> bool:
    """Whether an option decides more than this one request; an unknown kind that allows is taken for one."""
    return option.kind.endswith("_always") or (option.kind.startswith("allow") and option.kind != "allow_once")


def _about(event: ApprovalRequestedEvent) -> dict[str, Any]:
    return {"approvalId": event.request_id, "toolCallId": event.tool_call_id}


def _chosen(event: ApprovalRequestedEvent, approved: bool | None, option_id: str | None) -> Option | None:
    """The option of the user's decision; none only for a denial that the agent has no option for."""
    option = choose_option(event.options, approved=approved, option_id=option_id)
    if option_id is not None and _is_ambiguous(event.options, option_id):
        what = f"{option_id!r} to allow it and to reject it; decide by yes or no"
        raise IllegalCommand(f"the agent offers {what}", approvalId=event.request_id, optionId=option_id)
    allows = option is not None and option.kind.startswith("allow")
    if approved is not None and approved != allows:
        what = "no option that allows it" if option_id is None else f"{option_id!r} for the opposite of the decision"
        raise IllegalCommand(f"the agent offers {what}", approvalId=event.request_id, optionId=option_id)
    return option


def choose_option(
    options: list[Option], *, approved: bool | None = None, option_id: str | None = None
) -> Option | None:
    """The agent's option for a decision: the named one, else one by kind, "once" before "always".

    Raises UnknownApproval for an option that the agent did not offer.
    """
    if option_id is not None:
        named = [option for option in options if option.option_id == option_id]
        if named:  # an agent may give several options one id: then the one that binds least is meant
            return min(named, key=lambda option: not option.kind.endswith("_once"))
        known = ", ".join(option.option_id for option in options)
        raise UnknownApproval(f"the agent offered no option {option_id!r}, only {known}", optionId=option_id)
    wanted = ("allow_once", "allow_always") if approved else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind and (approved or not _is_ambiguous(options, option.option_id)):
                return option
    return None


def _is_ambiguous(options: list[Option], option_id: str) -> bool:
    """Whether an agent that is answered with this id may take it for a yes as well as for a no."""
    return len({option.kind.startswith("allow") for option in options if option.option_id == option_id}) > 1


def _answer(option: Option | None, *meta: dict[str, Any]) -> dict[str, Any]:
    """The ACP result. A decision that no offered option stands for cancels: it never allows."""
    answer: dict[str, Any] = dict(CANCELLED)
    if option is not None:
        answer = {"outcome": {"outcome": "selected", "optionId": option.option_id}}
    known = {key: value for part in meta for key, value in part.items()}
    return {**answer, "_meta": known} if known else answer
