"""Prompts and turns: how a prompt is sent, which turn a result ends, with what outcome and usage.

Text alone stays a plain string: only then does every version of the CLI recognise a slash command. Results are not
counted against prompts: a prompt sent while a turn runs joins it, a background task starts a turn of its own, and the
result of an abandoned turn may still come. A turn belongs to a prompt if it started, or took the prompt in, after the
prompt was sent. A turn ends with a stop reason or an error; the error's kind (`data.errorKind`) is for programs,
because each kind needs another reaction of the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import unquote

from msgspec import Struct

from ...acp.errors import AUTH_REQUIRED, INTERNAL_ERROR, RESOURCE_NOT_FOUND
from ...acp.model import to_wire
from ...model.loose_json import count, mapping, number, text
from .actions import Failure, Outbox
from .wire import Result, failed, stop_reason

_PARTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class Usage:
    """How full the context of the main agent is, and what the session has cost."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._used = 0
        self._window = 0
        self._cost: float | None = None
        self._told: tuple[int, int, float | None] | None = None

    def message(self, usage: Any) -> None:
        """The usage of one message of the main agent: all that the model was sent, and what it said."""
        used = sum(count(mapping(usage).get(part)) or 0 for part in _PARTS)
        if used:
            self._used = used

    def shrunk(self, used: int = 0) -> None:
        """The conversation was cleared, or shortened to this much."""
        self._used = used

    def tell(self) -> None:
        """Tell the client if there is something new. Before the first result the size of the window is not known."""
        now = (self._used, self._window, self._cost)
        if not self._window or now == self._told:
            return
        self._told = now
        cost = {"amount": self._cost, "currency": "USD"} if self._cost is not None else None
        self._outbox.update("usage_update", used=self._used, size=self._window, cost=cost)

    def result(self, result: Result, model: str) -> None:
        """A turn ended; its cost is that of the session so far."""
        self._cost = number(result.total_cost_usd) if number(result.total_cost_usd) is not None else self._cost
        windows = {name: count(mapping(each).get("contextWindow")) or 0 for name, each in result.modelUsage.items()}
        names = {text(mapping(each).get("canonicalModel")): name for name, each in result.modelUsage.items()}
        known = windows.get(model) or windows.get(names.get(model, ""))
        self._window = known or self._window or max(windows.values(), default=0)
        self.tell()


def turn_usage(usage: Any) -> dict[str, int] | None:
    """The tokens of a turn, as the answer to its prompt tells them."""
    told = mapping(usage)
    parts = [count(told.get(part)) or 0 for part in _PARTS]
    if not any(parts):
        return None
    sent, read, written, said = parts
    counts = {"totalTokens": sum(parts), "inputTokens": sent, "outputTokens": said}
    thought = count(mapping(told.get("output_tokens_details")).get("thinking_tokens"))
    extra = {"cachedReadTokens": read, "cachedWriteTokens": written, "thoughtTokens": thought}
    return {**counts, **{key: value for key, value in extra.items() if value}}


Block = dict[str, Any]
_MODEL = re.compile(r"\s*/model\s+(\S+)\s*\Z")


def prompt_content(prompt: Any) -> str | list[Block]:
    """What the `content` of a user line is for a prompt: text, or a list of blocks, decoded or as objects."""
    if isinstance(prompt, str):
        return prompt
    wire = to_wire(prompt)
    found = [made for block in (wire if isinstance(wire, list) else [wire]) for made in _blocks(mapping(block))]
    if len(found) == 1 and found[0]["type"] == "text":
        return text(found[0]["text"])
    return found


def model_asked_for(prompt: Any) -> str:
    """The model that a command of the CLI in a prompt asks for; "" for any other prompt."""
    content = prompt_content(prompt)
    found = _MODEL.match(content) if isinstance(content, str) else None
    return found[1] if found is not None else ""


def _blocks(block: Block) -> list[Block]:
    make = _MAKE.get(text(block.get("type")))
    return make(block) if make is not None else [_text(f"[{text(block.get('type')) or 'unknown'} content left out]")]


def _text(words: str) -> Block:
    return {"type": "text", "text": words}


def _words(block: Block) -> list[Block]:
    words = text(block.get("text"))
    return [_text(words)] if words else []


