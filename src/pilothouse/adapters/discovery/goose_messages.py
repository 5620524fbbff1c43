"""The messages of Goose as updates.

Messages are written when they are whole; of the last one more may come. A compaction writes them all again under new
numbers, so to be given a message again is no harm: texts tell what they have more, and calls are known by their id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ...model.discovery import DiscoveredStatus
from ...model.tools import canonical_name
from ..claude.reading import items, mapping, text
from .calls import Calls, Growing, blocks_text, diff, notice, plan, said, text_content, thought
from .store import Update

__all__ = ["Conversation", "blocks_of", "decoded_value", "status_after"]

_UNTOLD = "The turn ended before the record told how the tool call ended."

Json = dict[str, Any]


class Conversation:
    """What was told of one session."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._names: dict[str, str] = {}
        self._texts = Growing()
        self.status: DiscoveredStatus = "idle"

    def take(self, message_id: str, role: str, blocks: list[Json]) -> Iterator[Update]:
        """A message, new, longer, or the same again."""
        if blocks:
            self.status = status_after(role, blocks)
        is_new = message_id not in self._texts
        self._texts.know(message_id)
        for number, block in enumerate(blocks):
            kind = text(block.get("type"))
            if kind == "text":
                key = message_id if number == 0 else f"{message_id}#{number}"
                yield from self._said(
                    "agent" if role == "assistant" else "user", message_id, key, text(block.get("text"))
                )
            elif kind in _BLOCKS and (is_new or kind in ("toolRequest", "toolResponse")):
                yield from _BLOCKS[kind](self, message_id, block)

    def _said(self, who: str, message_id: str, key: str, words: str) -> Iterator[Update]:
        rest, _ = self._texts.more(key, words)
        if rest:
            yield from self._calls.close(_UNTOLD) if who == "user" else ()
            yield said(who, rest, message_id)

    def _thought(self, message_id: str, block: Json) -> Iterator[Update]:
        words = text(block.get("thinking")) or text(block.get("text"))
        if words:
            yield thought(words, message_id)

    def _image(self, message_id: str, block: Json) -> Iterator[Update]:
        data, kind = text(block.get("data")), text(block.get("mimeType"))
        if data and kind:
            yield said("user", {"type": "image", "data": data, "mimeType": kind}, message_id)

    def _notice(self, message_id: str, block: Json) -> Iterator[Update]:
        words = text(block.get("msg"))
        if words:
            yield notice("info", words)

    def _request(self, message_id: str, block: Json) -> Iterator[Update]:
        call_id, told = text(block.get("id")), mapping(block.get("toolCall"))
        if not call_id or self._calls.is_known(call_id):
            return
        value = mapping(told.get("value"))
        name, given = text(value.get("name")) or "tool", mapping(value.get("arguments"))
        todos = plan(given) if canonical_name(name) == "TodoWrite" else None
        yield from [todos] if todos is not None else []
        changes = _changes(name, given)
        self._names[call_id] = name
        yield from self._calls.begin(call_id, name, given, **({"content": changes} if changes else {}))
        if told.get("status") == "error":
            yield from self._calls.end(call_id, name, failed=True, content=text_content(text(told.get("error"))))

    def _response(self, message_id: str, block: Json) -> Iterator[Update]:
        call_id, result = text(block.get("id")), mapping(block.get("toolResult"))
        value = mapping(result.get("value"))
        failed = result.get("status") == "error" or value.get("isError") is True
        words = blocks_text(items(value.get("content")) or items(result.get("value"))) or text(result.get("error"))
        name = self._names.pop(call_id, "")
        # a change stays shown as it was announced
        shown = text_content(words) if failed or canonical_name(name) not in ("Write", "Edit") else None
        raw = mapping(value.get("structuredContent"))
        yield from self._calls.end(call_id, name, failed=failed, content=shown, rawOutput=raw)


_BLOCKS: dict[str, Callable[[Conversation, str, Json], Iterator[Update]]] = {
    "thinking": Conversation._thought,
    "reasoning": Conversation._thought,
    "image": Conversation._image,
    "toolRequest": Conversation._request,
    "frontendToolRequest": Conversation._request,
    "toolResponse": Conversation._response,
    "systemNotification": Conversation._notice,
}


def _changes(name: str, given: Json) -> list[Json]:
    path, tool = text(given.get("path")), canonical_name(name)
    if tool == "Write" and path and isinstance(given.get("content"), str):
        return [diff(path, None, given["content"])]
    old, new = given.get("before"), given.get("after")
    is_edit = tool == "Edit" and path and isinstance(old, str) and isinstance(new, str)
    return [diff(path, text(old), text(new))] if is_edit else []


def status_after(role: str, blocks: list[Json]) -> DiscoveredStatus:
    """What the agent does after a message."""
    kinds = {text(block.get("type")) for block in blocks}
    if kinds & {"toolConfirmationRequest", "actionRequired"}:
        return "waiting"
    return "idle" if role == "assistant" and not kinds & {"toolRequest", "frontendToolRequest"} else "running"


def decoded_value(data: Any) -> Any:
    try:
        return msgspec.json.decode(data) if isinstance(data, (str, bytes)) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def blocks_of(data: Any) -> list[Json]:
    return [block for block in items(decoded_value(data)) if isinstance(block, dict)]
