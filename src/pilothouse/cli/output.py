"""What commands write to: a console for people, lines of JSON for programs, and sessions in words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from datetime import datetime

    from rich.console import Console

__all__ = ["ago", "complete", "console", "print_json", "short_path", "title_of_prompt"]

T = TypeVar("T")


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run something that waits to its end. The loop is brought in here: `--help` does not need it."""
    import asyncio

    return asyncio.run(work)


def console(*, stderr: bool = False) -> Console:
    """A console that writes what it can where not every character can be written."""
    from rich.console import Console

    stream: Any = sys.stderr if stderr else sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    # a pipe has no width: what is cut or folded there is lost to whoever reads it
    width = None if stream.isatty() else 10_000
    return Console(highlight=False, stderr=stderr, width=width)


def print_json(value: Any) -> None:
    """One value as JSON, indented; camelCase as everywhere outside of Python."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def short_path(path: str) -> str:
    """A path with `~` for the home directory."""
    home = str(Path.home())
    return "~" + path[len(home) :] if path == home or path.startswith(home + "/") else path


def title_of_prompt(prompt: str) -> str | None:
    """What a session is called until its agent finds something better."""
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in prompt).split())
    return (words if len(words) <= 80 else words[:79] + "…") or None


def ago(timestamp: str, now: datetime | None = None) -> str:
    """How long ago, in a word or two."""
    from datetime import UTC, datetime

    try:
        seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(timestamp)).total_seconds()
    except (ValueError, TypeError):
        return timestamp
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        count = int(seconds // size)
        if count >= 1:
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "just now"
