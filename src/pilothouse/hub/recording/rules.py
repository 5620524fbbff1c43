"""Standing rules: the "always" answers that the hub stores, and how a decision becomes one.

A stored rule is one of those that the request offered (`model.policy.offers`), with the words that were shown. It is
computed again before it is stored: if the result differs, nothing is stored, and the next request is asked
about. Earlier versions stored a rule for any arguments where they said "exactly this request"; `find_wide_rules` finds
these, and `narrow_rule` limits one to the arguments that were approved.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ...log.contract import EventLog
from ...log.errors import UnknownRecord, UnknownSession
from ...log.records import Rule as RuleRecord
from ...log.records import Update
from ...model.commands import OfferId, Remember
from ...model.errors import ValidationError
from ...model.events import ApprovalRequestedEvent
from ...model.policy import Decision, Rule, compile_policy, decide, describe_rule, offer_rules
from ...model.policy.calls import canonical_arguments
from ...model.policy.rules import STORED, Policy, check_rule
from ...model.records import RuleOffer
from ..errors import IllegalCommand

NOTICE = "wide_rules_shown"
"""The setting that holds the ids of the rules that the notice was shown for."""


class StandingRules:
    """The rules that answer without asking in one session: those of its policy, and the stored ones."""

    def __init__(self, log: EventLog, session_id: str, workspace: str) -> None:
        self._log = log
        self._session_id = session_id
        self._workspace = workspace
        self.policy: Policy | None = None

    async def rules(self) -> list[Rule]:
        """The rules in force now; read each time, so that a revoked rule never answers."""
        found = list(compile_policy(self.policy)) if self.policy is not None else []
        keys: Mapping[str, str] = {"session": self._session_id, "project": self._workspace, "everywhere": ""}
        for record in await self._log.rules.active():
            if keys.get(record.scope) == record.scope_key and (rule := read_rule(record)) is not None:
                found.append(rule)
        return found

    def decide(self, rules: list[Rule], name: str, tool_input: Any) -> Decision:
        return decide(rules or None, name, tool_input, self._workspace)

    def allows(self, rules: list[Rule], name: str, tool_input: Any) -> bool:
        """Whether a rule allows this call, and none denies it."""
        return self.decide(rules, name, tool_input).outcome == "allow"

    def hits(self, decision: Decision, rules: list[Rule]) -> list[Any]:
        """The changes that count the rules which made a decision."""
        sources = {rule.source for rule in rules if rule.source.startswith(STORED)}
        used = [source.removeprefix(STORED) for source in sorted(sources) if source in (decision.rule or "")]
        return [self._log.rules.hitting(rule_id) for rule_id in used]

    def remembering(
        self,
        event: ApprovalRequestedEvent,
        allowed: bool,
        scope: Remember,
        now: str,
        seconds: float | None = None,
        *,
        rule: OfferId | None = None,
        by: str | None = None,
        device_id: str | None = None,
    ) -> RuleRecord | None:
        """The record of the offered rule that a decision stores, for `seconds` or without an end.

        `rule` chooses among the offers; the narrowest is the default. None if no rule can be stored, if the request did
        not offer this one, or if it would not be the one that was shown; `explain_refusal` says which.
        """
        if scope == "once":
            return None
        offer = self._choose_offer(event, rule)
        if offer is None:
            return None
        return RuleRecord(
            id=f"rule_{secrets.token_hex(6)}",
            scope=scope,
            scope_key={"session": self._session_id, "project": self._workspace}.get(scope, ""),
            rule=_stored_rule(offer, event.tool_name),
            effect="allow" if allowed else "deny",
            created=now,
            expires=later(seconds) if seconds is not None else None,
            made_by=by,
            device_id=device_id,
            approval_id=event.request_id,
        )

    def explain_refusal(self, event: ApprovalRequestedEvent) -> str:
        """One sentence that says why no rule was stored for a request."""
        if event.rule_refusal:
            return event.rule_refusal
        _, refusal = offer_rules(event.tool_name, event.tool_input, self._workspace)
        return refusal or "The request did not offer this rule; choose one of those that it shows."

    def _choose_offer(self, event: ApprovalRequestedEvent, wanted: OfferId | None) -> RuleOffer | None:
        if event.rule_refusal:
            return None
        computed, _ = offer_rules(event.tool_name, event.tool_input, self._workspace)
        shown = event.rule_offers or computed
        chosen = next((offer for offer in shown if offer.offer_id == (wanted or "exact")), None)
        if chosen is None or _offer_key(chosen) not in map(_offer_key, computed):
            return None
        return chosen


def _offer_key(offer: RuleOffer) -> tuple[str | None, ...]:
    # `==` would take 1, 1.0 and True for the same argument
    arguments = None if offer.arguments is None else canonical_arguments(offer.arguments) or "not comparable"
    return (offer.offer_id, offer.text, offer.subject, offer.pattern, arguments)


def _stored_rule(offer: RuleOffer, tool_name: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"subject": offer.subject, "pattern": offer.pattern, "toolName": tool_name}
    if offer.arguments is not None:
        rule["arguments"] = offer.arguments
    return {**rule, "text": offer.text}


def read_rule(record: RuleRecord) -> Rule | None:
    """The rule of a record; None for one that cannot be read, which answers nothing."""
    fields: dict[str, Any] = {"effect": record.effect, "source": f"{STORED}{record.id}"}
    fields |= {name: record.rule[name] for name in ("subject", "pattern", "arguments") if name in record.rule}
    try:
        rule = msgspec.convert(fields, Rule)
        check_rule(rule)
    except (msgspec.ValidationError, ValidationError):
        return None
    return rule


def rule_fields(record: RuleRecord, now: str) -> dict[str, Any]:
    """The fields of a stored rule for users: those of its record, its `text`, and whether it is active and wide."""
    is_active = record.active(now)
    derived = {"text": describe_rule(record.rule), "active": is_active, "is_wide": is_active and is_wide_rule(record)}
    return msgspec.structs.asdict(record) | derived


def later(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- rules of earlier versions that cover more than they said --


def is_wide_rule(record: RuleRecord) -> bool:
    """Whether "always" of an earlier version stored a tool with any arguments, and the user has not confirmed that."""
    rule = record.rule
    is_open = rule.get("subject") == "tools" and rule.get("arguments") is None and not rule.get("text")
    return is_open and record.effect == "allow" and record.revoked is None and read_rule(record) is not None


def find_wide_rules(records: Iterable[RuleRecord]) -> list[RuleRecord]:
    """The active rules among `records` that cover more than was said when they were made."""
    return [record for record in records if is_wide_rule(record)]


async def wide_rules_notice(log: EventLog) -> str | None:
    """A notice that lists the wide rules, once for each of them; None if there is nothing new to show."""
    wide = find_wide_rules(await log.rules.active())
    shown = await log.settings.get(NOTICE, [])
    known = set(shown) if isinstance(shown, list) else set()
    if not {record.id for record in wide} - known:
        return None
    await log.settings.set(NOTICE, sorted({record.id for record in wide}))
    lines = [f"{describe_wide_rules(len(wide))}:"]
    for record in wide:
        scope = f"{record.scope} {record.scope_key}".strip()  # the key is empty for "everywhere"
        lines.append(f"  {record.id}  {describe_rule(record.rule)} ({scope})")
    return "\n".join([*lines, "Change each with: pilothouse policy narrow RULE, keep RULE or revoke RULE"])


def describe_wide_rules(count: int) -> str:
    """The sentence that explains wide rules, without its full stop."""
    rules = "1 rule of an earlier version covers" if count == 1 else f"{count} rules of an earlier version cover"
    return f"{rules} a tool with any arguments, although “always” said “exactly this request”"


async def narrow_rule(log: EventLog, rule_id: str) -> RuleRecord:
    """Limit a wide rule to the arguments of the approval that it came from. A rule that is not wide stays as it is.

    Raises UnknownRecord for the rule, IllegalCommand if the arguments are not known or no rule can name them.
    """
    record = await _find_rule(log, rule_id)
    if not is_wide_rule(record):
        return record
    try:
        approval = await log.approvals.get(record.approval_id or "")
        workspace = (await log.sessions.get(approval.session_id)).cwd
    except (UnknownRecord, UnknownSession):
        raise _refusal(record, "the approval that it came from is not stored any more") from None
    tool_name, tool_input = approval.request.get("toolName"), approval.request.get("toolInput")
    if tool_name != record.rule.get("pattern"):
        raise _refusal(record, "the approval that it came from is about another tool")
    offers, why = offer_rules(str(tool_name), tool_input, workspace)
    if not offers:
        raise _refusal(record, (why or "no rule can cover its request").removesuffix("."))
    return await _replace(log, record, _stored_rule(offers[0], str(tool_name)))


async def keep_rule(log: EventLog, rule_id: str) -> RuleRecord:
    """Confirm a wide rule as it is: store its words, so that it is not listed as wide again. Raises UnknownRecord."""
    record = await _find_rule(log, rule_id)
    if not is_wide_rule(record):
        return record
    return await _replace(log, record, {**record.rule, "text": describe_rule(record.rule)})


async def _find_rule(log: EventLog, rule_id: str) -> RuleRecord:
    found = await log.find(RuleRecord, {"id": rule_id})
    if not found:
        raise UnknownRecord(RuleRecord.table, (rule_id,))
    return found[0]


async def _replace(log: EventLog, record: RuleRecord, rule: dict[str, Any]) -> RuleRecord:
    change = Update(RuleRecord, (record.id,), {"rule": rule}, where={"revoked": None}, strict=True)
    (outcome,) = await log.apply(change)
    changed: RuleRecord = outcome.record
    return changed


def _refusal(record: RuleRecord, why: str) -> IllegalCommand:
    message = f"{record.id} cannot be narrowed: {why}. Delete it with: pilothouse policy revoke {record.id}"
    return IllegalCommand(message, ruleId=record.id)
