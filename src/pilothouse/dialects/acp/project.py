"""Unified events back as ACP updates, for consumers that are ACP clients.

An event that carries its source gives it back byte for byte, or in the words of the protocol where it is a dialect that
can be put into them: clients drop what they cannot read of a call or a plan, and tell nobody. An event without one,
because it was made by the hub or by an adapter that does not speak ACP, gives updates made here. An event whose source
rides on an earlier one gives nothing. The end of a call whose output the hub told, because it was printed in a terminal
of the hub that no consumer can ask for, gives that output as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ...acp import schema
from ...acp.lenient import dec_hook, repair
from ...acp.model import encode, to_wire
from ...model.errors import ValidationError
from ...model.events import (
    ApprovalRequestedEvent,
    ContextWindowEvent,
    CostUpdateEvent,
    CustomEvent,
    Event,
    MessageCompleteEvent,
    MessageDeltaEvent,
    NotificationEvent,
    PlanModeEvent,
    ProgressEvent,
    ThinkingCompleteEvent,
    ThinkingDeltaEvent,
    TodoUpdateEvent,
    ToolCallErrorEvent,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserQuestionEvent,
)
from ...model.tools import acp_kind, kind_of_category
from .content import UNDECODABLE, to_block

_encode = msgspec.json.Encoder().encode
Made = list[dict[str, Any]]
_check = msgspec.json.Decoder(schema.SessionUpdate, dec_hook=dec_hook).decode


def to_updates(events: Iterable[Event]) -> list[bytes]:
    """The updates of some events, each the JSON of one `update` object."""
    project = Projector().project
    return [update for event in events for update in project(event)]


class Projector:
    """Follows one session's events, from its beginning or from a cursor between two messages."""

    def __init__(self) -> None:
        self._streamed: set[tuple[str, str]] = set()
        self._printed: set[str] = set()
        self._context: dict[str, Any] | None = None

    def project(self, event: Event) -> list[bytes]:
        source = event.source
        if source is None:
            maker = _MAKERS.get(type(event))
            return [_encode(update) for update in maker(self, event)] if maker else []
        updates = [_in_protocol(event, source)] if source and _is_update(event) else []
        if isinstance(event, (ToolCallResultEvent, ToolCallErrorEvent)) and event.tool_call_id in self._printed:
            self._printed.discard(event.tool_call_id)
            updates.append(_encode(_call(event.tool_call_id, content=_shown(event.output or ""))))
        return updates

    # -- makers --

    def _delta(self, event: MessageDeltaEvent) -> Made:
        self._streamed.add((event.role, event.message_id))
        kind = "user_message_chunk" if event.role == "user" else "agent_message_chunk"
        block = to_block(event.content) if event.content is not None else _text(event.delta)
        return [_chunk(kind, event.message_id, block)]

    def _complete(self, event: MessageCompleteEvent) -> Made:
        if (event.role, event.message_id) in self._streamed:
            self._streamed.discard((event.role, event.message_id))
            return []
        kind = "user_message_chunk" if event.role == "user" else "agent_message_chunk"
        return [_chunk(kind, event.message_id, to_block(content)) for content in event.content]

    def _thought(self, event: ThinkingDeltaEvent) -> Made:
        self._streamed.add(("thought", event.message_id))
        block = to_block(event.content) if event.content is not None else _text(event.delta)
        return [_chunk("agent_thought_chunk", event.message_id, block)]

    def _thought_complete(self, event: ThinkingCompleteEvent) -> Made:
        if ("thought", event.message_id) in self._streamed or not event.content:
            self._streamed.discard(("thought", event.message_id))
            return []
        return [_chunk("agent_thought_chunk", event.message_id, _text(event.content))]

    def _start(self, event: ToolCallStartEvent) -> Made:
        made = {
            "sessionUpdate": "tool_call",
            "toolCallId": event.tool_call_id,
            "title": event.title or event.description or event.name,
            "name": event.name,
            "kind": acp_kind(event.kind) if event.kind else kind_of_category(event.category),
            "status": "pending",
        }
        return [{**made, "locations": event.locations} if event.locations else made]

    def _executing(self, event: ToolCallExecutingEvent) -> Made:
        status = "pending" if event.requires_approval else "in_progress"
        return [_call(event.tool_call_id, status=status, rawInput=event.input)]

    def _progress(self, event: ProgressEvent) -> Made:
        if event.tool_call_id is None:
            return []
        fields: dict[str, Any] = {"title": event.label}
        if event.output is not None and event.replace:
            fields["content"] = _shown(event.output)
        elif event.output is not None:
            # content is replaced by each update; sent whole each time, long outputs would cost their square
            self._printed.add(event.tool_call_id)
            fields["_meta"] = {"terminal_output_delta": {"data": event.output, "terminal_id": event.tool_call_id}}
        if event.locations is not None:
            fields["locations"] = event.locations
        return [_call(event.tool_call_id, **fields)]

    def _result(self, event: ToolCallResultEvent) -> Made:
        self._printed.discard(event.tool_call_id)
        fields: dict[str, Any] = {"status": "completed", "content": _shown(event.output)}
        if event.structured is not None:
            fields["rawOutput"] = event.structured
        return [_call(event.tool_call_id, **fields)]

    def _error(self, event: ToolCallErrorEvent) -> Made:
        self._printed.discard(event.tool_call_id)
        text = event.error.message
        if event.output and event.output != text:
            text = f"{event.output}\n{text}"
        return [_call(event.tool_call_id, status="failed", content=_shown(text), rawOutput={"error": event.error})]

    def _todos(self, event: TodoUpdateEvent) -> Made:
        entries = [
            {"content": todo.content, "status": todo.status, "priority": todo.priority or "medium"}
            for todo in event.todos
        ]
        return [{"sessionUpdate": "plan", "entries": entries}]

    def _plan_mode(self, event: PlanModeEvent) -> Made:
        if event.mode_id is None:
            return []
        return [{"sessionUpdate": "current_mode_update", "currentModeId": event.mode_id}]

    def _context_window(self, event: ContextWindowEvent) -> Made:
        self._context = {"sessionUpdate": "usage_update", "used": event.used, "size": event.limit}
        return [self._context]

    def _cost(self, event: CostUpdateEvent) -> Made:
        if self._context is None:
            return []
        cost = {"amount": event.cumulative.total, "currency": event.cumulative.currency}
        return [{**self._context, "cost": cost}]

    def _notification(self, event: NotificationEvent) -> Made:
        severity = "other" if event.level == "success" else event.level
        made = {"sessionUpdate": "notice", "severity": severity, "title": event.title}
        return [{**made, "description": event.message} if event.message else made]

    def _custom(self, event: CustomEvent) -> Made:
        if event.namespace == "pilothouse" and event.event_name == "session_info_update":
            return [{"sessionUpdate": event.event_name, "title": event.data.get("title")}]
        if event.namespace != "acp":
            return []
        if event.event_name == "session_setup":
            return _setup(event.data)
        update = {"sessionUpdate": event.event_name, **event.data}
        try:
            _check(_encode(update))  # what we send fits the schema, whoever made the event
        except msgspec.DecodeError:
            return []
        return [update]


