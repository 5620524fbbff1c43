"""How many items of a session count as what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .items import Failure, Message, SessionItem, ToolCall

__all__ = ["Count", "counted"]


class Count(NamedTuple):
    items: int = 0
    calls: int = 0
    messages: int = 0
    errors: int = 0


def counted(items: Iterable[SessionItem], before: Count) -> Count:
    """The count of these items and of those `before`."""
    number, calls, messages, errors = before
    for item in items:
        number += 1
        if isinstance(item, ToolCall):
            calls += 1
            errors += item.status == "failed"
        elif isinstance(item, Message):
            messages += item.role in ("user", "assistant")
        elif isinstance(item, Failure):
            errors += item.count
    return Count(number, calls, messages, errors)
