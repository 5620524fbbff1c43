"""Search in what was said and done, in all sessions or in one."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ...acp.naming import camel
from ..http.operations import Call, Operation, Query


class Hit(Struct, kw_only=True, rename=camel):
    """An event that has every word: `seq` in its session, `position` in the log, `type` as events have it."""

    session_id: str
    seq: int
    position: int
    type: str
    snippet: str


class Found(Struct, kw_only=True):
    """Newest first."""

    hits: list[Hit]


class Wanted(Query, rename=camel):
    """Any text is a query; every word of it must be there, each as the beginning of a word."""

    q: Annotated[str, Meta(min_length=1, max_length=1000)]
    session_id: str | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 20


async def search(call: Call) -> Found:
    query: Wanted = call.query
    hits = await call.server.hub.log.search(query.q, query.limit, session_id=query.session_id)
    return Found(
        hits=[
            Hit(session_id=hit.session_id, seq=hit.seq, position=hit.position, type=hit.type, snippet=hit.snippet)
            for hit in hits
        ]
    )


OPERATIONS = (
    Operation(
        method="GET",
        path="/search",
        handler=search,
        query=Wanted,
        answer=Found,
        summary="Search messages and tool calls",
        tag="hub",
    ),
)
