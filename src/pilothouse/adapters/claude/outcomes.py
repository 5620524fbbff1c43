"""How a turn ended: with a stop reason, or with an error that says what went wrong and of which kind it is.

The kinds are for programs (`data.errorKind`): each asks for something else of the user, and a plain "internal error"
would hide which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ...acp.errors import AUTH_REQUIRED, INTERNAL_ERROR, RESOURCE_NOT_FOUND
from .actions import Failure
from .reading import mapping, number, text
from .usage import turn_usage
from .wire import Result, failed, stop_reason

__all__ = ["Fault", "failure_of", "kind_of", "limit_of", "reason_of", "response_of"]


class Fault(Struct, frozen=True):
    """What the CLI said of a failed call of the API, in the place of the model."""

    error: str
    status: int | None
    message: str


_WORDS: Mapping[str, str] = {
    "authentication_failed": "auth_required",
    "oauth_org_not_allowed": "auth_required",
    "billing_error": "billing",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "overloaded_error": "overloaded",
    "invalid_request": "invalid_request",
    "model_not_found": "not_found",
    "server_error": "server_error",
}
_STATUSES: Mapping[int, str] = {
    400: "invalid_request",
    401: "auth_required",
    402: "billing",
    403: "forbidden",
    404: "not_found",
    413: "too_large",
    429: "rate_limit",
    529: "overloaded",
}
_CODES: Mapping[str, int] = {"auth_required": AUTH_REQUIRED, "session_not_found": RESOURCE_NOT_FOUND}
_TEXTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"please run /login|/login\b|invalid api key|not logged in", re.IGNORECASE), "auth_required"),
    (re.compile(r"no conversation found with session id", re.IGNORECASE), "session_not_found"),
    (re.compile(r"usage limit|rate limit|limit reached", re.IGNORECASE), "rate_limit"),
    (re.compile(r"credit balance", re.IGNORECASE), "billing"),
    (re.compile(r"overloaded", re.IGNORECASE), "overloaded"),
    (
        re.compile(r"connection|econn|socket|network|fetch failed|timed? ?out|stream (?:ended|closed)", re.IGNORECASE),
        "connection",
    ),
)
"""What only the words tell, the strongest first."""


def kind_of(error: str, status: int | None, message: str) -> str:
    """One word for what went wrong. A status counts before the CLI's own word, and both before the text."""
    by_text = next((kind for pattern, kind in _TEXTS if pattern.search(message)), None)
    if by_text in ("auth_required", "session_not_found"):
        return by_text
    if status is not None:
        return _STATUSES.get(status, "server_error" if status >= 500 else "api_error")
    known = _WORDS.get(error)
    if known is not None and known != "server_error":
        return known
    return by_text or known or "agent_error"


def failure_of(result: Result, fault: Fault | None) -> Failure:
    """The error of a turn that has no stop reason."""
    said = [error for error in result.errors if isinstance(error, str)]
    message = text(result.result).strip() or (fault.message if fault else "") or "\n".join(said)
    status = result.api_error_status or (fault.status if fault else None)
    error = (fault.error if fault else "") or text(result.api_error)
    kind = kind_of(error, status, message)
    told = {"errorKind": kind, "status": status, "subtype": result.subtype, "terminalReason": result.terminal_reason}
    data: dict[str, Any] = {key: value for key, value in told.items() if value is not None}
    default = "Claude Code ended the turn with an error and did not say which."
    return Failure(kind, _CODES.get(kind, INTERNAL_ERROR), message or default, data)


def reason_of(result: Result, fault: Fault | None, *, refused: bool, cancelled: bool) -> str | None:
    """The stop reason; None for a turn that failed.

    `refused` is what the stream told, which the result keeps to itself; `cancelled` that an interrupt was asked for.
    """
    reason = stop_reason(result)
    if reason is not None or not failed(result):
        return reason or "end_turn"
    if fault is not None and fault.error == "max_output_tokens":
        return "max_tokens"
    if refused:
        return "refusal"
    return "cancelled" if cancelled and result.subtype == "error_during_execution" else None


_LIMITS: Mapping[str, tuple[str, str, str]] = {
    "error_max_turns": ("warning", "Turn limit reached", "max_turns"),
    "error_max_budget_usd": ("warning", "Budget reached", "max_budget"),
    "max_tokens": ("warning", "Output limit reached", "max_tokens"),
    "refusal": ("warning", "The model refused to answer", "refusal"),
}


def limit_of(result: Result, reason: str | None) -> tuple[str, str, str] | None:
    """Severity, title and kind of the notice for a turn that ended at a limit: the stop reasons do not tell them."""
    return _LIMITS.get(result.subtype) or _LIMITS.get(reason or "")


def response_of(result: Result, reason: str, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The answer to the prompt; `before` is what would have been it, had the turn not gone on after all."""
    told = {
        "subtype": result.subtype,
        "terminalReason": result.terminal_reason,
        "numTurns": result.num_turns,
        "durationMs": number(result.duration_ms),
        "costUsd": number(result.total_cost_usd),
    }
    meta = {"claudeCode": {key: value for key, value in told.items() if value is not None}}
    usage = turn_usage(result.usage)
    for name, count in mapping((before or {}).get("usage")).items():
        usage = {**(usage or {}), name: count + (usage or {}).get(name, 0)}
    return {"stopReason": reason, **({"usage": usage} if usage else {}), "_meta": meta}
