"""How much of a text is shown. What is left out is counted, never dropped in silence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

__all__ = [
    "WHOLE",
    "Clipped",
    "Limits",
    "clip",
    "clip_lines",
    "clip_values",
    "shorten_lines",
    "shorten_middle",
]


class Limits(Struct, frozen=True, kw_only=True):
    """Most characters of each kind of text, and most members of a list or object of an input; None is no limit."""

    message: int | None = None
    output: int | None = 32_000
    value: int | None = 4_000
    members: int | None = 200
    diff: int | None = 64_000


WHOLE = Limits(output=None, value=None, members=None, diff=None)
"""Nothing is left out, as replays need it."""

_DEPTH = 64
"""Levels of nested values. JSON from agents may be nested as deep as its reader allows."""


class Clipped(NamedTuple):
    """A text that fits, and how much is not in it: characters, or lines of `clip_lines`."""

    text: str
    omitted: int = 0


def clip(text: str, limit: int | None) -> Clipped:
    """Keep the head and the tail, of which the head is two thirds, and say in between what is missing.

    Cuts go to line ends where one is near. The note comes on top of the limit.
    """
    if limit is None or len(text) <= limit:
        return Clipped(text)
    limit = max(limit, 0)
    head, tail = limit * 2 // 3, len(text) - (limit - limit * 2 // 3)
    head = _near(text.rfind("\n", 0, head) + 1, head, limit)
    tail = _near(text.find("\n", tail) + 1, tail, limit)
    omitted = tail - head
    lines = text.count("\n", head, tail)
    about = f"{omitted:,} characters" + (f" in {lines + 1:,} lines" if lines else "")
    before, after = text[:head], text[tail:]
    glue = "\n" if before and not before.endswith("\n") else ""
    return Clipped(f"{before}{glue}… {about} left out …\n{after}", omitted)


def shorten_middle(text: str, limit: int) -> str:
    """A line of at most about `limit` characters: head and tail, with the number of characters left out between.

    Neither end can be pushed out of sight. The note comes on top of the limit.
    """
    head = limit - limit // 2
    omitted = len(text) - limit
    if omitted <= 0:
        return text
    return f"{text[:head]} … {omitted:,} character{'s' * (omitted > 1)} left out … {text[len(text) - limit // 2 :]}"


def shorten_lines(lines: Sequence[str], limit: int) -> list[str]:
    """At most `limit` lines of a text, two thirds of them its head, and a line with the number left out between."""
    omitted = len(lines) - limit
    if omitted <= 0:
        return list(lines)
    tail = limit // 3
    note = f"… {omitted:,} line{'s' * (omitted > 1)} left out …"
    return [*lines[: limit - tail], note, *lines[len(lines) - tail :]]


def _near(line_end: int, position: int, limit: int) -> int:
    """The line end, if it is not far and there is one."""
    return line_end if line_end and abs(line_end - position) <= limit // 4 else position


def clip_lines(text: str, limit: int | None) -> Clipped:
    """As many whole lines as fit; `omitted` counts the others. For text that a note in the middle would break."""
    if limit is None or len(text) <= limit:
        return Clipped(text)
    end = text.rfind("\n", 0, max(limit, 0)) + 1
    rest = text[end:]
    return Clipped(text[:end], rest.count("\n") + (not rest.endswith("\n")))


def clip_values(value: Any, limits: Limits, depth: int = _DEPTH) -> Any:
    """A JSON value with its long texts and long lists cut, each with a note where it was cut."""
    if isinstance(value, str):
        return clip(value, limits.value).text
    if not isinstance(value, (dict, list)):
        return value
    if depth == 0:
        return "… more levels left out …"
    most = len(value) if limits.members is None else limits.members
    more = len(value) - most
    if isinstance(value, list):
        kept = [clip_values(inner, limits, depth - 1) for inner in value[:most]]
        return [*kept, f"… {more:,} more left out …"] if more > 0 else kept
    pairs = {key: clip_values(inner, limits, depth - 1) for key, inner in list(value.items())[:most]}
    return {**pairs, "…": f"{more:,} more left out"} if more > 0 else pairs
