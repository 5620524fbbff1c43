"""Reading a command's arguments."""

from __future__ import annotations

import re

from .turn import Failure

__all__ = ["number", "split", "words"]

PROMPT = re.compile(r"\s*/?(\S*)\s?(.*)", re.DOTALL)


def split(text: str) -> tuple[str, str]:
    """The first word of a prompt, in lower case and without the `/` of a slash command, and all that follows it."""
    match = PROMPT.fullmatch(text)
    assert match is not None, "can't happen: the pattern fits every text"
    return match[1].lower(), match[2]


def words(args: str, count: int) -> list[str]:
    """At most `count` words; the last one holds the rest. Missing ones are empty."""
    found = args.split(maxsplit=count - 1)
    return [*found, *[""] * (count - len(found))]


def number(args: str, *, default: int, low: int, high: int) -> int:
    """A whole number in a range. Raises Failure for anything else."""
    word = args.strip()
    if not word:
        return default
    try:
        value = int(word)
    except ValueError:
        raise Failure(f"Expected a whole number, got `{word}`.") from None
    if not low <= value <= high:
        raise Failure(f"Expected a number from {low} to {high}, got {value}.")
    return value
