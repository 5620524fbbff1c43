"""Results and errors in the words of ACP: how a session is set up, how a turn ended, why something was refused."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import msgspec

from ...acp import lenient, schema
from ...acp.errors import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    ConnectionClosed,
    RequestError,
)
from ...hub.errors import AgentFailed, HubClosing, HubError, IllegalCommand, NotStored, QueueFull, Unsupported
from ...hub.session.prompt_queue import TurnResult
from ...log.errors import CursorAhead, LogError, UnknownSession
from ...model.errors import ACPError, ValidationError
from ...model.session import Session

T = TypeVar("T")

FORBIDDEN = -32003
_STOPS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")

_CODES: Mapping[type[Exception], tuple[int, str]] = {
    UnknownSession: (RESOURCE_NOT_FOUND, "Resource not found"),
    Unsupported: (METHOD_NOT_FOUND, "Method not found"),
    IllegalCommand: (INVALID_REQUEST, "Invalid request"),
    QueueFull: (INTERNAL_ERROR, "Too many prompts wait"),
    AgentFailed: (INTERNAL_ERROR, "The agent failed"),
    NotStored: (INTERNAL_ERROR, "Nothing could be stored"),
    HubClosing: (INTERNAL_ERROR, "Try again"),
    CursorAhead: (INVALID_PARAMS, "Invalid params"),
    ValidationError: (INVALID_PARAMS, "Invalid params"),
    HubError: (INVALID_PARAMS, "Invalid params"),
    LogError: (INTERNAL_ERROR, "Internal error"),
}
"""The first class of an exception's own line of descent that is listed here decides."""


class Ending(msgspec.Struct, frozen=True):
    """What the log says of the end of a turn: the agent's own answer, and the error if there was one."""

    source: bytes | None = None
    error: ACPError | None = None


def request_error(exc: Exception) -> RequestError | None:
    """A refusal of the hub as an error of the protocol; None for a defect."""
    for cls in type(exc).__mro__:
        if cls in _CODES:
            code, message = _CODES[cls]
            details = exc.details if isinstance(exc, HubError) else {}
            if isinstance(exc, UnknownSession):
                details = {"sessionId": exc.session_id}
            # with the reason in it: that is all that most editors show
            return RequestError(code, f"{message}: {exc}", {"details": str(exc), **details})
    return None


async def refusing(work: Awaitable[T]) -> T:
    """Do it; what the hub refuses is refused in the words of the protocol. Raises RequestError, ConnectionClosed."""
    try:
        return await work
    except (RequestError, ConnectionClosed):
        raise
    except Exception as exc:
        refusal = request_error(exc)
        if refusal is None:
            raise
        raise refusal from exc


def forbidden(name: str, scope: str) -> RequestError:
    return RequestError(
        FORBIDDEN, "Forbidden", {"details": f"{name} may not do this; it needs `{scope}`", "scope": scope}
    )


def setup(
    kind: Any, session: Session, *, options: list[Any] | None = None, agent_meta: Any = None, **facts: Any
) -> Any:
    """How a session is set up, as the answer of a type: its modes, options and models, and our own facts.

    `options` are those that the client is shown; `agent_meta` is what its agent said of it.
    """
    meta = agent_meta if isinstance(agent_meta, dict) else {}
    found: dict[str, Any] = {"_meta": {**meta, **wire(**facts, status=session.status)}}
    if session.modes and session.mode:
        found["modes"] = {"availableModes": session.modes, "currentModeId": session.mode}
    shown = session.config_options if options is None else options
    if shown or kind is schema.SetSessionConfigOptionResponse:
        found["configOptions"] = shown
    if session.models and session.model:
        found["models"] = {"availableModels": session.models, "currentModelId": session.model}
    return lenient.repair(kind, {**found, "sessionId": session.id}, "result")[0]


def wire(**facts: Any) -> dict[str, Any]:
    """Our own facts as `_meta` carries them."""
    return {"pilothouse": {name: value for name, value in facts.items() if value is not None}}


