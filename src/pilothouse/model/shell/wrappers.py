"""Commands that run other commands: takes wrappers off and finds the commands inside.

`unwrap` is called for every simple command. Programs that only hand over (`sudo`, `env`, `timeout`) leave nothing but
their name in `Command.wrappers`; programs that also do something themselves (`find`, `git`, `ssh`) are listed too.
A change must keep this: where it is not certain which word begins the inner command, the script gets an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .hidden import EXPANDING, cmake, command_options, copy_over_ssh, expanding, git, ssh_options, with_options
from .interpreters import code, shell, source, su
from .nouns import Word
from .prefixes import UNKNOWN, assignments, below, inner, options, placeholder, prefixed, take_off
from .state import Draft
from .table import (
    CODE_OPERAND,
    CODE_OPTIONS,
    COMMAND_OPTIONS,
    PREFIXES,
    ROOT_VALUES,
    ROOTS,
    SHELLS,
    SUBCOMMANDS,
    Prefix,
    names,
)
from .tree import Walker

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
