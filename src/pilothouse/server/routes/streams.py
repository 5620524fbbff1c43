"""What happens, as it happens: events and packets of a session, and events of all, from any cursor on.

The same address gives a stream of server-sent events, live until it is closed, or a page of JSON, which may wait for
something to come. A consumer is a cursor: there is no queue, and no task beyond the one that sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.responses import Response

from ...log.errors import CursorAhead, LogError
from ...log.follow import Follower
from ...model.errors import ValidationError
from ..http.event_frames import Feeds, Lane, Memory
from ..http.operations import Call, Handler, Operation, Query
from ..http.sse import MEDIA_TYPE, RETRY, EventStream, Packer, heartbeat, listening, wants_gzip

PAGE_BYTES = 4 << 20
"""About what a page holds at most."""
FULL = 512
"""Entries in a batch of somebody who catches up; after such a one others get their turn."""
WORTH_PACKING = 1 << 10

Seq = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]


class StreamQuery(Query):
    """`after` is the cursor, `live` means from now on; `limit` and `wait` are for pages, `wait` in seconds.

    `types` are the wanted types, divided by commas, with `*` at the end for all that begin so.
    """

    after: Seq | None = None
    live: bool = False
    limit: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    wait: Annotated[float, Meta(ge=0, le=60)] | None = None
    types: Annotated[str, Meta(max_length=2000)] | None = None


class EventQuery(StreamQuery):
    """`source`: each event has the update it came from, verbatim, as `source`."""

    source: bool = False


class PageQuery(Query):
    after: Seq | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    wait: Annotated[float, Meta(ge=0, le=60)] | None = None
    types: Annotated[str, Meta(max_length=2000)] | None = None


class EventPage(Struct, kw_only=True):
    """Events beyond the cursor; `seq` is the cursor of the next page."""

    events: list[dict[str, Any]]
    seq: int


class PacketPage(Struct, kw_only=True):
    """Packets beyond the cursor; `seq` is the cursor of the next page."""

    packets: list[dict[str, Any]]
    seq: int


# -- operations ----------------------------------------------------------------------------------------------------


async def session_events(call: Call) -> Response:
    lane = Lane("events", source=call.query.source, types=_types(call.query.types))
    return await _answer(call, lane, call.path["id"])


async def session_packets(call: Call) -> Response:
    return await _answer(call, Lane("packets", types=_types(call.query.types)), call.path["id"])


async def all_events(call: Call) -> Response:
    lane = Lane("events", by="position", source=call.query.source, types=_types(call.query.types))
    return await _answer(call, lane, None)


async def stored_packets(call: Call) -> Response:
    lane = Lane("packets", types=_types(call.query.types), prompts=True)
    follower, memory = await _begin(call, lane, call.path["id"])
    return await _page(call, lane, follower, memory)


async def _answer(call: Call, lane: Lane, session_id: str | None) -> Response:
    follower, memory = await _begin(call, lane, session_id)
    if _wants_page(call):
        return await _page(call, lane, follower, memory)
    with contextlib.ExitStack() as stack:
        stack.enter_context(call.server.connections.hold(call.caller))
        limits = call.server.limits
        parts = live(call.server.feeds, lane, follower, memory, limits.heartbeat)
        return EventStream(parts, stall=limits.stall, held=stack.pop_all(), gzip=gzip_wanted(call))


async def _begin(call: Call, lane: Lane, session_id: str | None) -> tuple[Follower, Memory]:
    """Where the consumer stands. Raises UnknownSession, CursorAhead: nothing can be refused once a stream runs."""
    log, query = call.server.hub.log, call.query
    last = await (log.last_position() if session_id is None else log.last_seq(session_id))
    after = cursor_of(call, query.after)
    if after is None:
        after = last if getattr(query, "live", False) else 0
    if after > last:
        raise CursorAhead(after, last)
    if session_id is None:
        return log.follow_all(after), await call.server.feeds.memory(lane, "", 0)
    return log.follow(session_id, after), await call.server.feeds.memory(lane, session_id, after)


def cursor_of(call: Call, after: int | None) -> int | None:
    """The consumer's cursor. The header wins: who comes back has gone on since the address was written."""
    given = call.request.headers.get("last-event-id", "").strip()
    if not given:
        return after
    if not (given.isascii() and given.isdigit() and len(given) < 16):
        raise ValidationError(f"expected a number that this server gave as `id:`, got {given[:40]!r}", "Last-Event-ID")
    return int(given)


