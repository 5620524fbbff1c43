"""Whether a pattern covers a command: word by word on the parsed shell, never on its text.

An answer is `None` when the pattern covers the command, the empty string when it is about another command, and
otherwise half a sentence with the reason why a matching pattern is not enough. The rule a change must not break: a
wildcard only stands for a word that is known, stays in the workspace, names no credential and does not turn the program
into another one. In doubt, a reason. A `cd` inside the workspace is harmless, but names after it mean other files, so
the directory of each command is followed here.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from ..shell import Command, Redirect, Word, parse
from .globs import CommandGlob, WordGlob
from .places import (
    PATTERN_FIRST,
    SEARCHING,
    Place,
    chooses_files,
    guarded,
    hidden_glob,
    is_message,
    is_pattern,
    may_expand_to_secret,
    path_free,
    path_readings,
    place,
    sensitive,
)
from .sharp import ALWAYS_LISTENING, INTERPRETERS, READERS, delegate, known_name, names, sharp_part, takes_options

STREAMS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})


class Site(NamedTuple):
    """Where a command runs: the workspace, and whether the script leaves it on the way."""

    workspace: str | None
    elsewhere: bool = False
    # the directory inside the workspace that the script moves to; `?` when it moves more than once
    moved: str = ""


def leaves_workspace(commands: tuple[Command, ...], workspace: str | None) -> bool:
    """Whether a `cd` goes outside or nobody knows where; what is relative afterwards is then nowhere."""
    for command in commands:
        if command.name == "popd":
            return True
        if command.name in {"cd", "pushd"}:
            operands = _operands(command)
            if not operands or not all(word.static and _stays(word.text, workspace) for word in operands):
                return True
    return False


def moves_to(commands: tuple[Command, ...], workspace: str | None) -> str:
    """The directory, seen from the workspace, in which relative names may be looked up after a `cd`."""
    targets = {
        "/".join(place(word.text, workspace).parts)
        for command in commands
        if command.name in {"cd", "pushd"}
        for word in _operands(command)
    } - {""}
    moves = [command for command in commands if command.name in {"cd", "pushd"}]
    if not targets:
        return ""
    return targets.pop() if len(targets) == 1 and len(moves) == 1 else "?"


def _operands(command: Command) -> list[Word]:
    return [word for word in command.words[1:] if word.text == "-" or not word.text.startswith("-")]


def idles(command: Command, site: Site) -> bool:
    """Whether a command does nothing that a rule would have to name.

    It ends or joins a script (`true`, `:`, `exit 1`), or moves inside the workspace, not among hidden or foreign files.
    """
    if command.assignments or command.wrappers or any(not one.static for one in command.words):
        return False
    if any(one.writes and not is_stream(one) for one in command.redirects):
        return False
    operands = [word.text for word in command.words[1:]]
    if command.program in {"true", "false", ":"}:
        return not operands
    if command.program == "exit":
        return not operands or (len(operands) == 1 and operands[0].isdigit())
    if command.program != "cd" or len(operands) != 1 or site.elsewhere or not _stays(operands[0], site.workspace):
        return False
    return not foreign(place(operands[0], site.workspace).parts)


def foreign(parts: tuple[str, ...]) -> bool:
    """Whether a directory is hidden or holds code that the project did not write."""
    return any(part.startswith((".", "-")) or part in _FOREIGN for part in parts)


# directories of code that the project did not write
_FOREIGN = names("node_modules vendor third_party site-packages venv env bower_components Pods")


def _stays(text: str, workspace: str | None) -> bool:
    return text not in ("-", "") and not text.startswith("+") and place(text, workspace).inside


def is_stream(redirect: Redirect) -> bool:
    """Whether a writing redirection goes to nowhere or to a stream that is open anyway."""
    return redirect.target is not None and redirect.target.static and redirect.target.text in STREAMS


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{2,}")
# the operands of these are text, not files
_SPEAKERS = frozenset({"echo", "printf"})
# interpreters that run a file, and options of theirs that take no word
_TAKE_SCRIPTS = names("python python2 python3 pypy pypy3 node nodejs ts-node tsx bun deno ruby php lua Rscript R julia")
_STANDS_ALONE = re.compile(r"-[uBOsSEIqvbdPwx]+|--(?:test|watch|no-warnings|enable-source-maps|vanilla)|--|-[OW]\w+")
_GIT_READERS = names("diff log show blame add status grep ls-files commit")
_DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})
# what a file name that begins with a dash can do to these is little
_HARD_TO_FOOL = names("grep egrep fgrep wc cat head tail diff file jq prettier eslint ruff black mypy")
PRIVILEGED = names(
    """
    sudo doas su pkexec gosu su-exec runuser chroot unshare nsenter setpriv capsh systemd-run
    """
)
# what `find -exec` and `xargs -I` put a file's name for, and what ends the command in `find -exec`
PLACEHOLDER = "{}"
_TERMINATORS = frozenset({"+", "\\;", "';'", '";"'})


def ordinary_test(command: Command) -> Command:
    """A `[ … ]` with its operands as words: to the shell it is a command like any other."""
    if command.program != "[" or len(command.words) != 2 or command.words[1].static:
        return command
    found = parse("test " + command.words[1].raw.removeprefix("[").removesuffix("]"))
    if not found.trusted or len(found.commands) != 1 or not command.words[1].raw.endswith("]"):
        return command
    read = found.commands[0]
    if read.name != "test" or read.assignments or read.redirects:
        return command
    bracket = Word("]", True, False, "]")
    words = (command.words[0], *read.words[1:], bracket)
    return Command(words, command.assignments, command.redirects, command.wrappers, command.piped, command.context)


# Patterns against commands -----------------------------------------------------------------------------------------


def covers(glob: CommandGlob, command: Command, site: Site, inner: frozenset[int] = frozenset()) -> str | None:
    """Whether a pattern covers a command; the words at `inner` are another command's, which is judged as such."""
    words = command.words
    if not _fits(glob, words):
        return ""
    answer = _assignments(glob, command, site)
    if answer is not None:
        return answer
    if site.moved and any("/" in one.prefix and one.prefix[0] != "/" for one in glob.words):
        return "the script changes its directory first, so the pattern means another file"
    texts = tuple(word.text for word in words)
    for index, word in enumerate(words):
        pattern = glob.words[index] if index < len(glob.words) else None
        if index not in inner and (pattern is None or pattern.literal is None):
            answer = _wildcard(texts, index, word, pattern.prefix if pattern else "", site)
            if answer is not None:
                return answer
    return input_refusal(command)


