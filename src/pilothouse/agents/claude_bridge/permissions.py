"""Requests of the CLI to the user while a tool waits: permissions, questions, the approval of a plan.

Each request is answered once: by the user, or by a refusal if the client cannot ask. An option grants what its name
says and nothing else: the CLI suggests rules, directories and a change of mode in one list, and a user who allows a
command for good has not accepted every edit. A question of the model is a form: a choice and, beside it, a text field;
typed text wins over the choice, or is added to it where several may be chosen. An answer to a withdrawn request is
dropped. The hook `PermissionRequest` offers a plain yes and a plain no; "always" is the hub's own rule there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ...acp import schema
from ...acp.lenient import dec_hook
from ...model.loose_json import items, mapping, shortened, text
from .actions import Outbox
from .control import Control
from .tools import Call, Calls

_SCOPES = {
    "session": "in this session",
    "localSettings": "in this project",
    "projectSettings": "in this project, for everyone",
    "userSettings": "everywhere",
}
_NAME = 120


class Choice(Struct, frozen=True):
    """One option: how it is shown, and what choosing it means."""

    id: str
    name: str
    kind: str
    permissions: tuple[dict[str, Any], ...] = ()
    stop: bool = False

    @property
    def allows(self) -> bool:
        return self.kind.startswith("allow")

    def option(self) -> dict[str, Any]:
        return {"optionId": self.id, "name": self.name, "kind": self.kind}


def set_mode(mode: str) -> dict[str, Any]:
    return {"type": "setMode", "mode": mode, "destination": "session"}


def permission_choices(suggested: Any) -> list[Choice]:
    """Options for a tool. The one that binds least comes first of its kind: who decides by kind takes the first."""
    wishes = [wish for wish in items(suggested) if isinstance(wish, dict)]
    modes = [wish for wish in wishes if wish.get("type") == "setMode" and text(wish.get("mode"))]
    grants = [wish for wish in wishes if wish.get("type") != "setMode"]
    choices = [Choice("allow", "Allow", "allow_once")]
    if grants:
        choices.append(Choice("allow_always", _grant_name(grants), "allow_always", tuple(grants)))
    for wish in modes:
        name = _MODE_NAMES.get(wish["mode"], f"Allow, and switch to mode {wish['mode']}")
        choices.append(Choice(f"mode:{wish['mode']}", name, "allow_always", (wish,)))
    return [*choices, *_REJECT]


_REJECT = (
    Choice("reject", "Reject", "reject_once"),
    Choice("stop", "Reject and stop", "reject_once", stop=True),
)
_MODE_NAMES = {
    "acceptEdits": "Allow, and accept all edits in this session",
    "bypassPermissions": "Allow, and never ask again in this session",
}


def _grant_name(grants: list[dict[str, Any]]) -> str:
    rules = [mapping(rule) for grant in grants for rule in items(grant.get("rules"))]
    what = [_rule_name(rule) for rule in rules if text(rule.get("toolName"))]
    what += [f"access to {text(one)}" for grant in grants for one in items(grant.get("directories")) if text(one)]
    scopes = {_SCOPES.get(text(grant.get("destination")), "") for grant in grants} - {""}
    scope = scopes.pop() if len(scopes) == 1 else ""
    return shortened(" ".join(filter(None, ("Always allow", ", ".join(what), scope))), _NAME)


def _rule_name(rule: dict[str, Any]) -> str:
    content = text(rule.get("ruleContent"))
    return f"{rule['toolName']}({content})" if content else text(rule["toolName"])


def mode_choices() -> list[Choice]:
    """Options for a plan: which mode the work begins in, or that planning goes on."""
    return [
        Choice("default", "Approve, and ask before edits", "allow_once", (set_mode("default"),)),
        Choice("acceptEdits", "Approve, and accept all edits", "allow_always", (set_mode("acceptEdits"),)),
        Choice("plan", "Keep planning", "reject_once"),
        Choice("stop", "Reject and stop", "reject_once", stop=True),
    ]


Question = dict[str, Any]


def questions_in(given: dict[str, Any]) -> list[Question]:
    asked = [mapping(item) for item in items(given.get("questions"))]
    return [one for one in asked if text(one.get("question"))]


def message_of(given: dict[str, Any]) -> str:
    asked = questions_in(given)
    return text(asked[0]["question"]) if len(asked) == 1 else f"Claude has {len(asked)} questions."


def form_of(given: dict[str, Any]) -> dict[str, Any] | None:
    """The form for all questions of a call; None when it asks nothing that can be read."""
    properties: dict[str, Any] = {}
    for number, question in enumerate(questions_in(given), 1):
        title = text(question.get("header")) or f"Question {number}"
        options = _options(question)
        head = {"title": title, "description": text(question["question"])}
        if not options:
            properties[f"q{number}"] = {"type": "string", **head}
            continue
        if question.get("multiSelect") is True:
            properties[f"q{number}"] = {"type": "array", **head, "items": {"anyOf": options}}
        else:
            properties[f"q{number}"] = {"type": "string", **head, "oneOf": options}
        properties[f"q{number}_other"] = {"type": "string", "title": f"{title}: another answer"}
    return {"type": "object", "properties": properties} if properties else None


def _options(question: Question) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for option in map(mapping, items(question.get("options"))):
        label, description = text(option.get("label")), text(option.get("description"))
        if label:
            found.setdefault(label, {"const": label, "title": label})
            if description:
                found[label]["description"] = description
    return list(found.values())


def answers_of(given: dict[str, Any], content: dict[str, Any]) -> dict[str, str]:
    """The answers by question, as the CLI takes them. A question that was passed over has none."""
    answers: dict[str, str] = {}
    for number, question in enumerate(questions_in(given), 1):
        chosen = content.get(f"q{number}")
        labels = [one for one in (chosen if isinstance(chosen, list) else [chosen]) if isinstance(one, str) and one]
        own = text(content.get(f"q{number}_other")).strip()
        if own and question.get("multiSelect") is not True:
            labels = []
        said = ", ".join([*labels, own] if own else labels)
        if said:
            answers[text(question["question"])] = said
    return answers


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


OPTIONS = (
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)


def tool_call(
    call_id: str, name: str, given: Mapping[str, Any], *, cwd: str, old_text: str | None = None, mode: str | None = None
) -> dict[str, Any]:
    """The call that is asked about; `old_text` is what is in the file now that it would write."""
    call = Call(call_id, name, None)
    call.given = dict(given)
    described = call.described(cwd, lambda path: old_text)
    meta = {"claudeCode": call.meta(hook=True, permissionMode=mode)}
    return {"toolCallId": call_id, "status": "pending", **described, "_meta": meta}


def allows(answer: Mapping[str, Any]) -> bool:
    """Whether an answer to these options allows the call."""
    return answer.get("outcome") == {"outcome": "selected", "optionId": "allow"}


def denies(answer: Mapping[str, Any]) -> bool:
    return answer.get("outcome") == {"outcome": "selected", "optionId": "reject"}
