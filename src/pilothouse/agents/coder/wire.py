"""What can be sent and stored: texts in UTF-8, in which half of a character, as some servers send it, has no place."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ...acp.model import encode, to_wire

__all__ = ["clean", "sendable"]

S = TypeVar("S")


def clean(value: Any) -> Any:
    """Any JSON value, with a mark in the place of each half of a character; two halves that meet are one again."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {clean(key): clean(one) for key, one in value.items()}
    return [clean(one) for one in value] if isinstance(value, (list, tuple)) else value


def sendable(update: S) -> S:
    """An update, or one in its place that can be sent."""
    try:
        encode(update)
    except UnicodeEncodeError:
        return msgspec.convert(clean(to_wire(update)), type(update))
    return update
