"""Reading fields out of any JSON value without trusting its type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def first(mapping: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The first value that is there and not null."""
    return next((value for key in keys if (value := mapping.get(key)) is not None), None)
