"""Patterns: for one word, for a command line, for a path, for a tool's name.

A pattern is compared whole, never as a prefix, and letter by letter: no case folding and no Unicode normalisation,
so that a look-alike never fits an allow rule. What denies may be compared generously; `generous` says how.

In a command pattern `*` stands for any run of characters inside one word, `?` for one character; a last word that is
only `*` stands for one or more further words. Quotes and backslashes take a character literally, as in the shell.
In a path pattern `*` and `?` stay inside one segment, `**` spans any number of them, `[abc]` and `{a,b}` choose.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

# unquoted, these join, substitute or redirect: a pattern names one command and nothing else
_OPERATORS = frozenset(";&|<>()`$\n\r\0")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=", re.ASCII)
_BRACES = re.compile(r"\{([^{}]*)\}")
MAX_CHOICES = 64
"""Alternatives that the braces of one path pattern may spell out."""

UPPER_TO_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def ascii_lower(text: str) -> str:
    """Lower case of A-Z only: `str.lower` turns the Kelvin sign into `k`."""
    return text.translate(UPPER_TO_LOWER)


def generous(text: str) -> str:
    """A form in which texts that some file system takes for the same name are equal.

    Case and width are folded, marks composed, and invisible characters dropped (HFS+ ignores them in names).
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(one for one in folded if unicodedata.category(one) != "Cf")


class WordGlob(NamedTuple):
    """A pattern for one word; `literal` is its whole text when it has no wildcard."""

    source: str
    pattern: re.Pattern[str]
    prefix: str
    literal: str | None

    def matches(self, text: str) -> bool:
        return self.pattern.fullmatch(text) is not None


class CommandGlob(NamedTuple):
    """A pattern for one command: assignments that stand in front, words, and whether more words may follow."""

    source: str
    assignments: tuple[tuple[str, WordGlob], ...]
    words: tuple[WordGlob, ...]
    more: bool


class PathGlob(NamedTuple):
    """A pattern for a path; one alternative per choice of its braces, each a tuple of segment patterns."""

    source: str
    alternatives: tuple[tuple[str, ...], ...]


def _expression(tokens: list[str | None]) -> re.Pattern[str]:
    """The regular expression of a pattern, given as expressions with `None` for a star.

    Each run between two stars is taken at its first occurrence and never reconsidered, so a long word costs no more
    than its length times the pattern's.
    """
    runs = [""]
    for token in tokens:
        if token is None:
            runs.append("")
        else:
            runs[-1] += token
    if len(runs) == 1:
        return re.compile(runs[0], re.DOTALL)
    middle = "".join(f"(?>.*?{run})" for run in runs[1:-1] if run)
    return re.compile(f"{runs[0]}{middle}.*{runs[-1]}", re.DOTALL)


def _word(pieces: list[tuple[str, bool]], source: str) -> WordGlob:
    """A word pattern from its characters, each with whether it is a wildcard."""
    tokens = [re.escape(one) if not wild else None if one == "*" else "." for one, wild in pieces]
    prefix = "".join(one for one, _ in itertools.takewhile(lambda piece: not piece[1], pieces))
    return WordGlob(source, _expression(tokens), prefix, prefix if len(prefix) == len(pieces) else None)


def word_glob(text: str) -> WordGlob:
    """The pattern for one word in which nothing is quoted."""
    return _word([(one, one in "*?") for one in text], text)


@lru_cache(maxsize=4096)
def command_glob(source: str) -> CommandGlob:
    """Read a command pattern.

    Raises:
        ValueError: it is empty, a quote is open, or an unquoted operator would make it several commands.
    """
    words: list[list[tuple[str, bool]]] = []
    word: list[tuple[str, bool]] | None = None
    quote = ""
    position = 0
    while position < len(source):
        one = source[position]
        position += 1
        if quote:
            if one == quote:
                quote = ""
            elif word is not None:
                word.append((one, False))
            continue
        if one in " \t":
            word = None
            continue
        if one in _OPERATORS:
            raise ValueError(f"expected one command, but {one!r} joins, redirects or substitutes; quote it to mean it")
        if word is None:
            word = []
            words.append(word)
        if one in "'\"":
            quote = one
        elif one == "\\":
            if position == len(source):
                raise ValueError("expected a character after the last backslash")
            word.append((source[position], False))
            position += 1
        else:
            word.append((one, one in "*?"))
    if quote:
        raise ValueError(f"expected a closing {quote}")
    return _command(source, words)


