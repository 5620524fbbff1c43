"""How deeply JSON is nested.

Decoders, encoders and whoever walks a value call themselves for each level, and how much room there is for that depends
on who called whom before. So there is one depth up to which everything works everywhere; what is nested more deeply is
not read at all.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["DEEPEST", "TOO_DEEP", "is_deep", "is_too_deep"]

DEEPEST = 128
"""Levels of objects and lists. What people and programs write has a few; what a program makes of itself some dozens."""
TOO_DEEP = f"nested too deeply: more than {DEEPEST} objects and lists in one another"


def is_deep(value: Any) -> bool:
    """Whether a value, as the decoder gives it, is nested more deeply than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST + 1):
        outer = [part for part in level if type(part) is dict or type(part) is list]
        if not outer:
            return False
        level = [inner for part in outer for inner in (part.values() if type(part) is dict else part)]
    return True


def is_too_deep(data: bytes) -> bool:
    """The same for JSON, most of which needs no look; for what is no JSON it does not matter."""
    if len(data) <= 2 * DEEPEST or data.count(b"{") + data.count(b"[") <= DEEPEST:
        return False
    try:
        return is_deep(msgspec.json.decode(data))
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeError):
        return False
