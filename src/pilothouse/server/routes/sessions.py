"""Sessions: listed, started, shown, changed, ended.

What a consumer is shown of a session is its fold, with the `seq` to follow it from, and the fields of its record.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from starlette.responses import Response

from ...acp.naming import camel
from ...hub.session.session import HubSession
from ...log.records import SessionRecord
from ...log.stores import read_page_key
from ...model.errors import ValidationError
from ...model.policy import Policy, parse_policy
from ...model.records import SessionStatus, SessionSummary
from ...model.session import Approval, Question, Session
from ..auth import audit
from ..http.operations import Body, Call, Operation, Query, json_response, need
from ..session_options import LONGEST_TITLE, checked_title, may_work_in
from .prompts import Queued

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=4096)]
Title: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_TITLE)]
PolicyObject: TypeAlias = Annotated[
    dict[str, Any], Meta(description="A permission policy: `autoApprove` and `deny`; changing it needs scope `admin`.")
]

# -- shapes ---------------------------------------------------------------------------------------------------------


class SessionRow(Struct, kw_only=True, rename=camel):
    """A session as a list shows it. `queueLength` is null while the session is not in memory. One that is `watched`
    runs in another program, and takes no prompts before it is adopted."""

    id: str
    agent: str
    cwd: str
    title: str | None
    status: str
    created: str
    updated: str
    archived: str | None
    seq: int
    pending_approvals: int
    queue_length: int | None
    watched: bool = False


class SessionPage(Struct, kw_only=True):
    """The one last active first; `next` is the `before` of the following page, null after the last."""

    sessions: list[SessionRow]
    next: str | None


class Cancelled(Struct, kw_only=True):
    """Whether there was a turn to cancel; it has ended."""

    cancelled: bool


_RECORD: tuple[tuple[str, Any], ...] = (
    ("cwd", str),
    ("created", str),
    ("updated", str),
    ("archived", str | None),
    ("policy", dict[str, Any] | None),
    ("agent_session_id", str | None),
)
_BESIDE: tuple[tuple[str, Any], ...] = (
    ("pending_approvals", list[Approval]),
    ("pending_questions", list[Question]),
    ("summary", SessionSummary),
    ("items_count", int),
    ("watched", bool),
    ("queue", list[Queued]),
)
_FOLDED = {one.name: one.type for one in msgspec.structs.fields(Session)}
_LONG: list[tuple[str, Any, Any]] = [
    (name, _FOLDED.pop(name), field(default_factory=list)) for name in ("turns_ended", "items")
]
SessionDetail = msgspec.defstruct(
    "SessionDetail",
    [*{**_FOLDED, **dict(_RECORD), **dict(_BESIDE)}.items(), *_LONG],
    rename=camel,
    kw_only=True,
    omit_defaults=True,
    namespace={"__doc__": "A session as its events up to `seq` tell it: follow it from there."},
)
"""Only for the document: the answer is made of plain values."""


class NewSession(Body):
    """`policy` says what needs no asking; without one the hub's default holds. `start` starts the agent at once."""

    agent: Name
    cwd: Name
    title: Title | None = None
    policy: PolicyObject | None = None
    start: bool = False
    client_request_id: Name | None = field(name="client_request_id", default=None)


class SessionChange(Body):
    """What is given is set. A null takes the title away, or the policy."""

    title: Title | UnsetType | None = UNSET
    archived: bool | UnsetType = UNSET
    policy: PolicyObject | UnsetType | None = UNSET


class Listed(Query):
    """Which sessions to list."""

    status: SessionStatus | None = None
    agent: str | None = None
    cwd: str | None = None
    archived: Literal["false", "true", "all"] = "false"
    title: str | None = None
    before: str | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class Shown(Query):
    """Without `items` the answer is small, whatever the session's length."""

    items: bool = True


# -- operations -----------------------------------------------------------------------------------------------------


async def find(call: Call) -> SessionPage:
    query: Listed = call.query
    if query.before is not None:
        _check_cursor(query.before)
    hub = call.server.hub
    page = await hub.sessions(
        status=query.status,
        agent=query.agent,
        cwd=query.cwd,
        archived={"false": False, "true": True}.get(query.archived),
        text=query.title,
        before=query.before,
        limit=query.limit,
    )
    pending = Counter(approval.session_id for approval in await hub.approvals())
    rows = [session_row(record, hub.live.get(record.id), pending[record.id]) for record in page.sessions]
    return SessionPage(sessions=rows, next=page.next)


async def start(call: Call, *, field: str = "client_request_id") -> Response:
    """`field` is where the caller gave the id of its request."""
    body: NewSession = call.body
    if body.client_request_id is None:
        return await _start(call)
    key = ("session", _who(call), body.client_request_id)
    return await call.server.repeats.once(key, body, lambda: _start(call), field=field)


