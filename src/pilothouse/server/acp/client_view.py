"""What one client is shown of a session that others are not: its own terminals, and the choice of the agent.

An agent's update goes out as it came unless it names one of these. A terminal can only be shown by the editor that has
it, and some editors drop a whole update that names one they do not know; so it is taken out for everybody else, who
get what was printed as text. The editor that has it needs no such text.

The words of a sub-agent are progress of the call that it runs in. An agent tells them as its own, with a note in the
`_meta` that editors do not read; those would set them into the middle of the main agent's sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...acp.jsonrpc import encode_notification
from ...dialects.acp.call import parent_of
from ...hub.client.editors import Editor
from ...hub.session.session import HubSession
from ...model.events import DERIVED, CustomEvent, Event

TERMINAL = b'"terminal"'
PRINTED = b'"terminal_output_delta"'
OPTIONS = b'"config_option_update"'
PARENT = b'"parentTool'
WORDS = frozenset({"agent_message_chunk", "agent_thought_chunk"})
MOST_WORDS = 4000
"""Characters of what a sub-agent said last that its call shows."""
MOST_AGENTS = 100
"""Sub-agents whose words are kept."""
FORWARDED = frozenset({"elicitation/complete"})
"""Notifications of the protocol that are for clients and no updates."""

_encode = msgspec.json.Encoder().encode


class Dressing:
    """Of one session for one client. `live` gives the session, while it is in memory; `editor` what the client is."""

    def __init__(
        self, session_id: str, editor: Callable[[], Editor | None], live: Callable[[], HubSession | None]
    ) -> None:
        self._session_id = session_id
        self._editor = editor
        self._live = live
        self._shown: set[str] = set()
        self._words: dict[str, tuple[Any, str]] = {}
        self._is_offered = False

    # -- updates --

    def dress(self, updates: Sequence[bytes], source: bytes | None) -> list[bytes]:
        """The updates of one event, as this client gets them. `source` is the agent's own among them."""
        dressed = (self._dress(update, update is source) for update in updates)
        return [update for update in dressed if update is not None]

    def _dress(self, update: bytes, is_agents: bool) -> bytes | None:
        if OPTIONS in update:
            return self._add_choice(update)
        if TERMINAL in update:
            return self._mend_terminals(update)
        if PARENT in update:
            return self._as_progress(update)
        if self._shown and not is_agents:
            return self._leave_out(update)
        return update

    def _as_progress(self, update: bytes) -> bytes:
        """A sub-agent's words, as what its call shows; any other update as it is."""
        fields = _object(update)
        meta, content = fields.get("_meta"), fields.get("content")
        parent = parent_of(meta) if isinstance(meta, dict) else None
        if parent is None or fields.get("sessionUpdate") not in WORDS:
            return update
        piece = content.get("text") if isinstance(content, dict) else None
        message = (fields["sessionUpdate"], fields.get("messageId"))
        last, said = self._words.pop(parent, (message, ""))
        between = "" if last == message else "\n\n"
        said = f"{said}{between}{piece if isinstance(piece, str) else ''}"[-MOST_WORDS:]
        self._words[parent] = message, said
        if len(self._words) > MOST_AGENTS:
            del self._words[next(iter(self._words))]
        shown = [{"type": "content", "content": {"type": "text", "text": said}}]
        return _encode({"sessionUpdate": "tool_call_update", "toolCallId": parent, "content": shown, "_meta": meta})

    def _mend_terminals(self, update: bytes) -> bytes:
        fields = _object(update)
        mended = self.call(fields)
        return update if mended is fields else _encode(mended)

    def call(self, fields: dict[str, Any]) -> dict[str, Any]:
        """A tool call, or an update of one, without terminals that this client has not."""
        content = fields.get("content")
        if not isinstance(content, list):
            return fields
        named = [terminal for item in content if (terminal := _terminal_of(item)) is not None]
        foreign = {terminal for terminal in named if not self._has(terminal)}
        if len(foreign) < len(set(named)):
            self._shown.add(str(fields.get("toolCallId")))
        if not foreign:
            return fields
        return {**fields, "content": [item for item in content if _terminal_of(item) not in foreign]}

    def _has(self, terminal_id: str) -> bool:
        editor = self._editor()
        return editor is not None and (self._session_id, terminal_id) in editor.terminals_made

    def _leave_out(self, update: bytes) -> bytes | None:
        """Without the text of what is printed where this client can see it printed."""
        fields = _object(update)
        if fields.get("toolCallId") not in self._shown or fields.get("sessionUpdate") != "tool_call_update":
            return update
        is_ours = PRINTED in update or fields.keys() == {"sessionUpdate", "toolCallId", "content"}
        return None if is_ours else update

    # -- the choice of the agent --

    def options(self, options: list[Any]) -> list[Any]:
        """An agent's options, and the choice of the agent while it is open."""
        session = self._live()
        choice = session.agent_option if session is not None else None
        self._is_offered = choice is not None
        return options if choice is None else [*options, choice]

    def _add_choice(self, update: bytes) -> bytes:
        fields = _object(update)
        options = fields.get("configOptions")
        if not isinstance(options, list):
            return update
        told = self.options(options)
        return update if told is options else _encode({**fields, "configOptions": told})

    def close_choice(self) -> bytes | None:
        """A turn began: the update that takes back the choice, if this client was offered it."""
        session = self._live()
        if not self._is_offered or session is None:
            return None
        self._is_offered = False
        return _encode({"sessionUpdate": "config_option_update", "configOptions": session.state.config_options})


def extension(event: Event, session_id: str) -> bytes | None:
    """A notification of the agent that is no update, as a line, with the hub's id of the session; None for others."""
    if not isinstance(event, CustomEvent) or event.namespace != "acp" or event.source != DERIVED:
        return None
    if not event.event_name.startswith("_") and event.event_name not in FORWARDED:
        return None
    params = dict(event.data)
    if isinstance(params.get("sessionId"), str):
        params["sessionId"] = session_id
    meta = params.get("_meta")
    params["_meta"] = {**(meta if isinstance(meta, dict) else {}), "pilothouse": {"seq": event.seq}}
    return encode_notification(event.event_name, _encode(params))


def _terminal_of(item: Any) -> str | None:
    is_terminal = isinstance(item, dict) and item.get("type") == "terminal"
    return str(item.get("terminalId")) if is_terminal else None


def _object(update: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(update)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
