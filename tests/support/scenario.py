"""Drives a translator the way a hub would: everything an agent and its users did, in order, with a clock that ticks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pilothouse.dialects.acp import Translator
from pilothouse.model.events import Event, encode_event

SESSION = "s1"
NOW = "2026-03-01T10:00:00.000Z"


class Drive:
    """One session; every method returns the events it gave, and `events` has them all, numbered."""

    def __init__(self, **options: Any) -> None:
        self.translator = Translator(SESSION, **{"workspace": "/work/app", "status": "idle", **options})
        self.events: list[Event] = []
        self.updates: list[bytes] = []
        self.ticks = 0

    def now(self) -> str:
        self.ticks += 1
        return f"2026-03-01T10:{self.ticks // 600:02}:{self.ticks % 600 / 10:06.3f}Z"

    def keep(self, events: list[Event]) -> list[Event]:
        for event in events:
            event.seq = len(self.events) + 1
            self.events.append(event)
        return events

    def update(self, kind: str, /, **fields: Any) -> list[Event]:
        return self.raw(json.dumps({"sessionUpdate": kind, **fields}).encode())

    def raw(self, update: bytes) -> list[Event]:
        self.updates.append(update)
        return self.keep(self.translator.update(update, self.now()))

    def say(self, *texts: str, kind: str = "agent_message_chunk", **fields: Any) -> None:
        for text in texts:
            self.update(kind, content={"type": "text", "text": text}, **fields)

    def call(self, call_id: str, /, **fields: Any) -> list[Event]:
        return self.update("tool_call", toolCallId=call_id, **{"title": call_id, **fields})

    def progress(self, call_id: str, /, **fields: Any) -> list[Event]:
        return self.update("tool_call_update", toolCallId=call_id, **fields)

    def prompt(self, prompt: Any = "Go", turn_id: str = "t1") -> list[Event]:
        return self.keep(self.translator.prompt(prompt, self.now(), turn_id=turn_id))

    def end(self, stop_reason: str = "end_turn", **fields: Any) -> list[Event]:
        result = json.dumps({"stopReason": stop_reason, **fields}).encode()
        return self.keep(self.translator.result(result, self.now()))

    def ask(
        self, call_id: str, request_id: str = "r1", files: dict[str, str | None] | None = None, **fields: Any
    ) -> list[Event]:
        options = [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        ]
        params = {"sessionId": SESSION, "toolCall": {"toolCallId": call_id, **fields}, "options": options}
        raw = json.dumps(params).encode()
        return self.keep(self.translator.permission(raw, self.now(), request_id=request_id, files=files))

    def decide(self, request_id: str = "r1", *, approved: bool = True, **fields: Any) -> list[Event]:
        fields = {"resolved_by": "user", **fields}
        return self.keep(self.translator.resolve(request_id, self.now(), approved=approved, **fields))

    @property
    def types(self) -> list[str]:
        return types(self.events)


def types(events: Iterable[Event]) -> list[str]:
    return [event.type for event in events]


def text(value: str) -> list[dict[str, Any]]:
    """Tool call content with one text."""
    return [{"type": "content", "content": {"type": "text", "text": value}}]


def only(events: list[Event], kind: str) -> Any:
    """The one event of a kind."""
    found = [event for event in events if event.type == kind]
    assert len(found) == 1, types(events)
    return found[0]


def ends(events: list[Event]) -> dict[str, int]:
    """For each call, how often it started less how often it ended."""
    balance: dict[str, int] = {}
    for event in events:
        step = {"tool:start": 1, "tool:result": -1, "tool:error": -1}.get(event.type)
        if step is not None:
            call_id: str = event.tool_call_id  # type: ignore[attr-defined]
            balance[call_id] = balance.get(call_id, 0) + step
    return balance


def wire(event: Event) -> dict[str, Any]:
    """What an event says, without what all events have."""
    plain = json.loads(encode_event(event))
    for key in ("seq", "sessionId", "timestamp", "type"):
        del plain[key]
    return plain
