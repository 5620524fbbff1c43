"""What a session that is kept for long lets go of: items that no later event changes, and that the log has.

What is left of them is counted, so that the summary and the number of items stay as they were. The rule a change must
not break: what is open, pending or unfinished stays, and so does what later events, or those who run the session, look
up by its id.
"""

from __future__ import annotations

import msgspec

from .counts import counted
from .items import Approval, Failure, Message, Plan, SessionItem, TextRun, Thought, ToolCall
from .state import State
from .text import encode_text

__all__ = ["KEPT_BYTES", "shed"]

KEPT_BYTES = 32 << 10
"""About what is kept of the newest items that could go."""

_encode = msgspec.json.Encoder(enc_hook=encode_text).encode


def shed(state: State, *, newest: int = 0, room: int = KEPT_BYTES) -> None:
    """Let go of finished items, but of none of so many `newest`, nor of those before them that are small enough."""
    kept: list[SessionItem] = []
    gone: list[SessionItem] = []
    last = len(state.items) - 1
    for place, item in zip(range(last, -1, -1), reversed(state.items), strict=True):
        counts_on = place == last and isinstance(item, Failure)  # the same again is counted there
        if place > last - newest or counts_on or not _is_finished(state, item):
            kept.append(item)
        elif room > 0 and (weight := _weight(item)) <= room:
            room -= weight
            kept.append(item)
        else:
            gone.append(item)
    if gone:
        state.items = kept[::-1]
        state.index.shed = counted(gone, state.index.shed)
        for item in gone:
            state.index.forget(item)


def _is_finished(state: State, item: SessionItem) -> bool:
    """Questions, notices and artifacts are few and small, or bounded: they stay."""
    if isinstance(item, (Message, Thought)):
        return item.done
    if isinstance(item, ToolCall):
        return item.ended and not item.unfinished
    if isinstance(item, Approval):
        call = state.index.calls.get(item.tool_call_id)
        return not item.pending and not item.unfinished and (call is None or call.ended)
    if isinstance(item, Plan):
        return item.turn_id != state.turn_id
    return isinstance(item, Failure)


def _weight(item: SessionItem) -> int:
    if isinstance(item, Thought):
        return len(item.text)
    if isinstance(item, Message) and all(isinstance(block, TextRun) for block in item.content):
        return sum(len(block.text) for block in item.content if isinstance(block, TextRun))
    if isinstance(item, ToolCall) and len(item.output) > KEPT_BYTES:
        return len(item.output)
    try:
        return len(_encode(item))
    except (TypeError, ValueError, NotImplementedError, RecursionError):
        return KEPT_BYTES + 1
