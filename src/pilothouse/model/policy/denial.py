"""Whether a pattern denies a command. Here doubt works the other way: a denial is generous.

A deny pattern also fits with wrappers taken off, by the program's last path segment, in any case, with further words
behind it and with its options in any order. Where it may fit but nobody can tell (a word is not known, the words
stand in another place) the answer is `MAYBE`: such a command is never allowed, but asked about.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from ..shell import Command
from .globs import CommandGlob, WordGlob, command_glob, generous, word_glob
from .sharp import SUBCOMMANDED, known_name, subcommand_index

__all__ = ["MAYBE", "denies", "mentions_program", "text_denies"]

MAYBE: Literal["maybe"] = "maybe"
_TOKEN = re.compile(r"[^\s;&|<>()`$'\"{}\\]+")


@lru_cache(maxsize=4096)
def _generous(pattern: WordGlob) -> WordGlob:
    if pattern.source.startswith("-"):
        return pattern  # -d and -D are different options everywhere
    if pattern.literal is None:
        return word_glob(generous(pattern.source))
    text = generous(pattern.literal)
    return WordGlob(text, re.compile(re.escape(text)), text, text)


def _program(pattern: WordGlob, text: str) -> bool:
    whole = generous(text)
    last = re.split(r"[/\\]", whole)[-1].removesuffix(".exe")
    return _generous(pattern).matches(whole) or _generous(pattern).matches(last)


def denies(pattern: str, command: Command) -> Literal["yes", "maybe", "no"]:
    """Whether a deny pattern is about a command."""
    glob = command_glob(pattern)
    if not glob.words:
        return "yes"
    if not command.words:
        return "no"
    if not command.words[0].static:
        return MAYBE
    if not _program(glob.words[0], command.words[0].text):
        return "no"
    given = {generous(name) for name, _ in command.assignments}
    if not {generous(name) for name, _ in glob.assignments} <= given:
        return "no"
    rest = [_generous(word) for word in glob.words[1:]]
    texts = [word.text if word.text.startswith("-") else generous(word.text) for word in command.words]
    if _definite(rest, texts):
        return "yes"
    if not all(word.static for word in command.words) or _scattered(rest, texts[1:]):
        return MAYBE
    return "no"


def mentions_program(pattern: str, word: str) -> bool:
    """Whether a word names the program of a deny pattern, wherever it stands in a command."""
    glob = command_glob(pattern)
    return bool(glob.words) and any(_program(glob.words[0], token) for token in _TOKEN.findall(word))


def _definite(rest: list[WordGlob], texts: list[str]) -> bool:
    name = known_name(texts[0])
    start = subcommand_index(name, tuple(texts)) if name in SUBCOMMANDED else 1
    operands = [text for text in texts[start:] if not text.startswith("-")]
    options = [text for text in texts[1:] if text.startswith("-")]
    wanted = [pattern for pattern in rest if not pattern.source.startswith("-")]
    return (
        len(wanted) <= len(operands)
        and all(pattern.matches(text) for pattern, text in zip(wanted, operands, strict=False))
        and all(_has_option(pattern, options) for pattern in rest if pattern.source.startswith("-"))
    )


def _has_option(pattern: WordGlob, options: list[str]) -> bool:
    if any(pattern.matches(option) or pattern.matches(option.partition("=")[0]) for option in options):
        return True
    if pattern.literal is None or not re.fullmatch(r"-[A-Za-z0-9]+", pattern.literal):
        return False
    # -rf is also -fr and -r -f
    letters = {letter for option in options if re.match(r"-[A-Za-z0-9]", option) for letter in option[1:]}
    return set(pattern.literal[1:]) <= letters


def _scattered(rest: list[WordGlob], texts: list[str]) -> bool:
    position = 0
    for pattern in rest:
        found = next((i for i in range(position, len(texts)) if pattern.matches(texts[i])), None)
        if found is None:
            return False
        position = found + 1
    return True


def text_denies(pattern: str, text: str) -> bool:
    """Whether a pattern's words occur, in order, in a text that could not be parsed."""
    glob: CommandGlob = command_glob(pattern)
    if not glob.words:
        return True
    tokens = [token if token.startswith("-") else generous(token) for token in _TOKEN.findall(text)]
    # what follows a later occurrence of the program also follows the first
    first = next((index for index, token in enumerate(tokens) if _program(glob.words[0], token)), None)
    return first is not None and _scattered([_generous(word) for word in glob.words[1:]], tokens[first + 1 :])
