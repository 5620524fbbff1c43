"""Where a script runs and where it moves to, and what does nothing by itself.

A `cd` inside the workspace is harmless, but names after it mean other files; both are known here.
"""

from __future__ import annotations

from typing import NamedTuple

from ..shell import Command, Redirect, Word
from .places import place
from .sharp import names

__all__ = ["STREAMS", "Site", "foreign", "idles", "is_stream", "leaves_workspace", "moves_to"]

STREAMS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})


class Site(NamedTuple):
    """Where a command runs: the workspace, and whether the script leaves it on the way."""

    workspace: str | None
    elsewhere: bool = False
    # the directory inside the workspace that the script moves to; `?` when it moves more than once
    moved: str = ""


def leaves_workspace(commands: tuple[Command, ...], workspace: str | None) -> bool:
    """Whether a `cd` goes outside or nobody knows where; what is relative afterwards is then nowhere."""
    for command in commands:
        if command.name == "popd":
            return True
        if command.name in {"cd", "pushd"}:
            operands = _operands(command)
            if not operands or not all(word.static and _stays(word.text, workspace) for word in operands):
                return True
    return False


def moves_to(commands: tuple[Command, ...], workspace: str | None) -> str:
    """The directory, seen from the workspace, in which relative names may be looked up after a `cd`."""
    targets = {
        "/".join(place(word.text, workspace).parts)
        for command in commands
        if command.name in {"cd", "pushd"}
        for word in _operands(command)
    } - {""}
    moves = [command for command in commands if command.name in {"cd", "pushd"}]
    if not targets:
        return ""
    return targets.pop() if len(targets) == 1 and len(moves) == 1 else "?"


def _operands(command: Command) -> list[Word]:
    return [word for word in command.words[1:] if word.text == "-" or not word.text.startswith("-")]


def idles(command: Command, site: Site) -> bool:
    """Whether a command does nothing that a rule would have to name.

    It ends or joins a script (`true`, `:`, `exit 1`), or moves inside the workspace, not among hidden or foreign files.
    """
    if command.assignments or command.wrappers or any(not one.static for one in command.words):
        return False
    if any(one.writes and not is_stream(one) for one in command.redirects):
        return False
    operands = [word.text for word in command.words[1:]]
    if command.program in {"true", "false", ":"}:
        return not operands
    if command.program == "exit":
        return not operands or (len(operands) == 1 and operands[0].isdigit())
    if command.program != "cd" or len(operands) != 1 or site.elsewhere or not _stays(operands[0], site.workspace):
        return False
    return not foreign(place(operands[0], site.workspace).parts)


def foreign(parts: tuple[str, ...]) -> bool:
    """Whether a directory is hidden or holds code that the project did not write."""
    return any(part.startswith((".", "-")) or part in _FOREIGN for part in parts)


# directories of code that the project did not write
_FOREIGN = names("node_modules vendor third_party site-packages venv env bower_components Pods")


def _stays(text: str, workspace: str | None) -> bool:
    return text not in ("-", "") and not text.startswith("+") and place(text, workspace).inside


def is_stream(redirect: Redirect) -> bool:
    """Whether a writing redirection goes to nowhere or to a stream that is open anyway."""
    return redirect.target is not None and redirect.target.static and redirect.target.text in STREAMS
