"""What can go wrong between a client and a hub, as one tree.

RemoteError
├── NoHub               nothing listens there: no hub runs, or it has gone
├── ConnectionLost      the hub went away in mid-sentence; `cursor` is where to go on
└── Refused             the hub answered with an error: `status`, `code`, `details`
    ├── NotFound        404
    └── Conflict        409: somebody was first, or the session is busy
"""

from __future__ import annotations

from typing import Any

import msgspec


class RemoteError(Exception):
    """Base of what a client of a hub may have to deal with."""


class NoHub(RemoteError):
    """Nothing listens there."""


class ConnectionLost(RemoteError):
    """The hub went away. What came before is complete up to `cursor`."""

    def __init__(self, message: str, cursor: int = 0) -> None:
        super().__init__(message)
        self.cursor = cursor


class Refused(RemoteError):
    """The hub said no, and why."""

    def __init__(self, status: int, code: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.details = details or {}


class NotFound(Refused):
    """There is no such thing."""


class Conflict(Refused):
    """It was decided otherwise already, or cannot be done now."""


KINDS = {404: NotFound, 409: Conflict}


def refusal(status: int, body: bytes) -> Refused:
    """The error of an answer; of one that is not in the hub's own shape the status must do."""
    kind = KINDS.get(status, Refused)
    try:
        error = msgspec.json.decode(body)["error"]
        return kind(status, str(error["code"]), str(error["message"]), error.get("details"))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        text = body[:200].decode(errors="replace").strip()
        return kind(status, "http", f"the hub answered {status}{': ' + text if text else ''}")