def _fits(glob: CommandGlob, words: tuple[Word, ...]) -> bool:
    count = len(glob.words)
    if not words or not glob.words or len(words) < count or (len(words) > count and not glob.more):
        return False
    if glob.more and len(words) == count:
        return False
    return all(_word_fits(pattern, word) for pattern, word in zip(glob.words, words, strict=False))


def _word_fits(pattern: WordGlob, word: Word) -> bool:
    return (word.static or pattern.literal is None) and pattern.matches(word.text)


def _assignments(glob: CommandGlob, command: Command, site: Site) -> str | None:
    named = dict(glob.assignments)
    if command.name in _DECLARING:
        return None if not named else ""
    given = {name for name, _ in command.assignments}
    if not set(named) <= given:
        return ""
    for name, value in command.assignments:
        pattern = named.get(name.rstrip("+"))
        if pattern is None or not (value.static and pattern.matches(value.text)):
            return f"the assignment `{name}=` in front is not named"
        if pattern.literal is None and (answer := _out_of_bounds(value.text, pattern.prefix, site, reader=False)):
            return answer
    return None


def tail(glob: CommandGlob, written: Command, inner: Command) -> CommandGlob | None:
    """The part of a pattern that spells out the inner command of a wrapper, if it does."""
    span = inner_span(written, inner)
    if not span or span.start >= len(glob.words) or glob.words[span.start].literal is None:
        return None
    last = span.stop == len(written.words)
    return CommandGlob(glob.source, (), glob.words[span.start : span.stop], glob.more and last)


def is_literal(glob: CommandGlob) -> bool:
    """Whether a pattern has no wildcard: then it spells out everything its command line runs."""
    return not glob.more and all(word.literal is not None for word in glob.words)


def bare(command: Command) -> Command:
    """An inner command without what its wrappers add: assignments, and arguments that nobody knows."""
    words = list(command.words)
    while words and not words[-1].static and not words[-1].raw:
        words.pop()
    known = tuple(Word(PLACEHOLDER, True, False, PLACEHOLDER) if word.raw == PLACEHOLDER else word for word in words)
    return Command(known, (), command.redirects, command.wrappers, command.piped)


