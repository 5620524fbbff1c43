"""The front end of the packet documents as a state machine: `isStreaming`, `toolCalls`, `messageContent`.

It does what their implementation notes say and nothing more, so what it cannot follow, a front end written from them
could not follow either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MOVES = {
    None: {"pending"},
    "pending": {"pending", "in_progress", "completed", "failed"},
    "in_progress": {"in_progress", "completed", "failed"},
    "completed": {"completed"},
    "failed": {"failed"},
}
"""A call that fails before it runs, because it was rejected, goes straight from pending to failed; see the documents'
example of a rejected call, which has no packet in between."""


@dataclass
class ToolCall:
    title: str
    kind: str
    status: str
    raw_input: dict[str, Any]
    raw_output: dict[str, Any] | None = None
    history: list[str] = field(default_factory=list)


@dataclass
class FrontEnd:
    """One conversation turn."""

    is_streaming: bool = True
    tool_calls: dict[str, ToolCall] = field(default_factory=dict)
    message_content: str = ""
    stop_reason: str | None = None
    errors: list[str] = field(default_factory=list)
    plan: list[dict[str, Any]] = field(default_factory=list)

    def receive(self, packet: dict[str, Any]) -> None:
        assert self.is_streaming, f"{packet['type']} after the end"
        handler = getattr(self, f"_{packet['type']}", None)
        if handler is not None:
            handler(packet)

    def _agent_message_chunk(self, packet: dict[str, Any]) -> None:
        if packet["content"]["type"] == "text":
            self.message_content += packet["content"]["text"]

    def _tool_call_start(self, packet: dict[str, Any]) -> None:
        call_id = packet["toolCallId"]
        assert call_id not in self.tool_calls, f"{call_id} starts twice"
        self.tool_calls[call_id] = ToolCall(packet["title"], packet["kind"], "pending", {}, history=["pending"])

    def _tool_call_progress(self, packet: dict[str, Any]) -> None:
        call = self.tool_calls[packet["toolCallId"]]  # a card exists since its start
        assert packet["status"] in MOVES[call.status], f"{call.status} → {packet['status']}"
        if packet["status"] != call.status:
            call.history.append(packet["status"])
        call.status, call.title, call.kind = packet["status"], packet["title"], packet["kind"]
        call.raw_input = packet["rawInput"]
        call.raw_output = packet["rawOutput"] or call.raw_output

    def _agent_plan_update(self, packet: dict[str, Any]) -> None:
        self.plan = packet["entries"]

    def _error(self, packet: dict[str, Any]) -> None:
        self.errors.append(packet["message"])

    def _prompt_response(self, packet: dict[str, Any]) -> None:
        self.is_streaming = False
        self.stop_reason = packet["stopReason"]

    def check_rest(self) -> None:
        """What must hold when a turn is over, whatever happened in it."""
        assert not self.is_streaming
        open_calls = [name for name, call in self.tool_calls.items() if call.status not in ("completed", "failed")]
        assert open_calls == []
