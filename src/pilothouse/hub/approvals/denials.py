"""The denials of a turn, and the acts that may repeat a denied one in another spelling.

A denied act is refused for the rest of its turn, and so is any write to a file that a denied request named. An act that
may be the same in other words is asked about, even where a rule or a mode would allow it. Doubt asks: a command whose
words are known only when it runs may be any denied one.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from ...dialects.acp import NamedFiles
from ...model.acts import CommandAct, Effects, format_act, merge_effects
from ...model.policy.sharp import INTERPRETERS, known_name
from ...model.risk import assess_command
from ...model.shell import Script, parse
from ...model.tools import exact_path

MOST_TEXTS = 100
"""Denied requests whose words are compared; a turn rarely has more."""
_CODE_OPTION = re.compile(r"-[a-zA-Z]*[ce]|--(?:eval|command|execute|print)(?:=.*)?", re.DOTALL)
NO_FILES = NamedFiles()


class Denials:
    """The denied acts and requests of one turn."""

    def __init__(self) -> None:
        self.effects = Effects()
        self._others: dict[str, None] = {}
        self._files: dict[str, None] = {}
        self._texts: list[tuple[str, set[str]]] = []
        self._cut: str | None = None
        """The title of a denied request that is not remembered as a whole, so any act may repeat it."""

    def add(self, effects: Effects, named: NamedFiles = NO_FILES) -> None:
        """Record a denied request: its acts, and the files that it names."""
        self.effects = merge_effects(self.effects, effects)
        self._files |= dict.fromkeys([*(edit.path for edit in effects.edits), *named.paths])
        if effects.other and not effects.commands and not effects.edits:
            self._others[effects.other] = None
        is_remembered = len(self._texts) < MOST_TEXTS
        if is_remembered:
            self._texts.append((named.title, split_words(unquote(named.text))))
        if named.is_cut or not is_remembered:
            self._cut = named.title

    def lift(self, effects: Effects) -> None:
        """The user approved these acts after all. Other changes to their files stay denied."""
        before = self.effects
        commands = tuple(act for act in before.commands if act not in effects.commands)
        edits = tuple(edit for edit in before.edits if edit not in effects.edits)
        self.effects = before._replace(commands=commands, edits=edits)
        self._others.pop(effects.other, None)
        for path in {edit.path for edit in before.edits} - {edit.path for edit in edits}:
            self._files.pop(path, None)

    def includes(self, effects: Effects) -> bool:
        """Whether one of these acts, or any change to one of these files, was denied."""
        if effects.commands or effects.edits:
            is_command = not set(self.effects.commands).isdisjoint(effects.commands)
            return is_command or self.includes_file(*(edit.path for edit in effects.edits))
        return effects.other in self._others

    def includes_command(self, act: CommandAct) -> bool:
        return act in self.effects.commands

    def includes_file(self, *paths: str) -> bool:
        """Whether a denied request names one of these files."""
        return any(path in self._files for path in paths)

    def find_similar(self, act: Effects, root: str) -> str | None:
        """The denied act that this one may repeat, as the user knows it; None if there is none."""
        similar = find_similar(act, self.effects, self._files, root)
        if similar is not None:
            return similar
        written = {Path(edit.path).name.lower() for edit in act.edits}
        return next((title for title, words in self._texts if written & words), self._cut)


def find_similar(act: Effects, denied: Effects, files: Iterable[str], root: str) -> str | None:
    """The denied act that an act may repeat: one with the same words, or one that names the same file."""
    names = list(dict.fromkeys([*(edit.path for edit in denied.edits), *files]))
    if not denied.commands and not names:
        return None
    scripts = [(format_act(one), parse(format_act(one))) for one in act.commands]
    words = {word for text, script in scripts for word in _words_of(text, script)}
    written = {Path(edit.path).name.lower() for edit in act.edits}
    is_unclear = any(_is_unclear(script) for _, script in scripts)
    for command in denied.commands:
        text = format_act(command)
        known = _words_of(text, parse(text))
        program = split_words(text.split(" ")[0])
        # another program may do the same to what the denied one names
        operands = known - program if words.isdisjoint(program) else set()
        is_same = includes_words(words, known) or (len(words) > 1 and includes_words(known, words))
        is_near = any(len(one) > 2 and includes_words(words, {one}) for one in operands)
        if is_same or is_near or is_unclear or written & known:
            return text
    has_effects = any(assess_command(text, root).level != "low" for text, _ in scripts)
    for path in names:
        # a directory that is moved, deleted or filled takes its files with it
        inside = Path(path).is_relative_to(root) and has_effects
        directories = Path(path).relative_to(root).parts[:-1] if inside else ()
        is_named = any(includes_words(words, {name.lower()}) for name in (Path(path).name, *directories))
        if is_unclear or is_named:
            return exact_path(path, root)
    return None


def _is_unclear(script: Script) -> bool:
    """Whether a command may do more than its words say: with an expansion, a pattern, or code for an interpreter."""
    if script.errors:
        return True
    for command in script.commands:
        targets = [one.target for one in command.redirects if one.target is not None]
        if any(not word.static or word.glob for word in (*command.words, *targets)):
            return True
        is_fed = command.piped or any(one.operator.startswith("<") for one in command.redirects)
        has_code = any(_CODE_OPTION.fullmatch(word.text) for word in command.words[1:])
        if known_name(command.name) in INTERPRETERS and (is_fed or has_code):
            return True
    return False


def _words_of(text: str, script: Script) -> set[str]:
    """The words of a command as written and as a shell reads them."""
    words = split_words(text)
    for command in script.commands:
        words |= {part for word in command.words for part in split_words(word.text)}
        words |= {part for one in command.redirects if one.target is not None for part in split_words(one.target.text)}
    return words


def split_words(text: str) -> set[str]:
    """The words of a text without options, quotes and directories, by which another spelling is recognised."""
    words = (word.rpartition("/")[2] for word in re.split(r"[\s;|&<>()=,:]+", re.sub(r"""[\\'"`]""", "", text.lower())))
    return {word for word in words if word.strip(".") and not word.startswith(("-", "#"))}


def includes_words(words: set[str], others: set[str]) -> bool:
    """Whether all others are among some words, which may have wildcards."""
    globs = [word for word in words if re.search(r"[*?\[]", word)]
    found = (other in words or any(fnmatch.fnmatchcase(other, glob) for glob in globs) for other in others)
    return bool(words and others) and all(found)
