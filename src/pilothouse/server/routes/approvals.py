"""Approvals: what agents ask a person to decide, in all sessions. The first decision wins, and the log names who."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from ...acp.naming import camel
from ...hub.errors import UnknownApproval
from ...log.errors import UnknownRecord
from ...log.records import Approval
from ...model.commands import OfferId, Remember
from ...model.errors import ValidationError
from ..auth import audit
from ..http.operations import Body, Call, Operation, Query

YEAR = 366 * 24 * 3600


class ApprovalRow(Struct, kw_only=True, rename=camel):
    """An approval request to the user. `request` is its event, with preview and risk; `decision` is null while it is
    pending. `options` are the answers that the agent offered."""

    id: str
    session_id: str
    state: Literal["pending", "resolved"]
    request: dict[str, Any]
    options: list[dict[str, Any]]
    created: str
    expires: str | None
    resolved: str | None
    decision: dict[str, Any] | None
    decided_by: str | None


class Approvals(Struct, kw_only=True):
    """Oldest first."""

    approvals: list[ApprovalRow]


class Chosen(Query, rename=camel):
    """Which approvals to list."""

    session_id: str | None = None
    state: Literal["pending", "all"] = "pending"


class Decision(Body):
    """One of the agent's options, or a plain yes or no. `remember` stores the rule that the request offers as `rule`,
    for `rememberFor` seconds or for good; `reason` reaches the agent, and so do `answers`, by the id of the question,
    where the tool asks its user."""

    option_id: Annotated[str, Meta(max_length=4096)] | None = None
    decision: Literal["allow", "deny"] | None = None
    remember: Remember = "once"
    remember_for: Annotated[float, Meta(gt=0, le=YEAR)] | None = None
    rule: OfferId | None = None
    answers: dict[str, str | list[str]] | None = None
    reason: Annotated[str, Meta(max_length=10_000)] | None = None


async def find(call: Call) -> Approvals:
    query: Chosen = call.query
    store = call.server.hub.log.approvals
    found = await (store.pending if query.state == "pending" else store.list)(query.session_id)
    return Approvals(approvals=[approval_row(approval) for approval in found])


async def show(call: Call) -> ApprovalRow:
    return approval_row(await _get(call))


async def decide(call: Call) -> ApprovalRow:
    body: Decision = call.body
    if body.option_id is None and body.decision is None:
        raise ValidationError("give `optionId`, one of the agent's options, or `decision`", "body")
    approval = await _get(call)
    _check_option(approval, body.option_id)
    decided = await call.server.hub.decide(
        approval.id,
        approved={"allow": True, "deny": False}.get(body.decision or ""),
        option_id=body.option_id,
        reason=body.reason,
        by=call.caller.name,
        device_id=call.caller.device_id,
        remember=body.remember,
        remember_for=body.remember_for,
        rule=body.rule,
        answers=body.answers,
    )
    audit.decided(call.caller, decided, remember=body.remember, rememberFor=body.remember_for)
    return approval_row(decided)


async def _get(call: Call) -> Approval:
    approval_id = call.path["id"]
    try:
        return await call.server.hub.log.approvals.get(approval_id)
    except UnknownRecord:
        raise UnknownApproval(f"there is no approval {approval_id!r}", approvalId=approval_id) from None


def _check_option(approval: Approval, option_id: str | None) -> None:
    offered = [str(option.get("optionId")) for option in approval.options]
    if option_id is not None and option_id not in offered:
        raise ValidationError(f"expected one of {', '.join(offered) or 'no options at all'}", "optionId")


def approval_row(approval: Approval) -> ApprovalRow:
    return msgspec.convert(approval, ApprovalRow, from_attributes=True)


_APPROVAL = "/approvals/{id}"
OPERATIONS = (
    Operation(
        method="GET",
        path="/approvals",
        handler=find,
        query=Chosen,
        answer=Approvals,
        summary="List what waits for a decision",
        tag="approvals",
    ),
    Operation(
        method="GET", path=_APPROVAL, handler=show, answer=ApprovalRow, summary="Show an approval", tag="approvals"
    ),
    Operation(
        method="POST",
        path=_APPROVAL,
        handler=decide,
        scope="approve",
        body=Decision,
        answer=ApprovalRow,
        errors=(409, 507),
        summary="Decide; the same decision again changes nothing, another one is a conflict that names the winner",
        tag="approvals",
    ),
)
