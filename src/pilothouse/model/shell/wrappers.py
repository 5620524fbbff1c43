"""Commands that run other commands: removes wrappers and finds the commands inside.

`unwrap` is called for every simple command. Programs that only hand over (`sudo`, `env`, `timeout`) leave nothing but
their name in `Command.wrappers`; programs that also do something themselves (`find`, `git`, `ssh`) are listed too. A
command in an option of another program (`tar -I …`, `rsync -e …`, `make SHELL=…`) and text that builtins expand are
found as well, with the option as the wrapper. A change must keep this: where it is uncertain which word begins the
inner command, the script gets an error; reading an option too generously costs a question, missing one costs more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .grammar import EVALUATED
from .interpreters import (
    UNKNOWN,
    assignments,
    below,
    code,
    inner,
    options,
    placeholder,
    prefixed,
    shell,
    source,
    su,
    take_off,
)
from .nouns import Draft, Word
from .table import (
    CODE_OPERAND,
    CODE_OPTIONS,
    COMMAND_OPTIONS,
    GIT_RUNS,
    PREFIXES,
    ROOT_VALUES,
    ROOTS,
    SHELLS,
    SUBCOMMANDS,
    Prefix,
    names,
)
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


MAX_WRAPPERS = 16
_VERSIONED = re.compile(r"(python|pypy|perl|ruby|node|lua|php)[\d.]*w?").fullmatch
Handler = Callable[[Walker, Draft, str], bool]
"""Takes one layer off a draft: True when all is recorded, False when the draft now holds the inner command."""


def unwrap(walker: Walker, draft: Draft) -> None:
    """Record the command in a draft, with all wrappers taken off and all commands in its arguments."""
    for _ in range(MAX_WRAPPERS):
        words = draft.words
        if not words or not words[0].static:
            break
        text = words[0].text
        name = text.rpartition("/")[2]
        handler = _handler(name)
        if handler is None or handler(walker, draft, name):
            if handler is None:
                walker.record(draft)
            return
    else:
        walker.error("too many wrappers around a command")
    walker.record(draft)


def _handler(name: str) -> Handler | None:
    found = HANDLERS.get(name)
    if found is None and name[:2] in {"py", "pe", "ru", "no", "lu", "ph"}:
        match = _VERSIONED(name)
        if match:
            return code
    return found


def subcommand(walker: Walker, draft: Draft, name: str) -> bool:
    """`docker run`, `uv run`, `kubectl exec`: a wrapper only with that subcommand."""
    words = draft.words
    path: tuple[str, ...] = (name,)
    i = 1
    while i < len(words) and len(path) < 3:
        text = words[i].text
        if text.startswith("-"):
            i += 2 if text in ROOT_VALUES else 1
            continue
        path = (*path, text)
        i += 1
        spec = SUBCOMMANDS.get(path)
        if spec is not None:
            return take_off(walker, draft, spec, " ".join(path), i)
    if name == "git":
        return git(walker, draft, name)
    walker.record(draft)
    if name in COMMAND_OPTIONS:
        command_options(walker, draft, name)
    return True


def env(walker: Walker, draft: Draft, name: str) -> bool:
    words = draft.words
    i = 1
    while i < len(words):
        text = words[i].text
        split = _split_string(text, words[i + 1 : i + 2])
        if split is not None:
            script, used = split
            if not words[i].static or not script.static:
                walker.error("env -S splits text that is only known when it runs")
            # what env splits is not shell text, but its words are found the same way
            parts = [Word(part, True, False, part) for part in script.text.split()]
            draft.words = [words[0], *parts, *words[i + used :]]
            words, i = draft.words, 1
            continue
        if text in {"-u", "--unset", "-C", "--chdir", "-P"}:
            i += 2
        elif text == "--":
            i += 1
            break
        elif text.startswith("-"):
            if text.partition("=")[0] not in _ENV_FLAGS and not re.fullmatch(r"-(?:[iv0]+|[uC].+)", text):
                walker.error(f"an option of env was not understood: {text}")
            i += 1
        else:
            break
    i = assignments(draft, i)
    if i >= len(words):
        walker.record(draft)
        return True
    draft.words = words[i:]
    draft.wrappers.append("env")
    return False


_ENV_FLAGS = names(
    "- -i --ignore-environment -0 --null -v --debug --unset --chdir --block-signal --default-signal --ignore-signal"
    " --list-signal-handling --help --version"
)


def _split_string(text: str, following: list[Word]) -> tuple[Word, int] | None:
    if text.startswith("--split-string"):
        if "=" in text:
            value = text.partition("=")[2]
            return Word(value, True, False, value), 1
        return (following[0], 2) if following else None
    match = re.fullmatch(r"-[iv0]*S(.*)", text, re.DOTALL)
    if match is None:
        return None
    if match[1]:
        return Word(match[1], True, False, match[1]), 1
    return (following[0], 2) if following else None


def trap(walker: Walker, draft: Draft, name: str) -> bool:
    words = [word for word in draft.words[1:] if word.text != "--"]
    walker.record(draft)
    if len(words) > 1 and words[0].text not in {"", "-", "-l", "-p"}:
        walker.nested(words[0], below(draft), name)
    return True


def alias(walker: Walker, draft: Draft, name: str) -> bool:
    walker.features.add("alias")
    walker.record(draft)
    for word in draft.words[1:]:
        _, equals, value = word.text.partition("=")
        if equals:
            walker.nested(Word(value, word.static, False, value), below(draft), name)
    return True


def find(walker: Walker, draft: Draft, name: str) -> bool:
    walker.record(draft)
    words = draft.words
    i = 1
    while i < len(words):
        if words[i].text in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = i + 1
            while end < len(words) and words[end].text != ";" and not _plus(words, end):
                end += 1
            inner(walker, draft, words[i + 1 : end], f"{name} {words[i].text}")
            i = end
        i += 1
    return True


def _plus(words: list[Word], i: int) -> bool:
    return words[i].text == "+" and "{}" in words[i - 1].text


def fd(walker: Walker, draft: Draft, name: str) -> bool:
    walker.record(draft)
    words = draft.words
    for i in range(1, len(words)):
        if words[i].text in {"-x", "--exec", "-X", "--exec-batch"}:
            end = next((k for k in range(i + 1, len(words)) if words[k].text == ";"), len(words))
            inner(walker, draft, [*words[i + 1 : end], UNKNOWN], f"{name} {words[i].text}")
        elif words[i].text.startswith(("--exec=", "--exec-batch=")):
            option, _, value = words[i].text.partition("=")
            inner(walker, draft, [Word(value, words[i].static, False, value), *words[i + 1 :]], f"{name} {option}")
    return True


def parallel(walker: Walker, draft: Draft, name: str) -> bool:
    words = draft.words
    end = next((k for k in range(1, len(words)) if words[k].text in {":::", ":::+", "::::"}), len(words))
    i, _ = options(walker, words[:end], _PARALLEL, name, 1)
    scope = below(draft)
    if i < 0 or i >= end:
        walker.record(draft)
        for word in words[end + 1 :]:
            walker.nested(word, scope, name)
        if end == len(words) or words[end].text == "::::":
            walker.dynamic(f"{name} runs what it reads from its input")
        return True
    template = [placeholder(word) for word in words[i:end]]
    if len(template) == 1 and " " in template[0].text:
        walker.nested(Word(template[0].text, words[i].static, False, template[0].text), scope, name)
    else:
        inner(walker, draft, [*template, UNKNOWN], name)
    return True


_PARALLEL = Prefix(
    values=names("-j --jobs -a --arg-file -n -N --max-args -L -I -C --colsep -S --sshlogin --delay --timeout "
                     "--joblog --results --retries --tmpdir --wd --workdir --halt --load --memfree --nice -d"),
    flags=names("*"),
    unknown="flag",
)  # fmt: skip


def ssh(walker: Walker, draft: Draft, name: str) -> bool:
    ssh_options(walker, draft, name)
    draft.scope = draft.scope.inside("remote")
    return take_off(walker, draft, PREFIXES["ssh"], "ssh", 1)


def tmux(walker: Walker, draft: Draft, name: str) -> bool:
    """Any argument with a blank in it may be a command line for a new window."""
    walker.record(draft)
    for word in draft.words[1:]:
        if " " in word.text:
            walker.nested(word, below(draft), name)
    return True


def coproc(walker: Walker, draft: Draft, name: str) -> bool:
    walker.features.add("coproc")
    if draft.words[0].raw == name:
        walker.error("a coprocess is not followed")
    return prefixed(walker, draft, name)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(EXPANDING, expanding),
    **{name: with_options for name in COMMAND_OPTIONS if " " not in name and name not in EXPANDING},
    **dict.fromkeys(PREFIXES, prefixed),
    **dict.fromkeys(ROOTS, subcommand),
    **dict.fromkeys(SHELLS, shell),
    **dict.fromkeys(CODE_OPTIONS, code),
    **dict.fromkeys(CODE_OPERAND, code),
    "env": env,
    "genv": env,
    "su": su,
    "runuser": su,
    "trap": trap,
    "alias": alias,
    "find": find,
    "gfind": find,
    "fd": fd,
    "fdfind": fd,
    "parallel": parallel,
    "ssh": ssh,
    "tmux": tmux,
    "coproc": coproc,
    "cmake": cmake,
    "scp": copy_over_ssh,
    "sftp": copy_over_ssh,
    "source": source,
    ".": source,
}
