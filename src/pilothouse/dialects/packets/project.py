"""Events as packets.

An event that carries the update it came from gives that update's packet, so a packet made from an event equals the
one made from the update. An event without a source gives a packet made here; an event whose source rides on an
earlier one gives none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from ...model.events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    MessageCompleteEvent,
    MessageDeltaEvent,
    PlanModeEvent,
    ProgressEvent,
    SessionErrorEvent,
    ThinkingCompleteEvent,
    ThinkingDeltaEvent,
    TodoUpdateEvent,
    ToolCallErrorEvent,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserQuestionEvent,
)
from ...model.previews import label_option
from ...model.records import CommandOutput, FileDiff, MessageContent, SearchResults, ToolStructuredOutput
from ...model.tools import kind_of_category, packet_kind
from ..acp.content import to_block
from .updates import Made, packet_from_error, packet_from_interruption, packet_from_result, packet_from_update

INTERRUPTED = "The turn was interrupted: the hub, or its agent, was stopped or died. Prompt again to go on."

_decode = msgspec.json.Decoder().decode


class Projector:
    """The packets of a session's events in order.

    It does what `packets_from_event` does, and knows besides which messages came in pieces: a whole one that did not,
    from an adapter that does not stream, is sent whole. It also knows which calls had output in a terminal of the hub;
    the end of such a call has that output, because the update that told of the end has not.
    """

    def __init__(self) -> None:
        self._streamed: set[tuple[str, str]] = set()
        self._printed: set[str] = set()

    def project(self, event: Event) -> list[Made]:
        if isinstance(event, (ToolCallResultEvent, ToolCallErrorEvent)):
            return self._ended(event)
        if event.source is None:
            if isinstance(event, (MessageDeltaEvent, ThinkingDeltaEvent)):
                self._streamed.add(_key(event))
            elif isinstance(event, (MessageCompleteEvent, ThinkingCompleteEvent)):
                return self._complete(event)
            elif isinstance(event, ProgressEvent) and event.tool_call_id is not None and event.output is not None:
                self._printed.add(event.tool_call_id)
        return packets_from_event(event)

    def _ended(self, event: ToolCallResultEvent | ToolCallErrorEvent) -> list[Made]:
        packets = packets_from_event(event)
        if event.tool_call_id in self._printed:
            self._printed.discard(event.tool_call_id)
            if event.source is not None:
                packets += _tool_result(event) if isinstance(event, ToolCallResultEvent) else _tool_error(event)
        return packets

    def _complete(self, event: MessageCompleteEvent | ThinkingCompleteEvent) -> list[Made]:
        if _key(event) in self._streamed:
            self._streamed.discard(_key(event))
            return []
        if isinstance(event, ThinkingCompleteEvent):
            content = {"type": "text", "text": event.content}
            return _of_update(event, "agent_thought_chunk", content=content) if event.content else []
        if event.role != "assistant":
            return []
        chunks = (_of_update(event, "agent_message_chunk", content=dict(to_block(part))) for part in event.content)
        return [packet for chunk in chunks for packet in chunk]


def _key(
    event: MessageDeltaEvent | MessageCompleteEvent | ThinkingDeltaEvent | ThinkingCompleteEvent,
) -> tuple[str, str]:
    """Thoughts and messages may share an id."""
    return event.type.partition(":")[0], event.message_id


def packets_from_event(event: Event) -> list[Made]:
    """The packets of one event, none for most."""
    source = event.source
    if source is None:
        maker = _MAKERS.get(type(event))
        return maker(event) if maker else []
    if not source:  # the update that it rides on has a packet of its own, which asks nobody
        asked = _ASKED.get(type(event))
        return asked(event) if asked else []
    answered = _ANSWERED.get(type(event))
    if answered is not None and (type(event) is not CustomEvent or event.namespace == "pilothouse"):
        return answered(event)
    packet = packet_from_update(_decoded(source), event.timestamp)
    if packet is not None and isinstance(event, ToolCallErrorEvent):
        packet["status"] = "failed"  # also for an agent that says of a command only that it is over
    return [packet] if packet is not None else []


def _decoded(source: bytes) -> Made:
    try:
        value = _decode(source)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _of_update(event: Event, variant: str, **fields: Any) -> list[Made]:
    packet = packet_from_update({"sessionUpdate": variant, **fields}, event.timestamp)
    return [packet] if packet is not None else []


def _content(delta: str, content: MessageContent | None) -> Made:
    return {"type": "text", "text": delta} if content is None else dict(to_block(content))


def _message(event: MessageDeltaEvent) -> list[Made]:
    if event.role != "assistant":
        return []
    return _of_update(event, "agent_message_chunk", content=_content(event.delta, event.content))


def _thought(event: ThinkingDeltaEvent) -> list[Made]:
    return _of_update(event, "agent_thought_chunk", content=_content(event.delta, event.content))


def _tool_start(event: ToolCallStartEvent) -> list[Made]:
    return _of_update(
        event,
        "tool_call",
        toolCallId=event.tool_call_id,
        name=event.name,
        title=event.title or event.name,
        kind=event.kind or kind_of_category(event.category),
        locations=event.locations,
    )


def _tool_update(event: Event, call_id: str, **fields: Any) -> list[Made]:
    return _of_update(event, "tool_call_update", toolCallId=call_id, **fields)


def _tool_executing(event: ToolCallExecutingEvent) -> list[Made]:
    status = "pending" if event.requires_approval else "in_progress"
    return _tool_update(event, event.tool_call_id, **_named(event.name), status=status, rawInput=event.input)


def _named(name: str) -> Made:
    return {"name": name, "title": name, "kind": _kind(name)}


def _kind(name: str) -> str:
    # a sub-agent is known by its tool's name; the field has no word for it
    kind = packet_kind(name)
    return "other" if kind == "task" else kind


def _tool_progress(event: ProgressEvent) -> list[Made]:
    if event.tool_call_id is None:
        return []
    fields: Made = {"title": event.label, "status": "in_progress", "locations": event.locations}
    if event.output is not None and event.replace:
        fields["content"] = _shown(event.output)
    elif event.output is not None:
        # content stands for all of it; a piece goes where agents that stream a terminal put theirs
        delta = {"data": event.output, "terminal_id": event.tool_call_id}
        fields["_meta"] = {"terminal_output_delta": delta}
    return _tool_update(event, event.tool_call_id, **fields)


def _shown(text: str) -> list[Made]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def _tool_result(event: ToolCallResultEvent) -> list[Made]:
    raw = {"output": event.output, "metadata": _metadata(event.structured)}
    content = _shown(event.output)
    return _tool_update(
        event, event.tool_call_id, **_named(event.name), status="completed", rawOutput=raw, content=content
    )


def _metadata(structured: ToolStructuredOutput | None) -> Made:
    match structured:
        case CommandOutput():
            output = structured.stdout + structured.stderr
            told = {"output": output, "exit": structured.exit_code, "description": "", "truncated": False}
            return {**told, "signal": structured.signal} if structured.signal is not None else told
        case SearchResults():
            return {"count": len(structured.results), "truncated": False}
        case FileDiff():
            return {
                "filepath": structured.path,
                "exists": structured.change_type != "created",
                "diff": structured.diff,
                "diagnostics": {},
                "truncated": False,
            }
    return {"truncated": False}


def _tool_error(event: ToolCallErrorEvent) -> list[Made]:
    raw: Made = {"error": event.error.message}
    if event.output:
        raw["output"] = event.output
    content = _shown(event.output or event.error.message)
    return _tool_update(
        event, event.tool_call_id, **_named(event.name), status="failed", rawOutput=raw, content=content
    )


def _todos(event: TodoUpdateEvent) -> list[Made]:
    entries = [
        {"content": todo.content, "status": todo.status, "priority": todo.priority or "medium"} for todo in event.todos
    ]
    return _of_update(event, "plan", entries=entries)


def _plan_mode(event: PlanModeEvent) -> list[Made]:
    if event.mode_id is None:
        return []
    return _of_update(event, "current_mode_update", currentModeId=event.mode_id)


def _error(event: SessionErrorEvent) -> list[Made]:
    error = event.error
    packet = packet_from_error(
        {"message": error.message, "code": error.agent_code, "data": error.details}, event.timestamp
    )
    if error.agent_code is None:
        # an error of ours has no number; its name tells a consumer whether to retry or to sign in
        details = packet["details"] or {}
        packet["details"] = {**details, "code": error.code, "recoverable": error.recoverable}
    return [packet]


def _ask(kind: str) -> Callable[[Any], list[Made]]:
    """What is asked, or was decided, with the fields of its event."""

    def make(event: Event) -> list[Made]:
        packet: Made = {"_meta": None, "type": kind, "timestamp": event.timestamp}
        for name, wire in zip(event.__struct_fields__, event.__struct_encode_fields__, strict=True):
            if name not in {"seq", "session_id", "timestamp"}:
                packet[wire] = msgspec.to_builtins(getattr(event, name))
        return [packet]

    return make


def _custom(event: CustomEvent) -> list[Made]:
    if event.namespace != "acp":
        return _ours(event)
    packet = packet_from_update({**event.data, "sessionUpdate": event.event_name}, event.timestamp)
    return [packet] if packet is not None else []


def _resolved(event: CustomEvent) -> list[Made]:
    if (event.namespace, event.event_name) != ("pilothouse", "question_answered"):
        return []
    told = {name: event.data.get(name) for name in ("questionId", "outcome", "answer")}
    return [{"_meta": None, "type": "question_resolved", "timestamp": event.timestamp, **told}]


def _ours(event: CustomEvent) -> list[Made]:
    if event.namespace != "pilothouse":
        return []
    if event.event_name == "turn_ended":
        answer = _decoded(event.source) if event.source else {}
        known = answer if "stopReason" in answer else {"stopReason": event.data.get("stopReason")}
        ended = packet_from_result(known, event.timestamp)
        is_ours = event.source is None and event.data.get("stopReason") == "interrupted"
        return [packet_from_interruption(INTERRUPTED, event.timestamp), ended] if is_ours else [ended]
    if event.event_name == "artifact_created":
        return [{"type": "artifact_created", "timestamp": event.timestamp, "artifact": _artifact(event)}]
    return _resolved(event)


def _artifact(event: CustomEvent) -> Made:
    artifact = event.data.get("artifact", event.data)
    told = artifact if isinstance(artifact, dict) else {}
    made = {"id": "", "type": "file", "name": "", "path": "", **dict.fromkeys(_ABOUT), "metadata": {}, **told}
    if isinstance(made["id"], str) and made["id"] and made["type"] != "nextjs_app":  # of a directory there is neither
        place = f"/sessions/{quote(event.session_id, safe='')}/artifacts/{quote(made['id'], safe='')}"
        made |= {"preview_url": f"{place}/preview", "download_url": place}
    return made


_ABOUT = ("preview_url", "download_url", "mime_type", "size_bytes")


def _approval_requested(event: ApprovalRequestedEvent) -> list[Made]:
    (packet,) = _ask("approval_requested")(event)
    packet["options"] = [msgspec.to_builtins(label_option(option)) for option in event.options]
    return [packet]


_question_requested = _ask("question_requested")

_MAKERS: dict[type[Event], Callable[[Any], list[Made]]] = {
    MessageDeltaEvent: _message,
    ThinkingDeltaEvent: _thought,
    ToolCallStartEvent: _tool_start,
    ToolCallExecutingEvent: _tool_executing,
    ProgressEvent: _tool_progress,
    ToolCallResultEvent: _tool_result,
    ToolCallErrorEvent: _tool_error,
    TodoUpdateEvent: _todos,
    PlanModeEvent: _plan_mode,
    SessionErrorEvent: _error,
    ApprovalRequestedEvent: _approval_requested,
    ApprovalResolvedEvent: _ask("approval_resolved"),
    UserQuestionEvent: _question_requested,
    CustomEvent: _custom,
}
# the source of these is a request or an answer, no update
_ANSWERED: dict[type[Event], Callable[[Any], list[Made]]] = {
    ApprovalRequestedEvent: _approval_requested,
    UserQuestionEvent: _question_requested,
    CustomEvent: _ours,
}
# a tool that asks the user tells of it by the update of its call
_ASKED: dict[type[Event], Callable[[Any], list[Made]]] = {
    UserQuestionEvent: _question_requested,
    CustomEvent: _resolved,
}
