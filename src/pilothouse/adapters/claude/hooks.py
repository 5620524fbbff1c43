"""A question of Claude Code's hook `PermissionRequest`, as the permission that an agent asks for. Pure.

The options are a plain yes and a plain no: what "always" means is the hub's business, and the hook can say no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .tools import Call

__all__ = ["OPTIONS", "allows", "denies", "tool_call"]

OPTIONS = (
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)


def tool_call(
    call_id: str, name: str, given: Mapping[str, Any], *, cwd: str, old_text: str | None = None, mode: str | None = None
) -> dict[str, Any]:
    """The call that is asked about; `old_text` is what is in the file now that it would write."""
    call = Call(call_id, name, None)
    call.given = dict(given)
    described = call.described(cwd, lambda path: old_text)
    meta = {"claudeCode": call.meta(hook=True, permissionMode=mode)}
    return {"toolCallId": call_id, "status": "pending", **described, "_meta": meta}


def allows(answer: Mapping[str, Any]) -> bool:
    """Whether an answer to these options allows the call."""
    return answer.get("outcome") == {"outcome": "selected", "optionId": "allow"}


def denies(answer: Mapping[str, Any]) -> bool:
    return answer.get("outcome") == {"outcome": "selected", "optionId": "reject"}
