"""The control protocol beside the conversation: requests in both directions, each answered exactly once.

Ids of our own requests are counted, so that the same conversation gives the same lines.
"""

from __future__ import annotations

from typing import Any

from ...acp.errors import METHOD_NOT_FOUND
from .actions import Answered
from .outbox import Outbox
from .reading import mapping, text

__all__ = ["Control"]

REMEMBERED = 100
"""Answers that may still be repeated to us."""


class Control:
    """Requests that we sent and that wait for their answer; answers to those of the CLI."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._count = 0
        self._sent: dict[str, dict[str, Any]] = {}
        self._told: dict[str, None] = {}

    # -- ours --

    def request(self, subtype: str, **fields: Any) -> str:
        """Ask the CLI for something; fields that are None are left out."""
        self._count += 1
        request_id = f"pilothouse-{self._count}"
        request = {"subtype": subtype, **{key: value for key, value in fields.items() if value is not None}}
        self._sent[request_id] = request
        line = {"type": "control_request", "request_id": request_id, "request": request}
        self._outbox.send(line, request_id)
        return request_id

    def answered(self, response: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The CLI answered: the request and, when it agreed, its answer. None for what is no answer to us."""
        request_id = text(response.get("request_id"))
        request = self._sent.pop(request_id, None)
        if request is None:
            # a CLI that repeats what it is sent repeats our answers too
            if request_id not in self._told:
                self._outbox.note("answer_to_nothing", response)
            self._told.pop(request_id, None)
            return None
        answer = mapping(response.get("response"))
        if response.get("subtype") == "success":
            self._outbox.add(Answered(request_id, answer))
            return request, answer
        error = text(response.get("error")) or "Claude Code refused the request without saying why."
        self._outbox.add(Answered(request_id, answer, error))
        return None

    def died(self, reason: str) -> None:
        """Nobody will answer any more."""
        for request_id in self._sent:
            self._outbox.add(Answered(request_id, {}, reason))
        self._sent.clear()

    # -- the CLI's --

    def agree(self, request_id: str, response: dict[str, Any]) -> None:
        self._answer({"subtype": "success", "request_id": request_id, "response": response})

    def refuse(self, request_id: str, error: str) -> None:
        self._answer({"subtype": "error", "request_id": request_id, "error": error})

    def _answer(self, answer: dict[str, Any]) -> None:
        self._outbox.send({"type": "control_response", "response": answer})
        self._told[answer["request_id"]] = None
        if len(self._told) > REMEMBERED:
            del self._told[next(iter(self._told))]

    def hook(self, request_id: str, request: dict[str, Any]) -> None:
        """A hook that this host did not register: an empty answer decides nothing and lets the CLI go on."""
        self._outbox.note("hook_callback", request)
        self.agree(request_id, {})

    def mcp(self, request_id: str, request: dict[str, Any]) -> None:
        """A message for an MCP server inside this host: there are none."""
        message = mapping(request.get("message"))
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
        if "id" in message:
            name = text(request.get("server_name"))
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": f"There is no MCP server {name!r} here."}
        else:
            answer["result"] = {}
        self.agree(request_id, {"mcp_response": answer})
