"""Commands in the options of other programs (`tar -I …`, `rsync -e …`, `make SHELL=…`), and text that builtins expand.

A person who reads such a line sees the outer program; the inner one runs. So it is found here and recorded with the
option that runs it as its wrapper. Reading an option too generously costs a question, missing one costs more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .grammar import EVALUATED
from .nouns import Word
from .prefixes import below, inner
from .state import Draft
from .table import COMMAND_OPTIONS, GIT_RUNS, names
from .tree import Walker

# an option that names one of these, with plain switches, hides nothing
_USUAL = re.compile(
    r"(?:(?:un)?(?:gzip|pigz|zstd|zstdmt|xz|bzip2|pbzip2|lbzip2|lz4|lzip|lzma|brotli)|ssh|cat|less|more|true"
    r"|(?:/usr)?/bin/(?:ba|da)?sh|gcc|g\+\+|clang|clang\+\+|cc|c\+\+)(?: -[abd-zA-Z0-9]+(?: \d+)?)*"
).fullmatch
# letters of tar's first word, written without a dash, that take the next words in their order
_TAR_VALUES = names("b C F f g H I K L N T V X")
_TAR_MODE = re.compile(r"[A-Za-z]+").fullmatch
_GIT_CONFIGURES = re.compile(r".*\.(?:textconv|cmd|clean|smudge|process|driver|helper|program|path|command)").fullmatch
_GIT_VALUES = names("-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env")
_GIT_USUAL = names("cat true false less more store cache osxkeychain manager")
_SSH_RUNS = names("proxycommand localcommand knownhostscommand")
# builtins that expand a name or a value once more, and the options that make them
_ALWAYS_EXPAND = names("let read unset wait getopts mapfile readarray compgen complete")
_DECLARING = names("declare typeset local readonly export")
_FILLING = names("read mapfile readarray")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*|npm_config\w*|\w+_proxy").fullmatch
_EXPANDING = re.compile(r"-[A-Za-z]*[aAin][A-Za-z]*").fullmatch


def with_options(walker: Walker, draft: Draft, name: str) -> bool:
    walker.record(draft)
    command_options(walker, draft, name)
    return True


def command_options(walker: Walker, draft: Draft, name: str) -> None:
    """Record the commands that options of a program hold."""
    label = f"git {_verb(draft.words)}".strip() if name == "git" else name
    for option, value in _values(name, draft.words):
        text = value.text.removeprefix("exec=") if option == "--checkpoint-action" else value.text
        if option == "--checkpoint-action" and text == value.text:
            continue
        if option in {"-P", "--pset"} and name == "psql":
            setting, _, text = text.partition("=")
            if setting != "pager":
                continue
        if not (value.static and _USUAL(text)):
            walker.nested(Word(text, value.static, False, text), below(draft), f"{label} {option.removesuffix('=')}")


def _values(name: str, words: list[Word]) -> Iterator[tuple[str, Word]]:
    options = COMMAND_OPTIONS.get(name, ())
    if name == "git":
        options = (*options, *COMMAND_OPTIONS.get(f"git {_verb(words)}", ()))
    if name in {"tar", "gtar", "bsdtar"} and len(words) > 1 and _TAR_MODE(words[1].text):
        taking = [letter for letter in words[1].text if letter in _TAR_VALUES]
        for letter in {"I", "F"}.intersection(taking):
            yield from ((f"-{letter}", word) for word in words[2 + taking.index(letter) :][:1])
    for i in range(1, len(words)):
        for option in options:
            found = _value(option, words[i])
            if found is not None:
                # without a value of its own the option takes the next word
                yield from ((option, word) for word in ([found] if found.raw or found.text else words[i + 1 : i + 2]))


def _verb(words: list[Word]) -> str:
    i = 1
    while i < len(words) and words[i].text.startswith("-"):
        i += 2 if words[i].text in _GIT_VALUES else 1
    return words[i].text if i < len(words) else ""


def _value(option: str, word: Word) -> Word | None:
    """The value a word gives to an option; empty when it is the next word's; None when the word is not that option."""
    text = word.text
    if option[0] != "-":
        return _part(word, text[len(option) :]) if text.startswith(option) else None
    if text[:1] != "-" or len(text) < 2:
        return None
    name, equals, value = text.partition("=")
    if option[:2] == "--":
        fits = name == option or (len(name) > 4 and option.startswith(name))
    elif len(option) > 2:
        if text.startswith(option) and len(option) == 3 and not equals:
            return _part(word, text[3:])
        fits = name in {option, "-" + option}
    elif text[1] == "-":
        return None
    else:
        at = text.find(option[1], 1)
        return _part(word, text[at + 1 :]) if at > 0 and text[1:at].isalnum() | (at == 1) else None
    return _part(word, value) if fits else None