def prompt_answer(result: TurnResult, ending: Ending) -> schema.PromptResponse:
    """How the turn ended, in the agent's own words as far as it had some. Raises RequestError for one that failed."""
    if result.stop_reason in ("error", "interrupted"):
        raise _failure(result, ending)
    own = _own_answer(ending.source)
    known = result.stop_reason in _STOPS
    facts = wire(turnId=result.turn_id, seq=result.seq, stopReason=None if known else result.stop_reason)
    meta = own.get("_meta")
    answer = {
        **own,
        "stopReason": result.stop_reason if known else "end_turn",
        "_meta": {**(meta if isinstance(meta, dict) else {}), **facts},
    }
    response: schema.PromptResponse = lenient.repair(schema.PromptResponse, answer, "result")[0]
    return response


def _own_answer(source: bytes | None) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(source) if source else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def _failure(result: TurnResult, ending: Ending) -> RequestError:
    facts = {"turnId": result.turn_id, "seq": result.seq, "stopReason": result.stop_reason}
    if result.stop_reason == "interrupted":
        message = (
            "The turn was interrupted: the hub, or its agent, was stopped or died, or somebody deleted the session. "
            "Prompt again to go on"
        )
        return RequestError(INTERNAL_ERROR, message, facts)
    error = ending.error
    if error is None:
        return RequestError(INTERNAL_ERROR, result.error or "The turn failed", facts)
    kind = _kind(error)
    told = {"code": error.code, "errorKind": kind, "details": error.details, **facts}
    return RequestError(
        _own_code(error), _words(error, kind), {key: told[key] for key in told if told[key] is not None}
    )


_KINDS: Mapping[str, str] = {
    "auth_required": "Not logged in",
    "billing": "Billing problem",
    "connection": "No connection to the model",
    "forbidden": "Not permitted",
    "invalid_request": "The model's server refused the request",
    "not_found": "Not found",
    "overloaded": "The model is overloaded",
    "rate_limit": "Rate limit reached",
    "server_error": "The model's server failed",
    "too_large": "The request is too large",
}
"""Kinds of errors, as a heading for what the agent says of one; most editors show nothing but the message."""
_OWN_KINDS = {"auth_required": "auth_required", "rate_limited": "rate_limit"}
_EMPTY_WORDS = frozenset({"", "internal error", "invalid params", "invalid request", "server error", "error"})
_LAST_WORDS = 300


def _kind(error: ACPError) -> str | None:
    details = error.details if isinstance(error.details, dict) else {}
    kind = details.get("errorKind")
    return kind if isinstance(kind, str) else _OWN_KINDS.get(error.code)


def _words(error: ACPError, kind: str | None) -> str:
    """What went wrong, as far as it is known, in one text."""
    details = error.details if isinstance(error.details, dict) else {"details": error.details}
    words = error.message.strip()
    if words.rstrip(".").casefold() in _EMPTY_WORDS:
        given = (details.get(name) for name in ("details", "message", "reason", "error"))
        more = next((one.strip() for one in given if isinstance(one, str) and one.strip()), "")
        words = f"{words}: {more[:_LAST_WORDS]}" if words and more else words or more
    tail = details.get("stderrTail")
    if error.code == "agent_died" and isinstance(tail, str) and tail.strip():
        words = f"{words} It said: {tail.strip()[-_LAST_WORDS:]}"
    heading = _KINDS.get(kind or "")
    if heading is None or heading.casefold() in words.casefold():
        return words or "The turn failed"
    status = details.get("status")
    number = f" ({status})" if isinstance(status, int) else ""
    return f"{heading}{number}: {words}" if words else f"{heading}{number}"


def _own_code(error: ACPError) -> int:
    """The agent's own code, but for the one that would make a client log in here instead of at the agent."""
    given = error.agent_code or ""
    code = int(given) if given.lstrip("-").isdecimal() and len(given) < 12 else INTERNAL_ERROR
    return code if code != AUTH_REQUIRED else INTERNAL_ERROR
