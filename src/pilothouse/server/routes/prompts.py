"""Prompts over HTTP: sent, with their turn as a stream of packets; and those that are queued, listed and changed.

A turn belongs to the session, not to the connection: closing the stream only stops listening. A prompt counts as
accepted once the log has it; what fails before is an HTTP status, what fails later an `error` packet. The stream ends
with the turn's `prompt_response`, and there is exactly one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from starlette.responses import Response

from ...acp.naming import camel
from ...dialects.packets import packet_from_error, packet_from_interruption, packet_from_result
from ...dialects.packets.documented import encode_packet
from ...hub.session.commands import execute
from ...hub.session.prompt_queue import Prompt
from ...hub.session.session import HubSession
from ...log.entries import Entry
from ...log.errors import CursorAhead
from ...model.commands import CancelQueuedCommand, Message, MoveQueuedCommand, parse_command
from ...model.errors import ValidationError
from ...model.events import CustomEvent, decode_event, utc_now
from ..errors import explain
from ..http.event_frames import NOTHING, Lane, turn_mark
from ..http.operations import Body, Call, Operation, Query, json_response
from ..http.sse import MEDIA_TYPE, EventStream, heartbeat, packet_frames
from ..state import Server
from .streams import FULL, cursor_of, gzip_wanted


class Queued(Struct, kw_only=True, rename=camel):
    """A prompt that waits."""

    prompt_id: str
    content: list[dict[str, Any]]


class Queue(Struct, kw_only=True):
    """The prompts that wait, the next one first."""

    queue: list[Queued]


class QueueChange(Body):
    """Another text, another place, or both; places count from 0."""

    content: str | list[dict[str, Any]] | UnsetType = UNSET
    place: Annotated[int, Meta(ge=0, le=1_000_000)] | UnsetType = UNSET


async def show(call: Call) -> dict[str, Any]:
    session = await call.server.hub.session(call.path["id"])
    return {"queue": session.queue}


async def change(call: Call) -> dict[str, Any]:
    session, prompt_id = await call.server.hub.session(call.path["id"]), call.path["promptId"]
    body: QueueChange = call.body
    if body.content is UNSET and body.place is UNSET:
        raise ValidationError("give `content`, `place` or both", "body")
    if body.content is not UNSET:
        await execute(session, _edit(prompt_id, body.content), by=call.caller.name)
    if body.place is not UNSET:
        await execute(session, MoveQueuedCommand(prompt_id=prompt_id, position=body.place), by=call.caller.name)
    return {"queue": session.queue}


async def cancel(call: Call) -> dict[str, Any]:
    session = await call.server.hub.session(call.path["id"])
    await execute(session, CancelQueuedCommand(prompt_id=call.path["promptId"]), by=call.caller.name)
    return {"queue": session.queue}


def _edit(prompt_id: str, content: Any) -> Any:
    try:
        return parse_command({"command": "edit_queued", "promptId": prompt_id, "message": content})
    except ValidationError as exc:
        raise ValidationError(exc.reason, exc.path.replace("message", "content", 1)) from None


_QUEUE = "/sessions/{id}/queue"
QUEUE_OPERATIONS = (
    Operation(method="GET", path=_QUEUE, handler=show, answer=Queue, summary="List the prompts that wait"),
    Operation(
        method="PATCH",
        path=f"{_QUEUE}/{{promptId}}",
        handler=change,
        scope="prompt",
        body=QueueChange,
        answer=Queue,
        errors=(409, 507),
        summary="Change a prompt that waits, or its place",
    ),
    Operation(
        method="DELETE",
        path=f"{_QUEUE}/{{promptId}}",
        handler=cancel,
        scope="prompt",
        answer=Queue,
        errors=(409, 507),
        summary="Take a prompt out of the queue",
    ),
)


LOOK = 1.0
"""Seconds between two looks whether a turn ended without the log being told, because the log refused."""
PACKETS = Lane("packets")


class SendMessage(Body):
    """A prompt. The same `client_request_id` again is the same turn, not another one."""

    content: Message
    client_request_id: Annotated[str, Meta(min_length=1, max_length=200)] | None = field(
        default=None, name="client_request_id"
    )


class SendQuery(Query):
    """`queue=false`: rather an error (409, `busy`) than to wait for the turn that runs."""

    queue: bool = True


class TurnAccepted(Struct, kw_only=True, omit_defaults=True):
    """The answer to `Prefer: respond-async`. The turn's packets lie beyond `seq`."""

    turn_id: str
    session_id: str
    seq: int
    status: Literal["queued", "running", "ended"]
    stop_reason: str | None = None


