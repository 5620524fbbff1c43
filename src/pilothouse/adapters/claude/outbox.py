"""The actions of one line, in order, in the shapes that the protocol has for them.

Notices, compactions and questions are only for clients that said they know them. For the others the same facts are
notes, so that nothing is lost and nobody is sent what it does not understand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .actions import Action, Ask, Note, Send, Update, Withdraw
from .reading import mapping
from .wire import Line, encode_line

__all__ = ["META", "Outbox"]

META = "claudeCode"
"""The key in `_meta` under which everything goes that is the CLI's own."""

_encode = msgspec.json.Encoder().encode


class Outbox:
    """Collects the actions of what is being translated; `take` gives and forgets them."""

    def __init__(self, session_id: str, capabilities: Mapping[str, Any] | None = None) -> None:
        self.session_id = session_id
        offered = mapping(capabilities) if capabilities is not None else _EVERYTHING
        session = mapping(offered.get("session"))
        self.notices = session.get("notices") is not None
        self.compactions = session.get("compaction") is not None
        self.forms = mapping(offered.get("elicitation")).get("form") is not None
        self.links = mapping(offered.get("elicitation")).get("url") is not None
        self._actions: list[Action] = []

    def take(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    def add(self, action: Action) -> None:
        self._actions.append(action)

    def update(self, kind: str, meta: Mapping[str, Any] | None = None, /, **fields: Any) -> None:
        """A `session/update`; fields that are None are left out."""
        update = {"sessionUpdate": kind, **{key: value for key, value in fields.items() if value is not None}}
        if meta:
            update["_meta"] = {META: dict(meta)}
        self._actions.append(Update(update))

    def notice(self, severity: str, title: str, description: str = "", /, **meta: Any) -> None:
        """Something that the user should be told, which is nobody's words."""
        fields: dict[str, Any] = {"severity": severity, "title": title}
        if description:
            fields["description"] = description
        if meta:
            fields["_meta"] = meta
        if self.notices:
            self._actions.append(Update({"sessionUpdate": "notice", **fields}))
        else:
            self.note("notice", fields)

    def compaction(self, compaction_id: str, status: str, **fields: Any) -> None:
        """The conversation is being shortened, or was."""
        known = {"compactionId": compaction_id, "status": status, **fields}
        if self.compactions:
            self._actions.append(Update({"sessionUpdate": "compaction_update", **known}))
        else:
            self.note("compaction", known)

    def note(self, name: str, params: Mapping[str, Any]) -> None:
        self._actions.append(Note(f"_claude/{name}", dict(params)))

    def ask(self, request_id: str, method: str, **params: Any) -> None:
        self._actions.append(Ask(request_id, method, {"sessionId": self.session_id, **params}))

    def withdraw(self, request_id: str) -> None:
        self._actions.append(Withdraw(request_id))

    def send(self, line: Line | dict[str, Any], request_id: str | None = None) -> None:
        encoded = encode_line(line) if isinstance(line, Line) else _encode(line)
        self._actions.append(Send(encoded, request_id))


_EVERYTHING: dict[str, Any] = {
    "session": {"notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
}
