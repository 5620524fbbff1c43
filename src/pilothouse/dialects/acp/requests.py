"""What an agent asked, as a request to an ACP client: its own words where there are some, else made from the event.

What is sent fits the schema, whoever asked; a question that cannot be put so is None, and is left to others.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...acp import schema
from ...acp.lenient import dec_hook
from ...model.events import ApprovalRequestedEvent, UserQuestionEvent
from ...model.records import CommandPreview, DiffPreview
from .reading import mapping

__all__ = ["elicitation_mode", "elicitation_request", "permission_request"]

_encode = msgspec.json.Encoder().encode
_permission = msgspec.json.Decoder(schema.RequestPermissionRequest, dec_hook=dec_hook).decode
_elicitation = msgspec.json.Decoder(schema.CreateElicitationRequest, dec_hook=dec_hook).decode
_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


def permission_request(event: ApprovalRequestedEvent, session_id: str) -> dict[str, Any] | None:
    """The params of `session/request_permission` for an approval."""
    for wire in (mapping(event.source) if event.source else {}, _made_permission(event)):
        params = {**wire, "sessionId": session_id}
        if wire and _fits(_permission, params):
            return {**params, "toolCall": _with_facts(wire["toolCall"], event)}
    return None


def _with_facts(call: dict[str, Any], event: ApprovalRequestedEvent) -> dict[str, Any]:
    """What else is known, in the call and not beside it: not every client's handler takes what is beside it."""
    facts = {
        "approvalId": event.request_id,
        "riskLevel": event.risk_level,
        "riskReasons": event.risk_reasons,
        "seq": event.seq,
    }
    meta = call.get("_meta")
    return {**call, "_meta": {**(meta if isinstance(meta, dict) else {}), "pilothouse": facts}}


def _made_permission(event: ApprovalRequestedEvent) -> dict[str, Any]:
    offered = [option for option in event.options if option.kind in _KINDS]
    if not offered:
        return {}
    call: dict[str, Any] = {
        "toolCallId": event.tool_call_id,
        "title": event.description or event.tool_name,
        "status": "pending",
        "rawInput": event.tool_input,
    }
    shown = _preview(event)
    if shown:
        call["content"] = [{"type": "content", "content": {"type": "text", "text": shown}}]
    options = [{"optionId": option.option_id, "name": option.name, "kind": option.kind} for option in offered]
    return {"toolCall": call, "options": options}


def _preview(event: ApprovalRequestedEvent) -> str:
    preview = event.preview
    if isinstance(preview, DiffPreview):
        return f"```diff\n{preview.diff}\n```"
    if isinstance(preview, CommandPreview):
        return f"```sh\n{preview.command}\n```"
    return preview.text if preview is not None else ""


def elicitation_request(event: UserQuestionEvent, session_id: str) -> dict[str, Any] | None:
    """The params of `elicitation/create` for a question; None for one that is answered with a tool's approval."""
    if not event.source and (event.source is not None or event.tool_call_id is not None):
        return None
    for wire in (mapping(event.source) if event.source else {}, _made_elicitation(event)):
        own = {key: value for key, value in wire.items() if key != "requestId"}
        params = {**own, "sessionId": session_id}
        if wire and _fits(_elicitation, params):
            return params
    return None


def elicitation_mode(params: dict[str, Any]) -> str:
    return "url" if params.get("mode") == "url" else "form"


def _made_elicitation(event: UserQuestionEvent) -> dict[str, Any]:
    if event.url is not None:
        return {"mode": "url", "message": event.question, "url": event.url, "elicitationId": event.question_id}
    field: dict[str, Any] = {"type": "string", "title": event.question}
    if event.options:
        field = {**field, "enum": event.options}
        if event.multi_select:
            field = {"type": "array", "title": event.question, "items": {"type": "string", "enum": event.options}}
    form = event.form or {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
    return {"mode": "form", "message": event.question, "requestedSchema": form}


def _fits(decode: Any, params: dict[str, Any]) -> bool:
    try:
        decode(_encode(params))
    except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
        return False
    return True
