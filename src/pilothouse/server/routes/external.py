"""Sessions that agents keep on their own, whoever started them: listed, watched, adopted.

What is on the disk is read without starting anything. An agent that keeps no known record is asked itself, and only
when it is asked for by name, because that starts it.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct
from starlette.responses import Response

from ...adapters.contract import AdapterError
from ...adapters.discovery.store import Problem
from ...hub.errors import AgentFailed
from ...hub.external.writer_lock import How
from ...hub.session.session import HubSession
from ...model.discovery import DiscoveredSession
from ..auth import audit
from ..http.operations import Body, Call, Operation, Query, json_response, need
from .sessions import SessionRow, session_row

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=4096)]


class Discovered(Struct, kw_only=True):
    """The one last active first, and what could not be read."""

    sessions: list[DiscoveredSession]
    problems: list[Problem]


class Wanted(Query):
    """`agent` is one of those that are listed by `GET /agents`; one that keeps no known record is started to be asked,
    which needs the scope `prompt`. With `refresh` it is looked anew, even if nothing is known to have changed."""

    agent: Name | None = None
    refresh: bool = False


class Watch(Body):
    """A session by its agent and that one's id."""

    agent: Name
    session_id: Name


class Adopt(Watch):
    """`how`: `resume` it, which is refused while another program has it; `fork` it and leave the other alone; or
    `take_over`, which ends that program first, and if `pid` is given only that one. A program that may have it, but is
    not sure to, is ended only if `pid` names it."""

    how: How = "resume"
    pid: int | None = None


async def discovered(call: Call) -> Discovered:
    query: Wanted = call.query
    discovery, ask = call.server.hub.discovery, call.server.discover
    sessions, problems = await discovery.found(refresh=query.refresh)
    if query.agent is not None:
        sessions = [one for one in sessions if discovery.is_of(one, query.agent)]
        if ask is not None and not discovery.knows(query.agent):
            need(call.caller, "prompt")  # who may only read starts no program
            try:
                sessions = list(await ask(query.agent))
            except AdapterError as exc:
                raise AgentFailed(str(exc), agent=query.agent) from exc
            sessions.sort(key=lambda one: one.last_activity, reverse=True)
    return Discovered(sessions=sessions, problems=problems)


async def watch(call: Call) -> Response:
    body: Watch = call.body
    hub = call.server.hub
    found = await hub.discovery.find(body.agent, body.session_id)
    return await _made(call, await hub.watch_session(found, policy=call.server.default_policy))


async def adopt(call: Call) -> Response:
    body: Adopt = call.body
    hub, by = call.server.hub, call.caller.name
    if body.how == "take_over":
        need(call.caller, "approve")  # who may allow a command to be run may end a program
    found = await hub.discovery.find(body.agent, body.session_id)
    session = await hub.adopt_session(found, body.how, by=by, pid=body.pid, policy=call.server.default_policy)
    audit.record("session_adopted", call.caller, sessionId=session.id, agentSessionId=found.id, how=body.how)
    return await _made(call, session)


async def _made(call: Call, session: HubSession) -> Response:
    record = await call.server.hub.log.sessions.get(session.id)
    headers = {"Location": f"{call.server.root_path}/sessions/{session.id}"}
    return json_response(session_row(record, session, len(await call.server.hub.approvals(session.id))), 201, headers)


OPERATIONS = (
    Operation(
        method="GET",
        path="/discovered",
        handler=discovered,
        query=Wanted,
        answer=Discovered,
        errors=(404, 502),
        summary="List sessions that agents keep on their own",
        tag="hub",
    ),
    Operation(
        method="POST",
        path="/discovered/watch",
        handler=watch,
        scope="prompt",
        body=Watch,
        answer=SessionRow,
        status=201,
        errors=(404, 507),
        summary="Follow a session that another program runs",
        tag="hub",
    ),
    Operation(
        method="POST",
        path="/discovered/adopt",
        handler=adopt,
        scope="prompt",
        body=Adopt,
        answer=SessionRow,
        status=201,
        errors=(404, 409, 502, 507),
        summary="Go on with a session that was begun elsewhere",
        tag="hub",
    ),
)