def _image(block: Block) -> list[Block]:
    data, uri = text(block.get("data")), text(block.get("uri"))
    kind = text(block.get("mimeType")) or text(block.get("mediaType")) or "image/png"
    if data:
        return [{"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}]
    if uri.startswith(("http://", "https://")):
        return [{"type": "image", "source": {"type": "url", "url": uri}}]
    return [_text(_mention(uri))] if uri else []


def _link(block: Block) -> list[Block]:
    return [_text(_mention(text(block.get("uri")), text(block.get("name"))))]


def _resource(block: Block) -> list[Block]:
    """An embedded resource: its place in the text, then what is in it."""
    resource = mapping(block.get("resource"))
    uri, kind, blob = text(resource.get("uri")), text(resource.get("mimeType")), text(resource.get("blob"))
    if "text" in resource:
        body = text(resource.get("text"))
        return [_text(_mention(uri)), _text(f'<context ref="{uri}">\n{body}\n</context>')]
    if blob and kind.startswith("image/"):
        return [{"type": "image", "source": {"type": "base64", "media_type": kind, "data": blob}}]
    if blob and kind == "application/pdf":
        return [{"type": "document", "source": {"type": "base64", "media_type": kind, "data": blob}}]
    return [_text(_mention(uri))]


def _mention(uri: str, name: str = "") -> str:
    """A file as the CLI's users name one, which makes it read the file; anything else by its address."""
    if uri.startswith("file:"):
        path = uri[len("file:") :].split("#", maxsplit=1)[0]
        # after two slashes comes the name of a machine, nearly always left out
        return f"@{unquote(path if not path.startswith('//') else path[path.find('/', 2) :])}"
    if uri.startswith("/"):
        return f"@{uri}"
    return f"[{name}]({uri})" if name and name != uri else uri or name or "[nothing]"


_MAKE: dict[str, Callable[[Block], list[Block]]] = {
    "text": _words,
    "image": _image,
    "resource_link": _link,
    "resource": _resource,
}


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
    for name, amount in mapping((before or {}).get("usage")).items():
        usage = {**(usage or {}), name: amount + (usage or {}).get(name, 0)}
    return {"stopReason": reason, **({"usage": usage} if usage else {}), "_meta": meta}


class Prompt:
    """A prompt that waits for its end. `state` is what the CLI has told of it, `begun` that a turn began since."""

    __slots__ = ("begun", "state", "uuid")

    def __init__(self, uuid: str | None) -> None:
        self.uuid = uuid
        self.state: Literal["sent", "queued", "taken"] = "sent"
        self.begun = False


class Turns:
    """The prompts of a session, oldest first."""

    def __init__(self) -> None:
        self._open: list[Prompt] = []
        self._given_up = 0
        self.cancelling = False
        self.is_running = False
        """Whether the main agent has a turn, prompted or not."""
        self.late = 0
        """Results that came when nobody waited for them any more."""

    @property
    def waiting(self) -> int:
        return len(self._open)

    def sent(self, uuid: str | None) -> None:
        """A prompt goes to the CLI."""
        self._open.append(Prompt(uuid))
        self.cancelling = False

    def begun(self) -> None:
        """A turn begins."""
        self.is_running = True
        for prompt in self._open:
            prompt.begun = True

    def repeated(self, uuid: str | None) -> None:
        """The CLI repeats a prompt that it takes in: the one with this id, else the oldest that it has not taken."""
        waiting = [prompt for prompt in self._open if prompt.state != "taken"]
        known = [prompt for prompt in waiting if prompt.uuid is not None and prompt.uuid == uuid]
        for prompt in (known or waiting)[:1]:
            prompt.state = "taken"

    def told(self, uuid: str, state: str) -> int:
        """The CLI tells what became of a prompt; how many that ends. One dropped from the queue has no result."""
        prompt = next((prompt for prompt in self._open if prompt.uuid == uuid), None)
        if prompt is None:
            return 0
        if state == "queued" and prompt.state == "sent":
            prompt.state = "queued"
        elif state == "started":
            prompt.state = "taken"
        elif state == "cancelled" and prompt.state != "taken" and self._open[0] is prompt:
            return self._end([prompt])
        return 0

    def given_up(self) -> int:
        """Nobody waits any more for the turn that runs; how many prompts that ends."""
        ended, self._open = len(self._open), []
        self._given_up += 1 if ended else 0
        return ended

    def result(self, result: Result) -> int:
        """A turn ended: how many of the open prompts that answers, none for a turn that is not theirs."""
        self.is_running = False
        taken = [prompt for prompt in self._open if prompt.state == "taken"]
        if taken or text((result.origin or {}).get("kind")) == "task-notification":
            self._given_up = 0 if taken else self._given_up
            return self._end(taken)
        if not self._open or self._is_older():
            self._given_up = max(0, self._given_up - 1)
            self.late += 1
            return 0
        self._given_up = 0
        queued = result.queued_turn_count or 0
        # what is queued begins a turn of its own, the youngest last
        return self._end(self._open[: max(1, len(self._open) - queued)])

    def _is_older(self) -> bool:
        """Whether a result is of a turn that was given up: none of the prompts has been heard of since."""
        queued = any(prompt.state == "queued" for prompt in self._open)
        return queued or (self._given_up > 0 and not any(prompt.begun for prompt in self._open))

    def _end(self, prompts: list[Prompt]) -> int:
        self._open = [prompt for prompt in self._open if prompt not in prompts]
        return len(prompts)