# -- accepting -----------------------------------------------------------------------------------------------------


async def send_message(call: Call) -> Response:
    _check(call.body)
    after = cursor_of(call, None) or 0
    session = await call.server.hub.session(call.path["id"])
    is_async = _async_wanted(call)
    with contextlib.ExitStack() as stack:
        if not is_async:  # a refusal must come before the prompt is sent
            stack.enter_context(call.server.connections.hold(call.caller))
        turn = await _send(call, session, after)
        shown = {"X-Turn-Id": turn.prompt.turn_id, "Location": f"{call.server.root_path}/sessions/{session.id}"}
        if is_async:
            return json_response(turn.record(), 202, {**shown, "Preference-Applied": "respond-async"})
        limits = call.server.limits
        return EventStream(
            turn.packets(limits.heartbeat, after),
            stall=limits.stall,
            held=stack.pop_all(),
            gzip=gzip_wanted(call),
            headers=shown,
        )


def _check(body: SendMessage) -> None:
    if not body.content or (isinstance(body.content, str) and not body.content.strip()):
        raise ValidationError("a prompt must say something", "content")


def _async_wanted(call: Call) -> bool:
    preferences = ",".join(call.request.headers.getlist("prefer")).lower()
    return any(item.partition(";")[0].strip() == "respond-async" for item in preferences.split(","))


async def _send(call: Call, session: HubSession, after: int) -> Turn:
    """Hand the prompt over and wait until the log has it. Raises CursorAhead, and what `HubSession.send` raises."""
    body, log = call.body, call.server.hub.log
    content = body.content if isinstance(body.content, str) else msgspec.to_builtins(body.content)
    begin = await log.last_seq(session.id)
    if after > begin:
        raise CursorAhead(after, begin)  # nothing of the turn could be shown
    request_id = body.client_request_id
    was_known = request_id is not None and await log.turns.get(session.id, request_id) is not None
    prompt = await session.send(content, client_request_id=request_id, queue=call.query.queue)
    if was_known and (mark := await call.server.feeds.turns.find(session.id, prompt.turn_id)) is not None:
        begin = mark[1] - 1
    turn = Turn(call.server, session, prompt, begin)
    await turn.accepted()
    return turn


# -- the turn ------------------------------------------------------------------------------------------------------


