"""Approvals and questions of one session: durable, decided once, never allowed by silence.

A permission request is first held against the rules: those of the session's policy and the "always" rules that the
hub holds. What they do not answer waits for a person, however long, until the turn is cancelled or its time is up,
and neither of these allows. The record and the event that tells of it are one commit, and so are the decision and
its event.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from ..dialects.acp import Translator
from ..log.base import EventLog
from ..log.records import Approval, Change, Insert
from ..log.records import Rule as RuleRecord
from ..model.events import ApprovalRequestedEvent, Event
from ..model.policy import Decision, Rule, compile_policy, decide
from ..model.policy.rules import Policy
from ..model.records import Option
from .errors import DecidedOtherwise, UnknownApproval
from .recorder import Recorder

__all__ = ["Approvals", "Remember", "choose_option"]

Remember = Literal["once", "session", "project", "everywhere"]
CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}


class Pending:
    """An approval that nobody has decided yet."""

    __slots__ = ("answer", "event", "timer")

    def __init__(self, event: ApprovalRequestedEvent) -> None:
        self.event = event
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None

    def settle(self, answer: dict[str, Any]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if not self.answer.done():
            self.answer.set_result(answer)


class Approvals:
    """What a session's agent has asked, and who decides it."""

    def __init__(
        self,
        log: EventLog,
        recorder: Recorder,
        translator: Callable[[], Translator],
        workspace: str,
        *,
        timeout: float | None = None,
    ) -> None:
        self._log = log
        self._recorder = recorder
        self._translator = translator
        self._workspace = workspace
        self._timeout = timeout
        self._session_id = recorder.session.id
        self._pending: dict[str, Pending] = {}
        self._questions: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.policy: Policy | None = None

    # -- permissions --

    async def ask(self, raw: bytes) -> dict[str, Any]:
        """Answer a permission request, by rule or by a person; returns the ACP result."""
        request_id = f"apr_{secrets.token_hex(8)}"
        expires = _later(self._timeout) if self._timeout is not None else None
        events = self._translator().permission(raw, self._recorder.now(), request_id=request_id, expires_at=expires)
        event = next(event for event in events if isinstance(event, ApprovalRequestedEvent))
        rules = await self._rules()
        decision = decide(rules, event.tool_name, event.tool_input, self._workspace)
        pending = self._pending[request_id] = Pending(event)
        if decision.outcome == "ask":
            self._recorder.record(events, also=[Insert(self._record(event, expires))])
            if self._timeout is not None:
                loop = asyncio.get_running_loop()
                pending.timer = loop.call_later(self._timeout, self._expire, request_id)
        else:
            self._recorder.record(events, also=[Insert(self._record(event, expires))])
            self._resolve(request_id, decision.outcome == "allow", "policy", reason=decision.reason, by=_rule(decision))
            await self._hit(decision)
        return await pending.answer

    async def _rules(self) -> list[Rule]:
        """The session's policy and the rules that hold here, denials first."""
        rules = list(compile_policy(self.policy)) if self.policy is not None else []
        for record in await self._log.rules.active():
            if _applies(record, self._session_id, self._workspace):
                rules.append(_as_rule(record))
        return sorted(rules, key=lambda rule: rule.effect != "deny")

    async def _hit(self, decision: Decision) -> None:
        rule = _rule(decision) or ""
        if rule.startswith("always:"):
            await self._log.rules.hit(rule.removeprefix("always:").split(":", 1)[0])

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

    async def decide(
        self,
        request_id: str,
        *,
        approved: bool | None = None,
        option_id: str | None = None,
        reason: str | None = None,
        by: str = "user",
        remember: Remember = "once",
    ) -> Approval:
        """A person decides. The same decision again changes nothing.

        Raises UnknownApproval, and DecidedOtherwise that names the winner.
        """
        pending = self._pending.get(request_id)
        if pending is None:
            return await self._decided(request_id, approved, option_id)
        option = choose_option(pending.event.options, approved=approved, option_id=option_id)
        allowed = option.kind.startswith("allow") if option is not None else bool(approved)
        if remember != "once":
            await self._remember(pending.event, allowed, remember)
        self._resolve(request_id, allowed, "user", reason=reason, by=by, option=option)
        await self._recorder.commit()
        return await self._log.approvals.get(request_id)

    async def _decided(self, request_id: str, approved: bool | None, option_id: str | None) -> Approval:
        try:
            record = await self._log.approvals.get(request_id)
        except LookupError:
            raise UnknownApproval(f"there is no approval {request_id!r}", approvalId=request_id) from None
        decision = record.decision or {}
        same = decision.get("approved") == approved if option_id is None else decision.get("optionId") == option_id
        if not same:
            how = "approved" if decision.get("approved") else "not approved"
            message = f"{request_id!r} was {how} already, by {record.decided_by}"
            raise DecidedOtherwise(message, approvalId=request_id, decision=decision, decidedBy=record.decided_by)
        return record

    def _resolve(
        self,
        request_id: str,
        approved: bool,
        how: Literal["user", "policy", "timeout", "cancelled"],
        *,
        reason: str | None = None,
        by: str | None = None,
        option: Option | None = None,
    ) -> None:
        pending = self._pending.pop(request_id, None)
        if pending is None:
            return
        if option is None and how != "cancelled":
            option = choose_option(pending.event.options, approved=approved)
        events = self._translator().resolve(
            request_id,
            self._recorder.now(),
            approved=approved,
            resolved_by=how,
            reason=reason,
            option_id=option.option_id if option else None,
            decided_by=by,
        )
        self._commit_decision(request_id, events, approved, how, reason, by, option)
        pending.settle(_answer(option, reason))

    def _commit_decision(
        self,
        request_id: str,
        events: list[Event],
        approved: bool,
        how: str,
        reason: str | None,
        by: str | None,
        option: Option | None,
    ) -> None:
        decision = {"approved": approved, "resolvedBy": how, "reason": reason}
        decision["optionId"] = option.option_id if option else None
        change = self._log.approvals.resolving(request_id, decision, decided_by=by or how, strict=False)
        also: list[Change] = [change]
        self._recorder.record(events, also=also)

    def _expire(self, request_id: str) -> None:
        self._resolve(request_id, False, "timeout", reason="Nobody decided in time.")

    async def _remember(self, event: ApprovalRequestedEvent, allowed: bool, scope: Remember) -> None:
        """Hold the decision as a rule: exactly this command, these files, or this tool."""
        key = {"session": self._session_id, "project": self._workspace}.get(scope, "")
        rule = rule_for(event, allowed)
        record = RuleRecord(
            id=f"rule_{secrets.token_hex(6)}",
            scope=scope,  # type: ignore[arg-type]  # "once" makes no rule
            scope_key=key,
            rule=msgspec.to_builtins(rule),
            effect="allow" if allowed else "deny",
            created=self._recorder.now(),
        )
        await self._log.rules.add(record)

    # -- questions --

    async def question(self, raw: bytes) -> dict[str, Any]:
        """Put an elicitation before a person; returns the ACP result."""
        question_id = f"qst_{secrets.token_hex(8)}"
        events = self._translator().question(raw, self._recorder.now(), question_id=question_id)
        self._recorder.record(events)
        future: asyncio.Future[dict[str, Any]]
        future = self._questions[question_id] = asyncio.get_running_loop().create_future()
        return await future

    def answer(self, question_id: str, answer: Any) -> None:
        """A person answers; None declines. Raises UnknownApproval."""
        future = self._questions.pop(question_id, None)
        if future is None:
            raise UnknownApproval(f"no question {question_id!r} is waiting", questionId=question_id)
        outcome = "declined" if answer is None else "answered"
        events = self._translator().answer(question_id, self._recorder.now(), outcome=outcome, answer=answer)
        self._recorder.record(events)
        if not future.done():
            content = answer if isinstance(answer, dict) else {"answer": answer}
            future.set_result({"action": "decline"} if answer is None else {"action": "accept", "content": content})

    # -- ends --

    def cancel_all(self, reason: str = "The turn was cancelled.") -> None:
        """Nobody will decide any more: everything pending is answered `cancelled`."""
        for request_id in list(self._pending):
            self._resolve(request_id, False, "cancelled", reason=reason)
        questions, self._questions = self._questions, {}
        for question_id, future in questions.items():
            events = self._translator().answer(question_id, self._recorder.now(), outcome="cancelled")
            self._recorder.record(events)
            if not future.done():
                future.set_result({"action": "cancel"})


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
            if option.kind == kind:
                return option
    return None


