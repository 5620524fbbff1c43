"""What a consumer says over the WebSocket: one struct per message, told apart by `type`.

Reading is strict: a field that does not exist is refused by its name, because it may be a misspelt one that would
otherwise silently mean something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ...acp.naming import camel
from ...model.errors import ValidationError
from ..errors import HttpError
from ..http.operations import checked, parsed

Cursor: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=4096)]
Names: TypeAlias = Annotated[list[Name], Meta(max_length=1000)]


class Message(Struct, kw_only=True, rename=camel, tag_field="type", forbid_unknown_fields=True):
    """Base of all messages. `request_id` comes back with what answers the message."""

    request_id: str | int | None = None


class Authenticate(Message, tag="authenticate"):
    """The first message of who has not shown a token otherwise."""

    token: str


class Subscribe(Message, tag="subscribe"):
    """Follow sessions from cursors on; without `session_ids` all of them, and the cursor is the log's position.

    `after` is one number for all that are named, or a number for each; who is not in it starts at 0. `every` is for who
    draws: at most one message of events in so many milliseconds, once all that was stored has come.
    """

    session_ids: Names | None = None
    after: Cursor | dict[str, Cursor] = 0
    batch: bool = True
    source: bool = False
    every: Annotated[int, Meta(ge=0, le=1000)] = 0


class Unsubscribe(Message, tag="unsubscribe"):
    """Follow these sessions no longer; without `session_ids` none at all."""

    session_ids: Names | None = None


class CommandMessage(Message, tag="command"):
    """Ask something of a session. The same `command_id` again gives the same answer and does nothing."""

    session_id: Name
    command: dict[str, Any]
    command_id: Name


class StartSession(Message, tag="start_session"):
    """Start a session and, with `prompt`, its first turn. The same `command_id` again starts nothing."""

    agent: Name
    cwd: Name
    command_id: Name
    title: str | None = None
    policy: dict[str, Any] | None = None
    prompt: str | list[dict[str, Any]] | None = None


class ListSessions(Message, tag="list_sessions"):
    """A page of sessions, as `GET /sessions` has them."""

    status: str | None = None
    agent: str | None = None
    cwd: str | None = None
    archived: str = "false"
    title: str | None = None
    before: str | None = None
    limit: int = 50


class History(Message, tag="history"):
    """A page of stored events, without following the session."""

    session_id: Name
    after: Cursor = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 500
    source: bool = False


class Ping(Message, tag="ping"):
    """Is anybody there?"""


MESSAGES: Mapping[str, type[Message]] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        Authenticate,
        Subscribe,
        Unsubscribe,
        CommandMessage,
        StartSession,
        ListSessions,
        History,
        Ping,
    )
}
"""Every message by its type."""


def parse_message(text: str | bytes) -> Message:
    """Read a message. Raises HttpError for what is no JSON object of a known type, ValidationError by field."""
    if isinstance(text, bytes):
        raise HttpError(400, "malformed", "send text messages; a binary one came")
    fields = _object(text)
    kind = fields.get("type")
    cls = MESSAGES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        known = ", ".join(MESSAGES)
        if kind is None:
            raise ValidationError(f"expected one of {known}; got nothing", "type")
        shown = str(kind)[:100]
        raise HttpError(422, "unknown_type", f"there is no message {shown!r}; there are {known}", messageType=shown)
    return checked(fields, cls)


def request_id_of(text: str | bytes) -> Any:
    """The `requestId` of a message that could not be read otherwise."""
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    found = fields.get("requestId") if isinstance(fields, dict) else None
    return found if isinstance(found, (str, int)) else None


def _object(text: str) -> dict[str, Any]:
    fields = parsed(text, "message")
    if not isinstance(fields, dict):
        raise HttpError(400, "malformed", "the message is no JSON object")
    return fields
