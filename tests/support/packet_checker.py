"""The packet documents as tables, and a checker that holds a packet to them like a strict TypeScript compiler would.

A field has a type and is always there; `Maybe` marks one that the interface writes with `?`, or that the documents' own
examples leave out. A field that is in no interface and no example is an error. Where the two documents differ the type
is the union of both. `timestamp` is on every packet, whatever its interface says: the delivery format adds it. What is
added to the documents is in `ADDED`, apart, and each entry says why.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], list[str]]


class Maybe:
    """A field that may be left out."""

    def __init__(self, check: Check) -> None:
        self.check = check


def literal(*values: Any) -> Check:
    return lambda value, path: [] if value in values and type(value) in map(type, values) else [f"{path}: {value!r}"]


def of(*kinds: type) -> Check:
    def check(value: Any, path: str) -> list[str]:
        right = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        return [] if right else [f"{path}: {value!r} is no {' or '.join(kind.__name__ for kind in kinds)}"]

    return check


def union(*checks: Check) -> Check:
    def check(value: Any, path: str) -> list[str]:
        found = [each(value, path) for each in checks]
        return [] if any(not errors for errors in found) else min(found, key=len)

    return check


def array(check: Check) -> Check:
    def run(value: Any, path: str) -> list[str]:
        if not isinstance(value, list):
            return [f"{path}: {value!r} is no array"]
        return [error for index, item in enumerate(value) for error in check(item, f"{path}[{index}]")]

    return run


def interface(fields: Mapping[str, Check | Maybe]) -> Check:
    def check(value: Any, path: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{path}: {value!r} is no object"]
        errors = [f"{path}.{name}: not in the documents" for name in value if name not in fields]
        for name, kind in fields.items():
            if name in value:
                errors += (kind.check if isinstance(kind, Maybe) else kind)(value[name], f"{path}.{name}")
            elif not isinstance(kind, Maybe):
                errors.append(f"{path}.{name}: missing")
        return errors

    return check


def moment(value: Any, path: str) -> list[str]:
    try:
        when = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return [f"{path}: {value!r} is no ISO 8601 time"]
    return [] if when.tzinfo is not None else [f"{path}: {value!r} has no time zone"]


STRING, NUMBER, NULL = of(str), of(int, float), literal(None)
RECORD = of(dict)
EMPTY = literal({})
KIND = literal("search", "read", "execute", "edit", "other")
TEXT = interface({"_meta": NULL, "type": literal("text"), "text": STRING, "annotations": NULL})
CONTENT = interface({"_meta": NULL, "type": literal("content"), "content": TEXT})
DIFF = interface({"_meta": NULL, "type": literal("diff"), "newText": STRING, "oldText": STRING, "path": STRING})
LOCATION = interface({"_meta": NULL, "path": STRING, "line": union(NUMBER, NULL)})
ENTRY = interface(
    {
        "_meta": NULL,
        "content": STRING,
        "status": literal("pending", "in_progress", "completed"),
        "priority": literal("medium", "high", "low"),
    }
)

DOCUMENTED: Mapping[str, Mapping[str, Check | Maybe]] = {
    "agent_message_chunk": {"_meta": NULL, "sessionUpdate": literal("agent_message_chunk"), "content": TEXT},
    "tool_call_start": {
        "_meta": NULL,
        "sessionUpdate": literal("tool_call"),
        "toolCallId": STRING,
        "title": STRING,
        "kind": KIND,
        "status": literal("pending"),
        "content": NULL,
        "rawInput": EMPTY,
        "rawOutput": NULL,
        "locations": literal([]),
    },
    "tool_call_progress": {
        "_meta": NULL,
        "sessionUpdate": literal("tool_call_update"),
        "toolCallId": STRING,
        "title": STRING,
        "kind": KIND,
        "status": literal("pending", "in_progress", "completed", "failed"),
        "rawInput": RECORD,
        "rawOutput": union(RECORD, NULL),
        "content": union(array(union(CONTENT, DIFF)), NULL),
        "locations": union(array(LOCATION), NULL),
    },
    "agent_plan_update": {"_meta": NULL, "sessionUpdate": literal("plan"), "entries": array(ENTRY)},
    "prompt_response": {"_meta": EMPTY, "stopReason": literal("end_turn", "max_tokens", "stop_sequence")},
    "error": {"message": STRING, "code": union(NUMBER, NULL), "details": union(RECORD, NULL)},
    "artifact_created": {
        "artifact": interface(
            {
                "id": STRING,
                "type": literal("file", "image", "nextjs_app", "web_app"),
                "name": STRING,
                "path": STRING,
                "preview_url": Maybe(union(STRING, NULL)),
                # the documents' own system sent these as well
                "download_url": Maybe(union(STRING, NULL)),
                "mime_type": Maybe(union(STRING, NULL)),
                "size_bytes": Maybe(union(NUMBER, NULL)),
                "metadata": Maybe(RECORD),
            }
        )
    },
}

STOP_REASONS = literal("end_turn", "max_tokens", "stop_sequence", "max_turn_requests", "refusal", "cancelled", "error")
ADDED: Mapping[str, Mapping[str, Check | Maybe]] = {
    # the delivery names it beside the message chunk, with the same shape
    "agent_thought_chunk": {"_meta": NULL, "sessionUpdate": literal("agent_thought_chunk"), "content": TEXT},
    # an update of the protocol that the documents leave out
    "current_mode_update": {"_meta": NULL, "sessionUpdate": literal("current_mode_update"), "currentModeId": STRING},
    # the documents' agents asked nobody
    "approval_requested": {
        "_meta": NULL,
        "requestId": STRING,
        "toolCallId": STRING,
        "toolName": STRING,
        "toolInput": RECORD,
        "description": STRING,
        "riskLevel": literal("low", "medium", "high", "critical"),
        "riskReasons": array(STRING),
        "preview": union(RECORD, NULL),
        "options": array(RECORD),
        "expiresAt": union(STRING, NULL),
        "notes": array(STRING),
        "origin": literal("agent", "hub"),
        "ruleOffers": array(RECORD),
        "ruleRefusal": union(STRING, NULL),
        "questionIds": array(STRING),
        "choosesMode": of(bool),
    },
    "approval_resolved": {
        "_meta": NULL,
        "requestId": STRING,
        "toolCallId": STRING,
        "approved": of(bool),
        "resolvedBy": literal("user", "policy", "timeout", "cancelled"),
        "reason": union(STRING, NULL),
        "optionId": union(STRING, NULL),
        "decidedBy": union(STRING, NULL),
        "deviceId": union(STRING, NULL),
    },
    "question_requested": {
        "_meta": NULL,
        "questionId": STRING,
        "question": STRING,
        "options": union(array(STRING), NULL),
        "defaultValue": union(STRING, NULL),
        "expiresAt": union(STRING, NULL),
        "multiSelect": of(bool),
        "form": union(RECORD, NULL),
        "url": union(STRING, NULL),
        "toolCallId": union(STRING, NULL),
    },
    "question_resolved": {
        "_meta": NULL,
        "questionId": STRING,
        "outcome": literal("answered", "declined", "cancelled"),
        "answer": union(STRING, array(STRING), RECORD, NULL),
    },
    # turns end in more ways than the documents' agent did; `error` follows an error packet
    "prompt_response": {"_meta": EMPTY, "stopReason": STOP_REASONS},
}
LOOSE: Mapping[str, Check] = {
    # agents may say more than the documents' did: blocks that are no text, and what only they and their clients know
    "_meta": union(RECORD, NULL),
    "content": union(RECORD, array(RECORD), NULL),
}


def check_packet(packet: Any, *, by_the_book: bool = True) -> list[str]:
    """What is wrong with a packet. Not `by_the_book`: also stop reasons, content and `_meta` that the protocol has."""
    kind = packet.get("type") if isinstance(packet, dict) else None
    known = {**ADDED, **DOCUMENTED} if by_the_book else {**DOCUMENTED, **ADDED}
    if not isinstance(kind, str) or kind not in known:
        return [f"{kind!r} is no type of packet"]
    loose = {} if by_the_book else {name: LOOSE[name] for name in LOOSE if name in known[kind]}
    return interface({"type": literal(kind), "timestamp": moment, **known[kind], **loose})(packet, kind)
