"""Plays a recording of the CLI through the translator, with a client that decides as whoever recorded it did."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pilothouse.agents.claude_bridge.actions import Action, Answered, Ask, Ended, Note, Send, Update, Withdraw
from pilothouse.agents.claude_bridge.translate import Translator
from tests.support.schema_check import FrameChecker

__all__ = ["SESSION", "Play", "checked", "entries_of", "play"]

SESSION = "session-1"
Json = dict[str, Any]


def entries_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


class Play:
    """What came of a recording."""

    def __init__(self, entries: Iterable[Json], **options: Any) -> None:
        self.translator = Translator(SESSION, **options)
        self.translator.setup()
        self.actions: list[Action] = []
        self.lines: list[Json] = []
        self._ids: dict[str, str] = {}
        self._asked: dict[str, Ask] = {}
        for entry in entries:
            self._entry(entry)

    def _entry(self, entry: Json) -> None:
        message = entry.get("msg")
        if entry["dir"] == "a2c":
            if isinstance(message, dict):
                self.lines.append(message)
                self.take(self.translator.read(json.dumps(self._ours(message))))
            else:
                self.take(self.translator.read(entry["line"]))
        elif entry["dir"] == "c2a" and isinstance(message, dict):
            self._client(message)
        elif isinstance(message, dict) and "exit" in message:
            self.take(self.translator.died(message["exit"]))

    def _ours(self, message: Json) -> Json:
        """An answer to a request goes by the id that the translator gave it."""
        if message.get("type") != "control_response":
            return message
        response = message["response"]
        known = self._ids.get(response["request_id"], response["request_id"])
        return {**message, "response": {**response, "request_id": known}}

    def _client(self, message: Json) -> None:
        if message["type"] == "user":
            self.take(self.translator.prompt(message["message"]["content"], uuid=message.get("uuid")))
        elif message["type"] == "control_request":
            request = dict(message["request"])
            subtype = request.pop("subtype")
            actions = (
                self.translator.interrupt() if subtype == "interrupt" else self.translator.control(subtype, **request)
            )
            self._ids[message["request_id"]] = next(one.request_id or "" for one in actions if isinstance(one, Send))
            self.take(actions)
        elif message["type"] == "control_response":
            self._answer(message["response"])

    def _answer(self, response: Json) -> None:
        asked = self._asked.pop(response["request_id"], None)
        if asked is None:
            return  # answered by the translator itself
        told = response["response"]
        if asked.method == "elicitation/create":
            content = {f"q{n}": answer for n, answer in enumerate(told["updatedInput"]["answers"].values(), 1)}
            result: Json = {"action": "accept", "content": content}
        else:
            result = {"outcome": {"outcome": "selected", "optionId": _chosen(told, asked)}}
            if told["behavior"] == "deny":
                result["_meta"] = {"reason": told["message"]}
        self.take(self.translator.answer(asked.request_id, result))

    def take(self, actions: list[Action]) -> None:
        self.actions += actions
        for action in actions:
            if isinstance(action, Ask):
                self._asked[action.request_id] = action
            elif isinstance(action, Withdraw):
                del self._asked[action.request_id]

    # -- what came of it --

    def of(self, kind: type) -> list[Any]:
        return [action for action in self.actions if isinstance(action, kind)]

    @property
    def updates(self) -> list[Json]:
        return [action.update for action in self.of(Update)]

    @property
    def ended(self) -> list[Ended]:
        return self.of(Ended)

    @property
    def sent(self) -> list[Json]:
        return [json.loads(action.line) for action in self.of(Send)]

    def kinds(self) -> list[str]:
        return [update["sessionUpdate"] for update in self.updates]

    def text(self, kind: str = "agent_message_chunk", parent: str | None = None) -> str:
        chunks = [update for update in self.updates if update["sessionUpdate"] == kind and _parent(update) == parent]
        return "".join(chunk["content"]["text"] for chunk in chunks if not _is_redacted(chunk))

    def calls(self) -> dict[str, list[Json]]:
        """Of each call all that was told."""
        found: dict[str, list[Json]] = {}
        for update in self.updates:
            if update["sessionUpdate"].startswith("tool_call"):
                found.setdefault(update["toolCallId"], []).append(update)
        return found

    def call(self, call_id: str) -> Json:
        """A call as a client knows it in the end."""
        known: Json = {}
        for update in self.calls()[call_id]:
            known |= update
        return known

    def statuses(self, call_id: str) -> list[str]:
        return [update["status"] for update in self.calls()[call_id] if "status" in update]

    def notices(self) -> list[str]:
        return [update["title"] for update in self.updates if update["sessionUpdate"] == "notice"]


def play(*messages: Any, **options: Any) -> Play:
    """Lines of the CLI; a string is a prompt of the client, and so is a list of blocks."""
    entries = [
        {"dir": "a2c", "msg": message}
        if isinstance(message, dict)
        else {"dir": "c2a", "msg": {"type": "user", "message": {"role": "user", "content": message}}}
        for message in messages
    ]
    return checked(Play(entries, **options))


def _chosen(told: Json, asked: Ask) -> str:
    if told["behavior"] == "deny":
        return "stop" if told.get("interrupt") else "reject"
    if asked.params["toolCall"]["kind"] == "switch_mode":
        return "default"
    modes = [wish["mode"] for wish in told.get("updatedPermissions", ()) if wish["type"] == "setMode"]
    return f"mode:{modes[0]}" if modes else "allow_always" if told.get("updatedPermissions") else "allow"


def _parent(update: Json) -> str | None:
    parent = update.get("_meta", {}).get("claudeCode", {}).get("parentToolUseId")
    return parent if isinstance(parent, str) else None


def _is_redacted(update: Json) -> bool:
    return bool(update.get("_meta", {}).get("claudeCode", {}).get("redacted"))


def checked(played: Play) -> Play:
    """Everything that goes to the client fits the protocol's own schema."""
    checker = FrameChecker("agent")
    for number, action in enumerate(played.actions):
        if isinstance(action, Update):
            params = {"sessionId": SESSION, "update": action.update}
            checker.sent({"jsonrpc": "2.0", "method": "session/update", "params": params})
        elif isinstance(action, Ask):
            checker.sent({"jsonrpc": "2.0", "id": number, "method": action.method, "params": action.params})
        elif isinstance(action, Note):
            assert action.method.startswith("_claude/")
        elif isinstance(action, Ended):
            checker.received({"jsonrpc": "2.0", "id": number, "method": "session/prompt"})
            checker.sent({"jsonrpc": "2.0", "id": number, **_answer_frame(action)})
        else:
            assert isinstance(action, (Send, Withdraw, Answered))
    return played


def _answer_frame(ended: Ended) -> Json:
    if ended.failure is None:
        return {"result": ended.response}
    return {
        "error": {"code": ended.failure.code, "message": ended.failure.message, "data": ended.failure.data},
    }