_MAKERS: dict[type[Event], Callable[[Projector, Any], Made]] = {
    MessageDeltaEvent: Projector._delta,
    MessageCompleteEvent: Projector._complete,
    ThinkingDeltaEvent: Projector._thought,
    ThinkingCompleteEvent: Projector._thought_complete,
    ToolCallStartEvent: Projector._start,
    ToolCallExecutingEvent: Projector._executing,
    ProgressEvent: Projector._progress,
    ToolCallResultEvent: Projector._result,
    ToolCallErrorEvent: Projector._error,
    TodoUpdateEvent: Projector._todos,
    PlanModeEvent: Projector._plan_mode,
    ContextWindowEvent: Projector._context_window,
    CostUpdateEvent: Projector._cost,
    NotificationEvent: Projector._notification,
    CustomEvent: Projector._custom,
}


def _is_update(event: Event) -> bool:
    """The source of a question or of a turn's end is a request or an answer, no update."""
    if isinstance(event, CustomEvent):
        return event.namespace != "pilothouse" and event.event_name != "prompt_echo"
    return not isinstance(event, (ApprovalRequestedEvent, UserQuestionEvent))


def _in_protocol(event: Event, source: bytes) -> bytes:
    if isinstance(event, (MessageDeltaEvent, ThinkingDeltaEvent)) and event.content is None:
        return source  # nearly all there are, and plain text has no dialect
    try:
        _check(source)
    except (*UNDECODABLE, ValidationError):
        return _mended(source) or source
    return source


def _mended(source: bytes) -> bytes | None:
    """The same in the words of the protocol; None if anything would be lost by that."""
    try:
        typed, repairs = repair(schema.SessionUpdate, msgspec.json.decode(source), "update")
        is_whole = bool(repairs) and all(one.action == "mended" for one in repairs)
        return encode(to_wire(typed)) if is_whole else None
    except (*UNDECODABLE, ValidationError):
        return None


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _chunk(kind: str, message_id: str, block: Mapping[str, Any]) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": block, "messageId": message_id}


def _call(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def _shown(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": _text(text)}]


def _setup(data: Mapping[str, Any]) -> Made:
    made: Made = []
    if isinstance(data.get("configOptions"), list):
        made.append({"sessionUpdate": "config_option_update", "configOptions": data["configOptions"]})
    modes = data.get("modes")
    if isinstance(modes, Mapping) and isinstance(modes.get("currentModeId"), str):
        made.append({"sessionUpdate": "current_mode_update", "currentModeId": modes["currentModeId"]})
    return made
