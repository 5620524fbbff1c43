"""What a probe grants when its user said `--allow`: the one file and the one `echo`, nothing that only looks like them.

Pure. What is not understood is not granted.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from .script import COMMAND, FILE

__all__ = ["fits", "is_the_command", "is_the_file", "strays"]

SHELLS = {f"{place}{name}" for place in ("", "/bin/", "/usr/bin/") for name in ("sh", "bash", "zsh", "dash")}
RUNS = ("-c", "-lc")
EDITS = ("write", "create")
"""What some agents call `command` in a call that edits a file."""


def is_the_file(directory: Path, path: str) -> bool:
    """Whether it is the file that the agent was told to write, and no other of that name."""
    return os.path.normpath(directory / path) == str(directory / FILE)


def is_the_command(words: Sequence[str]) -> bool:
    """Whether it is the command that the agent was told to run, as it stands or given to a shell."""
    if len(words) == 1:
        words = _split(words[0])
    if len(words) == 3 and words[0] in SHELLS and words[1] in RUNS:
        words = _split(words[2])
    return list(words) == COMMAND.split()


def _split(line: str) -> list[str]:
    """The words of a line; none for what is no line, or no words."""
    try:
        return [] if "\n" in line.strip() else shlex.split(line)
    except ValueError:
        return []


def fits(directory: Path, tool: Any) -> bool:
    """Whether a tool call that permission is asked for is the one thing, by all that it says of itself."""
    commands = [words for words in _commands(tool) if words not in ([name] for name in EDITS)]
    paths = [path for path in _paths(tool) if os.path.normpath(path) != str(directory)]
    if commands:
        return not paths and all(map(is_the_command, commands))
    return bool(paths) and all(is_the_file(directory, path) for path in paths)


def strays(directory: Path, tool: Any) -> list[str]:
    """Files of that name elsewhere that a tool call is about."""
    named = (path for path in _paths(tool) if PurePath(path).name == FILE)
    return [path for path in named if not is_the_file(directory, path)]


def _commands(tool: Any) -> Iterator[list[str]]:
    for name, value in _values(tool):
        if name in ("command", "cmd"):
            yield list(map(str, value)) if isinstance(value, list) else [str(value)]


def _paths(tool: Any) -> Iterator[str]:
    """Whatever names a file: what has the name of a path, what begins like one, and the keys that do."""
    for name, value in _values(tool):
        if name.startswith("/"):
            yield name
        if isinstance(value, str) and name not in ("command", "cmd"):
            begins = value.startswith(("/", "~", "../")) and "\n" not in value
            if begins or value == FILE or name.lower().removesuffix("name").endswith(("path", "file")):
                yield value


def _values(tool: Any) -> Iterator[tuple[str, Any]]:
    """Every value of a JSON with the key that it has, or that the list has in which it is."""
    waiting: list[tuple[str, Any]] = [("", tool)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += ((str(key), one) for key, one in value.items())
        elif isinstance(value, list) and name not in ("command", "cmd"):
            waiting += ((name, one) for one in value)
        yield name, value
