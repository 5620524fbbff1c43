"""What reading a script passes along: where a command stands, a command half read, and all that was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .nouns import Command, Redirect, Script, Word

if TYPE_CHECKING:
    from tree_sitter import Node


class Scope(NamedTuple):
    """What a command inherits from where it stands."""

    redirects: tuple[Redirect, ...] = ()
    context: frozenset[str] = frozenset()
    wrappers: tuple[str, ...] = ()
    piped: bool = False
    # what the command reads on its standard input, where that is known
    feed: Word | None = None
    # the value of a loop's variable, where it is known
    bound: tuple[tuple[str, Word], ...] = ()

    def inside(self, *names: str) -> Scope:
        return self._replace(context=self.context.union(names))


class Draft:
    """A simple command as written, before wrappers are taken off."""

    __slots__ = ("after", "assignments", "redirects", "scope", "words", "wrappers")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        # statements that the grammar keeps inside a redirection of this command
        self.after: list[tuple[Node, Scope]] = []
        self.words: list[Word] = []
        self.assignments: list[tuple[str, Word]] = []
        self.redirects: list[Redirect] = []
        self.wrappers: list[str] = []


class State:
    """What one `parse` call has gathered, shared by all scripts nested in it."""

    __slots__ = ("commands", "errors", "features", "tokens")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.errors: dict[str, None] = {}
        self.features: set[str] = set()
        self.tokens = 0  # of the texts that were read

    def script(self) -> Script:
        return Script(tuple(self.commands), tuple(self.errors), frozenset(self.features))
