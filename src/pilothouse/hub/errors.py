"""What the hub refuses, as one tree.

    HubError
    ├── UnknownAgent        no agent is configured under this name
    ├── UnknownApproval     there is no such approval or question
    ├── NotFound            no agent on this machine keeps such a session
    ├── DecidedOtherwise    somebody else decided first, and not the same
    ├── IllegalCommand      the session's status does not allow it
    │   └── IdReused        the id of a request was given to another one before
    ├── QueueFull           too many prompts wait already
    ├── Busy                a turn runs, and the prompt was not to wait
    ├── Held                another program or hub has the agent's session open, or may have
    ├── Unsupported         the agent cannot do it
    ├── UnfitContent        the agent does not take what is in the prompt
    ├── AgentFailed         the agent could not be started, or answered with an error
    ├── NotStored           the log did not take what happened, so it does not count
    └── HubClosing          nothing was done; the next hub on this home will

An agent's failure inside a turn is an event, not an exception; these are for the caller. `record` makes the error
that HTTP bodies and commands carry.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..log.errors import RecordChanged, UnknownSession
from ..model.errors import ACPError


class HubError(Exception):
    """Base of what the hub refuses."""

    code: ClassVar[str] = "hub_error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details

    @property
    def record(self) -> ACPError:
        return ACPError(code=self.code, message=str(self), recoverable=True, details=self.details or None)


class UnknownAgent(HubError):
    code = "unknown_agent"


class UnknownApproval(HubError):
    code = "unknown_approval"


class NotFound(HubError):
    code = "not_found"


class DecidedOtherwise(HubError):
    code = "conflict"


class IllegalCommand(HubError):
    code = "illegal_command"


class IdReused(IllegalCommand):
    code = "id_reused"


class QueueFull(HubError):
    code = "queue_full"


class Busy(HubError):
    code = "busy"


class Held(HubError):
    """`choices` are what can be done instead; `pid` and `since` tell of the program, `file` of a lease."""

    code = "held"


class Unsupported(HubError):
    code = "unsupported"


class UnfitContent(HubError):
    code = "unfit_content"


class AgentFailed(HubError):
    code = "agent_failed"


class NotStored(HubError):
    code = "not_stored"

    @property
    def is_deleted(self) -> bool:
        """Whether the reason is that the session was deleted meanwhile."""
        cause = self.__cause__
        changed = cause.record if isinstance(cause, RecordChanged) else None
        return isinstance(cause, UnknownSession) or getattr(changed, "deleted", None) is not None


class HubClosing(HubError):
    code = "closing"

    def __init__(self) -> None:
        super().__init__("the hub is closing", closing=True)


def explain_watched_session(session_id: str) -> str:
    """The answer to a prompt for a session that another program runs."""
    return f"session {session_id} is only watched: another program runs it. `pilothouse adopt {session_id}` takes it up"
