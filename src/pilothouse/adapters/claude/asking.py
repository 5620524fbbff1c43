"""What the CLI asks of the user while a tool waits: permissions, questions, the approval of a plan.

Each request is answered once: by the user, or by a refusal when the client cannot ask. Nothing is allowed that nobody
chose to allow. An answer to what was withdrawn is dropped, because the CLI has gone on.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...acp import schema
from ...acp.lenient import dec_hook
from .control import Control
from .options import Choice, mode_choices, permission_choices
from .outbox import Outbox
from .questions import answers_of, form_of, message_of
from .reading import mapping, text
from .tools import Call, Calls

__all__ = ["Asking"]

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"
REJECTED = "The user rejected this tool call."
STOPPED = "The user rejected this tool call and wants you to stop."
DECLINED = "The user chose not to answer the questions."
UNASKED = "The user's client cannot show questions. Ask in your reply instead."

_decode = msgspec.json.Decoder(schema.CreateElicitationRequest, dec_hook=dec_hook).decode
_encode = msgspec.json.Encoder().encode


class Pending:
    """A request of the CLI that waits for the user. `outlives` is that it does so beyond the turn that it came in."""

    __slots__ = ("call_id", "choices", "given", "kind", "outlives", "params")

    def __init__(self, kind: str, call_id: str, given: dict[str, Any], choices: list[Choice]) -> None:
        self.kind = kind
        self.call_id = call_id
        self.given = given
        self.choices = choices
        self.params: dict[str, Any] = {}
        self.outlives = False


class Asking:
    """The requests that are open."""

    def __init__(self, outbox: Outbox, control: Control, calls: Calls) -> None:
        self._outbox = outbox
        self._control = control
        self._calls = calls
        self._pending: dict[str, Pending] = {}

    # -- asking --

    def tool(self, request_id: str, request: dict[str, Any]) -> None:
        """The CLI asks whether a tool may run."""
        name, given = text(request.get("tool_name")), mapping(request.get("input"))
        call_id = text(request.get("tool_use_id"))
        if not name or not call_id:
            self._control.refuse(request_id, "The request names no tool_name, or no tool_use_id.")
            return
        if request_id in self._pending:
            return  # said again: one answer is enough for both
        agent = text(request.get("agent_id")) or None
        call = self._calls.use(call_id, name, given, self._calls.agents.get(agent or ""), agent)
        call = call or Call(call_id, name, None)
        if name == "AskUserQuestion":
            self._question(request_id, call, given)
        else:
            self._permission(request_id, call, given, request)

    def _permission(self, request_id: str, call: Call, given: dict[str, Any], request: dict[str, Any]) -> None:
        plan = call.name == "ExitPlanMode"
        choices = mode_choices() if plan else permission_choices(request.get("permission_suggestions"))
        pending = self._pending[request_id] = Pending("permission", call.id, given, choices)
        call.given = {**call.given, **given} if plan else given or call.given
        asked = {"toolCallId": call.shown, "status": "pending", **call.described(self._calls.cwd, self._calls.look)}
        why = {name: request[key] for key, name in _REASONS.items() if text(request.get(key))}
        asked["_meta"] = {"claudeCode": call.meta(**why)}
        pending.params = {"toolCall": asked, "options": [choice.option() for choice in choices]}
        self._outbox.ask(request_id, PERMISSION, **pending.params)

    def _question(self, request_id: str, call: Call, given: dict[str, Any]) -> None:
        form = form_of(given)
        if form is None or not self._outbox.forms:
            self._deny(request_id, UNASKED)
            return
        self._pending[request_id] = Pending("question", call.id, given, [])
        self._outbox.ask(
            request_id, ELICITATION, mode="form", toolCallId=call.shown, message=message_of(given), requestedSchema=form
        )

    def server(self, request_id: str, request: dict[str, Any]) -> None:
        """An MCP server asks, through the CLI, for input."""
        if request_id in self._pending:
            return
        url = request.get("mode") == "url"
        params: dict[str, Any] = {"message": text(request.get("message")) or text(request.get("mcp_server_name"))}
        if url:
            known = text(request.get("elicitation_id")) or request_id
            params.update(mode="url", url=text(request.get("url")), elicitationId=known)
        else:
            params.update(mode="form", requestedSchema=mapping(request.get("requested_schema")))
        offered = self._outbox.links if url else self._outbox.forms
        if not offered or not _fits({"sessionId": self._outbox.session_id, **params}):
            self._control.agree(request_id, {"action": "cancel"})
            return
        self._pending[request_id] = Pending("server", "", {}, [])
        self._outbox.ask(request_id, ELICITATION, **params)

    # -- answers --

    def answer(self, request_id: str, result: Any) -> None:
        """The client answered."""
        pending = self._pending.pop(request_id, None)
        if pending is None:
            return
        answer = mapping(result)
        if pending.kind == "permission":
            self._decided(request_id, pending, answer)
        elif pending.kind == "question":
            self._answered(request_id, pending, answer)
        else:
            action = text(answer.get("action")) or "cancel"
            content = answer.get("content")
            told = {"content": content} if action == "accept" and isinstance(content, dict) else {}
            self._control.agree(request_id, {"action": action, **told})

    def _decided(self, request_id: str, pending: Pending, answer: dict[str, Any]) -> None:
        outcome = mapping(answer.get("outcome"))
        chosen = next((one for one in pending.choices if one.id == outcome.get("optionId")), None)
        reason = text(mapping(answer.get("_meta")).get("reason"))
        if outcome.get("outcome") == "cancelled" and pending.outlives:
            self._ask_again(request_id, pending)
        elif outcome.get("outcome") != "selected" or chosen is None:
            # whoever cancels, or chooses what was not offered, has allowed nothing, and no other call either
            self._deny(request_id, reason or STOPPED, stop=True)
        elif not chosen.allows:
            self._deny(request_id, reason or (STOPPED if chosen.stop else REJECTED), stop=chosen.stop)
        else:
            self._allow(request_id, pending, pending.given, chosen)

    def _ask_again(self, request_id: str, pending: Pending) -> None:
        """The client closed the question with the turn, but its sub-agent goes on and still waits. Once is enough."""
        pending.outlives = False
        self._pending[request_id] = pending
        self._outbox.ask(request_id, PERMISSION, **pending.params)

    def _answered(self, request_id: str, pending: Pending, answer: dict[str, Any]) -> None:
        if answer.get("action") != "accept":
            self._deny(request_id, DECLINED)
            return
        answers = answers_of(pending.given, mapping(answer.get("content")))
        self._control.agree(request_id, {"behavior": "allow", "updatedInput": {**pending.given, "answers": answers}})

    def refuse(self, request_id: str, reason: str) -> None:
        """The client could not ask, or not answer."""
        pending = self._pending.pop(request_id, None)
        if pending is None:
            return
        if pending.kind == "server":
            self._control.agree(request_id, {"action": "cancel"})
        else:
            self._deny(request_id, f"The user could not be asked: {reason}")

    def _allow(self, request_id: str, pending: Pending, given: dict[str, Any], chosen: Choice) -> None:
        answer: dict[str, Any] = {"behavior": "allow", "updatedInput": given}
        if chosen.permissions:
            answer["updatedPermissions"] = list(chosen.permissions)
        self._control.agree(request_id, answer)
        self._calls.run(pending.call_id)

    def _deny(self, request_id: str, message: str, *, stop: bool = False) -> None:
        answer: dict[str, Any] = {"behavior": "deny", "message": message}
        if stop:
            answer["interrupt"] = True
        self._control.agree(request_id, answer)

    # -- ends --

    def turn_ended(self) -> None:
        """A turn ended by itself; what sub-agents in the background ask for is not a part of it any more."""
        for pending in self._pending.values():
            pending.outlives = self._calls.in_background(self._calls.get(pending.call_id))

    def withdraw(self, request_id: str) -> None:
        """The CLI does not wait any more; it gets no answer."""
        if self._pending.pop(request_id, None) is not None:
            self._outbox.withdraw(request_id)

    def withdraw_all(self) -> None:
        for request_id in list(self._pending):
            self.withdraw(request_id)


_REASONS = {
    "description": "description",
    "blocked_path": "blockedPath",
    "decision_reason": "decisionReason",
    "decision_reason_type": "decisionReasonType",
}


def _fits(params: dict[str, Any]) -> bool:
    try:
        asked = _decode(_encode(params))
    except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
        return False
    return type(asked) is not schema.CreateOtherElicitationRequest
