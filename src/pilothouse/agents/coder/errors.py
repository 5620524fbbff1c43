"""What may go wrong with a model, in the words and codes that a client understands.

Each kind is told apart by `errorKind` in the error's data: auth_required, billing, rate_limit, overloaded,
context_overflow, connection, not_found, invalid_request, server_error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from pydantic_ai import exceptions

from ...acp import ConnectionClosed, RequestError
from ...acp.errors import AUTH_REQUIRED, INTERNAL_ERROR
from ..commands import Failure
from .models import NoKey

_CLASSES: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.ModelContextWindowExceededError, "context_overflow"),
    (exceptions.ModelAuthenticationError, "auth_required"),
    (exceptions.ModelNotFoundError, "not_found"),
    (exceptions.ModelQuotaExceededError, "billing"),
    (exceptions.ModelRateLimitError, "rate_limit"),
    (exceptions.ModelOverloadedError, "overloaded"),
    (exceptions.ModelUnavailableError, "overloaded"),
    (exceptions.ModelServerError, "server_error"),
    (exceptions.ModelConnectionError, "connection"),
    (exceptions.ModelRequestTimeout, "connection"),
    (NoKey, "auth_required"),
)
_STATUSES: Mapping[int, str] = {
    401: "auth_required",
    402: "billing",
    403: "auth_required",
    404: "not_found",
    413: "context_overflow",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
_WORDS: Mapping[str, str] = {
    "auth_required": "The model's server refuses the key. Set the provider's key and start again",
    "billing": "The account at the model's server has no credit left",
    "rate_limit": "The model's server has reached its rate limit. Try again later",
    "overloaded": "The model's server is overloaded. Try again later",
    "context_overflow": "The conversation is too long for the model. Use /compact, or begin a new session",
    "connection": "The model's server cannot be reached",
    "not_found": "The model's server does not know this model",
    "invalid_request": "The model's server refused the request",
    "server_error": "The model's server failed",
    "model": "The model behaved unexpectedly",
}
BROKEN_OFF = "The model's server did not send its answer to the end"
GARBLED = "What the model's server sent cannot be read"
_NO_JSON = "Failed to decode response as JSON: "
"""How the library begins to say that."""
ELSEWHERE = ("auth_required", "billing", "rate_limit", "overloaded", "connection")
"""What goes wrong whatever the conversation is."""
_UNLIKE = ("auth_required", "billing", "rate_limit")
_TOO_LONG = re.compile(
    r"exceed_context_size|available context size|n_keep.{0,20}n_ctx|max(?:imum)? (?:context|model) length"
    r"|(?:greater|longer) than the (?:model's )?context length|context length (?:is|of) (?:only )?\d"
    r"|exceed\w* (?:the )?context (?:length|window)",
    re.IGNORECASE,
)
"""How llama.cpp, LM Studio, vLLM, SGLang and Ollama say it, with a status and a code that do not."""
_WINDOW = re.compile(
    r"(?:n_ctx\D{1,5}|context (?:size|length|window)(?: is| of)?(?: only)? \(?|model length of |tokens > )(\d{3,8})\b",
    re.IGNORECASE,
)
LENGTH = 500
_PLAINLY: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"^{_NO_JSON}"), ""),
    (
        re.compile(r"Streamed response ended without content or tool calls"),
        "its server sent no answer; at an address of your own, look whether that is the right one",
    ),
    (re.compile(r"Exceeded maximum output retries.*", re.DOTALL), "it answered with nothing, also when asked again"),
    (
        re.compile(r"Tool (?P<name>.+?) exceeded max retries count of (?P<count>\d+).*", re.DOTALL),
        r"it called \g<name> in a wrong way more than \g<count> times",
    ),
)
"""What the library says to programmers, and what it means."""


def kind_of(exc: BaseException) -> str | None:
    """One word for what went wrong; None for what is not the model's."""
    word = _told(exc)
    if word not in _UNLIKE and isinstance(exc, exceptions.ModelAPIError) and _TOO_LONG.search(_said(exc)):
        return "context_overflow"
    return word


