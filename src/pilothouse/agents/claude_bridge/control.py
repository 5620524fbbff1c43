"""The control protocol beside the conversation, and the settings of a session that it reports.

There are requests in both directions, each answered exactly once. Ids of our own requests are counted, so that the same
conversation gives the same lines. Permission modes, models and slash commands are sent to the client once, and again
when they change, although the CLI repeats them at the start of every turn.
"""

from __future__ import annotations

from typing import Any

from ...acp.errors import METHOD_NOT_FOUND
from ...model.loose_json import items, mapping, text
from .actions import Answered, Outbox
from .wire import Init

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


MODES: dict[str, tuple[str, str]] = {
    "default": ("Default", "Asks before it edits files or runs commands"),
    "acceptEdits": ("Accept edits", "Edits files without asking, asks before other things"),
    "plan": ("Plan", "Reads and plans, changes nothing"),
    "dontAsk": ("Don't ask", "Refuses whatever is not allowed beforehand, instead of asking"),
    "auto": ("Auto", "Lets the model judge what needs to be asked"),
    "bypassPermissions": ("Bypass permissions", "Does everything without asking"),
}
"""The permission modes of the CLI: name and what each one does."""

_GATED = {"auto", "bypassPermissions"}
"""Modes that not every session can be set to; they are offered when the CLI says so, or is in them."""

_ALIASES = {"best", "haiku", "opus", "opusplan", "sonnet"}
"""Names by which the CLI knows models, whether it offers them or not."""


class Setup:
    """The settings of one session."""

    def __init__(self, outbox: Outbox, *, bypass: bool = False) -> None:
        self._outbox = outbox
        self._gates = {"bypassPermissions"} if bypass else set()
        self._models: list[dict[str, Any]] = []
        self._known: dict[str, dict[str, Any]] = {}
        self._commands: list[dict[str, Any]] = []
        self._shown_mode = self._shown_model = self._asked = ""
        self.mode = ""
        self.model = ""
        self.chosen = ""
        """The name by which somebody chose the model; another process is started with that one."""

    # -- what the CLI says --

    def begun(self, init: Init) -> None:
        """The line at the start of every turn."""
        self.entered(text(init.permissionMode))
        self.switched(text(init.model))
        if init.slash_commands:
            self._offer([self._known.get(name) or _command({"name": name}) for name in init.slash_commands])

    def initialized(self, answer: dict[str, Any]) -> None:
        """The answer to `initialize`: commands with their descriptions, models, the mode."""
        self._models = [model for model in map(mapping, items(answer.get("models"))) if text(model.get("value"))]
        self.commands(answer.get("commands"))
        self.entered(text(answer.get("current_permission_mode")))

    def commands(self, told: Any) -> None:
        """Commands with their descriptions."""
        found = [_command(item) for item in map(mapping, items(told)) if text(item.get("name"))]
        if found:
            self._known = {command["name"]: command for command in found}
            self._offer(found)

    def entered(self, mode: str) -> None:
        """The CLI is in a mode, perhaps another one than the client was told."""
        self.mode = mode or self.mode
        self._gates |= {self.mode} & _GATED
        if self._shown_mode and self.mode and self.mode != self._shown_mode:
            self._shown_mode = self.mode
            self._outbox.update("current_mode_update", currentModeId=self.mode)

    def chose(self, name: str, model: str) -> None:
        """The client chose a model by a name that was offered; the CLI says which one that is."""
        self.chosen = name
        self.switched(model or name)

    def asked_for(self, name: str) -> None:
        """The user asked for a model in a command; which one the CLI names next tells whether it took that one."""
        self._asked = name

    def switched(self, model: str) -> None:
        """The CLI uses a model, perhaps another one than the client was told."""
        asked, self._asked = self._asked, ""
        if asked and (model != self.model or asked in self._names(model)):
            self.chosen = asked
        self.model = model or self.model
        if self._shown_model and self._current() != self._shown_model:
            self._outbox.update("config_option_update", configOptions=self.options())

    def _offer(self, commands: list[dict[str, Any]]) -> None:
        if commands != self._commands:
            self._commands = commands
            self._outbox.update("available_commands_update", availableCommands=commands)

    # -- what a client is offered --

    def modes(self) -> dict[str, Any]:
        """The `modes` of a session."""
        current = self._shown_mode = self.mode or "default"
        gates = self._gates | ({"auto"} if self._has_auto() else set())
        offered = [mode for mode in MODES if mode not in _GATED or mode in gates]
        if current not in offered:
            offered.append(current)
        return {"currentModeId": current, "availableModes": [_mode(mode) for mode in offered]}

    def options(self) -> list[dict[str, Any]]:
        """The `configOptions` of a session: the model, once the CLI has said which ones there are."""
        if not self._models:
            return []
        choices = [_model(model) for model in self._models]
        current = self._shown_model = self._current()
        if all(choice["value"] != current for choice in choices):
            choices.append({"value": current, "name": current})
        option = {"type": "select", "id": "model", "name": "Model", "category": "model"}
        return [{**option, "currentValue": current, "options": choices}]

    def takes(self, model: str) -> bool:
        """Whether a model is one of the CLI's, by any of its names. The CLI itself takes whatever it is told, as there
        may be a gateway that knows the name, and so a slip would be the model until the next turn fails."""
        offered = {text(each.get(key)) for each in self._models for key in ("value", "resolvedModel")}
        name = model.partition("[")[0]  # of a window: `sonnet[1m]`
        known = (offered | _ALIASES | {self.model}) - {""}
        return not self._models or "claude" in name or not known.isdisjoint({model, name})

    def _has_auto(self) -> bool:
        """Whether the model in use can be left to judge by itself; of one that is not listed nothing is known."""
        current = self._current()
        return any(model.get("supportsAutoMode") is True for model in self._models if model.get("value") == current)

    def _current(self) -> str:
        """The model in use by the name that is offered for it: several names may stand for one model."""
        names = [text(model["value"]) for model in self._models]
        if not self.model:
            return names[0] if names else ""
        known = self._names(self.model)
        if self.chosen in known:
            return self.chosen
        return self.model if self.model in names else next(iter(known), self.model)

    def _names(self, model: str) -> list[str]:
        """The names that are offered for a model."""
        return [text(each["value"]) for each in self._models if text(each.get("resolvedModel")) == model]


def _command(told: dict[str, Any]) -> dict[str, Any]:
    command: dict[str, Any] = {"name": text(told["name"]), "description": text(told.get("description"))}
    hint = text(told.get("argumentHint"))
    return {**command, "input": {"hint": hint}} if hint else command


def _mode(mode: str) -> dict[str, Any]:
    name, description = MODES.get(mode, (mode, ""))
    return {"id": mode, "name": name, **({"description": description} if description else {})}


def _model(model: dict[str, Any]) -> dict[str, Any]:
    description = text(model.get("description"))
    choice = {"value": text(model["value"]), "name": text(model.get("displayName")) or text(model["value"])}
    return {**choice, **({"description": description} if description else {})}
