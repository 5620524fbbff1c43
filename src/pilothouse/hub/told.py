"""What a log has of a record that is read again from its beginning, so that each update is told once.

It is pure but for reading the log. The rule a change must not break: what is told is recognised by what the log keeps
with the events, never by a count kept beside them, so no crash can come between the two.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from ..log.base import EventLog

__all__ = ["ENDED", "PROMPT", "Told", "Update", "call_of"]

PROMPT = "user_message_chunk"
CHUNKS = frozenset({PROMPT, "agent_message_chunk", "agent_thought_chunk"})
ENDED = ("completed", "failed")
"""How a tool call is when nothing more is expected of it."""

Update = Mapping[str, Any]
_encode = msgspec.json.Encoder().encode


class Told:
    """What the log has of a record, held against the record as it is read again.

    A record that is only ever added to gives the same updates again. One that is kept as it is by now gives a text in
    other pieces, and a tool call with all that became of it; so texts are counted, and calls known by their id.
    """

    def __init__(self) -> None:
        self._rest: Counter[bytes] = Counter()
        self._texts: Counter[tuple[str, str]] = Counter()
        self._calls: dict[str, bool] = {}
        self.messages: set[str] = set()
        self.open_calls: dict[str, list[bytes]] = {}
        """What was told of calls that have no end yet."""

    async def recall(self, log: EventLog, session_id: str, after: int = 0) -> None:
        """Learn from the log what was told after an event."""
        cursor = after
        while entries := await log.read(session_id, cursor):
            for entry in entries:
                if entry.source:
                    self.remember(entry.source)
            cursor = entries[-1].seq

    def remember(self, source: bytes) -> None:
        try:
            update = msgspec.json.decode(source)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return
        for one in update if isinstance(update, list) else [update]:
            if isinstance(one, dict) and "sessionUpdate" in one:  # else it is that of a question, or of a turn's end
                self._remember(one)

    def _remember(self, update: Update) -> None:
        key, text = _piece(update)
        if key is not None:
            self._texts[key] += len(text)
            self.messages.add(key[1])
            return
        source = _encode(update)
        self._rest[_digest(source)] += 1
        call = call_of(update)
        if call is None:
            return
        self._calls[call] = self._calls.get(call, False) or update.get("status") in ENDED
        if self._calls[call]:
            self.open_calls.pop(call, None)
        else:
            self.open_calls.setdefault(call, []).append(source)

    @property
    def has_more(self) -> bool:
        """Whether more was told than the record has said again so far."""
        return any(self._texts.values()) or any(self._rest.values())

    def has(self, update: Update, source: bytes) -> bool:
        """Whether all of an update was told."""
        key, text = _piece(update)
        return self._texts[key] >= len(text) if key is not None else self._rest[_digest(source)] > 0

    def rest(self, update: Update, source: bytes) -> Update | None:
        """What of an update was not told yet; None when all of it was."""
        key, text = _piece(update)
        if key is not None:
            known = self._texts[key]
            self._texts[key] = max(0, known - len(text))
            if known >= len(text):
                return None
            return {**update, "content": {**update["content"], "text": text[known:]}} if known else update
        digest = _digest(source)
        if self._rest[digest] > 0:
            self._rest[digest] -= 1
            return None
        call = call_of(update)
        if call is None or update.get("sessionUpdate") != "tool_call" or call not in self._calls:
            return update
        return None if self._calls[call] else {**update, "sessionUpdate": "tool_call_update"}


def _piece(update: Update) -> tuple[tuple[str, str] | None, str]:
    """Of which message an update is a piece of text, and which."""
    content, message_id = update.get("content"), update.get("messageId")
    if update.get("sessionUpdate") not in CHUNKS or not isinstance(content, dict) or not isinstance(message_id, str):
        return None, ""
    text = content.get("text")
    if content.get("type") != "text" or not isinstance(text, str):
        return None, ""
    return (str(update["sessionUpdate"]), message_id), text


def call_of(update: Update) -> str | None:
    call = update.get("toolCallId")
    return call if isinstance(call, str) else None


def _digest(source: bytes) -> bytes:
    return hashlib.blake2b(source, digest_size=16).digest()