def _told(exc: BaseException) -> str | None:
    """The same, by the error's class and status alone."""
    for kind, word in _CLASSES:
        if isinstance(exc, kind):
            return word
    if isinstance(exc, exceptions.ModelHTTPError):
        status = exc.status_code
        return _STATUSES.get(status, "server_error" if status >= 500 else "invalid_request")
    if isinstance(exc, exceptions.ModelAPIError):
        return "connection"
    return "model" if isinstance(exc, (exceptions.AgentRunError, exceptions.UserError)) else None


def is_passing(exc: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    return kind_of(exc) in ("rate_limit", "overloaded")


def is_overflow(exc: BaseException) -> bool:
    return kind_of(exc) == "context_overflow"


def window_of(exc: BaseException) -> int | None:
    """Tokens that the model takes in, if that is said by an error about too many."""
    found = _WINDOW.search(_said(exc)) if is_overflow(exc) else None
    return int(found[1]) if found is not None else None


def _said(exc: BaseException) -> str:
    return f"{getattr(exc, 'body', None)} {exc}"


def is_refusal(exc: BaseException) -> bool:
    """Whether it may be the conversation itself that the model, its server or its library did not take."""
    # a server that cannot see says so by 400, 404 or 500
    return not isinstance(exc, (Failure, RequestError, ConnectionClosed)) and kind_of(exc) not in ELSEWHERE


def explain(exc: Exception, left_out: Sequence[str] = ()) -> RequestError:
    """The error that a client is answered with. `left_out` are attachments that it has cost."""
    kind = kind_of(exc) or ("invalid_request" if left_out else None)
    if isinstance(exc, Failure):
        code = AUTH_REQUIRED if kind == "auth_required" else INTERNAL_ERROR
        return RequestError(code, str(exc), {"errorKind": kind or "invalid_request"})
    data: dict[str, Any] = {"errorKind": kind or "agent_error", "details": _details(exc)}
    if isinstance(exc, exceptions.ModelHTTPError):
        data["status"] = exc.status_code
    words = _words(exc, kind)
    if kind == "connection" and (address := _address(exc)):
        words = words.replace("server", f"server at {address}", 1)
    if left_out and kind_of(exc) is None:
        words = "The model cannot be given what is attached"
    message = f"{words}: {_details(exc)}"
    if left_out:
        data["leftOut"] = list(left_out)
        listed = "; ".join(left_out)
        message = f"{message.rstrip('.')}. So that the session can go on, this is left out from now on: {listed}"
    return RequestError(AUTH_REQUIRED if kind == "auth_required" else INTERNAL_ERROR, message, data)


def _words(exc: Exception, kind: str | None) -> str:
    if str(exc).startswith(_NO_JSON):
        return GARBLED
    return BROKEN_OFF if getattr(exc, "phase", None) == "read" else _WORDS.get(kind or "", "The agent failed")


def _address(exc: BaseException | None) -> str | None:
    """Where the server should have been: the library's own error knows. Only the place: the rest may have a key."""
    while exc is not None:
        with suppress(Exception):  # some of them raise when they have none
            url = cast("Any", exc).request.url
            return f"{url.scheme}://{url.netloc.decode()}"
        exc = exc.__cause__ or exc.__context__
    return None


def _details(exc: Exception) -> str:
    """What the server said, without what is only of use to its programmers."""
    body = getattr(exc, "body", None)
    for _ in range(3):
        inner = body.get("error", body.get("message")) if isinstance(body, dict) else None
        body = inner if inner is not None else body
    text = body if isinstance(body, str) and body.strip() else str(exc) or type(exc).__name__
    for said, meant in _PLAINLY:
        text = said.sub(meant, text)
    return text[:LENGTH]
