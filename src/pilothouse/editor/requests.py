"""Requests of the editor, from the moment they are read until they are answered, also over the death of a hub. No I/O.

A prompt is given an id of its own (`clientRequestId`) before it leaves, so that it can be sent again and is still the
same prompt. What must not be done twice, and is not known to be one of the protocol's own methods, is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, UnsetType

from ..acp.jsonrpc import RequestId

__all__ = [
    "AGAIN",
    "LOAD",
    "MAKING",
    "OPENING",
    "PROMPT",
    "RESUME",
    "Request",
    "object_of",
    "our_facts",
    "read_request",
    "resuming",
    "seq_in",
    "with_ours",
]

NEW, LOAD, RESUME = "session/new", "session/load", "session/resume"
PROMPT = "session/prompt"
MAKING = frozenset({NEW, "session/fork"})
OPENING = frozenset({LOAD, RESUME})
AGAIN = frozenset(
    {
        *(NEW, LOAD, RESUME, PROMPT, "session/list", "session/close", "session/delete"),
        *("session/set_mode", "session/set_model", "session/set_config_option", "authenticate", "logout"),
    }
)
"""Methods that can be asked of the next hub as well when one died over them."""


class Request:
    """One request. `number` is its id at the hub, None while it is at none."""

    __slots__ = (
        *(
            "cancelled",
            "deaths",
            "id",
            "method",
            "number",
            "opened",
            "own",
            "params",
            "sent",
            "session_id",
            "size",
            "times",
        ),
    )

    def __init__(self, request_id: RequestId, method: str, params: Raw | None) -> None:
        self.id = request_id
        self.method = method
        self.params = params
        self.session_id: str | None = None
        self.own: str | None = None
        """What makes a prompt the same one when it is sent again."""
        self.number: RequestId = None
        self.size = 0
        """Bytes of the line by which it came, while it waits for a hub."""
        self.times = 0
        self.deaths = 0
        self.sent = False
        self.opened = False
        """Whether the editor gets to know the session by it."""
        self.cancelled = False


class _Session(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815 - as on the wire


_session_of = msgspec.json.Decoder(_Session).decode
_fields_of = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


def read_request(
    request_id: RequestId, method: str, params: Raw | UnsetType, *, agent: str | None, new_id: Callable[[], str]
) -> Request:
    """A request as it will go to the hub. `agent` is for new sessions that name none."""
    request = Request(request_id, method, None if isinstance(params, UnsetType) else params)
    if request.params is None:
        return request
    try:
        request.session_id = _session_of(request.params).sessionId
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return request  # the hub says what is wrong with it
    if method == NEW and agent is not None:
        request.params = with_ours(request.params, {"agent": agent}, replace=False)
    elif method == PROMPT and request.session_id is not None:
        given = our_facts(request.params).get("clientRequestId")
        request.own = given if isinstance(given, str) else new_id()
        request.params = with_ours(request.params, {"clientRequestId": request.own})
    return request


def our_facts(params: Raw) -> dict[str, Any]:
    """What is under `_meta.pilothouse` of params or of a result."""
    try:
        meta = msgspec.json.decode(_fields_of(params).get("_meta", b"{}"))
        ours = meta.get("pilothouse")
    except (msgspec.DecodeError, UnicodeError, RecursionError, AttributeError):
        return {}
    return ours if isinstance(ours, dict) else {}


def seq_in(facts: Mapping[str, Any]) -> int:
    """The seq that facts of ours tell; 0 when they tell none."""
    seq = facts.get("seq")
    return seq if isinstance(seq, int) and not isinstance(seq, bool) else 0


def object_of(raw: Raw | UnsetType) -> dict[str, Any]:
    """Params or a result as they are read; empty when they are no object."""
    try:
        value = msgspec.json.decode(raw) if not isinstance(raw, UnsetType) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def resuming(params: Raw | None, session_id: str, facts: Mapping[str, Any]) -> Raw:
    """How a session is taken up again that was opened with these params.

    They are given again: what they hold for the agent, such as MCP servers, no hub has kept.
    """
    try:
        fields = _fields_of(params) if params is not None else {}
        meta: dict[str, Any] = dict(_fields_of(fields.get("_meta", b"{}")))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        fields, meta = {}, {}
    own = {"sessionId": session_id, "_meta": {**meta, "pilothouse": facts}}
    return Raw(_encode({"cwd": "", "mcpServers": [], **fields, **own}))


def with_ours(params: Raw, facts: Mapping[str, Any], *, replace: bool = True) -> Raw:
    """Params with facts of ours, and otherwise as they came; without `replace` what they say already counts."""
    try:
        fields = _fields_of(params)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return params
    try:
        meta: dict[str, Any] = dict(_fields_of(fields.get("_meta", b"{}")))
        ours: dict[str, Any] = dict(_fields_of(meta.get("pilothouse", b"{}")))
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # null, or nothing that can be added to
        meta, ours = {}, {}
    ours = {**ours, **facts} if replace else {**facts, **ours}
    fields["_meta"] = Raw(_encode({**meta, "pilothouse": ours}))
    return Raw(_encode(fields))