def _part(word: Word, value: str) -> Word:
    return Word(value, word.static, False, value)


# ---- git -----------------------------------------------------------------------------------------------------------


def git(walker: Walker, draft: Draft, name: str) -> bool:
    """Aliases and settings given on the command line, and options that name a program."""
    walker.record(draft)
    words = draft.words
    for i in range(1, len(words)):
        text = words[i].text
        setting = words[i + 1] if text in {"-c", "--config"} and i + 1 < len(words) else None
        if text.startswith("-c") and "=" in text and "." in text:
            setting = _part(words[i], text[2:])
        elif text.startswith("--config="):
            setting = _part(words[i], text[9:])
        if text.startswith("--config-env"):
            walker.error("git takes a setting from a variable")
        if setting is not None:
            _git_setting(walker, draft, setting)
    if len(words) > 3 and words[1].text == "config":
        _git_config(walker, draft, [word for word in words[2:] if not word.text.startswith("-")])
    command_options(walker, draft, name)
    return True


def _git_setting(walker: Walker, draft: Draft, setting: Word) -> None:
    key, _, value = setting.text.partition("=")
    key = key.lower()
    if key.startswith("alias.") and value.startswith("!"):
        walker.nested(_part(setting, value[1:]), below(draft), "git alias")
    elif key in GIT_RUNS or (_GIT_CONFIGURES(key) and not key.startswith(("include", "submodule"))):
        command = value.removeprefix("!")
        if command and command not in _GIT_USUAL:
            walker.nested(_part(setting, command), below(draft), f"git -c {key}")


def _git_config(walker: Walker, draft: Draft, operands: list[Word]) -> None:
    operands = operands[1:] if operands and operands[0].text in {"set", "add"} else operands
    if len(operands) >= 2:
        text = f"{operands[0].text}={operands[1].text}"
        _git_setting(walker, draft, Word(text, operands[0].static and operands[1].static, False, text))


# ---- ssh and its like ----------------------------------------------------------------------------------------------


def ssh_options(walker: Walker, draft: Draft, name: str) -> None:
    """`-o ProxyCommand=…`: what ssh runs on this machine."""
    for i, word in enumerate(draft.words):
        attached = word.text.startswith("-o") and len(word.text) > 2
        if not attached and (i == 0 or draft.words[i - 1].text != "-o"):
            continue
        text = (word.text[2:] if attached else word.text).strip()
        key, _, value = (text if "=" in text.partition(" ")[0] else text.replace(" ", "=", 1)).partition("=")
        if key.strip().lower() in _SSH_RUNS and value.strip() != "none":
            walker.nested(_part(word, value), below(draft), f"{name} -o {key}")


def copy_over_ssh(walker: Walker, draft: Draft, name: str) -> bool:
    walker.record(draft)
    ssh_options(walker, draft, name)
    command_options(walker, draft, name)
    return True


# ---- others --------------------------------------------------------------------------------------------------------


def cmake(walker: Walker, draft: Draft, name: str) -> bool:
    """`cmake -E env COMMAND`, `cmake -E rm FILE`: a small shell of its own."""
    walker.record(draft)
    words = draft.words
    at = next((i for i in range(1, len(words)) if words[i].text == "-E"), 0)
    if at and at + 1 < len(words):
        deed = words[at + 1].text
        program = {"remove": "rm", "remove_directory": "rm", "rm": "rm"}.get(deed, deed)
        if program in {"rm", "env", "time"}:
            inner(walker, draft, [Word(program, True, False, program), *words[at + 2 :]], f"{name} -E")
    return True


def expanding(walker: Walker, draft: Draft, name: str) -> bool:
    """Builtins for which `'a[$(command)]'` is a command to run, quotes or not."""
    words = draft.words
    if name in _ALWAYS_EXPAND:
        suspects = words[1:]
    elif name in _DECLARING:
        every = any(_EXPANDING(word.text) for word in words[1:])
        suspects = [word for word in words[1:] if every or "[" in word.text.partition("=")[0]]
    else:
        suspects = words[1:] if any(re.fullmatch(r"-[vR].*", word.text) for word in words[1:]) else []
    if name in _FILLING:
        # what they read goes into variables, and some variables are instructions to other programs
        found = [word.text for word in words[1:] if word.static and _VARIABLE(word.text)]
        draft.assignments.extend((variable, Word("", False)) for variable in found)
    if any(word.static and EVALUATED(word.text) for word in suspects):
        walker.dynamic(f"{name} runs commands that stand in quotes")
    return with_options(walker, draft, name)


EXPANDING = _ALWAYS_EXPAND | _DECLARING | {"printf", "test", "["}