def _command(source: str, words: list[list[tuple[str, bool]]]) -> CommandGlob:
    assignments = []
    while words and (found := _ASSIGNMENT.match("".join(one if not wild else "\0" for one, wild in words[0]))):
        name = found.group().rstrip("=").rstrip("+")
        assignments.append((name, _word(words.pop(0)[found.end() :], source)))
    if not words:
        raise ValueError("expected a command")
    more = len(words[-1]) > 0 and all(piece == ("*", True) for piece in words[-1])
    if more:
        words.pop()
    texts = ["".join(one for one, _ in word) for word in words]
    return CommandGlob(source, tuple(assignments), tuple(_word(w, t) for w, t in zip(words, texts, strict=True)), more)


def _spell_out(text: str) -> list[str]:
    """Every choice of `{a,b}`; braces without a comma stand for themselves."""
    pending, done = [text], []
    while pending:
        current = pending.pop()
        found = next((m for m in _BRACES.finditer(current) if "," in m.group(1)), None)
        if found is None:
            done.append(current)
        else:
            head, tail = current[: found.start()], current[found.end() :]
            pending += [head + choice + tail for choice in found.group(1).split(",")]
        if len(pending) + len(done) > MAX_CHOICES:
            raise ValueError(f"expected at most {MAX_CHOICES} choices in braces")
    return done


@lru_cache(maxsize=4096)
def path_glob(source: str) -> PathGlob:
    """Read a path pattern; a trailing slash means everything below.

    Raises:
        ValueError: it is empty, begins with `!`, or its braces have too many choices.
    """
    if not source or any(ord(one) < 32 for one in source):
        raise ValueError("expected a path pattern without control characters")
    if source.startswith("!"):
        raise ValueError("expected a path pattern; `!` does not turn one round, use `deny`")
    alternatives = []
    for choice in _spell_out(source):
        text = choice + "**" if choice.endswith("/") else choice
        alternatives.append(tuple(text.split("/")))
    return PathGlob(source, tuple(alternatives))


@lru_cache(maxsize=4096)
def _segment(pattern: str) -> re.Pattern[str]:
    tokens: list[str | None] = []
    position = 0
    while position < len(pattern):
        one = pattern[position]
        close = pattern.find("]", position + 3) if one == "[" and pattern[position + 1 : position + 2] in "!^" else -1
        close = pattern.find("]", position + 2) if one == "[" and close < 0 else close
        if one in "*?":
            tokens.append(None if one == "*" else ".")
        elif close > 0:
            body = pattern[position + 1 : close]
            negated = body[0] in "!^" and len(body) > 1
            members = re.sub(r"([\\\[\]^&~|])", r"\\\1", body[1:] if negated else body)
            tokens.append(f"[{'^' if negated else ''}{members}]")
            position = close
        else:
            tokens.append(re.escape(one))
        position += 1
    try:
        return _expression(tokens)
    except re.error:  # such as [z-a]: then it is only itself
        return re.compile(re.escape(pattern), re.DOTALL)


def is_wild(segment: str) -> bool:
    return any(one in segment for one in "*?[")


def segments_match(patterns: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether the segments of a path fit the segments of a pattern, `**` spanning any number."""
    reachable = {0}
    for pattern in patterns:
        if pattern == "**":
            reachable = set(range(min(reachable), len(parts) + 1)) if reachable else set()
        else:
            fits = _segment(pattern).fullmatch
            reachable = {at + 1 for at in reachable if at < len(parts) and fits(parts[at])}
        if not reachable:
            return False
    return len(parts) in reachable


@lru_cache(maxsize=4096)
def _tool_pattern(pattern: str) -> re.Pattern[str]:
    return word_glob(pattern).pattern


def tool_name_matches(pattern: str, name: str) -> bool:
    """Whether a tool's name fits a pattern; A-Z and a-z are the same."""
    return _tool_pattern(ascii_lower(pattern)).fullmatch(ascii_lower(name)) is not None
