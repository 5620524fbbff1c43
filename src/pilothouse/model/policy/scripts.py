"""A script against the rules: whether a rule denies any part of it, and whether rules cover all of it.

The rule a change must not break: every command that could run, every wrapper around one and every file written by a
redirection is judged on its own, and one that no rule covers is enough to ask.

A denial is generous: a deny pattern also matches with wrappers removed, by the program's last path segment, in any
case, with further words behind it and with its options in any order. Where a match is uncertain (a word is not known,
the words stand in another place) the answer is `MAYBE`: such a command is never allowed automatically.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from ..risk import assess_risk
from ..shell import Command, Redirect, Script, Word, parse
from .globs import CommandGlob, WordGlob, command_glob, generous, path_glob, word_glob
from .matching import (
    Site,
    bare,
    covers,
    free,
    idles,
    inner_span,
    is_literal,
    is_stream,
    ordinary_test,
    read_refusal,
    tail,
    wrappers_named,
)
from .places import path_denied, path_readings
from .rules import STORED, Rule, cover_path
from .sharp import SUBCOMMANDED, known_name, subcommand_index

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


MAX_SHOWN = 80


def shown(text: str) -> str:
    """A text as it stands in a sentence: on one line, not too long, in backquotes."""
    line = " ".join(text.split()) or "(nothing)"
    return f"`{line if len(line) <= MAX_SHOWN else line[:MAX_SHOWN] + '…'}`"


def script_denied(
    rule: Rule, script: Script, commands: tuple[Command, ...], text: str, workspace: str | None
) -> Literal["yes", "maybe", "no"]:
    if rule.subject == "commands":
        if rule.pattern is None:
            return "yes"
        if script.errors and text_denies(rule.pattern, text):
            return "yes"
        answers = {denies(rule.pattern, command) for command in commands}
        return "yes" if "yes" in answers else MAYBE if MAYBE in answers or script.errors else "no"
    redirects = [redirect for command in commands for redirect in command.redirects]
    if rule.pattern is None:
        writes = rule.subject == "writes" and any(one.writes and not is_stream(one) for one in redirects)
        reads = rule.subject == "reads" and any(one.operator == "<" for one in redirects)
        return "yes" if writes or reads else "no"
    return _paths_denied(rule, commands, redirects, workspace)


def mentions_denied(rule: Rule, script: Script, commands: tuple[Command, ...]) -> bool:
    """Whether a script may run a denied command in a way that `script_denied` does not see, such as by a wrapper."""
    if rule.subject != "commands" or rule.pattern is None:
        return False
    words = [word for command in commands for word in command.words]
    return bool(script.errors) or any(
        not word.static or word.glob or mentions_program(rule.pattern, word.text) for word in words
    )


def _paths_denied(
    rule: Rule, commands: tuple[Command, ...], redirects: list[Redirect], workspace: str | None
) -> Literal["yes", "maybe", "no"]:
    """A path a command names is denied to be read; to be written only where it is certain that it is written."""
    glob = path_glob(rule.pattern or "**")
    unknown = False
    for one in redirects:
        if one.target is None or one.operator.startswith("<<") or one.writes != (rule.subject == "writes"):
            continue
        if path_denied(glob, one.target.text, workspace):
            return "yes"
        unknown = unknown or not one.target.static
    named = False
    for command in commands:
        for word in command.words[1:]:
            unknown = unknown or not word.static
            named = named or any(path_denied(glob, reading, workspace) for reading in path_readings(word.text))
    if named and rule.subject == "reads":
        return "yes"
    return MAYBE if named or unknown else "no"


class Judge:
    """Judges the commands of one script by the rules that allow."""

    def __init__(self, allowing: Sequence[Rule], text: str, site: Site, written: Script) -> None:
        self.commands = [rule for rule in allowing if rule.subject == "commands"]
        self.writes = [rule for rule in allowing if rule.subject == "writes"]
        self.text = text
        self.site = site
        self.written = written.commands
        # a function or an alias may have any name, `true` as well
        self.idling = bool(self.commands) and written.features.isdisjoint({"function", "alias"})
        self.used: list[Rule] = []
        self.dangerous: str | None = None
        self.inside: dict[str, list[tuple[tuple[Word, ...], tuple[str, ...]]]] = {}

    def script(self, commands: tuple[Command, ...]) -> tuple[str | None, list[Rule]]:
        """Why the script is not covered, or the rules that cover all of it."""
        plain = {(command.words, command.assignments) for command in commands if not command.wrappers}
        wrapping = [one for one in self.written if (one.words, one.assignments) not in plain]
        for command in (*commands, *wrapping):
            answer = self.command(command, commands)
            if answer is not None:
                return self._because(command, answer, several=len(commands) > 1), []
        return None, self.used

    def _because(self, command: Command, answer: str, *, several: bool) -> str:
        line = shown(" ".join(word.raw or word.text for word in command.words))
        return answer or (f"no rule covers {line} in it" if several else "")

    def command(self, command: Command, commands: tuple[Command, ...]) -> str | None:
        if not command.words:
            return "it sets a variable for what follows" if command.assignments else "a part of it runs nothing"
        answer = None if self.idling and idles(command, self.site) else self._words(command, commands)
        return answer if answer is not None else self._redirects(command.redirects)

    def _redirects(self, redirects: tuple[Redirect, ...]) -> str | None:
        for redirect in redirects:
            if not redirect.writes:
                answer = read_refusal(redirect, self.site)
            elif is_stream(redirect):
                answer = None
            else:
                answer = self._write(redirect)
            if answer is not None:
                return answer
        return None

    def _write(self, redirect: Redirect) -> str | None:
        target = redirect.target
        if target is None or not target.static:
            return "it writes to a file that is not known before it runs"
        if self.site.elsewhere:
            return "it writes a file after leaving the workspace"
        if self.site.moved == "?":
            return "it writes a file after changing its directory more than once"
        # a `cd` in front may have failed, so the file must be covered from both places
        places = [target.text]
        if self.site.moved and not target.text.startswith("/"):
            places.append(f"{self.site.moved}/{target.text}")
        for path in places:
            answer, rule = cover_path(self.writes, path, self.site.workspace, writing=True)
            if rule is None:
                return f"it writes {shown(path)}{': ' + answer if answer else ''}"
            self.used.append(rule)
        return None

    def _words(self, command: Command, commands: tuple[Command, ...]) -> str | None:
        if not command.words[0].static:
            return f"{shown(command.words[0].raw)} is not known before it runs"
        outers = self._outers(command) if command.wrappers else []
        if command.wrappers and not any(self._unwraps(rule, command, outers) for rule in self.commands):
            return f"{', '.join(f'`{wrapper}`' for wrapper in command.wrappers)} in front is not named"
        command = ordinary_test(command)
        inner = frozenset(index for one in commands if one.wrappers for index in inner_span(command, one))
        why = ""
        for rule in self.commands:
            answer = self._rule(rule, command, inner, outers)
            if answer is None:
                self.used.append(rule)
                return None
            why = why or answer
        return why

    def _outers(self, inner: Command) -> list[Command]:
        """The command lines, as written, in which an inner command is found."""
        return [one for one in self.written if (inner.words, inner.wrappers) in self._within(one)]

    def _within(self, outer: Command) -> list[tuple[tuple[Word, ...], tuple[str, ...]]]:
        text = " ".join(word.raw for word in outer.words)
        if text not in self.inside:
            self.inside[text] = [(one.words, one.wrappers) for one in parse(text).commands if one.wrappers]
        return self.inside[text]

    def _unwraps(self, rule: Rule, inner: Command, outers: list[Command]) -> bool:
        """Whether a rule names the wrappers in front of a command (the command itself is judged apart)."""
        if rule.pattern is None or not command_glob(rule.pattern).words:
            return True
        glob = command_glob(rule.pattern)
        return any(
            (wrappers_named(glob, outer, inner) or is_literal(glob))
            and covers(glob, outer, self.site, frozenset(inner_span(outer, inner))) is None
            for outer in outers
        )

    def _rule(self, rule: Rule, command: Command, inner: frozenset[int], outers: list[Command]) -> str | None:
        glob = command_glob(rule.pattern) if rule.pattern is not None else None
        if glob is None or (not glob.words and not glob.assignments):
            return free(command, self.site) or self._risk()
        if not glob.words:
            return ""
        is_fed = command.piped or any(one.operator.startswith("<") for one in command.redirects)
        if is_fed and rule.source.startswith(STORED) and is_literal(glob):
            return "it gets input that the rule does not name"  # "Run exactly …" was shown without any
        answer = covers(glob, command, self.site, inner)
        if glob.words[0].literal is None and answer is None:
            answer = free(command, self.site) or self._risk()
        for outer in outers if answer is not None else ():
            if covers(glob, outer, self.site, frozenset(inner_span(outer, command))) is not None:
                continue
            part = tail(glob, outer, command)
            # assignments of `env` and `sudo` are words of the outer line and have been compared there
            if is_literal(glob) or (part and covers(part, bare(command), self.site) is None):
                return None
        return answer

    def _risk(self) -> str | None:
        """A rule for all commands covers what is harmless or usual, not what is dangerous."""
        if self.dangerous is None:
            risk = assess_risk("Bash", {"command": self.text}, self.site.workspace)
            self.dangerous = f"its risk is {risk.level}" if risk.level in ("high", "critical") else ""
        return self.dangerous or None
