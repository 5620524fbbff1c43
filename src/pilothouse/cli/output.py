"""What commands write to: a console for people, lines of JSON for programs, and sessions in words."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from rich.console import Console


T = TypeVar("T")


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run something that waits to its end. The loop is brought in here: `--help` does not need it."""
    import asyncio

    return asyncio.run(work)


def complete_or_end(work: Coroutine[Any, Any, Any]) -> int:
    """Run something to its end, or until a signal ends it, which it is told so that it can tidy up: an exit code."""
    try:
        return complete(_until_signal(work))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


async def _until_signal(work: Coroutine[Any, Any, Any]) -> int:
    import asyncio

    loop, task, code = asyncio.get_running_loop(), asyncio.current_task(), 0

    def end(number: int) -> None:
        nonlocal code
        if not code and task is not None:
            code = 128 + number
            task.cancel()

    if os.name == "posix":
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # whoever said that it is to be ignored meant it
                loop.add_signal_handler(number, end, number)
    try:
        await work
    except asyncio.CancelledError:
        if not code:
            raise
    return code


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
    """One value as JSON, indented; camelCase as everywhere outside of Python.

    Hidden characters in it are escaped: a terminal that shows it must not obey or hide them.
    """
    import msgspec

    text = escape_hidden(msgspec.json.format(msgspec.json.encode(value).decode(), indent=2))
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()


def escape_hidden(text: str) -> str:
    """JSON with every hidden character as `\\uXXXX`. These occur in its strings only."""
    if text.isascii() and "\x7f" not in text:
        return text
    from ..model.previews import make_visible

    def escape(character: str) -> str:
        units = character.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    odd = {one for one in set(text) - {"\n"} if not one.isprintable() or make_visible(one) != one}
    return text.translate({ord(one): escape(one) for one in odd})


def print_table(out: Console, table: Any) -> None:
    """A table; in a pipe without the blanks that fill up its lines, which a narrow terminal shows as lines."""
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as written:
        out.print(table)
    for line in written.get().splitlines():
        out.file.write(line.rstrip() + "\n")
    out.file.flush()  # what cannot be written is said now, and not when Python ends


def say(text: str, *, err: bool = False, hanging: int = 0) -> None:
    """A sentence for people; at a terminal it is broken between words, and later lines begin `hanging` columns in."""
    import click

    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        from rich.cells import cell_len

        text = _wrapped(text, console(stderr=err).width, hanging, cell_len)
    click.echo(text, err=err)


def _wrapped(text: str, width: int, hanging: int, measure: Callable[[str], int]) -> str:
    """Styles are no part of the width; what is longer than a line is left to the terminal."""
    from click import unstyle

    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in re.split(r"(?<=\S) ", paragraph):
            longer = f"{line} {word}" if line else word
            if line and measure(unstyle(longer)) > width:
                lines.append(line)
                # a long address is better whole than in its column
                is_long = measure(unstyle(word.lstrip())) > width - hanging
                longer = " " * (0 if is_long else hanging) + word.lstrip()
            line = longer
        lines.append(line)
    return "\n".join(lines)


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
    for size, unit in ((365 * 86400, "y"), (30 * 86400, "mo"), (86400, "d"), (3600, "h"), (60, "min")):
        count = int(seconds // size)
        if count >= 1:
            return f"{count} {unit} ago"
    return "now"
