"""Approvals of one session: durable, decided once, never allowed by silence.

A permission request is first held against the rules: those of the session's policy and the "always" rules that the
hub holds. What they do not answer waits for a person, however long, until the turn is cancelled, the agent is gone or
its time is up, and none of these allows. The record and the event that tells of it are one commit, and so are the
decision and its event; an agent learns of a decision only when it is committed.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Literal

import msgspec

from ..acp.errors import RequestError
from ..log.base import EventLog
from ..log.errors import UnknownRecord
from ..log.records import Approval, Change, Insert
from ..model.events import ApprovalRequestedEvent
from ..model.policy import Rule
from ..model.records import Option
from ..model.session import sound
from .conduct import Conduct
from .errors import DecidedOtherwise, IllegalCommand, UnknownApproval
from .recorder import Recorder
from .standing import Remember, StandingRules, later

__all__ = ["Approvals", "Remember", "choose_option"]

CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}
EXCERPT = 2000
"""Characters of a request that came to nothing, as the log keeps them."""
LONGEST = 100 * 365 * 24 * 3600
"""Seconds that a rule may be kept for, if it is not for good."""
How = Literal["user", "policy", "timeout", "cancelled"]


class Pending:
    """An approval that nobody has decided yet."""

    __slots__ = ("answer", "event", "meta", "timer")

    def __init__(self, event: ApprovalRequestedEvent) -> None:
        self.event = event
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.meta: dict[str, Any] = {}

    def disarm(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def settle(self, answer: dict[str, Any]) -> None:
        self.disarm()
        if not self.answer.done():
            self.answer.set_result(answer)


class Approvals:
    """What a session's agent wants to do, and who decides it.

    While `closed` has a reason nobody is asked: the turn is being cancelled.
    """

    def __init__(
        self,
        log: EventLog,
        recorder: Recorder,
        standing: StandingRules,
        conduct: Conduct,
        *,
        timeout: float | None = None,
    ) -> None:
        self._log = log
        self._recorder = recorder
        self._standing = standing
        self._conduct = conduct
        self._timeout = timeout
        self._session_id = recorder.session.id
        self._pending: dict[str, Pending] = {}
        self._settling: set[Pending] = set()
        self.closed: str | None = None

    # -- asking --

    async def ask(self, raw: bytes, request_id: str | None = None) -> dict[str, Any]:
        """Answer a permission request, by rule or by a person; returns the ACP result. `request_id` names it."""
        recorder = self._recorder
        turn = recorder.translator.turn
        rules = await self._standing.rules()  # before anything is recorded, so that what follows happens at once
        if recorder.failure is not None:
            raise RequestError.internal_error({"details": "nothing can be stored, so nobody can be asked"})
        if turn not in (None, recorder.translator.turn):  # it ended its turn without waiting for an answer
            recorder.note("permission_too_late", {"request": raw.decode(errors="replace")[:EXCERPT], "turnId": turn})
            return dict(CANCELLED)
        request_id = request_id or f"apr_{secrets.token_hex(8)}"
        expires = later(self._timeout) if self._timeout is not None else None
        events = recorder.translator.permission(raw, recorder.now(), request_id=request_id, expires_at=expires)
        event = next(event for event in events if isinstance(event, ApprovalRequestedEvent))
        pending = self._pending[request_id] = Pending(event)
        recorder.record(events, also=[Insert(self._record(event, expires))])
        if self.closed is not None:
            self._resolve(request_id, False, "cancelled", reason=self.closed)
        elif not self._ruled(pending, rules) and self._timeout is not None:
            loop = asyncio.get_running_loop()
            pending.timer = loop.call_later(self._timeout, self._expire, request_id)
        try:
            return await pending.answer
        except asyncio.CancelledError:
            self._resolve(request_id, False, "cancelled", reason="The agent withdrew its request, or is gone.")
            raise

    def _ruled(self, pending: Pending, rules: list[Rule]) -> bool:
        """Let a rule decide, if one does and the agent offers an option for it."""
        event = pending.event
        decision = self._standing.decide(rules, event.tool_name, event.tool_input)
        if decision.outcome == "ask":
            return False
        allowed = decision.outcome == "allow"
        option = choose_option(event.options, approved=allowed)
        if allowed and option is None:
            return False
        hits = self._standing.hits(decision, rules)
        self._resolve(
            event.request_id, allowed, "policy", reason=decision.reason, by=decision.rule, option=option, also=hits
        )
        return True

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
    ) -> Approval:
        """A person decides, by yes or no or by an option of the agent; returns when that is committed.

        It is signed with `by`, and with `device_id` if they used a paired device. `remember` makes it a rule, for so
        many seconds or for good. The same decision again changes nothing, and neither does one that says yes and names
        an option for no, or names a tool call that this is not about. Raises UnknownApproval, DecidedOtherwise that
        names the winner, IllegalCommand, NotStored.
        """
        if approved is None and option_id is None:
            raise IllegalCommand("give a decision, or one of the agent's options", approvalId=request_id)
        if remember_for is not None and not abs(remember_for) <= LONGEST:
            message = f"`remember_for` is a number of seconds, at most {LONGEST:,}; got {remember_for!r}"
            raise IllegalCommand(message, approvalId=request_id)
        pending = self._pending.get(request_id)
        if pending is None:
            await self._recorder.commit()
            return await self._decided(request_id, approved, option_id)
        about = pending.event.tool_call_id
        if tool_call_id not in (None, about):
            message = f"{request_id!r} is about the tool call {about!r}, not {tool_call_id!r}"
            raise IllegalCommand(message, approvalId=request_id, toolCallId=about)
        reason, by = sound(reason), sound(by)
        option = _chosen(pending.event, approved, option_id)
        allowed = option is not None and option.kind.startswith("allow")
        maker: dict[str, Any] = {"by": by, "device_id": device_id}
        also = self._remember(pending.event, allowed, remember, remember_for, **maker)
        self._resolve(request_id, allowed, "user", reason=reason, **maker, option=option, also=also)
        await self._recorder.commit()
        if option is not None and option.kind == "allow_always":
            # who chooses the agent's own "always" will not be asked again, and that is no offence of the agent
            self._conduct.trust(pending.event.tool_name)
        return await self._log.approvals.get(request_id)

    def resolve(
        self,
        request_id: str,
        *,
        approved: bool,
        by: str,
        device_id: str | None = None,
        reason: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Decide one that waits, and give the agent `meta` with the decision."""
        pending = self._pending[request_id]
        option = _chosen(pending.event, approved, None)
        pending.meta.update(meta or {})
        self._resolve(request_id, approved, "user", reason=reason, by=by, device_id=device_id, option=option)

    def _remember(
        self,
        event: ApprovalRequestedEvent,
        allowed: bool,
        scope: Remember,
        seconds: float | None,
        **maker: Any,
    ) -> list[Change]:
        if scope == "once":
            return []
        record = self._standing.remembering(event, allowed, scope, self._recorder.now(), seconds, **maker)
        if record is None:
            data = {"requestId": event.request_id, "scope": scope, "reason": "no rule can answer this safely"}
            self._recorder.note("rule_not_kept", data)
            return []
        kept = {"ruleId": record.id, "scope": scope, "effect": record.effect, "rule": record.rule}
        self._recorder.note("rule_kept", {"requestId": event.request_id, **kept, "expires": record.expires})
        return [Insert(record)]

    async def _decided(self, request_id: str, approved: bool | None, option_id: str | None) -> Approval:
        try:
            record = await self._log.approvals.get(request_id)
        except UnknownRecord:
            raise UnknownApproval(f"there is no approval {request_id!r}", approvalId=request_id) from None
        decision = record.decision or {}
        same = decision.get("approved") == approved if option_id is None else decision.get("optionId") == option_id
        if not same:
            how = "approved" if decision.get("approved") else "not approved"
            message = f"{request_id!r} was {how} already, by {record.decided_by}"
            raise DecidedOtherwise(message, approvalId=request_id, decision=decision, decidedBy=record.decided_by)
        return record

    def pending_for(self, tool_call_id: str) -> str | None:
        """The approval that waits about this tool call."""
        found = (key for key, pending in self._pending.items() if pending.event.tool_call_id == tool_call_id)
        return next(found, None)

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
    ) -> None:
        """The first to call this wins; the agent is told after the commit, of a cancellation at once."""
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
        decision = {"approved": approved, "resolvedBy": how, "reason": reason, "optionId": option_id}
        if device_id is not None:
            decision["deviceId"] = device_id
        change = self._log.approvals.resolving(request_id, decision, decided_by=by or how, strict=False)
        if how == "cancelled":
            recorder.record(events, also=[change])
            pending.settle(CANCELLED)
            return
        self._settling.add(pending)
        self._conduct.decided(pending.event, approved=approved)

        def tell() -> None:
            self._settling.discard(pending)
            pending.settle(_answer(option, {"reason": reason} if reason else {}, pending.meta))

        recorder.record(events, also=[change, *(also or ())], then=tell)

    def _expire(self, request_id: str) -> None:
        pending = self._pending.get(request_id)
        if pending is not None:
            option = choose_option(pending.event.options, approved=False)
            self._resolve(request_id, False, "timeout", reason="Nobody decided in time.", option=option)

    # -- ends --

    def cancel_all(self, reason: str) -> None:
        """Nobody will decide any more: everything pending is answered `cancelled`."""
        for request_id in list(self._pending):
            self._resolve(request_id, False, "cancelled", reason=reason)

    def abandon(self) -> None:
        """The log failed: what was decided does not count, and nothing is allowed."""
        for pending in [*self._pending.values(), *self._settling]:
            pending.settle(CANCELLED)
        self._pending.clear()
        self._settling.clear()


def _chosen(event: ApprovalRequestedEvent, approved: bool | None, option_id: str | None) -> Option | None:
    """The option of a person's decision; none only for a denial that the agent has no option for."""
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
    """The agent's option for a decision: the one that is named, else by kind, the one that binds least first.

    Raises UnknownApproval for an option that the agent did not offer.
    """
    if option_id is not None:
        for option in options:
            if option.option_id == option_id:
                return option
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