class Turn:
    """A turn as its consumer sees it. Everything that belongs to it lies beyond `begin`."""

    def __init__(self, server: Server, session: HubSession, prompt: Prompt, begin: int) -> None:
        self.prompt = prompt
        self.begin = begin
        self._waits = False
        self._session = session
        self._feeds = server.feeds

    def record(self) -> TurnAccepted:
        prompt = self.prompt
        ended = prompt.done.done() and prompt.done.exception() is None
        return TurnAccepted(
            turn_id=prompt.turn_id,
            session_id=self._session.id,
            seq=self.begin,
            status="ended" if ended else "queued" if self._waits else "running",
            stop_reason=prompt.done.result().stop_reason if ended else None,
        )

    async def accepted(self) -> None:
        """Wait until the log has the prompt. Raises what kept it from that."""
        follower = self._session.follow(self.begin)
        while True:
            for name, turn_id in filter(None, map(turn_mark, await follower.next(LOOK))):
                if turn_id == self.prompt.turn_id:
                    self._waits = name == "prompt_queued"
                    return
            self._check()

    def _check(self) -> None:
        """A turn that the log refused has no end in it."""
        done = self.prompt.done
        if done.done() and (error := done.exception()) is not None:
            raise error

    async def packets(self, silence: float, after: int) -> AsyncGenerator[bytes, None]:
        """Frames of this turn's packets beyond a seq, from its beginning to its end."""
        try:
            async with contextlib.aclosing(self._frames(silence, after)) as turn:
                async for frames in turn:
                    yield frames
        except Exception as exc:
            yield _error_frame(exc)

    async def _frames(self, silence: float, after: int) -> AsyncGenerator[bytes, None]:
        now = asyncio.get_running_loop().time
        follower = self._session.follow(self.begin)
        memory, running, over = NOTHING, False, False
        due = now() + silence
        while not over:
            batch = await follower.next(min(LOOK, max(0.0, due - now())))
            if not batch:
                self._check()
            entries, running, over = _of_turn(batch, self.prompt.turn_id, running=running)
            seen = [entry for entry in entries if entry.seq <= after] if after else ()
            if seen:
                memory = self._feeds.frames(PACKETS, seen, memory).memory
            if len(seen) < len(entries):
                made = self._feeds.frames(PACKETS, entries[len(seen) :], memory)
                memory = made.memory
                if made.frames:
                    yield made.frames
                    due = now() + silence
            if len(batch) >= FULL:
                await asyncio.sleep(0)
            if over and not running:
                yield _withdrawn_frame(batch, self.prompt.turn_id)
            elif now() >= due:
                yield heartbeat()
                due = now() + silence


def _of_turn(batch: Sequence[Entry], turn_id: str, *, running: bool) -> tuple[Sequence[Entry], bool, bool]:
    """Those entries of a batch that belong to a turn; whether it has begun, and whether it is over."""
    first = 0 if running else len(batch)
    for index, entry in enumerate(batch):
        if entry.type != "custom":
            continue
        match turn_mark(entry):
            case ("turn_started", name) if name == turn_id:
                first, running = index, True
            case ("turn_ended", name) if name == turn_id:
                return batch[first : index + 1], True, True
            case ("prompt_cancelled", name) if name == turn_id:
                return (), False, True
    return batch[first:], running, False


# -- frames of our own ---------------------------------------------------------------------------------------------


def _withdrawn_frame(batch: Sequence[Entry], turn_id: str) -> bytes:
    """The prompt was taken out of the queue: the end of a turn that never began, and why, if nobody wanted that."""
    entry = next(entry for entry in batch if turn_mark(entry) == ("prompt_cancelled", turn_id))
    event = decode_event(entry.data)
    packets = [packet_from_result({"stopReason": "cancelled"}, event.timestamp)]
    if isinstance(event, CustomEvent) and isinstance(reason := event.data.get("reason"), str):
        packets.insert(0, packet_from_interruption(reason, event.timestamp))
    return packet_frames(entry.seq, [encode_packet(packet) for packet in packets])


def _error_frame(exc: Exception) -> bytes:
    """Nothing more will come on this stream, for a reason that is not in the log; so it has no number."""
    _, record = explain(exc)
    details: dict[str, Any] = {**record.details, "code": record.code, "recoverable": record.recoverable}
    packet = packet_from_error({"message": record.message, "data": details}, utc_now())
    return b"event: message\ndata: %b\n\n" % encode_packet(packet)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/sessions/{id}/send-message",
        handler=send_message,
        summary="Prompt the agent; the turn's packets as a stream",
        scope="prompt",
        query=SendQuery,
        body=SendMessage,
        headers={
            "Prefer": "`respond-async`: not the stream, but at once what became of the prompt.",
            "Last-Event-ID": "For a `client_request_id` that was sent before: only the packets beyond this seq.",
        },
        stream=MEDIA_TYPE,
        also={202: TurnAccepted},
        errors=(404, 409, 413, 415, 507),
        tag="streams",
    ),
)
