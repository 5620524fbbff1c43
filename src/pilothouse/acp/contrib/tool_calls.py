"""The agent's side of tool calls: ids, current state, and the updates that report it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from msgspec import Struct

from ..helpers import text_block, tool_content
from ..schema import ToolCallLocation, ToolCallProgress, ToolCallStart, ToolCallStatus, ToolCallUpdate, ToolKind

__all__ = ["UNSET", "ToolCallTracker", "TrackedToolCallView", "UnknownToolCall"]

STREAM_WINDOW = 8 * 1024
"""Characters of streamed text that each update carries.

The protocol replaces a call's content as a whole, so resending everything with every chunk would grow with the
square of the output (agents have taken tens of gigabytes that way). Updates carry the end of the text; the full
text goes out once, when the call ends.
"""
STREAM_LIMIT = 1024 * 1024
"""Characters of streamed text that are kept; older ones are dropped from the front."""


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Any = _Unset()


class UnknownToolCall(KeyError):
    """No call is tracked under this id."""

    def __init__(self, external_id: str) -> None:
        super().__init__(external_id)
        self.external_id = external_id

    def __str__(self) -> str:
        return f"Unknown tool call id: {self.external_id}"


class TrackedToolCallView(Struct, frozen=True, kw_only=True):
    """A tool call as it stood when the view was taken."""

    tool_call_id: str
    title: str | None
    kind: ToolKind | None
    status: ToolCallStatus | None
    content: tuple[Any, ...] | None
    locations: tuple[ToolCallLocation, ...] | None
    raw_input: Any
    raw_output: Any


class _Stream:
    """Streamed text, its end cheap to take and its length bounded."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self.dropped = 0

    def append(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        if self._size > 2 * STREAM_LIMIT or len(self._parts) > 4096:
            whole = "".join(self._parts)
            kept = whole[-STREAM_LIMIT:]
            self.dropped += len(whole) - len(kept)
            self._parts, self._size = [kept], len(kept)

    @property
    def is_long(self) -> bool:
        return self._size + self.dropped > STREAM_WINDOW

    def tail(self) -> str:
        if not self.is_long:
            return "".join(self._parts)
        parts: list[str] = []
        missing = STREAM_WINDOW
        for part in reversed(self._parts):
            parts.append(part[-missing:])
            missing -= len(parts[-1])
            if missing <= 0:
                break
        hidden = self._size + self.dropped - STREAM_WINDOW
        return f"[… {hidden} earlier characters]\n" + "".join(reversed(parts))

    def whole(self) -> str:
        text = "".join(self._parts)[-STREAM_LIMIT:]
        hidden = self._size + self.dropped - len(text)
        return f"[… {hidden} earlier characters]\n{text}" if hidden else text


class _Tracked:
    def __init__(self, tool_call_id: str, fields: dict[str, Any]) -> None:
        self.tool_call_id = tool_call_id
        self.fields = fields
        self.stream: _Stream | None = None

    def update(self, changes: dict[str, Any]) -> ToolCallProgress:
        changes = {name: _copied(value) for name, value in changes.items() if value is not UNSET}
        if "content" in changes:
            self.stream = None
        elif changes.get("status") in ("completed", "failed") and self.stream is not None and self.stream.is_long:
            changes["content"] = [tool_content(text_block(self.stream.whole()))]
        self.fields.update(changes)
        return ToolCallProgress(tool_call_id=self.tool_call_id, **{k: _copied(v) for k, v in changes.items()})

    def append(self, text: str, changes: dict[str, Any]) -> ToolCallProgress:
        stream = self.stream or _Stream()
        stream.append(text)
        progress = self.update({**changes, "content": [tool_content(text_block(stream.tail()))]})
        self.stream = stream
        return progress

    def current(self) -> dict[str, Any]:
        fields = {name: _copied(value) for name, value in self.fields.items()}
        if self.stream is not None:
            fields["content"] = [tool_content(text_block(self.stream.whole()))]
        return fields


class ToolCallTracker:
    """Keeps the state of tool calls under names of your own and makes the updates that report it."""

    def __init__(self, *, id_factory: Callable[[], str] | None = None) -> None:
        self._id_factory = id_factory or (lambda: uuid.uuid4().hex)
        self._calls: dict[str, _Tracked] = {}

    def start(
        self,
        external_id: str,
        *,
        title: str,
        kind: ToolKind | None = None,
        status: ToolCallStatus | None = "in_progress",
        content: Sequence[Any] | None = None,
        locations: Sequence[ToolCallLocation] | None = None,
        raw_input: Any = None,
        raw_output: Any = None,
    ) -> ToolCallStart:
        """Track a new call; send what this returns."""
        fields = {
            "title": title,
            "kind": kind,
            "status": status,
            "content": content,
            "locations": locations,
            "raw_input": raw_input,
            "raw_output": raw_output,
        }
        call = _Tracked(self._id_factory(), {name: _copied(value) for name, value in fields.items()})
        start = ToolCallStart(tool_call_id=call.tool_call_id, **call.current())
        self._calls[external_id] = call
        return start

    def progress(
        self,
        external_id: str,
        *,
        title: Any = UNSET,
        kind: Any = UNSET,
        status: Any = UNSET,
        content: Any = UNSET,
        locations: Any = UNSET,
        raw_input: Any = UNSET,
        raw_output: Any = UNSET,
    ) -> ToolCallProgress:
        """Change a call; the update carries only what is given."""
        changes = {
            "title": title,
            "kind": kind,
            "status": status,
            "content": content,
            "locations": locations,
            "raw_input": raw_input,
            "raw_output": raw_output,
        }
        return self._require(external_id).update(changes)

    def append_stream_text(
        self, external_id: str, text: str, *, title: Any = UNSET, status: Any = UNSET
    ) -> ToolCallProgress:
        """Add to a call's streamed text; the update carries the text so far, or its end when it has grown long."""
        return self._require(external_id).append(text, {"title": title, "status": status})

    def forget(self, external_id: str) -> None:
        """Stop tracking a call; unknown ones are ignored."""
        self._calls.pop(external_id, None)

    def view(self, external_id: str) -> TrackedToolCallView:
        """The call as it is now."""
        call = self._require(external_id)
        fields = call.current()
        for name in ("content", "locations"):
            fields[name] = tuple(fields[name]) if fields[name] else None
        return TrackedToolCallView(tool_call_id=call.tool_call_id, **fields)

    def tool_call_model(self, external_id: str) -> ToolCallUpdate:
        """A copy of the call for a permission request."""
        call = self._require(external_id)
        return ToolCallUpdate(tool_call_id=call.tool_call_id, **call.current())

    def _require(self, external_id: str) -> _Tracked:
        try:
            return self._calls[external_id]
        except KeyError:
            raise UnknownToolCall(external_id) from None


def _copied(value: Any) -> Any:
    """Lists of models are copied so that later changes by the caller stay the caller's."""
    return deepcopy(list(value)) if isinstance(value, (list, tuple)) else value
