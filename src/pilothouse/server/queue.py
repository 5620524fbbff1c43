"""The prompts of a session that wait for the running turn to end: seen, changed, moved, taken back."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from ..acp.naming import camel
from ..hub.session.commands import execute
from ..model.commands import CancelQueuedCommand, MoveQueuedCommand, parse_command
from ..model.errors import ValidationError
from .operations import Body, Call, Operation

__all__ = ["OPERATIONS", "Queue", "Queued"]


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
OPERATIONS = (
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
