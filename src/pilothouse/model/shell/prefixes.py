"""How a wrapper's own options are told from the command it runs, by the rows of `table`.

Where it is not certain which word begins the inner command, the script gets an error.
"""

from __future__ import annotations

import re

from .nouns import Word
from .state import Draft, Scope
from .table import PREFIXES, Prefix
from .tree import Walker

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=").match
UNKNOWN = Word("", False, False, "")


def prefixed(walker: Walker, draft: Draft, name: str) -> bool:
    return take_off(walker, draft, PREFIXES[name], name, 1)


def take_off(walker: Walker, draft: Draft, spec: Prefix, label: str, start: int) -> bool:
    """Find where the inner command begins and go on with it."""
    words = draft.words
    i, script = options(walker, words, spec, label, start)
    if script is not None or i < 0:
        walker.record(draft) if i < 0 or spec.kept else None
        if script is not None:
            walker.nested(script, below(draft), label)
        return True
    if spec.assignments:
        i = assignments(draft, i)
    if spec.dashes:
        i = next((k + 1 for k in range(start, len(words)) if words[k].text == "--"), len(words))
    i += spec.operands
    if spec.scripts and i < len(words) and words[i].text in spec.scripts and i + 1 < len(words):
        walker.nested(words[i + 1], below(draft), label)
        return True
    if i >= len(words):
        walker.record(draft)
        return True
    if spec.kept:
        walker.record(draft)
    inner = words[i:]
    if spec.joined and len(inner) == 1:
        walker.nested(inner[0], below(draft), label)
        return True
    if spec.joined:
        text = " ".join(word.text for word in inner)
        walker.nested(Word(text, all(word.static for word in inner), False, text), below(draft), label)
        return True
    if spec.adds:
        inner = [placeholder(word) for word in inner]
        if not any(word.text in {"-I", "-J", "-i", "--replace"} or word.text.startswith("-I") for word in words[1:i]):
            inner.append(UNKNOWN)
    draft.words = inner
    draft.wrappers.append(label)
    return False


def options(walker: Walker, words: list[Word], spec: Prefix, label: str, i: int) -> tuple[int, Word | None]:
    """The index behind the wrapper's own options; -1 when it runs nothing; the script an option holds."""
    count = len(words)
    while i < count:
        word = words[i]
        text = word.text
        if text == "--":
            return i + 1, None
        if len(text) < 2 or text[0] != "-":
            # `env -` and `su -` are options, too
            if text == "-" and label in {"env", "su", "runuser"}:
                i += 1
                continue
            break
        name, equals, value = text.partition("=")
        if text in spec.scripts or name in spec.scripts:
            if equals:
                return i, Word(value, word.static, False, value)
            return (i, words[i + 1]) if i + 1 < count else (-1, None)
        if text in spec.stops:
            return -1, None
        if text in spec.values:
            i += 2
        elif text[1] == "-":
            if not equals and name not in spec.flags:
                if spec.unknown == "value":
                    i += 1
                elif spec.unknown == "error":
                    walker.error(f"an option of {label} was not understood: {text}")
            i += 1
        else:
            taken, script = _cluster(walker, words, spec, label, i)
            if taken < 0 or script is not None:
                return taken, script
            i += taken
    return i, None


def _cluster(walker: Walker, words: list[Word], spec: Prefix, label: str, i: int) -> tuple[int, Word | None]:
    """Short options in one word (`-nu`, `-n5`): how many words they take."""
    word = words[i]
    text = word.text
    if label == "nice" and text[1:].lstrip("-").isdigit():
        return 1, None
    if spec.unknown == "value":
        return (1 if text in spec.flags else 2 if len(text) == 2 else 1), None
    if text in spec.flags:
        return 1, None
    for position, letter in enumerate(text[1:], 1):
        option = "-" + letter
        rest = text[position + 1 :]
        if option in spec.scripts:
            if rest:
                return i, Word(rest, word.static, False, rest)
            return (i, words[i + 1]) if i + 1 < len(words) else (-1, None)
        if option in spec.stops:
            return -1, None
        if option in spec.values:
            return (1 if rest else 2), None
        if option in spec.flags:
            # options with an optional value attached (`xargs -i{}`, `sudo -E`)
            if option in {"-i", "-l", "-e"} and spec.adds:
                return 1, None
            continue
        if spec.unknown == "error":
            walker.error(f"an option of {label} was not understood: {text}")
        return 1, None
    return 1, None


def assignments(draft: Draft, i: int) -> int:
    words = draft.words
    while i < len(words) and _ASSIGNMENT(words[i].text):
        name, _, value = words[i].text.partition("=")
        draft.assignments.append((name, Word(value, words[i].static, False, value)))
        i += 1
    return i


def below(draft: Draft) -> Scope:
    """The scope of commands in a string that this command runs."""
    scope = draft.scope
    wrappers = (*scope.wrappers, *draft.wrappers)
    return scope._replace(wrappers=wrappers, redirects=(*draft.redirects, *scope.redirects))


def inner(walker: Walker, draft: Draft, words: list[Word], label: str) -> None:
    """Record a command that stands in the arguments of another."""
    if not words:
        return
    found = Draft(draft.scope._replace(feed=None))
    found.words = [placeholder(word) for word in words]
    found.redirects = draft.redirects
    found.wrappers = [*draft.wrappers, label]
    walker.unwrap(walker, found)


def placeholder(word: Word) -> Word:
    return Word(word.text, False, word.glob, word.raw) if "{}" in word.text else word
