"""Acts that an agent asks its client to carry out, in a form in which two of them can be compared by effect.

An approval is permission for the acts that it showed, and for nothing else. `Effects` are the commands and file edits
of a request or a tool call. `CommandAct` and `FileEdit` compare equal only if running or writing them has the same
effect. Pure: the caller resolves paths and reads files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

# -- commands -----------------------------------------------------------------------------------------------------

HARMLESS_VARIABLES: frozenset[tuple[str, str]] = frozenset(
    {
        *(("NO_COLOR", "1"), ("FORCE_COLOR", "0"), ("CLICOLOR", "0"), ("TERM", "dumb"), ("TERM", "xterm-256color")),
        *((pager, "cat") for pager in ("PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER", "SYSTEMD_PAGER")),
        *(("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "true"), ("DEBIAN_FRONTEND", "noninteractive")),
        *((locale, value) for locale in ("LANG", "LC_ALL", "LC_CTYPE") for value in ("C.UTF-8", "en_US.UTF-8")),
        *(("PYTHONUNBUFFERED", "1"), ("COLORTERM", ""), ("COLUMNS", "80"), ("LINES", "24")),
        # how agents mark the programs that they start
        *((mark, "1") for mark in ("CLAUDECODE", "GEMINI_CLI", "QWEN_CODE", "OPENCODE", "GOOSE_TERMINAL", "CODEX_CI")),
        *(("AGENT", "goose"), ("AI_AGENT", "1")),
    }
)
"""Variables that an agent may add to a command without showing them, each with its value: none of them can make a
program run or load anything else. Any other pair, and any other value, is a difference."""

_MAX_PLAIN = 65_536
"""Characters of a command beyond which it stays text."""
SHELLS = ("sh", "bash")
_SHELL_FLAGS = frozenset({"-c", "-lc"})
# Words that every POSIX shell and bash read alike. Anything else stays shell text and is compared letter by letter.
_PLAIN_WORD = re.compile(r"""(?:[A-Za-z0-9_@%+:,./=-]|'[^']*'|"[^"$`\\!]*")+""")
_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]+")
_BLANKS = re.compile(r"[ \t]+")
_RESERVED = frozenset(
    "if then elif else fi for while until do done case esac in select function time coproc".split()  # noqa: SIM905
)


class CommandLine(NamedTuple):
    """A command: its words where no shell is needed to read them, else the text that a shell gets."""

    words: tuple[str, ...]
    text: str = ""


class CommandAct(NamedTuple):
    """A command, the directory it starts in, and the variables it gets besides the hub's own environment."""

    line: CommandLine
    cwd: str
    env: tuple[tuple[str, str], ...] = ()


def command_from_text(text: str, shells: Collection[str] = SHELLS) -> CommandLine:
    """The normal form of shell text: `ls -la` is two words, `ls | wc` stays text.

    For `shells` see `command_from_words`.
    """
    words = _plain_words(text.strip(" \t\n")) if len(text) <= _MAX_PLAIN else None  # nothing else is a blank to a shell
    if words is None:
        return CommandLine((), text)
    return command_from_words(words, shells)


def command_from_words(words: Sequence[str], shells: Collection[str] = SHELLS) -> CommandLine:
    """The normal form of an argument list: `bash -c LINE` is LINE.

    `shells` are the names of the hub's own shells; the caller adds the full paths that its PATH gives for them.
    """
    if len(words) == 3 and words[0] in shells and words[1] in _SHELL_FLAGS:
        return command_from_text(words[2], shells)
    return CommandLine(tuple(words))


@lru_cache(maxsize=8)  # one request is compared many times
def _plain_words(text: str) -> tuple[str, ...] | None:
    """The words of a single simple command without expansions; None for anything that needs a shell."""
    words: list[str] = []
    position = 0
    while position < len(text):
        blank = _BLANKS.match(text, position)
        if blank is not None:
            position = blank.end()
            continue
        word = _PLAIN_WORD.match(text, position)
        if word is None or (word.end() < len(text) and text[word.end()] not in " \t"):
            return None
        words.append(_unquote(word[0]))
        is_quoted_path = word[0][0] in "'\"" and "/" in words[0]
        if len(words) == 1 and not is_quoted_path and (_PROGRAM.fullmatch(word[0]) is None or words[0] in _RESERVED):
            return None  # an assignment, a job, a quoted name that may be a function, a keyword
        position = word.end()
    return tuple(words) or None


