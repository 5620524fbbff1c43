"""What a process that was ended left open in a session: calls and compactions that were begun and have no end.

Everything that is announced to a client must end, in a replay too, or the client shows it as running for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from ..acp import CompactionUpdate, ToolCallProgress, text_block, tool_content
from ..acp.model import encode

__all__ = ["endings"]

REASON = "Not finished: the agent was ended, or the session was taken up elsewhere, while this was going on."
OPEN = ("pending", "in_progress")


class _Update(msgspec.Struct):
    """As much of an update as tells whether something is over."""

    kind: str = msgspec.field(name="sessionUpdate", default="")
    call: str | None = msgspec.field(name="toolCallId", default=None)
    compaction: str | None = msgspec.field(name="compactionId", default=None)
    status: str | None = None
    content: Any = None


@dataclass
class _Begun:
    is_compaction: bool
    status: str
    is_empty: bool = True
    """Whether a client has nothing to show of it yet."""


DECODER = msgspec.json.Decoder(_Update)
MARKS = (b'"toolCallId"', b'"compactionId"')


def endings(updates: Iterable[bytes]) -> list[bytes]:
    """The updates that end what the given ones have begun and not ended, in the same order."""
    begun: dict[str, _Begun] = {}
    for line in updates:
        # text and pictures, which are most of a journal, are not looked at
        if any(mark in line for mark in MARKS):
            _follow(begun, line)
    return [_ending(name, one) for name, one in begun.items() if one.status in OPEN]


def _follow(begun: dict[str, _Begun], line: bytes) -> None:
    try:
        update = DECODER.decode(line)
    except msgspec.MsgspecError:
        return
    is_compaction = update.kind == "compaction_update"
    name = update.compaction if is_compaction else update.call
    if name is None or update.kind not in ("tool_call", "tool_call_update", "compaction_update"):
        return
    one = begun.setdefault(name, _Begun(is_compaction, "pending"))
    one.status = update.status or one.status
    one.is_empty = one.is_empty and not update.content


def _ending(name: str, one: _Begun) -> bytes:
    if one.is_compaction:
        return encode(CompactionUpdate(compaction_id=name, status="failed", error=REASON))
    # a diff that was shown stays, as with any call that fails
    content: list[Any] | None = [tool_content(text_block(REASON))] if one.is_empty else None
    return encode(ToolCallProgress(tool_call_id=name, status="failed", content=content, raw_output={"error": REASON}))
