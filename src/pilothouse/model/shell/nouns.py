"""The parts of shell text: words, redirections, commands, the script as a whole, and the state of reading one.

Plain values with little behaviour. A `Word` never claims more than is known: before `text` is compared with something,
`static` must be checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

WRITING = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>", ">&-"})


class Word(msgspec.Struct, frozen=True):
    """One argument: `text` is its value after quote removal, exact only when `static`."""

    text: str
    static: bool = True
    glob: bool = False
    raw: str = ""


class Redirect(msgspec.Struct, frozen=True):
    """One redirection; the target of a here-document is its body."""

    operator: str
    target: Word | None = None
    fd: int | None = None

    @property
    def writes(self) -> bool:
        """Whether a file may be created or changed (`2>&1` and `>&-` only rearrange descriptors)."""
        if self.operator not in WRITING or self.target is None:
            return False
        return not (self.operator == ">&" and self.target.static and self.target.text.rstrip("-").isdigit())


class Command(msgspec.Struct, frozen=True):
    """One command that could run, with wrappers such as `sudo` or `env` taken off.

    `words` is empty for a bare assignment or a bare redirection.
    """

    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    wrappers: tuple[str, ...] = ()
    piped: bool = False
    context: frozenset[str] = frozenset()

    @property
    def program(self) -> str:
        """The program as written, after quote removal."""
        return self.words[0].text if self.words else ""

    @property
    def name(self) -> str:
        """The last segment of the program's path; empty when the program is not known."""
        if not self.words or not self.words[0].static:
            return ""
        return self.words[0].text.rpartition("/")[2]

    @property
    def arguments(self) -> tuple[Word, ...]:
        """Everything after the program."""
        return self.words[1:]


class Script(msgspec.Struct, frozen=True):
    """Every command a text could run, in source order, and why the list may be incomplete."""

    commands: tuple[Command, ...] = ()
    errors: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()

    @property
    def trusted(self) -> bool:
        """Whether the commands are all there is; without it nothing may be allowed on their strength."""
        return not self.errors


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
