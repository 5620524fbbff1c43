"""Words that are no paths although they may look like one, and words that choose files although they may not.

The pattern of `grep` and the message of `git commit` are text. Only one word of a command is ever let off as a pattern,
and none where it is not certain which one it is.
"""

from __future__ import annotations

import re

from .places import sensitive

__all__ = ["PATTERN_FIRST", "SEARCHING", "chooses_files", "hidden_glob", "is_message", "is_pattern"]

# the first operand of these is a pattern or a program text, unless an option gave one already
PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "jq"})
_GIT_SPEAKERS = frozenset({"commit", "tag", "merge", "stash", "notes"})
SEARCHING = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack"})
# options of theirs: with a number behind them, with nothing behind them, with a pattern for file names
_TAKES_NUMBER = re.compile(r"-[A-Za-z]*[ABCm]|--(?:(?:after|before)-)?context|--max-count")
_TAKES_WORD = {"rg": re.compile(r"-[A-Za-z]*[ABCmtTjM]|--(?:(?:after|before)-)?context|--max-\w+|--type(?:-not)?")}
_SWITCHES = re.compile(
    r"-[abchHiIlLnNoPqrRsSuUvVwWxyzZEFG0-9]+|--(?:ignore-case|recursive|line-number|word-regexp|count|files-with-matches"
    r"|files-without-match|(?:with|no)-filename|invert-match|only-matching|quiet|silent|colou?r|(?:no-)?heading|multiline"
    r"|(?:fixed|basic)-(?:strings|regexp)|(?:perl|extended)-regexp|smart-case|pcre2|json|no-ignore|no-messages|text|column)"
)
_FILE_CHOOSERS = re.compile(r"-g|--(?:i?glob|include|exclude-from|ignore-file|type-add)")
# generously: options may be abbreviated, and their value attached
_PATTERN_GIVEN = re.compile(r"-[A-Za-z0-9]*[ef].*|--[ref].*", re.DOTALL)


def is_pattern(name: str, texts: tuple[str, ...], index: int) -> bool:
    position = 1
    while position < len(texts) and texts[position].startswith("-") and texts[position] != "-":
        option = texts[position]
        if option == "--":
            position += 1
            break
        if name in SEARCHING and _TAKES_WORD.get(name, _TAKES_NUMBER).fullmatch(option):
            position += 2
        elif name not in SEARCHING or "=" in option or _SWITCHES.fullmatch(option):
            position += 1
        else:
            return False  # the next word may be its value
    return index == position and not any(_PATTERN_GIVEN.fullmatch(text) for text in texts[1:])


def is_message(texts: tuple[str, ...], index: int) -> bool:
    """What `git commit -m` is given is text, whatever it looks like."""
    if texts[1] not in _GIT_SPEAKERS:
        return False
    return re.fullmatch(r"-[a-z]*m|--message", texts[index - 1]) is not None or texts[index].startswith("--message=")


def chooses_files(texts: tuple[str, ...], index: int) -> str:
    """The value of an option that says which files are searched."""
    option, equals, value = texts[index].partition("=")
    if equals and _FILE_CHOOSERS.fullmatch(option):
        return value
    if found := re.fullmatch(r"-g(.+)", texts[index], re.DOTALL):
        return found[1]
    return texts[index] if _FILE_CHOOSERS.fullmatch(texts[index - 1]) else ""


def hidden_glob(value: str) -> bool:
    """Whether a pattern for file names asks for hidden files that may be credentials; `!…` leaves files out."""
    last = value.rpartition("/")[2]
    if value.startswith("!") or last[:1] not in {".", "{", "["}:
        return False
    return sensitive((last,)) is not None or re.search(r"[*?\[{]", last) is not None
