"""The rules that "always" stored: list, narrow, keep, revoke."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ...acp.naming import camel
from ...hub.recording.rules import keep_rule, narrow_rule, rule_fields
from ...log.records import Rule
from ..http.operations import Call, Operation, Query


class RuleRow(Struct, kw_only=True, rename=camel):
    """`text` says what the rule covers. `scopeKey` is the session, the project's directory, or empty.

    A rule that is not `active` answers nothing. `isWide` is true for a rule of an earlier version that covers a tool
    with any arguments, although "always" said otherwise; it can be narrowed, kept or revoked. `madeBy` signed the
    decision of `approvalId` that the rule came from, `deviceId` is the paired device that was used; null for the
    owner's own, and for rules that are older than this.
    """

    id: str
    text: str
    active: bool
    is_wide: bool
    effect: Literal["allow", "deny"]
    scope: Literal["session", "project", "everywhere"]
    scope_key: str
    rule: dict[str, Any]
    created: str
    expires: str | None
    hits: int
    last_hit: str | None
    revoked: str | None
    made_by: str | None
    device_id: str | None
    approval_id: str | None


class Rules(Struct, kw_only=True):
    """Oldest first."""

    rules: list[RuleRow]


class Which(Query):
    """`all` lists those that expired or were revoked as well."""

    state: Literal["active", "all"] = "active"


async def find(call: Call) -> Rules:
    log = call.server.hub.log
    found = await (log.rules.active() if call.query.state == "active" else log.rules.list())
    return Rules(rules=[_row(rule, log.now()) for rule in found])


async def revoke(call: Call) -> RuleRow:
    """From now on it answers nothing; revoking it again changes nothing."""
    hub = call.server.hub
    return _row(await hub.revoke_rule(call.path["id"]), hub.log.now())


async def narrow(call: Call) -> RuleRow:
    """Limit a wide rule to the arguments that were approved; narrowing it again changes nothing."""
    log = call.server.hub.log
    return _row(await narrow_rule(log, call.path["id"]), log.now())


async def keep(call: Call) -> RuleRow:
    """Confirm a wide rule as it is; keeping it again changes nothing."""
    log = call.server.hub.log
    return _row(await keep_rule(log, call.path["id"]), log.now())


def _row(rule: Rule, now: str) -> RuleRow:
    return RuleRow(**rule_fields(rule, now))


OPERATIONS = (
    Operation(
        method="GET",
        path="/rules",
        handler=find,
        query=Which,
        answer=Rules,
        summary="List the rules that answer without asking",
        tag="approvals",
    ),
    Operation(
        method="POST",
        path="/rules/{id}/narrow",
        handler=narrow,
        scope="approve",
        answer=RuleRow,
        errors=(409,),
        summary="Limit a rule of an earlier version to the arguments that were approved",
        tag="approvals",
    ),
    Operation(
        method="POST",
        path="/rules/{id}/keep",
        handler=keep,
        scope="approve",
        answer=RuleRow,
        errors=(409,),
        summary="Confirm a rule of an earlier version as it is, for any arguments",
        tag="approvals",
    ),
    Operation(
        method="DELETE",
        path="/rules/{id}",
        handler=revoke,
        scope="approve",
        answer=RuleRow,
        summary="Revoke a rule",
        tag="approvals",
    ),
)
