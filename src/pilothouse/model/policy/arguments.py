"""Compare the arguments of tool calls: equal only if they are the same JSON value.

Key order does not count; everything else does. `1`, `1.0`, `true` and `"1"` are four different values, a missing
member is not `null`, and no text is normalised, so look-alike characters never make two calls equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["MAX_ARGUMENTS", "are_same_arguments", "canonical_arguments"]

MAX_ARGUMENTS = 16_000
"""Characters of JSON that a stored rule may hold as its arguments."""
_MAX_DEPTH = 64


def canonical_arguments(raw: object) -> str | None:
    """The arguments as JSON with sorted keys; None if they are not a JSON object. No input counts as `{}`."""
    value = {} if raw is None else raw
    if not isinstance(value, Mapping) or not _is_json(value, _MAX_DEPTH):
        return None
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()  # half of a surrogate pair cannot be stored
    except (TypeError, ValueError, RecursionError):
        return None
    return text


def are_same_arguments(one: object, other: object) -> bool:
    """Whether two inputs are the same JSON object; inputs that cannot be compared never are."""
    text = canonical_arguments(one)
    return text is not None and text == canonical_arguments(other)


def _is_json(value: Any, depth: int) -> bool:
    """Whether `json.dumps` writes a value without changing it: it would turn a key that is a number into a string."""
    if depth <= 0:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(inner, depth - 1) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return all(_is_json(inner, depth - 1) for inner in value)
    return value is None or isinstance(value, str | bool | int | float)
