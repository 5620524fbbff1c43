"""The "always" answers that the hub holds: seen, and taken back."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ..acp.naming import camel
from ..log.records import Rule
from .operations import Call, Operation, Query

__all__ = ["OPERATIONS", "RuleRow", "Rules"]


class RuleRow(Struct, kw_only=True, rename=camel):
    """`scopeKey` is the session, the project's directory, or empty. A rule that is not `active` answers nothing.

    `madeBy` signed the decision of `approvalId` that it came of, `deviceId` is the paired device that did; null for the
    owner's own, and for rules that are older than this.
    """

    id: str
    active: bool
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


def _row(rule: Rule, now: str) -> RuleRow:
    return RuleRow(
        id=rule.id,
        active=rule.active(now),
        effect=rule.effect,
        scope=rule.scope,
        scope_key=rule.scope_key,
        rule=rule.rule,
        created=rule.created,
        expires=rule.expires,
        hits=rule.hits,
        last_hit=rule.last_hit,
        revoked=rule.revoked,
        made_by=rule.made_by,
        device_id=rule.device_id,
        approval_id=rule.approval_id,
    )


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
        method="DELETE",
        path="/rules/{id}",
        handler=revoke,
        scope="approve",
        answer=RuleRow,
        summary="Revoke a rule",
        tag="approvals",
    ),
)