def _answer(option: Option | None, reason: str | None) -> dict[str, Any]:
    """The ACP result. A decision that no offered option stands for cancels: it never allows."""
    if option is None:
        return CANCELLED
    answer: dict[str, Any] = {"outcome": {"outcome": "selected", "optionId": option.option_id}}
    if reason:
        answer["_meta"] = {"reason": reason}
    return answer


def rule_for(event: ApprovalRequestedEvent, allowed: bool) -> Rule:
    """The narrowest rule that answers the same question again."""
    effect: Literal["allow", "deny"] = "allow" if allowed else "deny"
    command = event.tool_input.get("command")
    if isinstance(command, str) and command:
        return Rule(effect, "commands", command)
    for key in ("file_path", "filePath", "path"):
        path = event.tool_input.get(key)
        if isinstance(path, str) and path:
            return Rule(effect, "writes" if event.tool_name != "Read" else "reads", path)
    return Rule(effect, "tools", event.tool_name)


def _applies(record: RuleRecord, session_id: str, workspace: str) -> bool:
    keys: Mapping[str, str] = {"session": session_id, "project": workspace, "everywhere": ""}
    return keys.get(record.scope) == record.scope_key


def _as_rule(record: RuleRecord) -> Rule:
    given = record.rule
    return Rule(record.effect, given.get("subject", "tools"), given.get("pattern"), f"always:{record.id}")


def _rule(decision: Decision) -> str | None:
    return decision.rule


def _later(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Ask = Callable[[bytes], Awaitable[dict[str, Any]]]
