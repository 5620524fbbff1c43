"""Whether a pattern covers a command: word by word on the parsed shell, never on its text.

An answer is `None` when the pattern covers the command, the empty string when it is about another command, and
otherwise the reason, as half a sentence, why a pattern that fits is not enough. The rule a change must not break: what
a wildcard stands for is only ever a word that is known, stays in the workspace, names no credential and does not turn
the program into another one. When in doubt, a reason.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..shell import Command, Redirect, Script, Word, parse
from ..shell.tree import Draft, Scope, State, Walker
from .globs import CommandGlob, WordGlob
from .places import Place, guarded, may_expand_to_secret, path_free, path_readings, place, sensitive
from .sharp import ALWAYS_LISTENING, INTERPRETERS, READERS, known_name, names, sharp_part, takes_options

__all__ = [
    "Site",
    "as_written",
    "covers",
    "free",
    "input_refusal",
    "leaves_workspace",
    "read_refusal",
    "tail",
    "wrappers_named",
]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{2,}")
# the operands of these are text, not files
_SPEAKERS = frozenset({"echo", "printf"})
# the first operand of these is a pattern or a program text, unless an option gave one already
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "jq"})
# generously: options may be abbreviated, and their value attached
_PATTERN_GIVEN = re.compile(r"-[A-Za-z0-9]*[ef].*|--[ref].*", re.DOTALL)
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
_STREAMS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})


class Site(NamedTuple):
    """Where a command runs: the workspace, and whether the script leaves it on the way."""

    workspace: str | None
    elsewhere: bool = False


def as_written(text: str) -> Script:
    """The simple commands of a script with their wrappers still in front of them."""

    def keep(walker: Walker, draft: Draft) -> None:
        walker.record(draft)

    state = State()
    Walker(state, keep).read(text, Scope())
    return state.script()


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


def leaves_workspace(commands: tuple[Command, ...], workspace: str | None) -> bool:
    """Whether a `cd` goes outside or nobody knows where; what is relative afterwards is then nowhere."""
    for command in commands:
        if command.name in {"cd", "pushd"}:
            operands = [word for word in command.words[1:] if word.text == "-" or not word.text.startswith("-")]
            if not operands or not all(word.static and _stays(word.text, workspace) for word in operands):
                return True
    return False


def _stays(text: str, workspace: str | None) -> bool:
    return text not in ("-", "") and not text.startswith("+") and place(text, workspace).inside


# Patterns against commands -----------------------------------------------------------------------------------------


def covers(glob: CommandGlob, command: Command, site: Site, inner: frozenset[int] = frozenset()) -> str | None:
    """Whether a pattern covers a command; the words at `inner` are another command's, which is judged as such."""
    words = command.words
    if not _fits(glob, words):
        return ""
    answer = _assignments(glob, command, site)
    if answer is not None:
        return answer
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
    answer = _known(word) or _expansion(texts[0], word)
    if answer is None and prefix and re.search(r"(?:^|/)\.\.(?:/|$)", word.text[max(len(prefix) - 2, 0) :]):
        answer = f"`{_shown(word.text)}` leads out of what the pattern names"
    if answer is None:
        answer = _bounds_of(texts, index, prefix, site)
    if answer is None and index and (part := sharp_part(texts, index)) and not prefix.startswith(part):
        shown = part if len(part) <= 40 else part[:40] + "…"
        answer = f"no wildcard stands for `{shown}`" if part != "--" else "no wildcard stands for `--`"
    return answer


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
    if name in _PATTERN_FIRST and _is_pattern(texts, index):
        return None
    if site.elsewhere and index and not texts[index].startswith("-"):
        return "the script leaves the workspace first"
    return _out_of_bounds(texts[index], prefix, site, reader=_only_reads(name, texts))


def _only_reads(name: str, texts: tuple[str, ...]) -> bool:
    if name == "git" and texts[1:2] and texts[1] not in _GIT_READERS:
        return False
    return name in READERS and not any(sharp_part(texts, index) for index in range(1, len(texts)))


def _is_pattern(texts: tuple[str, ...], index: int) -> bool:
    first = next((i for i, text in enumerate(texts) if i and not text.startswith("-")), 0)
    return index == first and not any(_PATTERN_GIVEN.fullmatch(text) for text in texts[1:])


def _out_of_bounds(text: str, prefix: str, site: Site, *, reader: bool) -> str | None:
    for line in text.split("\n"):
        for reading in path_readings(line):
            if _SCHEME.match(reading) and not reading.lower().startswith("file:"):
                continue
            where = place(reading, site.workspace)
            if not where.inside and not _named(text, reading, where, prefix, site):
                return f"`{_shown(reading)}` is outside the workspace"
            if name := sensitive(where.parts):
                return f"`{_shown(name)}` may hold credentials"
            if not reader and (name := guarded(where.parts)):
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
    operands = [word for word in command.words[1:] if word.text[:1] != "-" and word.text != "/dev/stdin"]
    name = known_name(command.name)
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
    if target.text in _STREAMS:
        return None
    if site.elsewhere:
        return "the script leaves the workspace first"
    answer = path_free(target.text, site.workspace, writing=False)
    if answer is None and not place(target.text, site.workspace).inside:
        answer = "the path is outside the workspace"
    return answer and f"it reads `{_shown(target.text)}`: {answer}"


def is_stream(redirect: Redirect) -> bool:
    """Whether a writing redirection goes to nowhere or to a stream that is open anyway."""
    return redirect.target is not None and redirect.target.static and redirect.target.text in _STREAMS
