"""Values from JSON of an unknown shape: a value of another type counts as absent."""

from __future__ import annotations

from typing import Any

COUNT_LIMIT = 2**53
"""Counts beyond it are nonsense, and not every JSON reader can hold them."""


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def count(value: Any) -> int | None:
    """A number of things: tokens, lines, attempts."""
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < COUNT_LIMIT
    return value if known else None


def number(value: Any) -> float | None:
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if known else None


def shortened(value: str, limit: int) -> str:
    """The first line, at most `limit` characters of it."""
    line, _, rest = value.strip().partition("\n")
    line = line.rstrip()
    if len(line) > limit:
        return f"{line[: limit - 1].rstrip()}…"
    return f"{line} …" if rest.strip() else line
