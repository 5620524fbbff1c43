"""What the log keeps beside events: sessions, approvals, rules, devices, turns, settings, and how they change.

A record is a frozen struct; its fields are the columns of its table. A change is a value too, so that several of
them, and a batch of events, can be committed together (`append(..., also=[…])`). Times are ISO 8601 in UTC as in
events, so they compare as text; a flag is the time it was set, or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct, field

# -- records ------------------------------------------------------------------------------------------------------


class Record(Struct, frozen=True, kw_only=True):
    """Base of all records. `documents` are the fields stored as JSON."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]] = ("id",)
    documents: ClassVar[tuple[str, ...]] = ()

    @property
    def key_values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.key)


class SessionRecord(Record, frozen=True, kw_only=True):
    """A session's metadata. `agent_session_id` is the id the agent knows it by, `last_seq` its newest event.

    `updated` moves with every change and, to within about a second, with every batch. A deleted session keeps its id
    taken, but no events.
    """

    table = "sessions"
    documents = ("policy", "meta")

    id: str
    agent: str
    cwd: str
    title: str | None = None
    status: str = "idle"
    agent_session_id: str | None = None
    policy: dict[str, Any] | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    created: str
    updated: str
    last_seq: int = 0
    archived: str | None = None
    deleted: str | None = None

    @property
    def watched_id(self) -> str | None:
        """The agent's id of the external session that this one only watches; None for the hub's own sessions."""
        watched = self.meta.get("watched")
        return str(watched.get("sessionId")) if isinstance(watched, dict) else None


class Approval(Record, frozen=True, kw_only=True):
    """A durable question to a human; pending until `resolved`."""

    table = "approvals"
    documents = ("request", "options", "decision")

    id: str
    session_id: str
    request: dict[str, Any]
    options: list[dict[str, Any]] = field(default_factory=list)
    created: str
    expires: str | None = None
    resolved: str | None = None
    decision: dict[str, Any] | None = None
    decided_by: str | None = None

    @property
    def state(self) -> Literal["pending", "resolved"]:
        return "pending" if self.resolved is None else "resolved"


class Rule(Record, frozen=True, kw_only=True):
    """What is answered without asking. `scope_key` is the session id, the project's directory, or empty.

    `made_by` signed the decision of `approval_id` that it came of, `device_id` is the device that did, if it was one;
    None for rules of older files.
    """

    table = "rules"
    documents = ("rule",)

    id: str
    scope: Literal["session", "project", "everywhere"]
    scope_key: str = ""
    rule: dict[str, Any]
    effect: Literal["allow", "deny"]
    created: str
    expires: str | None = None
    hits: int = 0
    last_hit: str | None = None
    revoked: str | None = None
    made_by: str | None = None
    device_id: str | None = None
    approval_id: str | None = None

    def active(self, now: str) -> bool:
        return self.revoked is None and (self.expires is None or self.expires > now)


class Device(Record, frozen=True, kw_only=True):
    """A paired consumer. `credential` is a hash, never the secret itself."""

    table = "devices"
    documents = ("scopes",)

    id: str
    name: str
    credential: str
    scopes: list[str] = field(default_factory=list)
    created: str
    last_seen: str | None = None
    revoked: str | None = None


class Turn(Record, frozen=True, kw_only=True):
    """Which turn a client's request started; a request sent again finds the same turn.

    `digest` tells it from another request under the same id; None where none was kept.
    """

    table = "turns"
    key = ("session_id", "client_request_id")

    session_id: str
    client_request_id: str
    turn_id: str
    created: str
    digest: str | None = None


class Setting(Record, frozen=True, kw_only=True):
    """A value under a name."""

    table = "settings"
    key = ("name",)
    documents = ("value",)

    name: str
    value: Any
    updated: str


KINDS: tuple[type[Record], ...] = (SessionRecord, Approval, Rule, Device, Turn, Setting)

# -- changes ------------------------------------------------------------------------------------------------------

R = TypeVar("R", bound=Record)


class Insert(Struct, Generic[R], frozen=True):
    """Add a record. Result: the record; with `keep` the one that was there before, if any.

    Raises RecordExists (without `keep`), UnknownSession when it names a session that is not there.
    """

    record: R
    keep: bool = False


class Put(Struct, Generic[R], frozen=True):
    """Add a record, or put it in place of the one under its key. Result: the record."""

    record: R


class Update(Struct, Generic[R], frozen=True):
    """Set `values` and raise `counts` of one record, if `where` still holds (None: the field is empty).

    Result: an Outcome with the record as it then is. `strict`: raise RecordChanged when `where` does not hold, so
    that nothing of the transaction is written. Raises UnknownRecord.
    """

    kind: type[R]
    key: tuple[Any, ...]
    values: Mapping[str, Any] = {}
    counts: Mapping[str, int] = {}
    where: Mapping[str, Any] = {}
    strict: bool = False


class Remove(Struct, Generic[R], frozen=True):
    """Take a record away. Result: whether it was there."""

    kind: type[R]
    key: tuple[Any, ...]


class DeleteSession(Struct, frozen=True):
    """Delete a session with all that belongs to it; its id stays taken. Raises UnknownSession."""

    session_id: str
    at: str


Change: TypeAlias = Insert[Any] | Put[Any] | Update[Any] | Remove[Any] | DeleteSession


class Outcome(Struct, Generic[R], frozen=True):
    """A record after an Update, and whether this update was the one that changed it."""

    record: R
    changed: bool


# -- lists --------------------------------------------------------------------------------------------------------


class SessionFilter(Struct, frozen=True, kw_only=True):
    """Which sessions to list. `archived`: None for all. `text`: part of the title. `before`: `next` of a page."""

    agent: str | None = None
    cwd: str | None = None
    status: str | None = None
    archived: bool | None = False
    text: str | None = None
    before: str | None = None
    limit: int = 50


class SessionPage(Struct, frozen=True):
    """Sessions, the one last active first; `next` is the cursor of the following page, None after the last."""

    sessions: list[SessionRecord]
    next: str | None = None


class SearchHit(Struct, frozen=True):
    """Where a search found something. `type` is that of the event."""

    session_id: str
    seq: int
    position: int
    type: str
    snippet: str
