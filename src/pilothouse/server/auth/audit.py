"""The audit log: which callers logged in, were refused or revoked, and what they changed.

The audit log is one line of JSON for each login, refusal, revocation and change, to the logger `pilothouse.audit`. A
secret is never an argument of `record`. Decisions are events of their session as well, with the name and the device of
the caller.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from ...log.records import Approval
from .callers import Caller

logger = logging.getLogger("pilothouse.audit")


def record(action: str, caller: Caller | None = None, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write down that something happened: `caller` did it. As JSON, so that no name can forge a line."""
    if logger.isEnabledFor(level):
        who = {"by": caller.name, "deviceId": caller.device_id} if caller is not None else {}
        told = {"audit": action} | {name: value for name, value in (who | fields).items() if value is not None}
        logger.log(level, "%s", msgspec.json.encode(told).decode(), extra={"audit": told})


def decided(caller: Caller, approval: Approval, **fields: Any) -> None:
    """Write down a decision. Who says again what somebody else has decided has not decided it."""
    decision = approval.decision or {}
    if (approval.decided_by, decision.get("deviceId")) == (caller.name, caller.device_id):
        about: dict[str, Any] = {"sessionId": approval.session_id, "approvalId": approval.id}
        about |= {"approved": decision.get("approved"), "optionId": decision.get("optionId")}
        record("approval_decided", caller, **about, **fields)