async def _start(call: Call) -> Response:
    body: NewSession = call.body
    if body.policy is not None or not await may_work_in(call.server.hub, call.caller, body.cwd):
        need(call.caller, "admin")
    session = await call.server.hub.start_session(
        body.agent,
        body.cwd,
        title=checked_title(body.title),
        policy=call.server.default_policy if body.policy is None else _policy(body.policy),
        start=body.start,
    )
    audit.record("session_started", call.caller, sessionId=session.id, agent=body.agent)
    record = await call.server.hub.log.sessions.get(session.id)
    # the id is ours, so nothing that a caller wrote gets into a header
    headers = {"Location": f"{call.server.root_path}/sessions/{session.id}"}
    return json_response(session_row(record, session, 0), 201, headers)


async def show(call: Call) -> dict[str, Any]:
    session = await call.server.hub.session(call.path["id"])
    return await _detail(call, session, items=call.query.items)


async def change(call: Call) -> dict[str, Any]:
    """Set what is given, all of it or, when something is wrong with it, none."""
    body: SessionChange = call.body
    if body.policy is not UNSET:
        need(call.caller, "admin")
    title = checked_title(body.title) if body.title is not UNSET else UNSET
    policy = _policy(body.policy) if body.policy not in (UNSET, None) else None
    hub = call.server.hub
    session = await hub.session(call.path["id"])
    if title is not UNSET:
        session.rename(title)
    if body.policy is not UNSET:
        session.set_policy(policy)
        audit.record("policy_set", call.caller, sessionId=session.id)
    await session.committed()
    if body.archived is not UNSET:
        await hub.log.sessions.update(session.id, archived=body.archived)
    return await _detail(call, session, items=False)


async def delete(call: Call) -> None:
    await call.server.hub.delete_session(call.path["id"])


async def cancel(call: Call) -> Cancelled:
    session = await call.server.hub.session(call.path["id"])
    ended = await session.cancel()
    await session.committed()
    return Cancelled(cancelled=ended)


# -- steps ----------------------------------------------------------------------------------------------------------


def _who(call: Call) -> str:
    return call.caller.device_id or call.caller.name


def _policy(given: Any) -> Policy:
    """Raises ValidationError that names the member as the body has it."""
    try:
        return parse_policy(given)
    except ValidationError as exc:
        raise ValidationError(exc.reason, f"policy.{exc.path}") from None


def _check_cursor(text: str) -> None:
    try:
        _, number = read_page_key(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 63:
        raise ValidationError("expected the `next` of a page", "before")


def session_row(record: SessionRecord, live: HubSession | None, pending: int) -> SessionRow:
    return SessionRow(
        id=record.id,
        agent=record.agent,
        cwd=record.cwd,
        title=record.title,
        status=record.status,
        created=record.created,
        updated=record.updated,
        archived=record.archived,
        seq=record.last_seq,
        pending_approvals=pending,
        queue_length=len(live.queue) if live is not None else None,
        watched=record.watched_id is not None,
    )


async def _detail(call: Call, session: HubSession, *, items: bool) -> dict[str, Any]:
    record = await call.server.hub.log.sessions.get(session.id)
    own = {camel(name): getattr(record, name) for name in ("agent", "title", *(name for name, _ in _RECORD))}
    found = await session.whole_snapshot() if items else session.snapshot(items=False)
    return {**found, **own, "watched": record.watched_id is not None}


_SESSION = "/sessions/{id}"
OPERATIONS = (
    Operation(
        method="GET",
        path="/sessions",
        handler=find,
        query=Listed,
        answer=SessionPage,
        summary="List sessions, the one last active first",
    ),
    Operation(
        method="POST",
        path="/sessions",
        handler=start,
        scope="prompt",
        body=NewSession,
        answer=SessionRow,
        status=201,
        errors=(404, 409, 502, 507),
        summary="Start a session",
    ),
    Operation(
        method="GET",
        path=_SESSION,
        handler=show,
        query=Shown,
        answer=SessionDetail,
        summary="Show a session as its events so far tell it, with the `seq` to follow it from",
    ),
    Operation(
        method="PATCH",
        path=_SESSION,
        handler=change,
        scope="prompt",
        body=SessionChange,
        answer=SessionDetail,
        errors=(507,),
        summary="Rename, archive, or set the policy of a session",
    ),
    Operation(
        method="DELETE",
        path=_SESSION,
        handler=delete,
        scope="admin",
        summary="End a session and delete it with its events",
    ),
    Operation(
        method="POST",
        path=f"{_SESSION}/cancel",
        handler=cancel,
        scope="prompt",
        answer=Cancelled,
        errors=(507,),
        summary="End the running turn",
    ),
)