def inner_span(written: Command, inner: Command) -> range:
    """Where the words of an inner command stand in the command line that wraps it; empty when they do not."""
    words = [word.raw for word in bare(inner).words]
    line = [word.raw for word in written.words]
    for start in range(1, len(line) - len(words) + 1) if words else ():
        stop = start + len(words)
        if line[start:stop] == words and (stop == len(line) or line[stop] in _TERMINATORS):
            return range(start, stop)
    return range(0)


def wrappers_named(glob: CommandGlob, written: Command, inner: Command) -> bool:
    """Whether a pattern spells out every wrapper that stands between a command line and its inner command.

    Wrappers inside a text that another shell reads stand in no word of their own, so no pattern spells them out.
    """
    names = [token for wrapper in inner.wrappers for token in wrapper.split(" ")]
    position = 0
    for name in names:
        found = next((i for i in range(position, len(written.words)) if _is_called(written.words[i], name)), None)
        if found is None or found >= len(glob.words) or glob.words[found].literal is None:
            return False
        position = found + 1
    return True


def _is_called(word: Word, name: str) -> bool:
    return word.static and word.text.rpartition("/")[2] == name


def free(command: Command, site: Site) -> str | None:
    """Why a rule for all commands does not cover this one; its risk is looked at elsewhere."""
    if any(wrapper.split(" ")[0] in PRIVILEGED for wrapper in command.wrappers):
        return "it asks for other rights"
    if command.assignments:
        return f"the assignment `{command.assignments[0][0]}=` in front is not named"
    if command.name in {"alias", "eval", "trap", "enable", "hash", "set", "shopt", "unset"} | PRIVILEGED:
        return f"`{command.name}` changes what the following commands mean"
    for index, word in enumerate(command.words):
        if word.static and word.text.startswith("-") and not index:
            return "the program's name is an option"
        if (answer := _known(word)) or (answer := _bounds(command, index, "", site)):
            return answer
    return input_refusal(command)


# Words ---------------------------------------------------------------------------------------------------------------


def _wildcard(texts: tuple[str, ...], index: int, word: Word, prefix: str, site: Site) -> str | None:
    """Why a wildcard may not stand for a word."""
    answer = (None if _is_status(texts[0], word) else _known(word)) or _expansion(texts[delegate(texts)], word)
    if answer is None and prefix and re.search(r"(?:^|/)\.\.(?:/|$)", word.text[max(len(prefix) - 2, 0) :]):
        answer = f"`{_shown(word.text)}` leads out of what the pattern names"
    if answer is None:
        answer = _bounds_of(texts, index, prefix, site)
    if answer is None and index and (part := sharp_part(texts, index)) and not prefix.startswith(part):
        shown = part if len(part) <= 40 else part[:40] + "…"
        answer = f"no wildcard stands for `{shown}`" if part != "--" else "no wildcard stands for `--`"
    return answer


def _is_status(program: str, word: Word) -> bool:
    """`echo $?`: the status of the last command and its like are numbers."""
    return program in _SPEAKERS and re.fullmatch(r"(?:[\w .,:=!/-]|\$[?#$]|\")*", word.raw) is not None


def _known(word: Word) -> str | None:
    if word.raw == PLACEHOLDER:
        return f"`{PLACEHOLDER}` is not known before it runs"
    if word.static or (word.glob and not re.search(r"[$`{}()~]", word.raw)):
        return None
    return f"`{word.raw or 'an argument'}` is not known before it runs"


def _expansion(program: str, word: Word) -> str | None:
    """Why a shell wildcard may not stand unseen: it may expand to a credential or to an option."""
    if not word.glob:
        return None
    *folders, last = word.text.split("/")
    if any(part.startswith(".") and re.search(r"[*?\[]", part) for part in folders) or (
        re.search(r"[*?\[]", last) and may_expand_to_secret(last)
    ):
        return f"`{word.raw}` may expand to a credential file"
    name = program.rpartition("/")[2]
    if word.text[:1] in "*?[" and name not in _HARD_TO_FOOL and takes_options(name):
        return f"`{word.raw}` may expand to an option"
    return None


def _bounds(command: Command, index: int, prefix: str, site: Site) -> str | None:
    texts = tuple(word.text for word in command.words)
    return _expansion("", command.words[index]) or _bounds_of(texts, index, prefix, site)


