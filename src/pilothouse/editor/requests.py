"""Requests between the editor and hubs, from the moment they are read until they are answered. No I/O.

A prompt gets an id of its own (`clientRequestId`) before it leaves, so that sending it again after a hub restart is
idempotent. A request that must not run twice, and is not a known method of the protocol, is not sent again.

Requests of hubs have ids that are unique across hubs, and are withdrawn with their hub. Rules a change must not break:
the answer to one hub's request is never sent to another; a command in a terminal of the editor is ended if the hub that
started it is gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import msgspec
from msgspec import Raw, UnsetType

from ..acp.jsonrpc import Message, RequestId, encode_error, encode_notification, encode_result
from ..acp.methods import CANCEL_REQUEST
from ..acp.peer import Peer, Response


def request_ids() -> Callable[[], str]:
    """Ids for prompts, each another one."""
    beginning, numbers = os.urandom(9).hex(), count(1)
    return lambda: f"acp-{beginning}-{next(numbers)}"


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


CREATE, RELEASE = "terminal/create", "terminal/release"


class Question:
    """One question. `id` is its id at the hub, `number` that at the editor."""

    __slots__ = ("id", "is_withdrawn", "number", "session_id")

    def __init__(self, question_id: RequestId, session_id: Any = None) -> None:
        self.id = question_id
        self.number: RequestId = None
        self.session_id = session_id
        """Whose terminal is asked for; None in all other questions."""
        self.is_withdrawn = False


class Questions:
    """The questions that are open at the editor, and the terminals that it has open for a hub."""

    def __init__(self) -> None:
        self._editor: Peer[Question] = Peer()
        self._open: dict[RequestId, Question] = {}
        self._terminals: dict[tuple[str, str], None] = {}
        self.receive = self._editor.receive
        """What a line of the editor means."""

    def ask(self, message: Message) -> bytes:
        """A hub asks; what goes to the editor."""
        params = None if isinstance(message.params, UnsetType) else message.params
        question = Question(None if isinstance(message.id, UnsetType) else message.id)
        if message.method in (CREATE, RELEASE):
            told = object_of(message.params)
            if message.method == CREATE:
                question.session_id = told.get("sessionId")
            else:
                self._terminals.pop((str(told.get("sessionId")), str(told.get("terminalId"))), None)
        question.number, frame = self._editor.request(str(message.method), params, question)
        self._open[question.id] = question
        return frame

    def answered(self, response: Response[Question]) -> tuple[bytes, bytes]:
        """The editor has answered: what goes to it, and what to the hub."""
        question = response.token
        terminal = None
        if question.session_id is not None and response.result is not None:
            terminal = object_of(response.result).get("terminalId")
        if question.is_withdrawn:
            return (self._release(question.session_id, terminal) if terminal is not None else b""), b""
        self._open.pop(question.id, None)
        if response.error is not None:
            return b"", encode_error(question.id, response.error)
        if isinstance(question.session_id, str) and isinstance(terminal, str):
            self._terminals[question.session_id, terminal] = None
        return b"", encode_result(question.id, response.result)

    def withdraw(self, question_id: RequestId) -> bytes:
        """The hub wants no answer any more; what goes to the editor."""
        question = self._open.pop(question_id, None)
        if question is None:
            return b""
        if question.session_id is None:
            return self._editor.cancel(question.number) or b""
        question.is_withdrawn = True  # its answer may be a terminal all the same, and is waited for
        return encode_notification(CANCEL_REQUEST, {"requestId": question.number})

    def leave(self) -> bytes:
        """The hub is gone: what it asked is withdrawn, and its terminals end. What goes to the editor."""
        frames = [self.withdraw(question_id) for question_id in list(self._open)]
        frames += [self._release(*terminal) for terminal in self._terminals]
        self._terminals.clear()
        return b"".join(frames)

    def _release(self, session_id: Any, terminal: Any) -> bytes:
        done = Question(None)
        done.is_withdrawn = True
        _, frame = self._editor.request(RELEASE, {"sessionId": session_id, "terminalId": terminal}, done)
        return frame