def gzip_wanted(call: Call) -> bool:
    return wants_gzip(call.request.headers.get("accept-encoding", ""))


def _wants_page(call: Call) -> bool:
    accepted = call.request.headers.get("accept", "").lower()
    places = [accepted.find(name) for name in (MEDIA_TYPE, "application/json")]
    if max(places) < 0:
        return call.query.limit is not None or call.query.wait is not None
    stream, page = (place if place >= 0 else len(accepted) for place in places)
    return page < stream


def _types(given: str | None) -> tuple[str, ...]:
    if given is None:
        return ()
    names = tuple(sorted({name.strip() for name in given.split(",")} - {""}))
    if not names:
        raise ValidationError("expected names of types, divided by commas", "types")
    return names


# -- streams -------------------------------------------------------------------------------------------------------


async def live(
    feeds: Feeds, lane: Lane, follower: Follower, memory: Memory, silence: float
) -> AsyncGenerator[bytes, None]:
    """Frames until the log closes or the session is deleted."""
    now = asyncio.get_running_loop().time
    yield RETRY
    told = follower.cursor
    due = now() + silence
    while True:
        try:
            batch = await follower.next(max(0.0, due - now()))
        except LogError:
            return
        made = feeds.frames(lane, batch, memory) if batch else None
        if made is not None:
            memory = made.memory
            if made.frames:
                told = made.upto
                yield made.frames
                due = now() + silence
            if len(batch) >= FULL:
                await asyncio.sleep(0)  # what is near can be had without waiting, and others want to be served too
        if now() >= due:
            yield heartbeat(follower.cursor if follower.cursor > told else None)
            told, due = follower.cursor, now() + silence


# -- pages ---------------------------------------------------------------------------------------------------------


async def _page(call: Call, lane: Lane, follower: Follower, memory: Memory) -> Response:
    wait = call.query.wait or 0.0
    if not math.isfinite(wait):
        raise ValidationError("expected a number of seconds", "wait")
    async with contextlib.AsyncExitStack() as stack:
        if wait:
            stack.enter_context(call.server.connections.hold(call.caller))
            await stack.enter_async_context(listening(call.request.receive))
        values = await _collect(call.server.feeds, lane, follower, memory, call.query.limit or 1000, wait)
    body = b'{"%b":[%b],"seq":%d}' % (lane.kind.encode(), b",".join(values), follower.cursor)
    headers = {"Cache-Control": "no-store", "Vary": "Accept, Accept-Encoding"}
    if len(body) > WORTH_PACKING and gzip_wanted(call):
        packer = Packer()
        body = packer.pack(body) + packer.end()
        headers["Content-Encoding"] = "gzip"
    return Response(body, media_type="application/json", headers=headers)


async def _collect(
    feeds: Feeds, lane: Lane, follower: Follower, memory: Memory, limit: int, wait: float
) -> list[bytes]:
    """Values beyond the cursor; the first of them is waited for, those that come with it are not."""
    now = asyncio.get_running_loop().time
    until = now() + wait
    values: list[bytes] = []
    size = 0
    while len(values) < limit and size < PAGE_BYTES:
        patience = 0.0 if values else max(0.0, until - now())
        batch = await follower.next(patience, count=limit - len(values), size=PAGE_BYTES - size)
        if not batch:
            break
        made, memory = feeds.values(lane, batch, memory)
        values += made
        size += sum(map(len, made))
    return values


def _operation(path: str, handler: Handler, summary: str, page: type, query: type[Query]) -> Operation:
    return Operation(
        method="GET",
        path=path,
        handler=handler,
        summary=summary,
        query=query,
        answer=page,
        stream=None if query is PageQuery else MEDIA_TYPE,
        headers={"Last-Event-ID": "The cursor; it wins over `after`."},
        errors=(404, 409) if "{id}" in path else (409,),
        tag="streams",
    )


OPERATIONS: tuple[Operation, ...] = (
    _operation("/sessions/{id}/events", session_events, "A session's events from a cursor on", EventPage, EventQuery),
    _operation(
        "/sessions/{id}/packets", session_packets, "A session's packets from a cursor on", PacketPage, StreamQuery
    ),
    _operation("/sessions/{id}/messages", stored_packets, "Stored packets and prompts", PacketPage, PageQuery),
    _operation("/events", all_events, "The events of all sessions, by position", EventPage, EventQuery),
)