def _bounds_of(texts: tuple[str, ...], index: int, prefix: str, site: Site) -> str | None:
    name = known_name(texts[0])
    if name in _SPEAKERS and index:
        return None
    if name in SEARCHING and (value := chooses_files(texts, index)) and hidden_glob(value):
        return f"`{_shown(value)}` may stand for a credential file"
    if (name in PATTERN_FIRST and is_pattern(name, texts, index)) or (name == "git" and is_message(texts, index)):
        return None
    if site.elsewhere and index and not texts[index].startswith("-"):
        return "the script leaves the workspace first"
    return _out_of_bounds(texts[index], prefix, site, reader=_only_reads(name, texts))


def _only_reads(name: str, texts: tuple[str, ...]) -> bool:
    if name == "git" and texts[1:2] and texts[1] not in _GIT_READERS:
        return False
    return name in READERS and not any(sharp_part(texts, index) for index in range(1, len(texts)))


def _out_of_bounds(text: str, prefix: str, site: Site, *, reader: bool) -> str | None:
    for line in text.split("\n"):
        for reading in path_readings(line):
            if _SCHEME.match(reading) and not reading.lower().startswith("file:"):
                continue
            where = place(reading, site.workspace)
            if site.moved and (answer := _from_there(reading, site, reader=reader)):
                return answer
            if not where.inside and not _named(text, reading, where, prefix, site):
                return f"`{_shown(reading)}` is outside the workspace"
            if name := sensitive(where.parts):
                return f"`{_shown(name)}` may hold credentials"
            if not reader and (name := guarded(where.parts)):
                return f"files in `{_shown(name)}` take effect by themselves"
    return None


def _from_there(reading: str, site: Site, *, reader: bool) -> str | None:
    """What a relative path is, seen from the directory that the script moves to."""
    if site.moved == "?" or reading.startswith("/"):
        return None
    parts = place(f"{site.moved}/{reading}", site.workspace).parts
    if name := sensitive(parts):
        return f"`{_shown(name)}` may hold credentials"
    if not reader and (name := guarded(parts)):
        return f"files in `{_shown(name)}` take effect by themselves"
    return None


def _named(text: str, reading: str, where: Place, prefix: str, site: Site) -> bool:
    """Whether the literal beginning of a pattern names a directory, below the root, that a path stays in."""
    directory = prefix[len(text) - len(reading) :].rpartition("/")[0] if text.endswith(reading) else ""
    base = place(directory, site.workspace) if directory else None
    if base is None or base.inside or base.root == "?" or not base.parts:
        return False
    return where.root == base.root and where.parts[: len(base.parts)] == base.parts


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"


# Input and redirections -----------------------------------------------------------------------------------------------


def input_refusal(command: Command) -> str | None:
    """Why a command must not be covered because of what it reads: an interpreter runs it."""
    fed = command.piped or any(one.operator.startswith("<") and one.operator != "<>" for one in command.redirects)
    if not fed or not command.words or known_name(command.name) not in INTERPRETERS:
        return None
    name = known_name(command.name)
    operands = [
        word
        for before, word in itertools.pairwise(command.words)
        # behind an option that is not known to stand alone, a word may be its value and no file
        if word.text[:1] != "-"
        and word.text != "/dev/stdin"
        and (before.text[:1] != "-" or name not in _TAKE_SCRIPTS or _STANDS_ALONE.fullmatch(before.text))
    ]
    enough = name not in ALWAYS_LISTENING and len(operands) >= (2 if name == "ssh" else 1)
    return None if enough else f"`{command.name}` would run what it reads"


def read_refusal(redirect: Redirect, site: Site) -> str | None:
    """Why a redirection that reads is not covered by whatever covers its command."""
    target = redirect.target
    if redirect.operator not in {"<", "<&"} or target is None:
        return None
    if redirect.operator == "<&" and target.static and target.text.rstrip("-").isdigit():
        return None
    if not target.static:
        return f"`{target.raw}` is not known before it runs"
    if target.text in STREAMS:
        return None
    if site.elsewhere:
        return "the script leaves the workspace first"
    answer = path_free(target.text, site.workspace, writing=False)
    if answer is None and not place(target.text, site.workspace).inside:
        answer = "the path is outside the workspace"
    return answer and f"it reads `{_shown(target.text)}`: {answer}"