def join_words(words: Sequence[str]) -> str:
    """An argument list as shell text. A program that a shell would take for an assignment or a keyword is quoted."""
    text = shlex.join(words)
    if words and text.startswith(words[0]) and ("=" in words[0] or words[0] in _RESERVED):
        return f"'{words[0]}'{text[len(words[0]) :]}"
    return text


def _unquote(word: str) -> str:
    return re.sub(r"""'([^']*)'|"([^"]*)\"""", lambda found: found[1] if found[1] is not None else found[2], word)


def extra_variables(given: Iterable[tuple[str, str]], environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables that differ from `environment` and are not known to be harmless, sorted by name."""
    last = dict(given)  # if a name is given twice, the last value counts
    changed = (pair for pair in last.items() if environment.get(pair[0]) != pair[1])
    return tuple(sorted(pair for pair in changed if pair not in HARMLESS_VARIABLES))


# -- files --------------------------------------------------------------------------------------------------------


class FileEdit(NamedTuple):
    """A change to one file: `new` replaces `old`.

    If `old` is None, `new` is the whole text of the file. `new` is None if the file is deleted or its text not known.
    """

    path: str
    old: str | None
    new: str | None
    replace_all: bool = False


def normalize_text(text: str) -> str:
    """A text without byte order mark and with LF line endings: editors and agents change both on their own."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def apply_edits(base: str | None, edits: Iterable[FileEdit]) -> str | None:
    """The text of a file after some edits of `base` (None: there is no file); None if they do not fit it.

    A part is replaced only if it is found exactly once, or everywhere with `replace_all`. So there is at most one
    possible result.
    """
    text = None if base is None else normalize_text(base)
    for edit in edits:
        if edit.new is None:
            return None
        new, old = normalize_text(edit.new), normalize_text(edit.old or "")
        if old.endswith("\r") and new.endswith("\r"):  # cut in the middle of a line end
            new, old = new[:-1], old[:-1]
        if not old or text == old:
            text = new
        elif text is None:
            return None
        else:
            place = text.find(old)
            is_unique = text.find(old, place + 1) < 0  # places may overlap
            if place < 0 or not (is_unique or edit.replace_all):
                return None
            text = text.replace(old, new)
    return text


def core_of_edit(edit: FileEdit) -> FileEdit:
    """An edit without unchanged lines at its start and end: agents show more or fewer of them."""
    if not edit.old or edit.new is None:
        return edit
    old, new = normalize_text(edit.old).split("\n"), normalize_text(edit.new).split("\n")
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if not "\n".join(old[start : len(old) - end]):  # never empty: an empty `old` means the whole file
        start, end = (start - 1, end) if start else (start, max(end - 1, 0))
    cut = slice(start, -end or None)
    return edit._replace(old="\n".join(old[cut]), new="\n".join(new[cut]))


# -- effects ------------------------------------------------------------------------------------------------------


def format_act(act: CommandAct) -> str:
    """A command as shell text, without its directory and variables."""
    return act.line.text or join_words(act.line.words)


class Effects(NamedTuple):
    """The acts of a request or a tool call.

    `other` is everything else in the input, compared as text: all of it for a tool that shows no act.
    """

    commands: tuple[CommandAct, ...] = ()
    edits: tuple[FileEdit, ...] = ()
    other: str = ""

    def group_edits(self) -> dict[str, list[FileEdit]]:
        """The edits of each file, in their order."""
        found: dict[str, list[FileEdit]] = {}
        for edit in self.edits:
            found.setdefault(edit.path, []).append(edit)
        return found

    def apply_to(self, files: Mapping[str, str | None]) -> dict[str, str | None]:
        """The texts of these files after the edits; None for a file that its edits do not fit."""
        return {path: apply_edits(files[path], edits) for path, edits in self.group_edits().items() if path in files}

    def is_same(self, after: Effects) -> bool:
        """Whether only the context lines of edits differ, if anything does."""
        if (self.commands, self.other) != (after.commands, after.other):
            return False
        return set(map(core_of_edit, self.edits)) == set(map(core_of_edit, after.edits))

    def covers(self, others: Effects) -> bool:
        """Whether these effects include all of `others`, whose `other` must be the same."""
        if self.other != others.other:
            return False
        edits = set(map(core_of_edit, self.edits))
        return set(others.commands) <= set(self.commands) and set(map(core_of_edit, others.edits)) <= edits


def merge_effects(one: Effects, other: Effects) -> Effects:
    """The acts of both, in order."""
    return Effects((*one.commands, *other.commands), (*one.edits, *other.edits), other.other or one.other)
