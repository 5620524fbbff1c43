"""What went wrong, as an HTTP status and one body: `{"error": {code, message, recoverable, details}}`.

The one place that knows which exception is which status. What is not listed is a defect: it is logged with its trace,
and the consumer is told no more than that.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from ..hub.client.refusals import (
    AlreadyThere,
    Changed,
    NoSuchFile,
    NotPermitted,
    OutsideWorkspace,
    ReadOnly,
    StorageFull,
    TooLarge,
    Unstable,
    WorkspaceError,
)
from ..hub.errors import (
    AgentFailed,
    Busy,
    DecidedOtherwise,
    Held,
    HubClosing,
    HubError,
    IdReused,
    IllegalCommand,
    NotFound,
    NotStored,
    QueueFull,
    UnknownAgent,
    UnknownApproval,
    Unsupported,
)
from ..log.errors import (
    CursorAhead,
    LogClosed,
    LogError,
    LogFull,
    RecordChanged,
    RecordExists,
    UnknownRecord,
    UnknownSession,
)
from ..model.errors import ValidationError

logger = logging.getLogger(__name__)


LATER = {"Retry-After": "5"}
"""Whoever is told that there are too many is told when to come again."""


class Refusal(Struct, kw_only=True, frozen=True):
    """What went wrong, for programs (`code`) and for people (`message`), and whether one can go on. `details` are those
    that there are, by name."""

    code: str
    message: str
    recoverable: bool
    details: dict[str, Any]


class HttpError(Exception):
    """A refusal that only makes sense over HTTP."""

    def __init__(
        self, status: int, code: str, message: str, *, headers: dict[str, str] | None = None, **details: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.record = Refusal(code=code, message=message, recoverable=status != 500, details=details)


STATUS: dict[type[Exception], tuple[int, str]] = {
    UnknownSession: (404, "unknown_session"),
    UnknownRecord: (404, "not_found"),
    UnknownAgent: (404, UnknownAgent.code),
    UnknownApproval: (404, UnknownApproval.code),
    NotFound: (404, NotFound.code),
    DecidedOtherwise: (409, DecidedOtherwise.code),
    IllegalCommand: (409, IllegalCommand.code),
    IdReused: (409, IdReused.code),
    Busy: (409, Busy.code),
    Held: (409, Held.code),
    RecordExists: (409, "conflict"),
    RecordChanged: (409, "conflict"),
    CursorAhead: (409, "cursor_ahead"),
    Unsupported: (422, Unsupported.code),
    ValidationError: (422, "invalid"),
    QueueFull: (429, QueueFull.code),
    AgentFailed: (502, AgentFailed.code),
    NotStored: (507, NotStored.code),
    LogFull: (507, "log_full"),
    LogClosed: (503, "closing"),
    LogError: (503, "log_error"),
    HubClosing: (503, HubClosing.code),
    HubError: (422, HubError.code),
    NoSuchFile: (404, "no_such_file"),
    OutsideWorkspace: (403, "outside_workspace"),
    NotPermitted: (403, "not_permitted"),
    ReadOnly: (403, "read_only"),
    AlreadyThere: (409, "exists"),
    Unstable: (409, "unstable"),
    Changed: (412, "changed"),
    TooLarge: (413, "too_large"),
    StorageFull: (507, "storage_full"),
    WorkspaceError: (422, "bad_path"),
}
"""The first class of an exception's own line of descent that is listed here decides."""


def explain(exc: Exception) -> tuple[int, Refusal]:
    """The status and the refusal for an exception; 500 for one that is a defect, which is logged."""
    if isinstance(exc, HttpError):
        return exc.status, exc.record
    if isinstance(exc, NotStored) and exc.is_deleted:
        exc = UnknownSession(exc.details["sessionId"])
    for cls in type(exc).__mro__:
        if cls in STATUS:
            status, code = STATUS[cls]
            return status, Refusal(code=code, message=str(exc), recoverable=True, details=_details(exc))
    logger.error("a request failed", exc_info=exc)
    message = "something went wrong inside Pilothouse; its log has the trace"
    return 500, Refusal(code="internal", message=message, recoverable=False, details={})


def _details(exc: Exception) -> dict[str, Any]:
    if isinstance(exc, HubError):
        return exc.details
    if isinstance(exc, WorkspaceError):
        return exc.data
    if isinstance(exc, ValidationError):
        return {"field": exc.path}
    if isinstance(exc, UnknownSession):
        return {"sessionId": exc.session_id}
    if isinstance(exc, CursorAhead):
        return {"cursor": exc.cursor, "last": exc.last}
    return {}


def error_response(exc: Exception) -> Response:
    status, record = explain(exc)
    headers = (LATER if status == 429 else {}) | (exc.headers if isinstance(exc, HttpError) else {})
    body = msgspec.json.encode({"error": record})
    return Response(body, status, media_type="application/json", headers=headers)
